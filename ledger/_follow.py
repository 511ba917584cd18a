"""Reading the log by stream and by commit, and following it as it grows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC
from itertools import groupby

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import BadRequest, NotFound
from contracts.limits import PAGE_BYTES_MAX, PAGE_EVENTS_MAX
from contracts.times import KnownAt
from ledger import _tables
from ledger._database import Database
from ledger._keys import TenantKeys
from ledger._news import POLL_SECONDS
from ledger._prepare import correlation_digest, stream_digest
from ledger._read import LoggedEvent, head, opened, read_stored, stored_of, stored_page
from ledger._tenants import tenant_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedCommit:
    """A commit with its events; what was erased of them says so."""

    commit: int
    recorded_at: KnownAt
    hash: bytes
    events: tuple[LoggedEvent, ...]

    @property
    def position(self) -> int:
        """The position of its last event: from there a follower goes on."""
        return self.events[-1].position


async def read_stream(
    db: Database, tenant: str, stream: str, *, after_version: int, limit: int
) -> list[LoggedEvent]:
    """
    Read a stream in order: its first event has version 1, and there are no gaps.

    A page ends before `limit` where its bytes do (`PAGE_BYTES_MAX`): only an empty one is the end.

    Raises:
        NotFound: No such tenant.
        IntegrityFault: Bytes of an event were changed.
    """
    async with db.snapshot(tenant) as conn:
        keys = await tenant_keys(db, tenant, conn)
        event = _tables.event
        query = stored_page(
            event.c.stream_version,
            sa.and_(event.c.tenant == tenant, event.c.stream_digest == stream_digest(keys, stream)),
            after=after_version,
            limit=limit,
            bytes_max=PAGE_BYTES_MAX,
        )
        return await opened(keys, await stored_of(conn, query))


async def read_correlated(
    db: Database, tenant: str, correlation: str, *, after_position: int, limit: int
) -> list[LoggedEvent]:
    """Read the events that carry a correlation id, in the order of the log; as `read_stream`."""
    async with db.snapshot(tenant) as conn:
        keys = await tenant_keys(db, tenant, conn)
        event = _tables.event
        query = stored_page(
            event.c.position,
            sa.and_(
                event.c.tenant == tenant,
                event.c.correlation_digest == correlation_digest(keys, correlation),
            ),
            after=after_position,
            limit=limit,
            bytes_max=PAGE_BYTES_MAX,
        )
        return await opened(keys, await stored_of(conn, query))


async def read_commit(db: Database, tenant: str, commit: int) -> FollowedCommit:
    """
    Read a commit whole.

    Raises:
        NotFound: No such tenant or commit.
        IntegrityFault: Bytes of an event were changed.
    """
    async with db.snapshot(tenant) as conn:
        keys = await tenant_keys(db, tenant, conn)
        table = _tables.commit
        query = sa.select(table.c.first_position, table.c.event_count).where(
            table.c.tenant == tenant, table.c.commit == commit
        )
        row = (await conn.execute(query)).one_or_none()
        if row is None:
            raise NotFound(what="commit")
        (found,) = await _page(conn, keys, after_position=row.first_position - 1, limit=row.event_count)
        return found


@asynccontextmanager
async def following(
    db: Database, tenant: str, *, after_position: int = 0, after_commit: int | None = None
) -> AsyncIterator[AsyncIterator[FollowedCommit]]:
    """
    Open what yields every commit after a position or commit, in order, each once and whole, for ever.

    It holds no transaction while the caller is at work: who is slow falls behind and misses nothing.
    After a position inside a commit comes the rest of that.

    Args:
        db: The database.
        tenant: Whose log.
        after_position: Where to begin; 0 is the beginning of the log.
        after_commit: The same by the number of a commit, instead.

    Raises:
        NotFound: No such tenant.
        BadRequest: The log never was so long.
        Busy: `FOLLOWERS_MAX` follow a log already.
        Unavailable: The database is down or busy; later too: go on from the last commit that came.
        IntegrityFault: Later: bytes of an event were changed.
    """
    with db.news.of(tenant) as woken:
        async with db.snapshot(tenant) as conn:
            after = await _start(conn, tenant, after_position, after_commit)
        yield _commits(db, tenant, after, woken)


async def follow(
    db: Database, tenant: str, *, after_position: int = 0, after_commit: int | None = None
) -> AsyncIterator[FollowedCommit]:
    """Yield the same, without the context; close it, or leave it to the end of the loop."""
    opened = following(db, tenant, after_position=after_position, after_commit=after_commit)
    async with opened as commits:
        async for commit in commits:
            yield commit


async def _commits(
    db: Database, tenant: str, after: int, woken: asyncio.Event
) -> AsyncIterator[FollowedCommit]:
    while True:
        # Cleared before it is looked for: what comes meanwhile sets it again.
        woken.clear()
        async with db.snapshot(tenant) as conn:
            keys = await tenant_keys(db, tenant, conn)
            page = await _page(conn, keys, after_position=after, limit=PAGE_EVENTS_MAX)
        for commit in page:
            yield commit
            after = commit.position
        if not page:
            with suppress(TimeoutError):
                await asyncio.wait_for(woken.wait(), POLL_SECONDS)


async def _start(conn: AsyncConnection, tenant: str, after_position: int, after_commit: int | None) -> int:
    newest = await head(conn)
    if after_commit is None:
        if not 0 <= after_position <= newest.position:
            raise BadRequest(field="after_position", reason=f"the log has {newest.position} events")
        return after_position
    if not 0 <= after_commit <= newest.commit:
        raise BadRequest(field="after_commit", reason=f"the log has {newest.commit} commits")
    table = _tables.commit
    last = table.c.first_position + table.c.event_count - 1
    return (
        await conn.scalar(sa.select(last).where(table.c.tenant == tenant, table.c.commit == after_commit))
        or 0
    )


async def _page(
    conn: AsyncConnection, keys: TenantKeys, *, after_position: int, limit: int
) -> list[FollowedCommit]:
    """Read whole commits, as many as a page of events holds; the first comes, however large it is."""
    page = await read_stored(
        conn, keys, after_position=after_position, limit=limit,
        bytes_max=PAGE_BYTES_MAX, whole_commit=True,
    )  # fmt: skip
    events = await opened(keys, page)
    if not events:
        return []
    table = _tables.commit
    query = sa.select(table).where(
        table.c.tenant == keys.tenant, table.c.commit.between(events[0].commit, events[-1].commit)
    )
    rows = {row.commit: row for row in await conn.execute(query)}
    return [
        FollowedCommit(
            commit=commit,
            recorded_at=KnownAt(rows[commit].recorded_at.astimezone(UTC)),
            hash=bytes(rows[commit].hash),
            events=own,
        )
        for commit, group in groupby(events, key=lambda event: event.commit)
        if (own := tuple(group))[-1].position == rows[commit].first_position + rows[commit].event_count - 1
    ]
