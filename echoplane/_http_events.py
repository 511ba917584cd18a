"""The routes that read events: by position, stream and commit, and as they come."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, ConfigDict

from contracts.grants import Right
from contracts.wire import EventAnswer, EventsAnswer
from echoplane._event_pages import EventsParameters, Number
from echoplane._following import commit_message, last_seen, listed
from echoplane._http_calls import authorized, no_parameters, once_each
from echoplane._http_stream import EventStream, Streams
from echoplane._requests import read_name
from echoplane._wiring import Plane
from ledger.log import following


class LiveParameters(BaseModel):
    """Where to begin, if no `Last-Event-ID` says so; and after how many commits to end."""

    model_config = ConfigDict(extra="forbid")

    after_commit: Number = 0
    limit: Annotated[int | None, Query(ge=1)] = None


EVENT_PARAMETERS: tuple[type[BaseModel], ...] = (EventsParameters, LiveParameters)
"""All that can be said in a query string here."""


def add_events(router: APIRouter, plane: Plane, streams: Streams) -> None:
    """Add the routes of this module."""

    @router.get("/v1/{tenant}/events", dependencies=[Depends(once_each)])
    async def page(
        tenant: str, request: Request, given: Annotated[EventsParameters, Query()]
    ) -> EventsAnswer:
        """Events by position, by stream, by correlation, or of one commit."""
        await authorized(plane, request, tenant, Right.ASK)
        return await listed(plane, tenant, given)

    @router.get("/v1/{tenant}/events/{event_id}", dependencies=[Depends(no_parameters)])
    async def event(tenant: str, event_id: str, request: Request) -> EventAnswer:
        """One event, decrypted and checked against its hash."""
        await authorized(plane, request, tenant, Right.ASK)
        return await plane.event(tenant, read_name(event_id, field="event_id"))

    @router.get("/v1/{tenant}/live", dependencies=[Depends(once_each)], response_class=Response)
    async def live(tenant: str, request: Request, given: Annotated[LiveParameters, Query()]) -> Response:
        """Every commit after one, whole and once, as server-sent events, and each new one as it comes."""
        await authorized(plane, request, tenant, Right.ASK)
        after = last_seen(request.headers.get("last-event-id"), given.after_commit)

        async def may() -> None:
            await authorized(plane, request, tenant, Right.ASK)

        return EventStream(
            following(plane.database, tenant, after_commit=after),
            streams=streams,
            message=partial(commit_message, tenant),
            check=may,
            limit=given.limit,
        )
