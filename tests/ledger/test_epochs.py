"""Epochs beside each other: which contracts hold in one, when it takes over, and that it is pure."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.claims import OPERATOR, SELF
from contracts.errors import (
    BadRequest,
    EpochDropped,
    Forbidden,
    NotFound,
    OtherProjector,
    Poisoned,
    RelationInUse,
)
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT, Right
from contracts.relations import OTHERS, Cardinality
from contracts.resolutions import Conflict, Resolved, ResolvedSet
from contracts.views import Generation, ViewRequest
from ledger import log
from ledger._relations import unregistered
from ledger.log import EpochState, list_epochs
from ledger.resolve import history, pin, resolve, verify_cells
from ledger.write import begin_epoch, drop_epoch, fold, ledger_digest, register_contract, verify_claims
from tests.ledger.folded import FOLDED_TABLES, Ledger
from tests.ledger.random_logs import logs
from tests.ledger.scenario_logs import PlainProjector

NEWEST = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=None)
MANY = replace(unregistered("home"), cardinality=Cardinality.MANY)
BOB_FIRST = replace(unregistered("home"), authority=(("bob",), (SELF,), (OPERATOR,), (OTHERS,)))


class Newer(PlainProjector):
    version = "plain-2"


class Choking(PlainProjector):
    """Cannot project one value."""

    def project(self, event):
        if any(claim.value == "poison" for claim in event.draft.claims):
            raise ZeroDivisionError("secret content")
        return super().project(event)


def said(actor, value, relation="home"):
    return EventDraft.model_validate({
        "stream": "s", "kind": "claim", "actor": {"id": actor, "class": "user"},
        "claims": [{"entity": "box", "relation": relation, "value": value}],
    })  # fmt: skip


@pytest.fixture
def say(db):
    async def say(actor, value, relation="home", *, folded=True):
        await log.append(db, "acme", [said(actor, value, relation)], grant=LOCAL_GRANT)
        if folded:
            await fold_all(db)

    return say


@pytest.fixture
def register(db):
    async def register(contract, *, new_epoch=False):
        return await register_contract(
            db, "acme", contract, stream="c", actor_id="op", grant=LOCAL_GRANT, new_epoch=new_epoch
        )

    return register


async def fold_all(db, projector=None, *, events_max=100):
    while not (await fold(db, "acme", projector or PlainProjector(), events_max=events_max)).is_at_head:
        pass


async def rebuild(db, version="plain-1", **more):
    return await begin_epoch(
        db, "acme", projector_version=version, stream="c", actor_id="op", grant=LOCAL_GRANT, **more
    )


async def states(db):
    return [(epoch.number, epoch.state.value, epoch.commit) for epoch in await list_epochs(db, "acme")]


async def ask(db, relation="home", **request):
    view = await pin(db, "acme", replace(NEWEST, **request), wait_ms=0)
    async with db.snapshot("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
        return (await resolve(conn, keys, view, "box", relation)).resolution


async def digest(db, epoch):
    async with db.snapshot("acme") as conn:
        return await ledger_digest(conn, epoch)


async def refold(db, owner, epoch, projector=None, *, events_max=3):
    """Fold one epoch from nothing to where it stood, as if no worker had ever run in it."""
    stood = next(one for one in await list_epochs(db, "acme") if one.number == epoch)
    async with owner.begin() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        for table in FOLDED_TABLES:
            where = "line IN (SELECT line FROM line WHERE epoch = :e)" if table == "cell" else "epoch = :e"
            await conn.execute(sa.text(f"DELETE FROM {table} WHERE {where}"), {"e": epoch})
        await conn.execute(sa.text("UPDATE epoch SET state = 'retired' WHERE state <> 'dropped'"))
        await conn.execute(
            sa.text(
                "UPDATE epoch SET state = 'serving', commit = 0, position = 0, projector_version = '' "
                "WHERE epoch = :e"
            ),
            {"e": epoch},
        )
    commit = 0
    while commit < stood.commit:
        # Each commit of these tests is one event: no further than it stood.
        size = min(events_max, stood.commit - commit)
        commit = (await fold(db, "acme", projector or PlainProjector(), events_max=size)).commit


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
    await fold(db, "acme", PlainProjector(), events_max=1)
    assert (await states(db))[1] == (2, "building", 1)

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


# --- purity --------------------------------------------------------------------------------------


async def test_folding_any_epoch_again_gives_the_same_bytes(db, owner_engine, register, say):
    await register(MANY)
    for number in range(6):
        await say(("ann", "bob")[number % 2], f"v{number}")
        await say("ann", "red", "colour")
    await register(BOB_FIRST, new_epoch=True)
    await say("bob", "late", folded=False)
    await fold_all(db, events_max=2)
    await register(replace(MANY, relation="colour"), new_epoch=True)
    await register(replace(MANY, relation="size"))
    await fold_all(db, events_max=5)
    await say("ann", "large", "size")
    before = [await digest(db, epoch) for epoch in (1, 2, 3)]

    for epoch in (1, 2, 3):
        await refold(db, owner_engine, epoch, events_max=1 + epoch)

    assert [await digest(db, epoch) for epoch in (1, 2, 3)] == before
    assert len(set(before)) == 3


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)
@given(commits=logs(events_max=8, derived=True, identity=True), at=st.integers(0, 8), size=st.integers(1, 5))
def test_an_epoch_that_changes_nothing_is_cell_for_cell_the_one_before(epochs_ledger, commits, at, size):
    ledger = epochs_ledger
    tenant = ledger.tenant()
    ledger.append(tenant, commits[:at])
    if size % 2:
        ledger.fold(tenant, events_max=size)
    ledger.run(
        begin_epoch(
            ledger.db, tenant, projector_version="plain-1", stream="c", actor_id="op", grant=LOCAL_GRANT
        )
    )
    ledger.append(tenant, commits[at:])
    ledger.fold(tenant, events_max=size)

    first, second = rectangles(ledger, tenant, 1), rectangles(ledger, tenant, 2)

    assert first == second
    assert ledger.run(verify_cells(ledger.db, tenant)).intact
    report = ledger.run(verify_claims(ledger.db, tenant, PlainProjector()))
    assert (report.intact, report.unchecked_epochs) == (True, ())


@pytest.fixture
def epochs_ledger(database):
    made = Ledger(database)
    yield made
    made.close()


def rectangles(ledger, tenant, epoch):
    """Every cell of an epoch, with its claims by their places: ids are an epoch's own."""
    query = (
        "SELECT l.entity, l.relation, l.part, lower(c.valid), upper(c.valid), lower(c.known), "
        "upper(c.known), c.state, ARRAY(SELECT k.position || '#' || k.ordinal FROM claim k "
        "WHERE k.claim_id = ANY(c.claims) ORDER BY 1) "
        "FROM line l JOIN cell c ON c.line = l.line WHERE l.epoch = :epoch"
    )

    async def read():
        async with ledger.db.snapshot(tenant) as conn:
            assert (await log.serving(conn)).epoch == 2
            return sorted(map(str, await conn.execute(sa.text(query), {"epoch": epoch})))

    return ledger.run(read())


