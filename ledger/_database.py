"""
Connections: one pool for each role, a transaction for one tenant at a time.

A transaction names its tenant by `SET LOCAL echoplane.tenant`; row level security shows it that
tenant's rows and no others, so a statement that forgets its WHERE still cannot cross.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
import sqlalchemy as sa
from psycopg.conninfo import make_conninfo
from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from contracts import limits
from contracts.ports import Clock
from ledger._ahead import Ahead
from ledger._combine import Combiner
from ledger._direct import IDLE_SECONDS_MAX, Connection, Direct
from ledger._driver_errors import translated
from ledger._keys import KeyRing, Randomness, TenantKeys, key_ring
from ledger._news import News
from ledger._turns import Turns
from ledger._wake import Waker

POOL_CONNECTIONS: Final = 8
POOL_WAIT_SECONDS: Final = 15
CONNECT_SECONDS: Final = 10
STATEMENT_TIMEOUT_MS: Final = 60_000
LOCK_TIMEOUT_MS: Final = 15_000
IDLE_IN_TRANSACTION_TIMEOUT_MS: Final = 60_000
TENANTS_CACHED_MAX: Final = 1_024

# A lock that cannot be had must say so before the statement's own time is up.
assert LOCK_TIMEOUT_MS < STATEMENT_TIMEOUT_MS
# An erasure holds one connection and folds on another: half of them are left to others.
assert 2 * limits.ERASURES_AT_ONCE <= POOL_CONNECTIONS // 2

# Flushing the commit of a NOTIFY would buy nothing: the relay's role writes no row.
_UNFLUSHED: Final = "-c synchronous_commit=off"
# What a statement is expected to cost hangs on presumed sizes, and to compile one takes longer than any runs.
_UNCOMPILED: Final = "-c jit=off"
_SET_TENANT: Final = sa.text("SELECT set_config('echoplane.tenant', :tenant, true)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """
    The plane's access to PostgreSQL; made once, by `open_database`, and closed once.

    `clock` is the time of day. `states_clock` says that appends take their reading from it and
    not from the server, which only a role of `echoplane_backfill` may do.
    """

    plane: AsyncEngine
    reads: Direct
    relay: AsyncEngine
    ring: KeyRing = field(repr=False)
    clock: Clock
    randomness: Randomness
    states_clock: bool
    waker: Waker = field(repr=False)
    news: News = field(repr=False)
    appends: Combiner[Any, Any] = field(repr=False)
    recalls: Combiner[Any, Any] = field(repr=False)
    erasures: Turns = field(repr=False)
    ahead: Ahead = field(repr=False)
    tenant_keys: dict[str, TenantKeys] = field(repr=False)
    # By tenant, an `InForce` each: what this process last held values against.
    contracts: dict[str, Any] = field(repr=False)
    # By tenant and epoch, a `Left` each: what the last folds of this process left.
    left: dict[tuple[str, int], Any] = field(repr=False)

    @asynccontextmanager
    async def tenant(self, tenant: str) -> AsyncIterator[AsyncConnection]:
        """
        Open a READ COMMITTED transaction that sees and writes one tenant's rows.

        Raises:
            Unavailable: The server is down or busy, or the commit was cut off: unknown whether done.
        """
        with translated():
            async with self.plane.connect() as connection, connection.begin():
                await connection.execute(_SET_TENANT, {"tenant": tenant})
                yield connection

    @asynccontextmanager
    async def snapshot(self, tenant: str) -> AsyncIterator[AsyncConnection]:
        """
        Open a REPEATABLE READ, READ ONLY transaction: everything read in it is of one instant.

        Raises:
            Unavailable: The server is down or busy.
        """
        with translated():
            async with _snapshots(self.plane).connect() as connection, connection.begin():
                await connection.execute(_SET_TENANT, {"tenant": tenant})
                yield connection

    async def rows(self, statement: str, parameters: Mapping[str, object]) -> Sequence[Any]:
        """
        Return what a query returns that names its tenant itself: in one round trip, of one instant.

        Raises:
            Unavailable: The server is down or busy.
        """
        with translated():
            return await self.reads.rows(statement, parameters)

    @asynccontextmanager
    async def across_tenants(self) -> AsyncIterator[AsyncConnection]:
        """Open a read-only transaction of the relay's role: numbers and states of every tenant."""
        with translated():
            async with _snapshots(self.relay).connect() as connection, connection.begin():
                yield connection

    async def close(self) -> None:
        """Finish what was submitted and close every connection."""
        await self.appends.close()
        await self.recalls.close()
        await self.waker.close()
        await self.news.close()
        await self.plane.dispose()
        await self.reads.close()
        await self.relay.dispose()


