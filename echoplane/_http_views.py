"""Routes of views by name."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request

from contracts.grants import Right
from contracts.read_wire import PinnedViewAnswer, PinRequest
from echoplane._http_calls import authorized, json_body, no_parameters, once_each, read_body
from echoplane._http_lists import NamesPage
from echoplane._reads import list_views, pin_view, show_view, unpin_view
from echoplane._requests import page_of, read_view
from echoplane._wiring import Plane

PIN_BYTES_MAX: Final = 4_096


def add_views(router: APIRouter, plane: Plane) -> None:
    """Add the routes of this module."""

    @router.get("/v1/{tenant}/views", dependencies=[Depends(once_each)])
    async def every_view(
        tenant: str, request: Request, given: Annotated[NamesPage, Query()]
    ) -> list[PinnedViewAnswer]:
        """The views that were pinned, by name."""
        await authorized(plane, request, tenant, Right.ASK)
        found = await list_views(plane, tenant)
        return page_of(found, lambda one: one.name, after=given.after, limit=given.limit)

    @router.put(
        "/v1/{tenant}/views/{name}",
        dependencies=[Depends(no_parameters)],
        openapi_extra=json_body(PinRequest),
    )
    async def put_view(tenant: str, name: str, request: Request) -> PinnedViewAnswer:
        """Pin a view under a name, for good. The same view again is the same answer."""
        await authorized(plane, request, tenant, Right.ASK)
        body = await read_body(request, PinRequest, bytes_max=PIN_BYTES_MAX)
        view = read_view(
            valid_at=body.valid_at,
            known_at=body.known_at,
            generation=body.generation,
            min_commit=body.min_commit,
        )
        return await pin_view(plane, tenant, name, view)

    @router.get("/v1/{tenant}/views/{name}", dependencies=[Depends(no_parameters)])
    async def get_view(tenant: str, name: str, request: Request) -> PinnedViewAnswer:
        """Which view a name stands for."""
        await authorized(plane, request, tenant, Right.ASK)
        return await show_view(plane, tenant, name)

    @router.delete("/v1/{tenant}/views/{name}", dependencies=[Depends(no_parameters)])
    async def delete_view(tenant: str, name: str, request: Request) -> PinnedViewAnswer:
        """Take a name away; others may ask by it, so this needs the right `operator`."""
        await authorized(plane, request, tenant, Right.OPERATOR)
        return await unpin_view(plane, tenant, name)
