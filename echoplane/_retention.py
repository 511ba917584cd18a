"""
What the plane does to tenants by itself: it erases what is too old, and finishes what was half deleted.

What a retention policy erases goes by erasures that say so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

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
    while (request := await overdue(plane.database, tenant)) is not None:
        answer = await erase(plane, tenant, request, grant=LOCAL_GRANT, actor_id=RETENTION_ACTOR)
        if not answer.erased:
            # Somebody else erases the same.
            break
        erased, erasures = erased + len(answer.erased), erasures + 1
    return RetainAnswer(tenant=tenant, erased=erased, erasures=erasures)


async def retain_all(plane: Plane) -> None:
    """Erase whatever is too old, and finish what was half deleted; a tenant that fails keeps no other."""
    for tenant in await retaining(plane.database):
        await _do(plane, tenant, _retain)
    for tenant in await half_deleted(plane.database):
        await _do(plane, tenant, _finish)


async def keep_retained(plane: Plane) -> None:
    """Do that every `RETENTION_SECONDS`, until cancelled."""
    while True:
        try:
            await retain_all(plane)
        except EchoplaneError as error:
            log.warning("retention_put_off", error=error.code)
        await asyncio.sleep(RETENTION_SECONDS)


async def _do(plane: Plane, tenant: str, what: Callable[[Plane, str], Awaitable[None]]) -> None:
    try:
        await what(plane, tenant)
    except EchoplaneError as error:
        # It cannot be folded, or is busy.
        log.warning("retention_put_off", tenant=tenant, error=error.code)


async def _retain(plane: Plane, tenant: str) -> None:
    answer = await retain(plane, tenant)
    if answer.erased:
        log.info("retained", tenant=tenant, erased_count=answer.erased, erasures_count=answer.erasures)


async def _finish(plane: Plane, tenant: str) -> None:
    # Why it is deleted was said when that began.
    await delete(plane, tenant, reason="", grant=LOCAL_GRANT)
    log.info("deleted", tenant=tenant)