def open_database(
    *,
    plane_url: str,
    relay_url: str,
    master_key: bytes,
    clock: Clock,
    states_clock: bool = False,
    randomness: Randomness = os.urandom,
) -> Database:
    """
    Make the pools; connects to nothing yet.

    Args:
        plane_url: A `postgresql://` URL of the role `echoplane_plane`, or `echoplane_backfill`.
        relay_url: One of the role `echoplane_relay`.
        master_key: 32 bytes; the same ones for as long as the database lives.
        clock: The time of day.
        states_clock: Whether appends are recorded by `clock` instead of the server's clock. Needs
            `echoplane_backfill`, or every append is `Forbidden`.
        randomness: Where keys and ids come from.
    """
    relay = _engine(relay_url, name="echoplane_relay", more=_UNFLUSHED)
    return Database(
        plane=_engine(plane_url, name="echoplane_plane", more=""),
        reads=_direct(plane_url, name="echoplane_reads"),
        relay=relay,
        ring=key_ring(master_key),
        clock=clock,
        randomness=randomness,
        states_clock=states_clock,
        waker=Waker(relay=_direct(relay_url, name="echoplane_wakes", more=_UNFLUSHED)),
        news=News(engine=relay),
        appends=Combiner(
            weight_max=limits.APPENDS_TOGETHER_EVENTS_MAX,
            bytes_max=limits.APPEND_BYTES_MAX,
            waiting_max=limits.APPENDS_WAITING_MAX,
            waiting_bytes_max=limits.APPENDS_WAITING_BYTES_MAX,
        ),
        recalls=Combiner(
            part="recalls",
            weight_max=limits.RECALLS_AT_ONCE_MAX,
            bytes_max=limits.APPEND_BYTES_MAX,
            waiting_max=limits.APPENDS_WAITING_MAX,
            waiting_bytes_max=limits.APPENDS_WAITING_BYTES_MAX,
        ),
        erasures=Turns(
            part="erasures",
            places=asyncio.Semaphore(limits.ERASURES_AT_ONCE),
            wait_seconds=limits.ERASURE_WAIT_SECONDS,
        ),
        ahead=Ahead(),
        tenant_keys={},
        contracts={},
        left={},
    )


def database_url(url: str) -> sa.URL:
    """Return a `postgresql://` URL with our driver in it."""
    return sa.make_url(url).set(drivername="postgresql+psycopg")


def _snapshots(engine: AsyncEngine) -> AsyncEngine:
    # The same pool; only what BEGIN says differs.
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def _ask_after_idling(engine: AsyncEngine) -> None:
    """
    Ask a connection that lay idle whether it still stands, before it is handed out.

    A server that was restarted must not fail whoever comes next; asking each time, as the pool can
    by itself, would double the round trips of an append.
    """

    def returned(_connection: DBAPIConnection | None, record: ConnectionPoolEntry) -> None:
        record.info["returned_at_seconds"] = time.monotonic()

    def taken(
        connection: DBAPIConnection, record: ConnectionPoolEntry, _proxy: PoolProxiedConnection
    ) -> None:
        returned_at_seconds = record.info.get("returned_at_seconds")
        if returned_at_seconds is None or time.monotonic() - returned_at_seconds < IDLE_SECONDS_MAX:
            return
        try:
            engine.dialect.do_ping(connection)
        except psycopg.Error as error:
            raise DisconnectionError from error

    event.listen(engine.sync_engine, "checkin", returned)
    event.listen(engine.sync_engine, "checkout", taken)


def _connecting(name: str, *, more: str = "") -> dict[str, Any]:
    """Return what a connection is opened with beside its URL."""
    options = (
        f"-c statement_timeout={STATEMENT_TIMEOUT_MS} -c lock_timeout={LOCK_TIMEOUT_MS} "
        f"-c idle_in_transaction_session_timeout={IDLE_IN_TRANSACTION_TIMEOUT_MS} -c TimeZone=UTC "
        f"{_UNCOMPILED} {more}"
    )
    return {"options": options, "application_name": name, "connect_timeout": CONNECT_SECONDS}


def _direct(url: str, *, name: str, more: str = "") -> Direct:
    plain = database_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    return Direct(
        make_conninfo(plain, **_connecting(name, more=more)),
        connections_max=POOL_CONNECTIONS,
        wait_seconds=POOL_WAIT_SECONDS,
    )


def _engine(url: str, *, name: str, more: str) -> AsyncEngine:
    engine = create_async_engine(
        database_url(url),
        # An error's text must not carry what was about to be stored.
        hide_parameters=True,
        pool_size=POOL_CONNECTIONS,
        max_overflow=0,
        pool_timeout=POOL_WAIT_SECONDS,
        connect_args=_connecting(name, more=more) | {"async_creator_fn": Connection.connect},
    )
    _ask_after_idling(engine)
    return engine
