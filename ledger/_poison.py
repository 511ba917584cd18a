"""
Events that could not be folded: recorded beside the epoch that they stop, by the error's kind alone.

What is to become of one is an operator's decision, and that is an event of the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import Final

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import BadRequest, EchoplaneError, NotFound
from contracts.events import Kind
from contracts.grants import Grant, Right
from contracts.times import KnownAt
from ledger._append import append_within
from ledger._database import Database
from ledger._decisions import Skip, skip_draft, skips_after
from ledger._epochs import lock_live
from ledger._grants import check_right
from ledger._tenants import tenant_keys

_HEALED: Final = sa.text(
    "DELETE FROM dead_letter WHERE tenant = :tenant AND epoch = :epoch AND position <= :position"
)
_POISON: Final = sa.text(
    "INSERT INTO dead_letter (tenant, epoch, position, error, attempts, first_at, last_at) "
    "VALUES (:tenant, :epoch, :position, :error, 1, :at, :at) "
    "ON CONFLICT (tenant, epoch, position) DO UPDATE SET error = excluded.error, "
    "attempts = dead_letter.attempts + 1, last_at = excluded.last_at RETURNING attempts"
)
_STOPPING: Final = sa.text(
    "SELECT d.epoch, e.state, d.position, v.event_id, v.kind, v.commit, d.error, d.attempts, d.first_at, "
    "d.last_at FROM dead_letter d JOIN epoch e ON e.tenant = d.tenant AND e.epoch = d.epoch "
    "JOIN event v ON v.tenant = d.tenant AND v.position = d.position WHERE d.tenant = :tenant "
    "AND e.state IN ('serving', 'building') AND d.position > e.position ORDER BY d.position, d.epoch"
)
_EVENT_AT: Final = sa.text("SELECT event_id, kind FROM event WHERE tenant = :tenant AND position = :position")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """
    An event that an epoch waits before: where it stands, what went wrong and how often it was tried.

    `error` is a code or the name of a kind of error; its words might quote the content.
    """

    epoch: int
    is_building: bool
    position: int
    event_id: str
    kind: Kind
    commit: int
    error: str
    attempts: int
    first_at: KnownAt
    last_at: KnownAt


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """
    The decision to pass over an event: from which epoch on, and at which commit it was made.

    `is_new` is false where it had been decided before, and nothing was written.
    """

    position: int
    event_id: str
    epoch: int
    commit: int
    is_new: bool


async def dead_letters(db: Database, tenant: str) -> list[DeadLetter]:
    """
    Return the events that stop an epoch that is folded, in their order: one an epoch at most.

    Raises:
        NotFound: No such tenant.
        Unavailable: The database is down or busy.
    """
    async with db.snapshot(tenant) as conn:
        await tenant_keys(db, tenant, conn)
        rows = (await conn.execute(_STOPPING, {"tenant": tenant})).all()
    return [
        DeadLetter(
            epoch=row.epoch,
            is_building=row.state == "building",
            position=row.position,
            event_id=row.event_id,
            kind=Kind(row.kind),
            commit=row.commit,
            error=row.error,
            attempts=row.attempts,
            first_at=KnownAt(row.first_at.astimezone(UTC)),
            last_at=KnownAt(row.last_at.astimezone(UTC)),
        )
        for row in rows
    ]


async def skip_event(
    db: Database, tenant: str, *, position: int, reason: str, actor_id: str, grant: Grant
) -> Skipped:
    """
    Decide that an event that stops an epoch is passed over, in that epoch and all later ones.

    It stays in the log and can be read and proposed as evidence; it claims nothing. Nothing takes the
    decision back: what the event was to say can be said by another one.

    Args:
        db: The database.
        tenant: Whose log.
        position: Of the event.
        reason: Why, for whoever reads the log; kept like the text of any event.
        actor_id: Who decides.
        grant: What the caller may do; `operator` is needed.

    Raises:
        NotFound: No such tenant, or nothing is stopped by an event at that position.
        BadRequest: It is a command, whose effect is not to be passed over.
        Forbidden: The grant lacks the right.
        Unavailable: Unknown whether decided; ask again.
    """
    check_right(grant, tenant, Right.OPERATOR)
    async with db.tenant(tenant) as conn:
        # No fold is under way from here on: none can have passed the event meanwhile.
        live = await lock_live(conn, tenant)
        keys = await tenant_keys(db, tenant, conn)
        found = (await conn.execute(_EVENT_AT, {"tenant": tenant, "position": position})).one_or_none()
        if found is None:
            raise NotFound(what="dead letter")
        rows = await conn.execute(_STOPPING, {"tenant": tenant})
        epochs = [row.epoch for row in rows if row.position == position]
        skips = await skips_after(conn, keys, position)
        decided = _decided(skips, found.event_id, until=min(epochs, default=live.newest))
        if decided is not None:
            return _skipped(decided, position=position, is_new=False)
        if not epochs:
            raise NotFound(what="dead letter")
        if found.kind in {Kind.RELATION, Kind.DECISION, Kind.ERASURE}:
            raise BadRequest(field="position", reason=f"a {found.kind} event cannot be skipped")
        draft = skip_draft(found.event_id, epoch=min(epochs), reason=reason, actor_id=actor_id)
        # Last: from here on until the commit, every other append of the tenant waits.
        receipt = await append_within(conn, db, keys, draft, grant=grant)
    db.waker.wake(tenant)
    skip = Skip(event_id=found.event_id, epoch=min(epochs), decided=receipt.commit)
    return _skipped(skip, position=position, is_new=True)


def _decided(skips: list[Skip], event_id: str, *, until: int) -> Skip | None:
    """Return the first decision about an event that holds in an epoch."""
    found = [skip for skip in skips if skip.event_id == event_id and skip.epoch <= until]
    return min(found, key=lambda skip: (skip.epoch, skip.decided), default=None)


def _skipped(skip: Skip, *, position: int, is_new: bool) -> Skipped:
    return Skipped(
        position=position, event_id=skip.event_id, epoch=skip.epoch, commit=skip.decided, is_new=is_new
    )


async def bury(db: Database, tenant: str, epoch: int, *, position: int, error: str) -> None:
    """Record that an epoch waits before an event."""
    async with db.tenant(tenant) as conn:
        at = KnownAt(db.clock())
        bound = {"tenant": tenant, "epoch": epoch, "position": position, "error": error, "at": at}
        await conn.execute(_POISON, bound)


async def forget_passed(conn: AsyncConnection, tenant: str, epoch: int, *, position: int) -> None:
    """Delete what was recorded of events that are folded after all, in the fold's own transaction."""
    await conn.execute(_HEALED, {"tenant": tenant, "epoch": epoch, "position": position})


def error_name(error: Exception) -> str:
    """Return what kind of error it was; its words might quote the content."""
    if isinstance(error, EchoplaneError):
        return error.code
    if isinstance(error, DBAPIError) and error.orig is not None:
        return type(error.orig).__name__
    return type(error).__name__
