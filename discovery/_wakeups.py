"""
Learning that tenants have new commits: Redis says "look", PostgreSQL says at what.

A wake-up on the stream is a hint to look at the heads of all tenants, one small query; nothing
else in it is read. Without Redis the same look is taken every second, and while it says nothing every
few, in case that it lost something; a question catches up by itself in any case.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

import sqlalchemy as sa
import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from contracts.errors import EchoplaneError
from ledger import log

STREAM: Final = "echoplane:commits"
GROUP: Final = "discovery"
"""Groups are named by it and by the number of a process: each hears all, for any tenant may be its own."""
BLOCK_MS: Final = 8_000
READ_MAX: Final = 1_000
LOOK_SECONDS: Final = 10.0
"""Between two looks at the heads while Redis says nothing; while it is down, each try to reach it is one."""
PAUSE_SECONDS: Final = 0.2
"""Between two looks when everything wakes us."""
RETRY_SECONDS: Final = 1.0
WARM_TENANTS_MAX: Final = 32
"""Tenants made ready at start, those written to last; the others load when they are asked or written to."""

# A read has to come back before its socket is given up for dead.
_SOCKET_SECONDS: Final = 10.0
assert BLOCK_MS < 1_000 * _SOCKET_SECONDS

_Head: TypeAlias = tuple[int, int | None]
"""The last commit, and the epoch that serves."""

_log = structlog.get_logger(__name__)
_HEADS: Final = sa.text(
    "SELECT h.tenant, h.commit, e.epoch FROM head h LEFT JOIN epoch e ON e.tenant = h.tenant "
    "AND e.state = 'serving' ORDER BY h.recorded_at DESC, h.tenant"
)


async def watch(
    db: log.Database,
    wake: Callable[[str], Awaitable[None]],
    *,
    hint: asyncio.Event,
    owns: Callable[[str], bool] = lambda _: True,
) -> None:
    """
    Call `wake` for each tenant whose head moved or is gone, or that another epoch serves, until cancelled.

    Args:
        db: The database.
        wake: Catches up with a tenant's log.
        hint: Set when it is worth looking at once.
        owns: Whether a tenant is this process's to keep.
    """
    seen: dict[str, _Head] | None = None
    while True:
        try:
            heads = {tenant: head for tenant, head in (await _heads(db)).items() if owns(tenant)}
            moved = list(heads)[:WARM_TENANTS_MAX] if seen is None else _moved(seen, heads)
            seen = dict(heads)
        except EchoplaneError as error:
            _log.warning("heads_not_read", error=error.code)
            moved = []
            await asyncio.sleep(RETRY_SECONDS)
        for tenant in moved:
            try:
                await wake(tenant)
            except EchoplaneError as error:
                # The next question, or its next commit, tries again; the others must not wait for it.
                _log.warning("tenant_not_read", tenant=tenant, error=error.code)
        await asyncio.sleep(PAUSE_SECONDS)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await hint.wait()
        hint.clear()


async def listen(redis_url: str, *, hint: asyncio.Event, stop: asyncio.Event, shard: int = 0) -> None:
    """
    Set `hint` whenever something is said on the stream, and while nothing can be heard of it.

    Args:
        redis_url: Where the stream is.
        hint: Set when something is said, or may have been.
        shard: The number of this process among those that share the tenants.
        stop: Set to end, beside a cancellation: before Python 3.12 `asyncio.wait_for`, which redis-py
            waits with, can lose one. Seen within `BLOCK_MS`.
    """
    client = Redis.from_url(
        redis_url,
        socket_timeout=_SOCKET_SECONDS,
        socket_connect_timeout=_SOCKET_SECONDS,
        health_check_interval=15,
    )
    down, group = False, group_of(shard)
    try:
        while not stop.is_set():
            try:
                await _make_group(client, group)
                while not stop.is_set():
                    # Not kept for acknowledgement: a hint that is lost is made up for by the next look.
                    said: Any = await client.xreadgroup(
                        group, group, {STREAM: ">"}, count=READ_MAX, block=BLOCK_MS, noack=True
                    )
                    down = False
                    if said:
                        hint.set()
            except (RedisError, OSError) as error:
                # After FLUSHALL the group is gone and is made again; a server that is down comes back.
                if not down:
                    _log.warning("wake_ups_interrupted", error=type(error).__name__)
                down = True
                hint.set()
                await asyncio.sleep(RETRY_SECONDS)
    finally:
        await client.aclose()


def group_of(shard: int) -> str:
    """Return the group of a process, by its number."""
    return f"{GROUP}-{shard}"


async def _make_group(client: Redis, group: str) -> None:
    try:
        # From the start of the stream: one made at its end would miss what came just before.
        await client.xgroup_create(STREAM, group, id="0", mkstream=True)
    except ResponseError as error:
        if not str(error).startswith("BUSYGROUP"):
            raise


async def _heads(db: log.Database) -> Mapping[str, _Head]:
    async with db.across_tenants() as conn:
        return {row.tenant: (row.commit, row.epoch) for row in await conn.execute(_HEADS)}


def _moved(seen: Mapping[str, _Head], heads: Mapping[str, _Head]) -> list[str]:
    # A tenant without a commit has nothing to read; one that was deleted is to be forgotten.
    gone = [tenant for tenant in seen if tenant not in heads]
    return gone + [tenant for tenant, head in heads.items() if head[0] and head != seen.get(tenant)]