# --- beside each other ---------------------------------------------------------------------------


async def test_appends_that_come_meanwhile_go_to_both_and_the_serving_one_is_fresh_first(db, register, say):
    for number in range(6):
        await say("ann", f"v{number}")
    await register(MANY, new_epoch=True)
    await fold(db, "acme", PlainProjector(), events_max=2)
    await say("ann", "news", folded=False)

    report = await fold(db, "acme", PlainProjector(), events_max=2)

    assert (report.epoch, report.events, report.is_at_head) == (1, 1, False)
    # Both in one call: a log that never stands still must not keep the next epoch waiting.
    assert (report.built.epoch, report.built.events) == (2, 2)
    assert (await ask(db, min_commit=8)).value == "news"
    await fold_all(db, events_max=2)
    assert await states(db) == [(1, "retired", 8), (2, "serving", 8)]
    assert len((await ask(db)).members) == 7


async def test_a_fold_that_is_cut_off_when_it_takes_over_leaves_the_old_one_serving(
    db, owner_engine, register, say
):
    await say("ann", "Lyon")
    await register(MANY, new_epoch=True)
    await fold(db, "acme", PlainProjector(), events_max=100)
    async with owner_engine.begin() as conn:
        # The last statement of the fold's transaction fails, as if the process died there.
        await conn.execute(
            sa.text(
                "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE query_canceled; END $$"
            )
        )
        await conn.execute(
            sa.text(
                "CREATE TRIGGER die BEFORE UPDATE ON epoch FOR EACH ROW WHEN (NEW.state = 'serving' "
                "AND OLD.state = 'building') EXECUTE FUNCTION die()"
            )
        )
    with pytest.raises(Exception):  # noqa: B017,PT011 - whatever a cut connection is called
        await fold_all(db)

    assert (await states(db))[0] == (1, "serving", 2)
    assert (await states(db))[1] == (2, "building", 0)
    assert (await ask(db)).value == "Lyon"
    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("DROP TRIGGER die ON epoch"))
    await fold_all(db)
    assert await states(db) == [(1, "retired", 2), (2, "serving", 2)]


async def test_folds_at_once_of_both_epochs_come_to_the_same_end(db, owner_engine, register, say):
    for number in range(12):
        await say("ann", f"v{number}")
    await register(MANY, new_epoch=True)

    async def work():
        while not (await fold(db, "acme", PlainProjector(), events_max=2)).is_at_head:
            await log.append(db, "acme", [said("bob", "more")], grant=LOCAL_GRANT)
            await asyncio.sleep(0.01)
            if (await list_epochs(db, "acme"))[0].head > 40:
                return await fold_all(db)
        return None

    await asyncio.gather(*(work() for _ in range(3)))
    await fold_all(db)

    assert (await states(db))[1][1] == "serving"
    before = await digest(db, 2)
    await refold(db, owner_engine, 2)
    assert await digest(db, 2) == before


