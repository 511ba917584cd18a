"""An event that cannot be folded stops its epoch; what becomes of it is a decision that every fold obeys."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy as sa

from contracts.errors import BadRequest, Forbidden, NotFound, Poisoned
from contracts.grants import ANY, LOCAL_GRANT, Grant, Right
from contracts.views import Generation
from ledger import log
from ledger._database import Database
from ledger._decisions import skip_in
from ledger.log import list_epochs
from ledger.resolve import pin
from ledger.write import dead_letters, fold, retry_event, skip_event, verify_claims
from tests.ledger.epochs import (  # noqa: F401 - fixtures are among them
    NEWEST,
    Choking,
    ask,
    digest,
    fold_all,
    rebuild,
    refold,
    said,
    saying,
)
from tests.ledger.scenario_logs import PlainProjector


async def skip(db: Database, position: int, *, grant: Grant = LOCAL_GRANT):
    return await skip_event(
        db, "acme", position=position, reason="it cannot be read", actor_id="op", grant=grant
    )


@pytest.fixture
async def stopped(db, say):
    """Three events, the second of which stops the fold."""
    for value in ("oslo", "poison", "graz"):
        await say("ann", value, folded=False)
    with pytest.raises(Poisoned):
        await fold(db, "acme", Choking(), events_max=100)


async def test_what_stops_an_epoch_is_listed_with_its_error_and_its_attempts(db, stopped):
    with pytest.raises(Poisoned):
        await fold(db, "acme", Choking(), events_max=100)

    [found] = await dead_letters(db, "acme")

    assert (found.epoch, found.position, found.commit, found.is_building) == (1, 2, 2, False)
    assert (found.error, found.attempts, found.kind) == ("ZeroDivisionError", 2, "claim")
    assert found.event_id == (await events(db))[1].event_id


async def events(db):
    async with db.snapshot("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
        return await log.read_events(conn, keys, after_position=0, limit=100)


async def test_an_event_that_is_skipped_claims_nothing_and_what_comes_after_it_is_folded(db, stopped):
    decided = await skip(db, 2)
    assert (decided.epoch, decided.commit, decided.is_new) == (1, 4, True)

    report = await fold(db, "acme", Choking(), events_max=100)
    assert report.skipped == 1
    await fold_all(db, Choking())

    assert await dead_letters(db, "acme") == []
    assert (await ask(db, min_commit=4)).value == "graz"
    [decision] = [event for event in await events(db) if event.draft.kind == "decision"]
    assert (skip_in(decision).epoch, decision.draft.text) == (1, "it cannot be read")


@pytest.mark.parametrize("events_max", [1, 2, 100])
async def test_every_later_fold_obeys_the_decision_at_the_events_own_place(
    db, owner_engine, say, stopped, events_max
):
    await skip(db, 2)
    await fold_all(db, Choking())
    await say("ann", "rome")
    before = await digest(db, 1)

    # By a projector that can read the event: only the decision keeps it out.
    await refold(db, owner_engine, 1, PlainProjector(), events_max=events_max)

    assert await digest(db, 1) == before
    assert (await verify_claims(db, "acme", PlainProjector())).intact


async def test_a_rebuilt_epoch_holds_what_the_one_before_it_did(db, stopped):
    await skip(db, 2)
    await fold_all(db, Choking())
    before = await ask(db)

    await rebuild(db)
    await fold_all(db)

    assert [epoch.state for epoch in await list_epochs(db, "acme")] == ["retired", "serving"]
    assert (await ask(db)).value == before.value == "graz"
    assert (await verify_claims(db, "acme", PlainProjector())).intact


async def test_a_decision_about_the_next_epoch_changes_nothing_in_the_one_that_serves(db, owner_engine, say):
    for value in ("oslo", "poison"):
        await say("ann", value)
    before = await digest(db, 1)
    await rebuild(db)
    with pytest.raises(Poisoned):
        await fold_all(db, Choking())
    [found] = await dead_letters(db, "acme")
    assert (found.epoch, found.is_building, found.position) == (2, True, 2)

    decided = await skip(db, 2)
    await fold_all(db, Choking())

    assert decided.epoch == 2
    assert (await ask(db)).value == "oslo"
    assert (await ask(db, generation=Generation(epoch=1, commit=2))).value == "poison"
    await refold(db, owner_engine, 1)
    assert await digest(db, 1) == before


async def test_a_decision_is_made_once(db, stopped):
    first = await skip(db, 2)
    again = await skip(db, 2)
    await fold_all(db, Choking())
    later = await skip(db, 2)

    assert again == later == replace(first, is_new=False)
    assert len(await events(db)) == 4


@pytest.mark.parametrize("position", [1, 3, 9])
async def test_only_what_stops_an_epoch_is_decided_about(db, stopped, position):
    with pytest.raises(NotFound):
        await skip(db, position)
    with pytest.raises(NotFound):
        await retry_event(db, "acme", Choking(), position=position, grant=LOCAL_GRANT)

    assert len(await events(db)) == 3


async def test_deciding_needs_the_right_of_an_operator(db, stopped):
    grant = Grant(
        tenant="acme",
        rights=frozenset(Right) - {Right.OPERATOR},
        actors=frozenset({ANY}),
        classes=frozenset({ANY}),
    )

    with pytest.raises(Forbidden):
        await skip(db, 2, grant=grant)
    with pytest.raises(Forbidden):
        await retry_event(db, "acme", Choking(), position=2, grant=grant)


async def test_a_retry_says_whether_it_helped(db, stopped):
    still = await retry_event(db, "acme", Choking(), position=2, grant=LOCAL_GRANT)
    assert still is not None
    assert (still.position, still.attempts) == (2, 2)

    assert await retry_event(db, "acme", PlainProjector(), position=2, grant=LOCAL_GRANT) is None

    await fold_all(db)
    assert await dead_letters(db, "acme") == []


async def test_a_command_is_not_skipped(db, owner_engine, stopped):
    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        await conn.execute(sa.text("UPDATE event SET kind = 'relation' WHERE position = 2"))

    with pytest.raises(BadRequest):
        await skip(db, 2)


async def test_a_read_that_waits_for_a_stopped_tenant_says_what_stops_it(db, stopped):
    with pytest.raises(Poisoned) as caught:
        await pin(db, "acme", replace(NEWEST, min_commit=2), wait_ms=0)

    assert (caught.value.epoch, caught.value.position, caught.value.error) == (1, 2, "ZeroDivisionError")
    with pytest.raises(Poisoned):
        await pin(db, "acme", replace(NEWEST, generation=Generation(epoch=1, commit=3)), wait_ms=0)
    assert (await pin(db, "acme", replace(NEWEST, min_commit=1), wait_ms=0)).cut == 1


async def test_of_a_commit_that_cannot_be_written_the_event_at_fault_is_named(db, owner_engine, say):
    await say("ann", "oslo", folded=False)
    drafts = [said("ann", value) for value in ("a", "b", "c", "d", "e", "f", "g")]
    await log.append(db, "acme", drafts, grant=LOCAL_GRANT)
    async with owner_engine.begin() as conn:
        # No projector is at fault: the server refuses the row of the event at position 6.
        await conn.execute(sa.text("ALTER TABLE claim ADD CONSTRAINT none CHECK (position <> 6)"))

    with pytest.raises(Poisoned) as caught:
        await fold(db, "acme", PlainProjector(), events_max=100)
    await skip(db, 6)
    await fold_all(db)

    assert (caught.value.position, caught.value.error) == (6, "CheckViolation")
    assert (await ask(db)).value == "g"
