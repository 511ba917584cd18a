"""Connections: what passes by itself is told apart from what does not; wake-ups are hints."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from contracts.errors import NotFound, Unavailable
from ledger import _database, log
from tests.ledger.conftest import MASTER_KEY
from tests.ledger.log_drafts import append, as_owner, draft, head_of


@pytest.fixture
async def impatient_db(database, clock, monkeypatch):
    """A ledger whose connections wait a tenth of a second."""
    monkeypatch.setattr(_database, "LOCK_TIMEOUT_MS", 100)
    monkeypatch.setattr(_database, "STATEMENT_TIMEOUT_MS", 300)
    monkeypatch.setattr(_database, "IDLE_IN_TRANSACTION_TIMEOUT_MS", 200)
    monkeypatch.setattr(_database, "POOL_WAIT_SECONDS", 0.2)
    made = log.open_database(
        plane_url=database.plane, relay_url=database.relay, master_key=MASTER_KEY, clock=clock
    )
    await log.create_tenant(made, "acme")
    yield made
    await made.close()


async def test_a_lock_that_cannot_be_had_is_unavailable_and_nothing_is_written(impatient_db, owner_engine):
    async with owner_engine.connect() as holder:
        await holder.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        await holder.execute(sa.text("SELECT 1 FROM head FOR UPDATE"))
        with pytest.raises(Unavailable):
            await append(impatient_db, draft(idempotency_key="k"))
        await holder.rollback()

    assert not (await append(impatient_db, draft(idempotency_key="k"))).repeated


async def test_a_statement_that_takes_too_long_is_unavailable(impatient_db):
    with pytest.raises(Unavailable):
        async with impatient_db.tenant("acme") as conn:
            await conn.execute(sa.text("SELECT pg_sleep(5)"))


async def test_a_transaction_that_stands_idle_is_ended(impatient_db):
    async def dawdle() -> None:
        async with impatient_db.tenant("acme") as conn:
            await asyncio.sleep(0.6)
            await conn.execute(sa.text("SELECT 1"))

    with pytest.raises(Unavailable):
        await dawdle()


async def test_connections_that_are_all_in_use_are_unavailable(impatient_db):
    release = asyncio.Event()
    held: list[None] = []

    async def hold() -> None:
        async with impatient_db.snapshot("acme"):
            held.append(None)
            await release.wait()

    holders = [asyncio.create_task(hold()) for _ in range(_database.POOL_CONNECTIONS)]
    while len(held) < len(holders):
        await asyncio.sleep(0.001)
    with pytest.raises(Unavailable):
        await head_of(impatient_db)
    release.set()
    await asyncio.gather(*holders, return_exceptions=True)


async def test_a_connection_that_was_cut_is_unavailable_once_and_replaced(db, owner_engine):
    await append(db, draft("a"))

    async def cut() -> None:
        async with db.tenant("acme") as conn:
            pid = await conn.scalar(sa.text("SELECT pg_backend_pid()"))
            async with db.tenant("acme") as other:
                await other.execute(sa.text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
            await conn.execute(sa.text("SELECT 1"))

    with pytest.raises(Unavailable):
        await cut()
    assert (await append(db, draft("b"))).commit == 2


async def test_connections_that_were_cut_while_they_lay_idle_are_replaced_unnoticed(
    db, owner_engine, monkeypatch
):
    monkeypatch.setattr(_database, "IDLE_SECONDS_MAX", 0.0)
    await append(db, draft("a"))
    async with db.tenant("acme") as first, db.tenant("acme") as second:
        pids = [await conn.scalar(sa.text("SELECT pg_backend_pid()")) for conn in (first, second)]
    async with db.tenant("acme") as conn:
        own = await conn.scalar(sa.text("SELECT pg_backend_pid()"))
        for pid in set(pids) - {own}:
            await conn.execute(sa.text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})

    async with db.tenant("acme") as first, db.tenant("acme") as second:
        assert await second.scalar(sa.text("SELECT 1")) == await first.scalar(sa.text("SELECT 1"))


async def test_a_server_that_is_not_there_is_unavailable(clock, tmp_path):
    url = f"postgresql://echoplane_plane@/nothing?host={tmp_path}"
    made = log.open_database(plane_url=url, relay_url=url, master_key=MASTER_KEY, clock=clock)

    for call in (append(made, draft()), log.pending(made), log.create_tenant(made, "acme")):
        with pytest.raises(Unavailable):
            await call
    await made.close()


async def test_an_error_that_nobody_expected_passes_as_the_bug_it_is(db):
    with pytest.raises(DBAPIError) as passed:
        async with db.tenant("acme") as conn:
            await conn.execute(sa.text("SELECT 1 / 0"))

    assert isinstance(passed.value.orig, psycopg.errors.DivisionByZero)


async def test_an_error_does_not_carry_what_was_about_to_be_stored(db):
    with pytest.raises(DBAPIError) as passed:
        async with db.tenant("acme") as conn:
            await conn.execute(sa.text("SELECT CAST(:x AS bytea), 1 / 0"), {"x": b"SECRET"})

    assert "SECRET" not in str(passed.value)


async def test_a_snapshot_sees_one_instant_and_writes_nothing(db):
    await append(db, draft("a"))
    async with db.snapshot("acme") as conn:
        before = await log.head(conn)
        await append(db, draft("b"))
        assert await log.head(conn) == before

    with pytest.raises(DBAPIError) as refused:
        async with db.snapshot("acme") as conn:
            await conn.execute(sa.text("DELETE FROM outbox"))
    assert isinstance(refused.value.orig, psycopg.errors.ReadOnlySqlTransaction)


async def test_a_failed_transaction_leaves_nothing(db):
    async def fail() -> None:
        async with db.tenant("acme") as conn:
            await conn.execute(sa.text("INSERT INTO dead_letter VALUES ('acme', 1, 1, 'e', 1, now(), now())"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()

    async with db.tenant("acme") as conn:
        assert await conn.scalar(sa.text("SELECT count(*) FROM dead_letter")) == 0


async def test_a_tenant_that_is_not_there_has_no_head_and_no_keys(db):
    async with db.tenant("nobody") as conn:
        with pytest.raises(NotFound):
            await log.head(conn)
        with pytest.raises(NotFound):
            await log.tenant_keys(db, "nobody", conn)


async def test_keys_are_read_once_and_no_more_than_so_many_are_kept(db, monkeypatch):
    from ledger import _tenants  # noqa: PLC0415 - only here is its bound small

    monkeypatch.setattr(_tenants, "TENANTS_CACHED_MAX", 2)
    for name in ("one", "two", "three"):
        await log.create_tenant(db, name)
        await log.tenant_keys(db, name)

    assert list(db.tenant_keys) == ["two", "three"]


async def test_an_append_wakes_who_listens_and_names_the_tenant(db):
    async with log.listening(db.relay) as wakes:
        assert await wakes.wait(timeout_seconds=0.05) == frozenset()

        await append(db, draft())

        assert await wakes.wait(timeout_seconds=5) == {"acme"}


async def test_who_comes_when_the_last_wake_up_was_just_sent_is_not_forgotten(db):
    class Seen(dict):
        """Another tenant comes when it was seen that there is none, before anybody is told so."""

        def __len__(self):
            if not super().__len__() and not came:
                came.append(asyncio.get_running_loop().call_soon(waker.wake, "beta"))
            return super().__len__()

    came = []
    waker = replace(db.waker, _tenants=Seen(), _tasks=set())
    async with log.listening(db.relay) as wakes:
        waker.wake("acme")

        assert await wakes.wait(timeout_seconds=60) == {"acme"}
        assert await wakes.wait(timeout_seconds=5) == {"beta"}
    await waker.close()


async def test_a_repeat_or_a_refusal_wakes_nobody(db):
    await append(db, draft(idempotency_key="k"))
    async with log.listening(db.relay) as wakes:
        while await wakes.wait(timeout_seconds=0.2):
            pass

        await append(db, draft(idempotency_key="k"))

        assert await wakes.wait(timeout_seconds=0.2) == frozenset()


async def test_an_append_stands_though_no_wake_up_can_be_sent(db, database, clock, tmp_path):
    deaf = log.open_database(
        plane_url=database.plane,
        relay_url=f"postgresql://echoplane_relay@/nothing?host={tmp_path}",
        master_key=MASTER_KEY,
        clock=clock,
    )

    receipt = await append(deaf, draft())
    await deaf.close()

    assert receipt.commit == 1
    assert await log.pending(db) == [("acme", 1)]


async def test_a_cut_subscription_is_unavailable(db, owner_engine):
    async with log.listening(db.relay) as wakes:
        pid = wakes.driver.info.backend_pid
        async with db.relay.connect() as other:
            await other.execute(sa.text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})

        with pytest.raises(Unavailable):
            await wakes.wait(timeout_seconds=5)


async def test_the_log_makes_no_notification_part_of_an_append(db, owner_engine):
    """It would take a lock of the whole server at each commit."""
    ((source,),) = await as_owner(
        owner_engine, "SELECT prosrc FROM pg_proc WHERE proname = 'echoplane_append'"
    )

    assert "notify" not in source.lower()
