"""Pinning a view: "now" and "newest" become constants before anything is read."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import EpochDropped, NotFound, NotYet, Poisoned
from contracts.limits import WAIT_MS_MAX
from contracts.times import KnownAt, ValidAt
from contracts.views import Generation, View, ViewRequest
from ledger._database import Database
from ledger._epochs import EpochState

_FIRST_PAUSE_SECONDS: Final = 0.005
_PAUSE_SECONDS_MAX: Final = 0.1

_STAND: Final = sa.text(
    "SELECT h.recorded_at AS newest, e.epoch, e.commit, e.position, e.state FROM head h "
    "LEFT JOIN epoch e ON e.tenant = h.tenant AND (e.epoch = CAST(:epoch AS integer) "
    "OR (CAST(:epoch AS integer) IS NULL AND e.state = 'serving')) WHERE h.tenant = :tenant"
)
_STOPPED: Final = sa.text(
    "SELECT position, error FROM dead_letter WHERE tenant = :tenant AND epoch = :epoch "
    "AND position > :position ORDER BY position LIMIT 1"
)
_CUT: Final = sa.text(
    "SELECT coalesce(max(commit), 0) FROM commit WHERE tenant = :tenant AND recorded_at <= :known_at"
)


async def pin(db: Database, tenant: str, request: ViewRequest, *, wait_ms: int) -> View:
    """
    Turn a request into a view: every answer is a pure function of it.

    Args:
        db: The database.
        tenant: Whose ledger.
        request: What the caller asks for; what it leaves out is the newest.
        wait_ms: How long to wait for a generation or commit that is not folded yet; at most
            `WAIT_MS_MAX`.

    Raises:
        NotFound: No such tenant.
        NotYet: The generation or commit asked for is not folded within the wait.
        Poisoned: Nor will it be: an event that cannot be folded stops the epoch before it.
        EpochDropped: The epoch asked for is there no more.

    Source: SEMANTICS, "Time": view and cut.
    """
    deadline = time.monotonic() + min(wait_ms, WAIT_MS_MAX) / 1_000
    pause = _FIRST_PAUSE_SECONDS
    while True:
        found = await _pinned(db, tenant, request)
        if isinstance(found, View):
            return found
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise found
        await asyncio.sleep(min(pause, remaining))
        pause = min(2 * pause, _PAUSE_SECONDS_MAX)


async def _pinned(db: Database, tenant: str, request: ViewRequest) -> View | NotYet:
    wanted = request.generation
    async with db.snapshot(tenant) as conn:
        row: Any = (
            await conn.execute(_STAND, {"tenant": tenant, "epoch": None if wanted is None else wanted.epoch})
        ).one_or_none()
        if row is None:
            raise NotFound(what="tenant")
        if row.state == EpochState.DROPPED:
            raise EpochDropped(epoch=row.epoch)
        if row.epoch is None:
            return NotYet(wanted=f"generation {wanted}", visible="none of that epoch")
        visible = Generation(epoch=row.epoch, commit=row.commit)
        if wanted is not None and wanted.commit > visible.commit:
            await _refuse_stopped(conn, tenant, row)
            return NotYet(wanted=f"generation {wanted}", visible=str(visible))
        if request.min_commit is not None and request.min_commit > visible.commit:
            await _refuse_stopped(conn, tenant, row)
            return NotYet(wanted=f"commit {request.min_commit}", visible=str(visible))
        # A clock that stepped back must not hide what was just written.
        now = max(db.clock(), row.newest)
        known_at = now if request.known_at is None else request.known_at
        cut = await conn.scalar(_CUT, {"tenant": tenant, "known_at": known_at})
    generation = visible if wanted is None else wanted
    return View(
        valid_at=ValidAt(now) if request.valid_at is None else request.valid_at,
        known_at=KnownAt(known_at),
        cut=min(cut or 0, generation.commit),
        epoch=generation.epoch,
    )


async def _refuse_stopped(conn: AsyncConnection, tenant: str, stand: Any) -> None:  # noqa: ANN401 — a row
    """Say why it is not folded where waiting does not help: only an operator can."""
    at = {"tenant": tenant, "epoch": stand.epoch, "position": stand.position}
    stopped = (await conn.execute(_STOPPED, at)).one_or_none()
    if stopped is not None:
        raise Poisoned(epoch=stand.epoch, position=stopped.position, error=stopped.error)
