"""The routes that read events: by position, stream and commit, and as they come."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Self

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, ConfigDict, model_validator

from contracts.grants import Right
from contracts.limits import PAGE_EVENTS_MAX
from contracts.names import Name
from contracts.wire import EventAnswer, EventsAnswer
from echoplane._following import commit_message, last_seen, listed
from echoplane._http_calls import authorized, no_parameters, once_each
from echoplane._http_stream import EventStream, Streams
from echoplane._requests import read_name
from echoplane._wiring import Plane
from ledger.log import following

Number = Annotated[int, Query(ge=0, le=2**53 - 1)]


class _Parameters(BaseModel):
    """Parameters in the query string: unknown ones are errors."""

    model_config = ConfigDict(extra="forbid")


class EventsParameters(_Parameters):
    """Which events: those of a commit, or after a version of a stream, or after a position of the log."""

    commit: Number | None = None
    stream: Name | None = None
    after_version: Number | None = None
    after_position: Number | None = None
    limit: Annotated[int, Query(ge=1, le=PAGE_EVENTS_MAX)] = PAGE_EVENTS_MAX

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        ways = (self.commit, self.stream, self.after_position)
        if sum(way is not None for way in ways) > 1:
            raise ValueError("name a commit, a stream or a position")
        if self.after_version is not None and self.stream is None:
            raise ValueError("after_version goes with stream")
        return self


class LiveParameters(_Parameters):
    """Where to begin, if no `Last-Event-ID` says so; and after how many commits to end."""

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
        """Events by position, by stream, or of one commit."""
        await authorized(plane, request, tenant, Right.ASK)
        return await listed(
            plane,
            tenant,
            commit=given.commit,
            stream=given.stream,
            after=(given.after_version if given.stream is not None else given.after_position) or 0,
            limit=given.limit,
        )

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
