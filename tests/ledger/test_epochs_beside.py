"""Epochs beside each other: pure, in step, apart when one is stopped, verified, and dropped."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.erasures import ErasureRequest
from contracts.errors import (
    BadRequest,
    EpochDropped,
    NotFound,
    Poisoned,
)
from contracts.grants import LOCAL_GRANT
from contracts.views import Generation
from ledger import log
from ledger._epochs import take_over
from ledger.erase import erase
from ledger.log import EpochState, list_epochs
from ledger.resolve import history, pin, verify_cells
from ledger.write import begin_epoch, drop_epoch, fold, verify_claims
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
from tests.ledger.folded import Ledger
from tests.ledger.random_logs import logs
from tests.ledger.scenario_logs import PlainProjector

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


async def test_an_epoch_does_not_take_over_from_one_that_has_seen_more(db, register, say):
    await say("ann", "Lyon")
    await register(MANY, new_epoch=True)
    await fold(db, "acme", PlainProjector(), events_max=1)
    stood = await states(db)

    async with db.tenant("acme") as conn:
        assert not await take_over(conn, "acme", epoch=2, commit=1)

    assert stood == await states(db) == [(1, "serving", 2), (2, "building", 1)]


async def test_a_fold_that_is_cut_off_when_it_takes_over_leaves_the_old_one_serving(
    db, owner_engine, register, say
):
    await say("ann", "Lyon")
    await register(MANY, new_epoch=True)
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


async def test_a_change_and_an_erasure_at_once_do_not_wait_for_each_other_for_ever(db, register, say):
    for number in range(6):
        await say("ann", f"v{number}")
    async with db.snapshot("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
        events = await log.read_events(conn, keys, after_position=0, limit=10)

    async def erased(number):
        request = ErasureRequest(subject=None, event_ids=(events[number].event_id,))
        await erase(db, "acme", PlainProjector(), request, grant=LOCAL_GRANT)

    async with asyncio.timeout(25):
        await asyncio.gather(
            *(erased(number) for number in range(3)),
            *(register(contract, new_epoch=True) for contract in (MANY, BOB_FIRST, MANY, BOB_FIRST)),
        )
    await fold_all(db)

    assert (await states(db))[-1][1] == "serving"
    assert (await verify_cells(db, "acme")).intact
    assert (await verify_claims(db, "acme", PlainProjector())).intact


async def test_an_erasure_in_the_middle_of_a_build_holds_in_both_epochs(db, owner_engine, register, say):
    for number in range(6):
        await say("ann", f"v{number}")
    await register(MANY, new_epoch=True)
    await fold(db, "acme", PlainProjector(), events_max=2)
    async with db.snapshot("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
        events = await log.read_events(conn, keys, after_position=0, limit=10)
    # One that the new epoch has, one that it has not come to.
    erased = ErasureRequest(subject=None, event_ids=(events[0].event_id, events[4].event_id))
    await erase(db, "acme", PlainProjector(), erased, grant=LOCAL_GRANT)
    await fold_all(db)

    values = {member.value for member in (await ask(db)).members}
    assert values == {"v1", "v2", "v3", "v5"}
    assert (await verify_cells(db, "acme")).intact
    assert (await verify_claims(db, "acme", PlainProjector())).intact
    before = await digest(db, 2)
    await refold(db, owner_engine, 2)
    assert await digest(db, 2) == before


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
