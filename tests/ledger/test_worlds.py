"""Connected pieces of the ledger that the next fold goes on with."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.erasures import ErasureRequest
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from ledger import _worlds, log
from ledger._kept import World
from ledger.erase import erase
from ledger.resolve import verify_cells
from ledger.write import fold, register_contract
from tests.ledger.conftest import MASTER_KEY
from tests.ledger.erasing import claim, opened, said
from tests.ledger.examples import examples
from tests.ledger.folded import Ledger, by_source
from tests.ledger.random_logs import CONTRACTS, START, logs
from tests.ledger.scenario_logs import PlainProjector

MORE = examples(6, many=400)


@pytest.fixture
def ledger(database):
    made = Ledger(database)
    yield made
    made.close()


def folded_in_turns(ledger: Ledger, other: log.Database, tenant: str, turns: list[bool]) -> None:
    """Fold commit by commit, each in the process that has its turn."""

    async def run() -> None:
        for number in range(1_000):
            db = ledger.db if turns[number % len(turns)] else other
            if (await fold(db, tenant, PlainProjector(), events_max=1)).is_at_head:
                return

    ledger.run(run())


@pytest.mark.property
@pytest.mark.parametrize(
    "said",
    [
        {"events_max": 9},
        {"relations": ("home", "tags", "visit"), "derived": True},
        {"relations": ("home", "tags"), "identity": True},
    ],
    ids=["mixed", "derived", "identity"],
)
def test_what_two_workers_fold_in_turns_is_what_one_folds(ledger, database, said):
    other = log.open_database(
        plane_url=database.backfill, relay_url=database.relay, master_key=MASTER_KEY, clock=ledger.clock,
        states_clock=True,
    )  # fmt: skip

    @MORE
    @given(logs(**said), st.lists(st.booleans(), min_size=1, max_size=4))
    def holds(commits, turns):
        tenant = ledger.tenant()
        ledger.append(tenant, commits)
        folded_in_turns(ledger, other, tenant, turns)
        digest = ledger.digest(tenant)
        ledger.unfold(tenant)
        ledger.fold(tenant, events_max=1_000)
        assert ledger.digest(tenant) == digest

    try:
        holds()
    finally:
        ledger.run(other.close())


def move(number: int, *, of: int | None = None, who: str = "ann", relation: str = "home") -> EventDraft:
    """Return who says where he lives; `of` is the event that it corrects, be it about somebody else."""
    claim = {"entity": who, "relation": relation, "value": f"v{number}"}
    event = {
        "stream": "s", "kind": "claim", "source_event_id": f"e{number}",
        "actor": {"id": "op", "class": "operator"},
        "observed_at": (START + timedelta(minutes=number)).isoformat(), "claims": [claim],
    }  # fmt: skip
    if of is not None:
        claim["stance"] = "correct"
        event |= {"kind": "correction", "targets": [{"source_event_id": f"e{of}"}]}
    return EventDraft.model_validate(by_source(event))


@pytest.fixture
async def other(database, clock):
    """The ledger as another worker has it open."""
    made = log.open_database(
        plane_url=database.plane, relay_url=database.relay, master_key=MASTER_KEY, clock=clock
    )
    yield made
    await made.close()


@pytest.fixture
def told(db, clock, monkeypatch):
    """Say something, fold it, and return how many keys were read whole; the claims replayed are counted."""
    clock.now += timedelta(days=10)
    counts = {"replayed": 0}
    made = World.__post_init__

    def noting(world):
        counts["replayed"] += len(world.claims)
        made(world)

    monkeypatch.setattr(World, "__post_init__", noting)

    async def say(*drafts: EventDraft, by: log.Database = db) -> tuple[int, int]:
        counts["replayed"] = 0
        if drafts:
            await log.append(db, "acme", list(drafts), grant=LOCAL_GRANT)
        report = await fold(by, "acme", PlainProjector(), events_max=1_000)
        assert report.is_at_head
        return report.read_whole, counts["replayed"]

    return say


async def test_a_log_that_goes_on_correcting_itself_is_read_and_replayed_once(told):
    await told(*(move(number) for number in range(1, 31)))

    assert await told(move(31, of=30)) == (1, 31)
    assert await told(move(32)) == (0, 0)
    assert await told(move(33, of=31)) == (0, 0)


async def test_a_piece_that_grows_is_not_read_again_but_for_what_is_new(told):
    await told(*(move(number) for number in range(1, 11)), *(move(n, who="bob") for n in range(11, 21)))
    assert await told(move(21, of=10)) == (1, 11)

    # What is said of ann was about bob: from here on their keys are decided together.
    assert await told(move(22, of=20)) == (1, 11 + 1 + 10)
    assert await told(move(23, of=15), move(24, who="bob", of=12)) == (0, 0)


async def test_who_comes_after_another_worker_takes_in_what_that_one_folded(told, other):
    await told(*(move(number) for number in range(1, 11)))
    assert await told(move(11, of=10)) == (1, 11)

    assert await told(move(12, of=9), by=other) == (1, 12)
    assert await told(move(13, of=12)) == (0, 0)
    # Another key is now decided with it: the piece is read again.
    await told(move(14, who="bob"), move(15, of=14), by=other)
    assert await told(move(16, of=13)) == (2, 16)


@pytest.mark.parametrize("came", ["an erasure", "a contract", "an identity", "too much", "nothing"])
async def test_what_was_left_is_not_gone_on_with_after_something_came(told, db, other, monkeypatch, came):
    await told(*(move(number) for number in range(1, 6)), move(90, who="zoe"))
    assert await told(move(6, of=5)) == (1, 6)

    match came:
        case "an erasure":
            await erase(
                db, "acme", PlainProjector(), ErasureRequest(subject="zoe", event_ids=()), grant=LOCAL_GRANT
            )
        case "a contract":
            await register_contract(
                db, "acme", CONTRACTS.registered["level"], stream="c", actor_id="op", grant=LOCAL_GRANT
            )
            await told(by=other)
        case "an identity":
            await told(move(7, who="zoe", relation="same_as"), by=other)
        case "too much":
            monkeypatch.setattr(_worlds, "BEHIND_EVENTS_MAX", -1)

    read, _ = await told(move(8, of=6))

    assert read == (0 if came == "nothing" else 1)


async def test_no_more_claims_are_left_than_there_is_room_for(told, db, monkeypatch):
    await told(*(move(number, who=who) for number, who in enumerate(["ann"] * 9 + ["bob"] * 9, 1)))
    await told(move(30, of=1))
    monkeypatch.setattr(_worlds, "KEPT_CLAIMS_MAX", 12)

    # What was asked for last comes first.
    assert await told(move(31, who="bob", of=10)) == (1, 10)
    assert await told(move(32, who="bob", of=11)) == (0, 0)
    assert await told(move(33, of=2)) == (1, 11)
    assert await told(move(34, who="bob", of=11)) == (1, 12)


async def test_nothing_is_left_of_a_fold_that_fails(told, db, monkeypatch):
    await told(*(move(number) for number in range(1, 6)))
    await told(move(6, of=5))

    async def failing(*_given, **_named):
        raise OSError("out of luck")

    with monkeypatch.context() as broken:
        broken.setattr("ledger.write.forget_passed", failing)
        with pytest.raises(OSError, match="out of luck"):
            await told(move(7, of=6))

    # With the one that was told and not folded.
    assert await told(move(8, of=6)) == (1, 7)


async def test_what_was_left_is_forgotten(told, db, monkeypatch):
    monkeypatch.setattr(_worlds, "KEPT_SECONDS", 0.01)
    await told(*(move(number) for number in range(1, 6)))
    await told(move(6, of=5))

    async with asyncio.timeout(10):
        while db.left:
            await asyncio.sleep(0.01)

    assert await told(move(7, of=6)) == (1, 7)


async def test_nothing_is_left_of_a_tenant_that_is_deleted(told, db):
    await told(*(move(number) for number in range(1, 6)))
    await told(move(6, of=5))
    assert db.left

    await log.delete_tenant(db, "acme", reason="why", actor_id="op", grant=LOCAL_GRANT)

    assert not db.left


async def test_two_pieces_that_one_name_ties_are_one_though_something_was_erased(db, database, clock):
    by = {"actor": "op", "actor_class": "operator"}
    derived = {"kind": "derivation", "actor": "worker", "actor_class": "derived"}
    async with opened(db, database, clock) as ledger:
        await ledger.say(said("e1", claim("zoe", "home", "w")))
        await ledger.say(said("e2", claim("ann", "not_same_as", "bob"), **by))
        await ledger.say(said("e3", claim("box", "home", "v", inputs=[{"source_event_id": "e2"}]), **derived))
        await ledger.fold()
        await ledger.erase("e1")
        both = claim("ann", "not_same_as", "bob"), claim("carl", "not_same_as", "bob")
        await ledger.say(said("e4", *both, **by))
        await ledger.fold()
        assert (await verify_cells(db, "acme")).problems == ()
