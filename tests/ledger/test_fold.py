"""The fold: cells say what the claims say, at every cut and instant, whatever the batches were."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import OtherProjector, Poisoned
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from ledger import log
from ledger._claims import micros
from ledger._court import court_of
from ledger._decide import State
from ledger._timeline import claims_of_cell
from ledger.resolve import verify_cells
from ledger.write import fold
from tests.ledger.examples import examples
from tests.ledger.folded import Ledger
from tests.ledger.random_logs import CONTRACTS, ENTITIES, START, instant, instants_of, logs
from tests.ledger.scenario_logs import PlainProjector

QUICK = examples(4)


@pytest.fixture
def ledger(database):
    made = Ledger(database)
    yield made
    made.close()


def assert_cells_follow(ledger: Ledger, tenant: str, relations) -> None:
    claims = ledger.claims(tenant)
    if not claims:
        return
    cells = ledger.cells(tenant)
    instants = instants_of(claims)
    for cut in range(max(claim.commit for claim in claims) + 1):
        court = court_of([claim for claim in claims if claim.commit <= cut], CONTRACTS)
        for entity in [*ENTITIES, "bob"]:
            for relation in relations:
                for at in instants:
                    found = court.decide(entity, relation, micros(at))
                    expected = {
                        cells.part(part): (verdict.state.value, claims_of_cell(verdict))
                        for part, verdict in found.lines
                        if verdict.state != State.ABSENT
                    }
                    assert cells.at(entity, relation, at, cut) == expected, (cut, entity, relation, at)


def check(ledger: Ledger, commits, events_max: int, relations) -> None:
    tenant = ledger.tenant()
    ledger.append(tenant, commits)
    ledger.fold(tenant, events_max=events_max)

    assert_cells_follow(ledger, tenant, relations)
    assert ledger.run(verify_cells(ledger.db, tenant)).problems == ()

    digest = ledger.digest(tenant)
    ledger.unfold(tenant)
    ledger.fold(tenant, events_max=1 if events_max > 2 else 100)
    assert ledger.digest(tenant) == digest


@pytest.mark.property
def test_cells_follow_from_claims_and_batches_change_nothing(ledger):
    @QUICK
    @given(logs(events_max=9), st.integers(1, 5))
    def holds(commits, events_max):
        check(ledger, commits, events_max, ["home", "tags", "visit", "level"])

    holds()


@pytest.mark.property
def test_cells_follow_where_claims_are_derived(ledger):
    @QUICK
    @given(logs(relations=("home", "tags", "visit"), derived=True), st.integers(1, 5))
    def holds(commits, events_max):
        check(ledger, commits, events_max, ["home", "tags", "visit"])

    holds()


@pytest.mark.property
def test_cells_follow_where_entities_merge(ledger):
    @QUICK
    @given(logs(relations=("home", "tags"), identity=True), st.integers(1, 5))
    def holds(commits, events_max):
        check(ledger, commits, events_max, ["home", "tags"])

    holds()


@pytest.mark.property
def test_cells_follow_where_a_merge_is_derived(ledger):
    @QUICK
    @given(logs(events_max=9, relations=("home",), identity=True, derived=True), st.integers(1, 5))
    def holds(commits, events_max):
        check(ledger, commits, events_max, ["home"])

    holds()


@pytest.mark.property
def test_cells_follow_where_values_are_entities(ledger):
    @QUICK
    @given(logs(events_max=9, relations=("boss",), identity=True), st.integers(1, 5))
    def holds(commits, events_max):
        check(ledger, commits, events_max, ["boss"])

    holds()


@st.composite
def readings(draw):
    """States of one source or of sensors, mostly in order: what the tail decides."""
    people, sensors = [("bob", "user"), ("ann", "user")], [("r1", "sensor"), ("r2", "sensor")]
    actors = draw(st.sampled_from([people[1:], sensors, people]))
    commits = []
    day = 0
    for number in range(draw(st.integers(1, 14))):
        day = max(0, day + draw(st.sampled_from([0, 0, 1, 1, 1, -3])))
        actor, actor_class = draw(st.sampled_from(actors))
        claim = {"entity": "box", "relation": "home", "value": draw(st.sampled_from(["a", "a", "a", "b"]))}
        if draw(st.integers(0, 6)) == 0:
            claim = {"entity": "box", "relation": "home", "stance": "end"}
        event = {
            "stream": "s", "kind": "claim", "actor": {"id": actor, "class": actor_class},
            "source_event_id": f"e{number + 1}", "claims": [claim],
        }  # fmt: skip
        if draw(st.integers(0, 9)):
            event["observed_at"] = instant(day % 9)
        if commits and draw(st.integers(0, 4)) == 0:
            commits[-1].append(event)
        else:
            commits.append([event])
    return commits


@pytest.mark.property
def test_cells_follow_where_the_tail_decides(ledger):
    @QUICK
    @given(readings(), st.integers(1, 20))
    def holds(commits, events_max):
        check(ledger, commits, events_max, ["home"])

    holds()


def instants(minutes: int) -> str:
    return (START + timedelta(minutes=minutes)).isoformat()


def _reading(number: int, value: str, *, minutes: int) -> dict:
    return {
        "stream": "s",
        "kind": "observation",
        "actor": {"id": "r1", "class": "sensor"},
        "source_event_id": f"e{number}",
        "observed_at": instants(minutes),
        "claims": [{"entity": "box", "relation": "bay", "value": value}],
    }


async def _count(db, table: str) -> int:
    async with db.snapshot("acme") as conn:
        return await conn.scalar(sa.text(f"SELECT count(*) FROM {table}"))


async def _append(db, *events, size: int = 500):
    for start in range(0, len(events), size):
        drafts = [EventDraft.model_validate(event) for event in events[start : start + size]]
        await log.append(db, "acme", drafts, grant=LOCAL_GRANT)


async def _fold_all(db, *, events_max: int = 2_000):
    while not (await fold(db, "acme", PlainProjector(), events_max=events_max)).is_at_head:
        pass


async def test_equal_readings_are_one_cell_and_a_late_other_one_splits_the_run(db, clock):
    clock.now += timedelta(days=10)
    await _append(db, *[_reading(n, "3", minutes=n) for n in range(1, 501)])
    await _fold_all(db)
    assert await _count(db, "cell") == 1

    await _append(db, _reading(501, "5", minutes=250))
    await _fold_all(db)

    async with db.snapshot("acme") as conn:
        rows = (
            await conn.execute(
                sa.text("SELECT lower(valid), upper(valid) FROM cell WHERE upper_inf(known) ORDER BY valid")
            )
        ).all()
    bounds = [START + timedelta(minutes=minutes) for minutes in (1, 250, 251)]
    assert [tuple(row) for row in rows] == [
        (bounds[0], bounds[1]),
        (bounds[1], bounds[2]),
        (bounds[2], None),
    ]


async def test_claim_asserted_and_retracted_in_one_commit_leaves_rows_and_no_value_cell(db):
    first = {
        "stream": "s", "kind": "claim", "actor": {"id": "ann", "class": "user"}, "source_event_id": "a",
        "claims": [{"entity": "ann", "relation": "home", "value": "Lyon"}],
    }  # fmt: skip
    second = {
        "stream": "s", "kind": "retraction", "actor": {"id": "ann", "class": "user"},
        "targets": [{"source_event_id": "a"}],
    }  # fmt: skip
    await _append(db, first, second)
    await _fold_all(db)

    assert await _count(db, "claim") == 2
    async with db.snapshot("acme") as conn:
        assert set(await conn.scalars(sa.text("SELECT state FROM cell"))) == {"withdrawn"}


async def test_a_fold_that_waits_for_no_other_fold_waits_for_what_else_is_locked(db, owner_engine):
    waiting = sa.text("SELECT FROM pg_locks WHERE relation = 'cell'::regclass AND NOT granted")
    await _append(db, _reading(1, "1", minutes=1))
    async with owner_engine.connect() as other, db.snapshot("acme") as looking:
        await other.execute(sa.text("LOCK TABLE cell IN SHARE ROW EXCLUSIVE MODE"))
        folding = asyncio.create_task(fold(db, "acme", PlainProjector(), events_max=100, wait_seconds=0.0))
        async with asyncio.timeout(10):
            while (await looking.execute(waiting)).first() is None and not folding.done():
                await asyncio.sleep(0.01)
        # Longer than it would wait for another fold.
        done, _ = await asyncio.wait([folding], timeout=0.05)
        await other.rollback()

    assert not done
    assert (await folding).is_at_head


class BrokenOn(PlainProjector):
    """Fails on one event, as a projector with a bug would."""

    def __init__(self, source_event_id: str) -> None:
        self.source_event_id = source_event_id

    def project(self, event):
        if event.draft.source_event_id == self.source_event_id:
            raise ZeroDivisionError("secret content")
        return super().project(event)


async def test_poison_stops_before_its_event_and_what_stands_before_is_folded(db):
    for number in range(1, 5):
        await _append(db, _reading(number, str(number), minutes=number))

    for attempt in (1, 2):
        with pytest.raises(Poisoned) as caught:
            await fold(db, "acme", BrokenOn("e3"), events_max=100)

        assert (caught.value.position, caught.value.error) == (3, "ZeroDivisionError")
        async with db.snapshot("acme") as conn:
            assert (await log.serving(conn)).commit == 2
            row = (await conn.execute(sa.text("SELECT position, error, attempts FROM dead_letter"))).one()
        assert tuple(row) == (3, "ZeroDivisionError", attempt)

    await _fold_all(db)
    assert await _count(db, "dead_letter") == 0
    assert await _count(db, "claim") == 4


async def test_poison_in_the_middle_of_a_commit_keeps_the_commit_whole(db):
    await _append(db, _reading(1, "1", minutes=1))
    await _append(db, *[_reading(number, "x", minutes=number) for number in (2, 3, 4)])

    with pytest.raises(Poisoned) as caught:
        await fold(db, "acme", BrokenOn("e3"), events_max=100)

    assert caught.value.position == 3
    assert await _count(db, "claim") == 1


class Newer(PlainProjector):
    version = "plain-2"


async def test_another_version_of_the_projector_does_not_go_on_with_an_epoch(db):
    await _append(db, _reading(1, "1", minutes=1))
    await _fold_all(db)
    await _append(db, _reading(2, "2", minutes=2))

    with pytest.raises(OtherProjector) as caught:
        await fold(db, "acme", Newer(), events_max=100)

    assert (caught.value.begun_by, caught.value.given) == ("plain-1", "plain-2")
    assert await _count(db, "claim") == 1
    await _fold_all(db)
    assert await _count(db, "claim") == 2


async def test_an_epoch_that_nothing_was_folded_in_takes_any_version(db):
    await _append(db, _reading(1, "1", minutes=1))

    await fold(db, "acme", Newer(), events_max=100)

    assert await _count(db, "claim") == 1
