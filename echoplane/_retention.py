"""Retention: what a tenant's policy says is too old is erased, by erasures that say so."""

from __future__ import annotations

import asyncio

import structlog

from contracts.errors import EchoplaneError
from contracts.grants import LOCAL_GRANT
from contracts.limits import RETENTION_SECONDS
from contracts.tenant_wire import RetainAnswer
from echoplane._erasing import erase
from echoplane._wiring import Plane
from ledger.log import RETENTION_ACTOR, overdue, retaining

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
    """Erase whatever is too old, of every tenant; one that fails keeps no other."""
    for tenant in await retaining(plane.database):
        await _retain_one(plane, tenant)


async def keep_retained(plane: Plane) -> None:
    """Erase whatever is too old every `RETENTION_SECONDS`, until cancelled."""
    while True:
        try:
            await retain_all(plane)
        except EchoplaneError as error:
            log.warning("retention_put_off", error=error.code)
        await asyncio.sleep(RETENTION_SECONDS)


async def _retain_one(plane: Plane, tenant: str) -> None:
    try:
        answer = await retain(plane, tenant)
    except EchoplaneError as error:
        # It cannot be folded, or is busy.
        log.warning("retention_put_off", tenant=tenant, error=error.code)
        return
    if answer.erased:
        log.info("retained", tenant=tenant, erased_count=answer.erased, erasures_count=answer.erasures)
