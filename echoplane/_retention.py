"""
What the plane does to tenants by itself: it erases what is too old, and finishes what was half deleted.

What a retention policy erases goes by erasures that say so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import structlog

from contracts.errors import EchoplaneError
from contracts.grants import LOCAL_GRANT
from contracts.limits import RETENTION_SECONDS
from contracts.tenant_wire import RetainAnswer
from echoplane._erasing import erase
from echoplane._tenants import delete
from echoplane._wiring import Plane
from ledger.log import RETENTION_ACTOR, half_deleted, overdue, retaining

log = structlog.get_logger(__name__)


async def retain(plane: Plane, tenant: str) -> RetainAnswer:
    """
    Erase what is too old now, some events at a time, the oldest first.

    Raises:
        EchoplaneError: As `ledger.erase.erase`; what was erased before stays so.
    """
    erased = erasures = 0
    last: str | None = None
    while (request := await overdue(plane.database, tenant, after_event_id=last)) is not None:
        answer = await erase(plane, tenant, request, grant=LOCAL_GRANT, actor_id=RETENTION_ACTOR)
        if not answer.erased:
            # Somebody else erases the same.
            break
        erased, erasures = erased + len(answer.erased), erasures + 1
        last = request.event_ids[-1]
        # Who asks the plane meanwhile comes before the next.
        await asyncio.sleep(0)
    return RetainAnswer(tenant=tenant, erased=erased, erasures=erasures)


async def retain_all(plane: Plane) -> None:
    """Erase whatever is too old, and finish what was half deleted; a tenant that fails keeps no other."""
    for tenant in await retaining(plane.database):
        await _or_put_off(_retain(plane, tenant), tenant=tenant)
    for tenant in await half_deleted(plane.database):
        await _or_put_off(_finish(plane, tenant), tenant=tenant)


async def keep_retained(plane: Plane) -> None:
    """Do that every `RETENTION_SECONDS`, until cancelled: whatever goes wrong, the next look comes."""
    while True:
        await _or_put_off(retain_all(plane))
        await asyncio.sleep(RETENTION_SECONDS)


@asynccontextmanager
async def retaining_meanwhile(plane: Plane) -> AsyncIterator[None]:
    """Keep what policies say as long as the block runs; however that ended, the block ends in order."""
    keeping = asyncio.create_task(keep_retained(plane), name="retention")
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])


async def _or_put_off(work: Awaitable[None], **about: str) -> None:
    try:
        await work
    except EchoplaneError as error:
        # It cannot be folded, or is busy.
        log.warning("retention_put_off", error=error.code, **about)
    except Exception:
        # A full disk, the driver, a bug of ours: no reason to keep for ever what is to be erased.
        log.exception("retention_failed", **about)


async def _retain(plane: Plane, tenant: str) -> None:
    answer = await retain(plane, tenant)
    if answer.erased:
        log.info("retained", tenant=tenant, erased_count=answer.erased, erasures_count=answer.erasures)


async def _finish(plane: Plane, tenant: str) -> None:
    # Why it is deleted was said when that began.
    await delete(plane, tenant, reason="", grant=LOCAL_GRANT)
    log.info("deleted", tenant=tenant)
