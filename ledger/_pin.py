"""Pinning a view: "now" and "newest" become constants before anything is read."""

from __future__ import annotations

import asyncio
import time
from typing import Final

import sqlalchemy as sa

from contracts.errors import Poisoned
from contracts.limits import WAIT_MS_MAX
from contracts.views import Generation, View, ViewRequest
from ledger._database import Database
from ledger._glance import glance, seen

_PAUSE_SECONDS_MIN: Final = 0.005
_PAUSE_SECONDS_MAX: Final = 0.1
_PAUSE_SHARE: Final = 0.2
"""Of what was waited so far: what is folded is seen that much later at most, whenever that is."""

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
    started = time.monotonic()
    wait_seconds = min(wait_ms, WAIT_MS_MAX) / 1_000
    asked_at = 0.0
    while True:
        found = seen(await glance(db, tenant, request, None, claims_max=0), request)
        if isinstance(found, View):
            return found
        waited = time.monotonic() - started
        # Not where it is folded at once, as it is as a rule: what is asked meanwhile takes its time.
        if waited - asked_at >= _PAUSE_SECONDS_MAX or waited >= wait_seconds:
            asked_at = waited
            await _refuse_stopped(db, tenant, request.generation)
        if waited >= wait_seconds:
            raise found
        pause = min(max(_PAUSE_SHARE * waited, _PAUSE_SECONDS_MIN), _PAUSE_SECONDS_MAX)
        await asyncio.sleep(min(pause, wait_seconds - waited))


async def _refuse_stopped(db: Database, tenant: str, wanted: Generation | None) -> None:
    """Say why it is not folded where waiting does not help: only an operator can."""
    at = {"tenant": tenant, "epoch": None if wanted is None else wanted.epoch}
    async with db.snapshot(tenant) as conn:
        stopped = (await conn.execute(_STOPPED, at)).one_or_none()
    if stopped is not None:
        raise Poisoned(epoch=stopped.epoch, position=stopped.position, error=stopped.error)
