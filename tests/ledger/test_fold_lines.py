"""The fold on busy keys: by tails and from claims, in any batches, the cells are the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ledger.folded import Ledger
from tests.ledger.random_logs import instant
from tests.ledger.test_fold import QUICK, check
from tests.ledger.test_live import busy_logs


@pytest.fixture
def ledger(database):
    made = Ledger(database)
    yield made
    made.close()


@st.composite
def values_in_order(draw: st.DrawFn) -> list[list[dict]]:
    """Values that come and go on a many-valued key, mostly in order, each by one or two sources."""
    actors = draw(st.sampled_from([[("ann", "user")], [("r1", "sensor"), ("r2", "sensor")]]))
    ends_all = draw(st.integers(0, 2)) == 0
    day = 0
    commits: list[list[dict]] = []
    for number in range(1, draw(st.integers(1, 14)) + 1):
        day = max(0, day + draw(st.sampled_from([0, 0, 1, 1, -2])))
        actor, actor_class = draw(st.sampled_from(actors))
        claim = {"entity": "box", "relation": "tags", "value": draw(st.sampled_from(["a", "b", "c", "d"]))}
        if draw(st.integers(0, 4)) == 0:
            claim["stance"] = "end"
            if ends_all and draw(st.booleans()):
                del claim["value"]
        event = {
            "stream": "s", "kind": "claim", "actor": {"id": actor, "class": actor_class},
            "source_event_id": f"e{number}", "observed_at": instant(day % 9), "claims": [claim],
        }  # fmt: skip
        if commits and draw(st.integers(0, 3)) == 0:
            commits[-1].append(event)
        else:
            commits.append([event])
    return commits


@pytest.mark.property
def test_cells_follow_where_each_value_has_a_tail(ledger):
    @QUICK
    @given(values_in_order(), st.integers(1, 20))
    def holds(commits, events_max):
        check(ledger, commits, events_max, ["tags"])

    holds()


@pytest.mark.property
@pytest.mark.parametrize("relation", ["home", "tags"])
def test_cells_follow_on_busy_keys(ledger, relation):
    @QUICK
    @given(busy_logs(relation=relation), st.integers(1, 20))
    def holds(commits, events_max):
        check(ledger, commits, events_max, [relation])

    holds()
