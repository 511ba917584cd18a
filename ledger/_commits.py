"""The commits of a log as others can check them: numbers and hashes, of no event what it says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import BadRequest, IntegrityFault
from contracts.limits import PAGE_EVENTS_MAX
from contracts.times import KnownAt
from ledger import _tables
from ledger._database import Database
from ledger._hashes import commit_hash
from ledger._notes import Checkpoint
from ledger._read import head
from ledger._tree import Node, NodeOf, consistency_path, inclusion_path, nodes_wanted, root_of

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedCommit:
    """One commit: all that its hash covers, and the hash."""

    commit: int
    recorded_at: KnownAt
    first_position: int
    event_hashes: tuple[bytes, ...]
    previous: bytes
    hash: bytes

    def computed_hash(self, tenant: str) -> bytes:
        """Return the hash that it must have in a tenant's log."""
        return commit_hash(
            previous=self.previous,
            tenant=tenant,
            commit=self.commit,
            recorded_at=self.recorded_at,
            first_position=self.first_position,
            event_hashes=self.event_hashes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Inclusion:
    """A commit, and what proves that it is in the log of `size` commits."""

    commit: LoggedCommit
    size: int
    path: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Consistency:
    """What proves that the log of `later.size` commits begins as it was at `size`."""

    size: int
    later: Checkpoint
    path: tuple[bytes, ...]


async def read_checkpoint(db: Database, tenant: str, *, size: int | None = None) -> Checkpoint:
    """
    Return how a tenant's log stood at so many commits, or stands now: unsigned.

    Raises:
        NotFound: No such tenant.
        BadRequest: It never had so many.
        IntegrityFault: A commit is missing.
    """
    async with db.snapshot(tenant) as conn:
        return await checkpoint_at(conn, tenant, await _size(conn, size, field="size"))


async def read_inclusion(db: Database, tenant: str, commit: int, *, size: int | None = None) -> Inclusion:
    """Prove that a commit is in the log of so many commits, or of now; raises as `read_checkpoint`."""
    async with db.snapshot(tenant) as conn:
        length = await _size(conn, size, field="size")
        if not 1 <= commit <= length:
            raise BadRequest(field="commit", reason=f"is not one of the first {length}")
        path = await _made(conn, tenant, lambda node_of: inclusion_path(node_of, commit, length))
        (found,) = await _commits(conn, tenant, after=commit - 1, limit=1)
    return Inclusion(commit=found, size=length, path=tuple(path))


async def read_consistency(db: Database, tenant: str, *, old: int, new: int | None = None) -> Consistency:
    """Prove that the log of `new` commits, or of now, begins as at `old`; raises as `read_checkpoint`."""
    async with db.snapshot(tenant) as conn:
        later = await _size(conn, new, field="new_size")
        if not 0 <= old <= later:
            raise BadRequest(field="old_size", reason=f"is not between 0 and {later}")
        path = await _made(conn, tenant, lambda node_of: consistency_path(node_of, old, later))
        checkpoint = await checkpoint_at(conn, tenant, later)
    return Consistency(size=old, later=checkpoint, path=tuple(path))


async def read_commits(db: Database, tenant: str, *, after_commit: int, limit: int) -> list[LoggedCommit]:
    """
    Read commits in order: `limit` of them at most, and with `PAGE_EVENTS_MAX` events at most.

    Only an empty page says that there are no more.

    Raises:
        NotFound: No such tenant.
    """
    async with db.snapshot(tenant) as conn:
        await head(conn)
        return await _commits(conn, tenant, after=after_commit, limit=limit)


async def commits_up_to(db: Database, tenant: str, size: int) -> AsyncIterator[LoggedCommit]:
    """Yield the first `size` commits, of one snapshot."""
    after = 0
    async with db.snapshot(tenant) as conn:
        while after < size and (
            page := await _commits(conn, tenant, after=after, limit=min(PAGE_EVENTS_MAX, size - after))
        ):
            for commit in page:
                yield commit
            after = page[-1].commit


async def _size(conn: AsyncConnection, wanted: int | None, *, field: str) -> int:
    newest = (await head(conn)).commit
    if wanted is not None and not 0 <= wanted <= newest:
        raise BadRequest(field=field, reason=f"the log has {newest} commits")
    return newest if wanted is None else wanted


async def checkpoint_at(conn: AsyncConnection, tenant: str, size: int) -> Checkpoint:
    root = await _made(conn, tenant, lambda node_of: root_of(node_of, size))
    return Checkpoint(tenant=tenant, size=size, root=root)


async def _made(conn: AsyncConnection, tenant: str, make: Callable[[NodeOf], Made]) -> Made:
    """Make something of the tree, reading the few commits that it takes."""
    wanted = nodes_wanted(make)
    table = _tables.commit
    query = sa.select(table.c.commit, table.c.hash, table.c.tree).where(
        table.c.tenant == tenant,
        table.c.commit == sa.any_(sa.literal(sorted(wanted), sa.ARRAY(sa.BigInteger))),
    )
    nodes = {
        row.commit: Node(hash=bytes(row.hash), tree=bytes(row.tree)) for row in await conn.execute(query)
    }
    if missing := wanted - set(nodes):
        raise IntegrityFault(what=f"commit {min(missing)} is not there")
    return make(nodes.__getitem__)


async def _commits(conn: AsyncConnection, tenant: str, *, after: int, limit: int) -> list[LoggedCommit]:
    commit, event = _tables.commit, _tables.event
    before = sa.func.coalesce(sa.func.sum(commit.c.event_count).over(order_by=commit.c.commit), 0)
    page = (
        sa.select(commit, before.label("events"))
        .where(commit.c.tenant == tenant, commit.c.commit > after)
        .order_by(commit.c.commit)
        .limit(min(limit, PAGE_EVENTS_MAX))
        .subquery()
    )
    # One commit never holds more events than a page.
    rows = (
        await conn.execute(sa.select(page).where(page.c.events <= PAGE_EVENTS_MAX).order_by(page.c.commit))
    ).all()
    if not rows:
        return []
    query = sa.select(event.c.commit, event.c.hash).where(
        event.c.tenant == tenant,
        event.c.position.between(rows[0].first_position, rows[-1].first_position + rows[-1].event_count - 1),
    )
    hashes: dict[int, list[bytes]] = {}
    for found in await conn.execute(query.order_by(event.c.position)):
        hashes.setdefault(found.commit, []).append(bytes(found.hash))
    return [_logged(row, hashes.get(row.commit, ())) for row in rows]


def _logged(row: sa.Row[tuple[object, ...]], hashes: Sequence[bytes]) -> LoggedCommit:
    return LoggedCommit(
        commit=row.commit,
        recorded_at=KnownAt(row.recorded_at.astimezone(UTC)),
        first_position=row.first_position,
        event_hashes=tuple(hashes),
        previous=bytes(row.previous_hash),
        hash=bytes(row.hash),
    )
