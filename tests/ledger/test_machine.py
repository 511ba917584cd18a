"""
Anything in any order on a real ledger: said, erased, folded, rebuilt, while its clock jumps.

Whatever was done, every answer at every cut is the oracle's, all rows are intact, and a fold of the
whole log in other batches comes to the same bytes.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from contracts.grants import LOCAL_GRANT
from ledger import log
from ledger.resolve import verify_cells
from ledger.write import begin_epoch, verify_claims
from tests.ledger.examples import examples
from tests.ledger.random_logs import START, an_event
from tests.ledger.scenario_logs import PlainProjector
from tests.ledger.told_logs import NAMES, Told

RELATIONS = ["home", "tags", "visit", "level", "boss"]
EVENTS_MAX, ERASURES_MAX = 9, 3


class Anything(RuleBasedStateMachine):
    """A tenant of a ledger that the test puts here."""

    ledger = None

    def __init__(self) -> None:
        super().__init__()
        self.ledger.clock.now = START + timedelta(days=4)
        self.told = Told(self.ledger, RELATIONS)
        self.known: list[dict] = []
        self.is_rebuilt = False

    @rule(hours=st.sampled_from([-48, -1, 0, 12, 36]))
    def step_clock(self, hours):
        self.ledger.clock.now += timedelta(hours=hours)

    @precondition(lambda self: len(self.known) < EVENTS_MAX)
    @rule(data=st.data(), size=st.sampled_from([1, 1, 2]))
    def say(self, data, size):
        commit = []
        for _ in range(size):
            drawn = data.draw(an_event(self.known, RELATIONS, identity=True, derived=True))
            self.known.append(drawn)
            commit.append(drawn)
        self.told.say(commit)

    @precondition(lambda self: self.known and len(self.told.erasures) < ERASURES_MAX)
    @rule(data=st.data())
    def erase_events(self, data):
        names = [event["source_event_id"] for event in self.known]
        going = data.draw(st.sets(st.sampled_from(names), min_size=1, max_size=2))
        self.told.erase(events=frozenset(going))

    @precondition(lambda self: self.known and len(self.told.erasures) < ERASURES_MAX)
    @rule(subject=st.sampled_from(NAMES))
    def erase_subject(self, subject):
        self.told.erase(subject=subject)

    @rule(events_max=st.sampled_from([1, 2, 5, 100]))
    def fold(self, events_max):
        self.ledger.fold(self.told.tenant, events_max=events_max)

    @precondition(lambda self: not self.is_rebuilt)
    @rule()
    def rebuild(self):
        self.is_rebuilt = True
        self.ledger.run(
            begin_epoch(
                self.ledger.db, self.told.tenant, projector_version=PlainProjector.version, stream="c",
                actor_id="op", grant=LOCAL_GRANT,
            )
        )  # fmt: skip

    def teardown(self):
        told, ledger = self.told, self.ledger
        ledger.fold(told.tenant, events_max=100)
        told.compare()
        assert ledger.run(verify_claims(ledger.db, told.tenant, PlainProjector())).problems == ()
        assert ledger.run(verify_cells(ledger.db, told.tenant)).problems == ()
        assert ledger.run(log.verify(ledger.db, told.tenant)).problems == ()
        if not self.is_rebuilt:
            now = ledger.digest(told.tenant)
            ledger.unfold(told.tenant)
            ledger.fold(told.tenant, events_max=1)
            assert ledger.digest(told.tenant) == now


@pytest.mark.property
def test_anything_in_any_order_is_what_the_oracle_says(many_tenants):
    class Here(Anything):
        ledger = many_tenants

    run_state_machine_as_test(Here, settings=examples(5, stateful_step_count=12))
