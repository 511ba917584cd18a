"""Events that could not be folded: recorded beside the epoch that they stop, by the error's kind alone."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import EchoplaneError
from contracts.times import KnownAt
from ledger._database import Database

_HEALED: Final = sa.text(
    "DELETE FROM dead_letter WHERE tenant = :tenant AND epoch = :epoch AND position <= :position"
)
_POISON: Final = sa.text(
    "INSERT INTO dead_letter (tenant, epoch, position, error, attempts, first_at, last_at) "
    "VALUES (:tenant, :epoch, :position, :error, 1, :at, :at) "
    "ON CONFLICT (tenant, epoch, position) DO UPDATE SET error = excluded.error, "
    "attempts = dead_letter.attempts + 1, last_at = excluded.last_at RETURNING attempts"
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
