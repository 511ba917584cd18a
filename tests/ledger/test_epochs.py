"""Beginning an epoch: contracts that change in use, rebuilds, and what holds then."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from contracts.errors import (
    Forbidden,
    NotFound,
    OtherProjector,
    RelationInUse,
)
from contracts.grants import LOCAL_GRANT, Right
from contracts.resolutions import Conflict, Resolved, ResolvedSet
from contracts.views import Generation
from ledger import log
from ledger.log import list_epochs
from ledger.write import begin_epoch, fold
from tests.ledger.epochs import (  # noqa: F401 - fixtures are among them
    BOB_FIRST,
    MANY,
    NEWEST,
    Choking,
    Newer,
    ask,
    digest,
    fold_all,
    rebuild,
    refold,
    registering,
    said,
    saying,
    states,
)
from tests.ledger.scenario_logs import PlainProjector

# --- registering ---------------------------------------------------------------------------------


async def test_a_contract_of_an_unused_relation_holds_at_once_and_is_registered_once(db, register, say):
    first = await register(MANY)
    again = await register(MANY)

    assert (first.epoch, first.building, first.receipt.repeated) == (1, False, False)
    assert again.receipt == replace(first.receipt, repeated=True)
    await say("ann", "Lyon")
    await say("ann", "Oslo")
    assert isinstance(await ask(db), ResolvedSet)
    assert (await register(MANY)).receipt.event_ids == first.receipt.event_ids
    assert await states(db) == [(1, "serving", 3)]


async def test_a_change_to_a_relation_in_use_says_beforehand_what_it_means_and_writes_nothing(
    db, register, say
):
    await say("ann", "Lyon")
    await say("bob", "Oslo")

    with pytest.raises(RelationInUse) as caught:
        await register(MANY)

    assert caught.value.details() == {"relation": "home", "claims": 2, "events": 2, "epoch": 2}
    assert await states(db) == [(1, "serving", 2)]
    async with db.snapshot("acme") as conn:
        assert (await log.head(conn)).commit == 2


async def test_a_new_epoch_decides_all_claims_by_the_new_contract_and_the_old_one_answers_as_before(
    db, register, say
):
    await say("ann", "Lyon")
    await say("bob", "Oslo")
    before = await ask(db)
    old_digest = await digest(db, 1)

    begun = await register(BOB_FIRST, new_epoch=True)

    assert (begun.epoch, begun.building) == (2, True)
    assert await states(db) == [(1, "serving", 2), (2, "building", 0)]
    assert await ask(db) == before
    await fold_all(db)
    assert await states(db) == [(1, "retired", 3), (2, "serving", 3)]
    assert isinstance(before, Conflict)
    now = await ask(db)
    assert isinstance(now, Resolved)
    assert now.value == "Oslo"
    # The contract holds from the first event on, so at every cut.
    assert (await ask(db, generation=Generation(epoch=2, commit=2))) == now
    assert await ask(db, generation=Generation(epoch=1, commit=2)) == before
    assert await digest(db, 1) == old_digest
    assert await log.pending(db) == []


async def test_the_same_change_again_is_the_same_receipt_before_and_after_it_serves(db, register, say):
    await say("ann", "Lyon")
    first = await register(MANY, new_epoch=True)

    again = await register(MANY)
    await fold_all(db)
    later = await register(MANY, new_epoch=True)

    assert (again.epoch, again.building) == (2, True)
    assert (later.epoch, later.building) == (2, False)
    assert first.receipt.event_ids == again.receipt.event_ids == later.receipt.event_ids
    assert len(await states(db)) == 2


async def test_a_change_back_begins_another_epoch(db, register, say):
    await register(MANY)
    await say("ann", "Lyon")
    await register(BOB_FIRST, new_epoch=True)
    await fold_all(db)

    back = await register(MANY, new_epoch=True)
    await fold_all(db)

    assert (back.epoch, back.receipt.repeated) == (3, False)
    assert isinstance(await ask(db), ResolvedSet)


async def test_two_changes_before_the_first_fold_are_one_epoch(db, register, say):
    await say("ann", "Lyon")
    await say("ann", "red", "colour")
    await register(MANY, new_epoch=True)

    second = await register(replace(MANY, relation="colour"), new_epoch=True)
    await fold_all(db)

    assert second.epoch == 2
    assert await states(db) == [(1, "retired", 4), (2, "serving", 4)]
    assert isinstance(await ask(db, "home"), ResolvedSet)
    assert isinstance(await ask(db, "colour"), ResolvedSet)


async def test_a_change_while_an_epoch_is_folded_gives_that_up_for_one_with_both(db, register, say):
    await say("ann", "Lyon")
    await say("ann", "red", "colour")
    await register(MANY, new_epoch=True)
    await fold(db, "acme", PlainProjector(), events_max=1)
    assert (await states(db)) == [(1, "serving", 3), (2, "building", 1)]
    assert await log.pending(db) == [("acme", 3)]

    second = await register(replace(MANY, relation="colour"), new_epoch=True)

    assert second.epoch == 3
    assert [state for _, state, _ in await states(db)] == ["serving", "retired", "building"]
    assert (await register(MANY)).epoch == 3
    await fold_all(db)
    assert [state for _, state, _ in await states(db)] == ["retired", "retired", "serving"]
    assert isinstance(await ask(db, "home"), ResolvedSet)
    assert isinstance(await ask(db, "colour"), ResolvedSet)


async def test_a_contract_of_an_unused_relation_begins_no_epoch_even_where_one_may_begin(db, register):
    registered = await register(MANY, new_epoch=True)

    assert (registered.epoch, registered.building) == (1, False)
    assert len(await states(db)) == 1


async def test_a_registration_before_the_change_of_its_relation_does_not_come_back_in_the_new_epoch(
    db, register, say
):
    await register(MANY)
    await say("ann", "Lyon")
    await say("ann", "Oslo")
    await register(BOB_FIRST, new_epoch=True)

    await fold_all(db, events_max=1)

    assert isinstance(await ask(db), Resolved)


async def test_registrations_at_once_leave_one_epoch_being_built(db, register, say):
    await say("ann", "Lyon")

    await asyncio.gather(*(register(contract, new_epoch=True) for contract in (MANY, BOB_FIRST, MANY)))
    await fold_all(db)

    found = await states(db)
    assert [state for _, state, _ in found][-1] == "serving"
    assert sum(state == "serving" for _, state, _ in found) == 1


# --- rebuilding ----------------------------------------------------------------------------------


async def test_a_tenant_that_another_projector_stopped_is_lifted_by_a_rebuild(db, say):
    await say("ann", "Lyon")
    await say("ann", "Oslo", folded=False)
    with pytest.raises(OtherProjector):
        await fold_all(db, Newer())

    begun = await rebuild(db, "plain-2")
    again = await rebuild(db, "plain-2")
    await fold_all(db, Newer())

    assert (begun.epoch, begun.is_new) == (2, True)
    assert (again.epoch, again.is_new) == (2, False)
    assert await states(db) == [(1, "retired", 1), (2, "serving", 3)]
    assert [epoch.projector_version for epoch in await list_epochs(db, "acme")] == ["plain-1", "plain-2"]
    assert (await ask(db)).value == "Oslo"


async def test_a_rebuild_under_a_newer_projector_gives_up_what_an_older_one_was_building(db, say):
    for number in range(4):
        await say("ann", f"v{number}")
    await rebuild(db)
    await fold(db, "acme", PlainProjector(), events_max=2)
    await fold(db, "acme", PlainProjector(), events_max=2)

    begun = await rebuild(db, "plain-2")
    await fold_all(db, Newer())

    assert begun.epoch == 3
    assert [state for _, state, _ in await states(db)] == ["retired", "retired", "serving"]


async def test_a_rebuild_keeps_every_contract(db, register, say):
    await register(MANY)
    await say("ann", "Lyon")
    await say("ann", "red", "colour")
    await register(replace(MANY, relation="colour"), new_epoch=True)
    await fold_all(db)

    await rebuild(db)
    await fold_all(db)

    assert (await states(db))[-1][:2] == (3, "serving")
    assert isinstance(await ask(db, "home"), ResolvedSet)
    assert isinstance(await ask(db, "colour"), ResolvedSet)


async def test_a_rebuild_needs_the_right_and_a_tenant(db):
    grant = replace(LOCAL_GRANT, rights=frozenset(Right) - {Right.ADMIN})

    with pytest.raises(Forbidden):
        await begin_epoch(db, "acme", projector_version="p", stream="c", actor_id="op", grant=grant)
    with pytest.raises(NotFound):
        await begin_epoch(db, "nobody", projector_version="p", stream="c", actor_id="op", grant=LOCAL_GRANT)
