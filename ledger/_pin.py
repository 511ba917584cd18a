"""Pinning a view: "now" and "newest" become constants before anything is read."""

from __future__ import annotations

import asyncio
import time
from typing import Final

import sqlalchemy as sa

from contracts.errors import NotYet, Poisoned
from contracts.limits import WAIT_MS_MAX
from contracts.views import Generation, View, ViewRequest
from ledger._database import Database
from ledger._glance import glance, seen

_FIRST_PAUSE_SECONDS: Final = 0.005
_PAUSE_SECONDS_MAX: Final = 0.1

_STOPPED: Final = sa.text(
    "SELECT d.epoch, d.position, d.error FROM epoch e JOIN dead_letter d USING (tenant, epoch) "
    "WHERE e.tenant = :tenant AND d.position > e.position AND (e.epoch = CAST(:epoch AS integer) "
    "OR (CAST(:epoch AS integer) IS NULL AND e.state = 'serving')) ORDER BY d.position LIMIT 1"
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
    found = seen(await glance(db, tenant, request, None, claims_max=0), request)
    if isinstance(found, NotYet):
        await _refuse_stopped(db, tenant, request.generation)
    return found


async def _refuse_stopped(db: Database, tenant: str, wanted: Generation | None) -> None:
    """Say why it is not folded where waiting does not help: only an operator can."""
    at = {"tenant": tenant, "epoch": None if wanted is None else wanted.epoch}
    async with db.snapshot(tenant) as conn:
        stopped = (await conn.execute(_STOPPED, at)).one_or_none()
    if stopped is not None:
        raise Poisoned(epoch=stopped.epoch, position=stopped.position, error=stopped.error)
