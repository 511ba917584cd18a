"""Routes of recalls: which there are, what today's logic says to one, what would change without an event."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel

from contracts.audit_wire import TodayAnswer, TrailsAnswer, WithoutAnswer
from contracts.grants import Right
from echoplane._http_calls import authorized, no_parameters, once_each
from echoplane._requests import read_name
from echoplane._trails import TrailsParameters, WithoutParameters, today, trails, without
from echoplane._wiring import Plane

TRAIL_PARAMETERS: tuple[type[BaseModel], ...] = (TrailsParameters, WithoutParameters)
"""All that can be said in a query string here."""


def add_trails(router: APIRouter, plane: Plane) -> None:
    """Add the routes of this module."""

    @router.get("/v1/{tenant}/trails", dependencies=[Depends(once_each)])
    async def page(
        tenant: str, request: Request, given: Annotated[TrailsParameters, Query()]
    ) -> TrailsAnswer:
        """Recalls by the event they used, the name they were about, how they were answered, and when."""
        await authorized(plane, request, tenant, Right.ASK)
        return await trails(plane, tenant, given)

    @router.post("/v1/{tenant}/contexts/{context_hash}/today", dependencies=[Depends(no_parameters)])
    async def as_of_today(tenant: str, context_hash: str, request: Request) -> TodayAnswer:
        """What today's logic says to a stored question, from what was known then."""
        await authorized(plane, request, tenant, Right.ASK)
        return await today(plane, tenant, read_name(context_hash, field="context_hash"))

    @router.get("/v1/{tenant}/events/{event_id}/without", dependencies=[Depends(once_each)])
    async def without_event(
        tenant: str, event_id: str, request: Request, given: Annotated[WithoutParameters, Query()]
    ) -> WithoutAnswer:
        """What a retraction of the event would change. Appends wait meanwhile, so this needs `operator`."""
        await authorized(plane, request, tenant, Right.OPERATOR)
        return await without(plane, tenant, read_name(event_id, field="event_id"), given)
