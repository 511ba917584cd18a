"""A key with a long history: what a claim more costs there is told by what was read for it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from ledger import _nearby, _world, log
from ledger.resolve import verify_cells
from ledger.write import fold
from tests.ledger.folded import Ledger
from tests.ledger.random_logs import START
from tests.ledger.scenario_logs import PlainProjector
from tests.ledger.test_fold import QUICK, check
from tests.ledger.test_placing import late_logs

SIZES = (40, 400)
OPENED_MAX = 8


def at(minute: int) -> str:
    return (START + timedelta(minutes=minute)).isoformat()


class Long:
    """A key with so many equal readings of one sensor; what further claims made the fold read."""

    def __init__(self, db, monkeypatch) -> None:
        self.db = db
        self.opened = 0
        self.number = 0
        claims_of = _world.claims_of

        def counted(rows, *args, **named):
            self.opened += len(rows)
            return claims_of(rows, *args, **named)

        monkeypatch.setattr(_world, "claims_of", counted)

    async def begin(self, tenant: str, size: int) -> None:
        self.tenant, self.number = tenant, 0
        await log.create_tenant(self.db, tenant)
        same = {"entity": "box", "relation": "bay", "value": "3"}
        events = [
            {"observed_at": at(minute), "claims": [same], "actor": {"id": "r1", "class": "sensor"}}
            for minute in range(1, size + 1)
        ]
        await self._append(events)

    async def say(self, minute: int, *, actor=("r1", "sensor"), **claim) -> int:
        """Say something in a fold of its own; return how many keys were read whole for it."""
        said = {"entity": "box", "relation": "bay", **claim}
        actor_id, actor_class = actor
        event = {
            "observed_at": at(minute), "claims": [said], "actor": {"id": actor_id, "class": actor_class},
        }  # fmt: skip
        return await self._append([event])

    async def _append(self, events: list[dict]) -> int:
        drafts = []
        for event in events:
            self.number += 1
            form = {"stream": "s", "kind": "observation", "source_event_id": f"e{self.number}", **event}
            drafts.append(EventDraft.model_validate(form))
        await log.append(self.db, self.tenant, drafts, grant=LOCAL_GRANT)
        self.opened = 0
        # As if time had passed: what a fold left is not what this is about.
        self.db.left.clear()
        report = await fold(self.db, self.tenant, PlainProjector(), events_max=1_000)
        assert report.is_at_head
        return report.read_whole

    async def costs(self, minute: int, **claim) -> int:
        """Say something that must not read the whole key; return how many claims were opened for it."""
        assert await self.say(minute, **claim) == 0
        return self.opened


@pytest.fixture
def long(db, clock, monkeypatch):
    clock.now += timedelta(days=10)
    return Long(db, monkeypatch)


async def test_what_is_placed_on_a_key_costs_the_same_however_long_that_is(long):
    for size in SIZES:
        await long.begin(f"size-{size}", size)
        costs = [
            await long.costs(size // 2, value="5"),
            await long.costs(size // 4, value="3"),
            await long.costs(size // 4, value="6", actor=("ann", "user")),
            await long.costs(0, value="7"),
            await long.costs(5, value="8", valid={"from": at(5), "to": at(9)}),
            await long.costs(4, value="9"),
            await long.costs(20, stance="end"),
            await long.costs(size + 9, value="3"),
        ]
        assert max(costs) <= OPENED_MAX
        assert (await verify_cells(long.db, long.tenant)).problems == ()


async def test_what_comes_after_a_correction_or_a_higher_class_costs_no_more(long):
    for size in SIZES:
        await long.begin(f"acted-{size}", size)
        target = {"targets": [{"source_event_id": "e7"}]}
        assert await long.say(size + 1, stance="correct", value="4", **target) == 1
        assert await long.costs(size + 2, value="3") == 0
        assert await long.costs(9, value="8", valid={"from": at(9), "to": at(12)}) <= OPENED_MAX
        assert await long.say(size + 3, value="5", actor=("op", "operator")) == 1
        assert await long.costs(size + 4, value="3") == 0
        assert await long.costs(size + 5, value="6", actor=("op", "operator")) == 0
        assert (await verify_cells(long.db, long.tenant)).problems == ()


@pytest.mark.parametrize(
    "claim",
    [
        {"value": "5", "valid": {"from": at(9), "to": None}},
        {"stance": "end", "value": "3"},
        {"stance": "retract", "valid": {"from": at(9), "to": at(12)}},
        {"value": "5", "actor": ("op", "operator")},
    ],
    ids=str,
)
async def test_what_a_tail_cannot_tell_reads_the_key_and_is_counted(long, claim):
    await long.begin("acme-2", 20)

    assert await long.say(5, **claim) == 1
    assert (await verify_cells(long.db, long.tenant)).problems == ()


@pytest.mark.parametrize("relation", ["home", "tags"])
def test_cells_follow_where_late_claims_are_placed_and_little_is_read(database, monkeypatch, relation):
    monkeypatch.setattr(_nearby, "CELLS_MAX", 1)
    monkeypatch.setattr(_nearby, "STATES_MAX", 2)
    monkeypatch.setattr(_nearby, "STATES_OF_ONE_MAX", 1)
    ledger = Ledger(database)

    @QUICK
    @given(late_logs(relation=relation), st.sampled_from([1, 2, 20]))
    def holds(commits, events_max):
        check(ledger, commits, events_max, [relation])

    try:
        holds()
    finally:
        ledger.close()