async def test_poison_in_the_epoch_that_is_built_stops_that_one_alone(db, register, say):
    await say("ann", "Lyon")
    await say("ann", "poison")
    await say("ann", "Oslo")
    await register(MANY, new_epoch=True)

    with pytest.raises(Poisoned) as caught:
        await fold_all(db, Choking())
    await say("ann", "Turin", folded=False)
    with pytest.raises(Poisoned):
        await fold_all(db, Choking())

    assert (caught.value.epoch, caught.value.position) == (2, 2)
    assert await states(db) == [(1, "serving", 5), (2, "building", 1)]
    assert (await ask(db, min_commit=5)).value == "Turin"
    (standing,) = await log.standings(db)
    assert (standing.dead_letters, standing.building, standing.building_dead_letters) == (0, 2, 1)
    assert (await list_epochs(db, "acme"))[1].stopped_at == 2
    # A projector that can, under the same version, passes it by itself.
    await fold_all(db)
    assert await states(db) == [(1, "retired", 5), (2, "serving", 5)]


async def test_poison_in_the_serving_epoch_does_not_stop_the_next_one(db, say):
    await say("ann", "Lyon")
    await say("ann", "poison", folded=False)
    with pytest.raises(Poisoned):
        await fold_all(db, Choking())
    await rebuild(db, "plain-2")

    await fold_all(db, Newer())

    assert await states(db) == [(1, "retired", 1), (2, "serving", 3)]
    assert await log.pending(db) == []


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


# --- dropping ------------------------------------------------------------------------------------


async def test_a_dropped_epoch_is_gone_and_says_so_and_the_serving_one_is_whole(db, say):
    for number in range(5):
        await say("ann", f"v{number}")
    await rebuild(db)
    await fold_all(db)
    kept = await digest(db, 2)
    old = replace(NEWEST, generation=Generation(epoch=1, commit=3))
    await pin(db, "acme", old, wait_ms=0)

    rows = await drop_epoch(db, "acme", 1, grant=LOCAL_GRANT)

    assert rows > 0
    assert await drop_epoch(db, "acme", 1, grant=LOCAL_GRANT) == 0
    assert (await list_epochs(db, "acme"))[0].state is EpochState.DROPPED
    with pytest.raises(EpochDropped):
        await pin(db, "acme", old, wait_ms=0)
    async with db.snapshot("acme") as conn:
        for table in ("claim", "line", "reach", "relation"):
            assert set(await conn.scalars(sa.text(f"SELECT epoch FROM {table}"))) <= {2}
        assert await conn.scalar(sa.text("SELECT count(*) FROM cell c WHERE NOT EXISTS (SELECT FROM line l "
                                         "WHERE l.line = c.line)")) == 0  # fmt: skip
    assert await digest(db, 2) == kept
    assert (await verify_claims(db, "acme", PlainProjector())).intact
    assert (await verify_cells(db, "acme")).intact
    assert (await log.verify(db, "acme")).intact


async def test_only_a_retired_epoch_is_dropped(db, say):
    await say("ann", "Lyon")
    await rebuild(db)

    for epoch in (1, 2):
        with pytest.raises(BadRequest):
            await drop_epoch(db, "acme", epoch, grant=LOCAL_GRANT)
    with pytest.raises(NotFound):
        await drop_epoch(db, "acme", 7, grant=LOCAL_GRANT)


async def test_the_plane_cannot_delete_rows_of_an_epoch_that_is_read(db, say):
    await say("ann", "Lyon")

    with pytest.raises(Exception, match="only rows of a dropped epoch"):
        async with db.tenant("acme") as conn:
            await conn.execute(sa.text("SELECT echoplane_drop_rows('acme', 1, 10)"))


# --- verification --------------------------------------------------------------------------------


async def test_verification_checks_every_epoch(db, owner_engine, register, say):
    await say("ann", "Lyon")
    await say("bob", "Oslo")
    await register(BOB_FIRST, new_epoch=True)
    await fold_all(db)
    assert (await verify_claims(db, "acme", PlainProjector())).claims == 4

    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        await conn.execute(sa.text("ALTER TABLE cell DISABLE TRIGGER USER"))
        await conn.execute(
            sa.text("UPDATE cell SET state = 'ended' WHERE line IN (SELECT line FROM line WHERE epoch = 1)")
        )

    report = await verify_cells(db, "acme")
    assert not report.intact
    assert all("epoch 1" in problem.place for problem in report.problems)


async def test_history_of_a_retired_epoch_is_byte_for_byte_what_it_was(db, register, say):
    await say("ann", "Lyon")
    await say("bob", "Oslo")

    async def told():
        async with db.snapshot("acme") as conn:
            keys = await log.tenant_keys(db, "acme", conn)
            return repr(await history(conn, keys, "box", "home", epoch=1, cut=2))

    before = await told()
    await register(BOB_FIRST, new_epoch=True)
    await fold_all(db)

    assert await told() == before
