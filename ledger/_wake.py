"""
Wake-ups: a hint to the relay that a tenant has commits to fold.

A NOTIFY takes a lock of the whole server at its commit, so it runs after the append, in a
statement of its own, off the caller's path, and one for however many appends came meanwhile. The
outbox row is what counts: a hint that is lost costs the relay one round of its polling.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
import sqlalchemy as sa
import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from contracts.errors import Unavailable
from ledger._arrays import texts
from ledger._direct import Direct, fetched
from ledger._driver_errors import translated

WAKE_CHANNEL: Final = "echoplane_wake"
"""The payload is the tenant's name."""
WAKE_BATCH_MAX: Final = 1_000
WAKE_APART_SECONDS: Final = 0.025
"""
Between two wake-ups of one process, which cost its appends their time: the first is sent at once, and the
next is for whatever was appended meanwhile.
"""

_log = structlog.get_logger(__name__)
_PENDING: Final = "SELECT tenant, commit FROM outbox ORDER BY tenant"
_NOTIFY: Final = "SELECT pg_notify(%(channel)s, tenant) FROM unnest(CAST(%(tenants)s AS text[])) AS tenant"


def autocommit(engine: AsyncEngine) -> AsyncEngine:
    """Return the same pool, where each statement is a transaction: one round trip, not three."""
    return engine.execution_options(isolation_level="AUTOCOMMIT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Waker:
    """Sends wake-ups as the relay, whose commits are not flushed: they write no row."""

    relay: Direct
    # By tenant, in the order in which they asked.
    _tenants: dict[str, None] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _closing: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self, tenant: str) -> None:
        """Send a wake-up soon; never fails and never waits."""
        self._tenants[tenant] = None
        # One that is done is still among them until the loop comes round.
        if all(task.done() for task in self._tasks):
            task = asyncio.create_task(self._send(), name="wake")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Send what is still to be sent."""
        self._closing.set()
        while self._tasks:
            await asyncio.gather(*self._tasks)
        await self.relay.close()

    async def _send(self) -> None:
        # Whoever comes before it ends is sent for by this task.
        while self._tenants:
            tenants = list(self._tenants)[:WAKE_BATCH_MAX]
            for tenant in tenants:
                del self._tenants[tenant]
            try:
                await self.relay.rows(_NOTIFY, {"channel": WAKE_CHANNEL, "tenants": texts(tenants)})
            except (psycopg.Error, Unavailable) as error:
                _log.warning("wake_not_sent", tenants_count=len(tenants), error=type(error).__name__)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(WAKE_APART_SECONDS):
                    await self._closing.wait()


@asynccontextmanager
async def listening(engine: AsyncEngine) -> AsyncIterator[Wakes]:
    """Listen for wake-ups on a connection of its own, for as long as the context is open."""
    with translated():
        async with autocommit(engine).connect() as connection:
            await connection.execute(sa.text(f"LISTEN {WAKE_CHANNEL}"))
            driver = (await connection.get_raw_connection()).driver_connection
            assert isinstance(driver, psycopg.AsyncConnection)
            try:
                yield Wakes(driver=driver)
            finally:
                # The connection must not go back to the pool with the subscription on it.
                await connection.invalidate()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wakes:
    """An open subscription."""

    driver: psycopg.AsyncConnection[Any]

    async def wait(self, *, timeout_seconds: float) -> frozenset[str]:
        """
        Return the tenants that were woken: as soon as there is one, or none after the timeout.

        Raises:
            Unavailable: The connection was lost; listen anew, and look at the outbox first.
        """
        with translated(), contextlib.suppress(TimeoutError):
            # Not the driver's own timeout: it looks at the clock ten times a second.
            async with asyncio.timeout(timeout_seconds):
                return frozenset([notice.payload async for notice in self.driver.notifies(stop_after=1)])
        return frozenset()

    async def pending(self) -> list[tuple[str, int]]:
        """
        Return what `ledger.log.pending` does, in one round trip on this connection.

        Raises:
            Unavailable: The connection was lost.
        """
        with translated():
            return [(tenant, commit) for tenant, commit in await fetched(self.driver, _PENDING, {})]
