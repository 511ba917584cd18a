"""The route of discovery's index: making it anew."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request

from contracts.discovery_wire import ReindexAnswer
from contracts.grants import Right
from echoplane._http_calls import authorized, no_parameters
from echoplane._wiring import Plane


def add_discovery(router: APIRouter, plane: Plane) -> None:
    """Add the route of discovery's index."""

    @router.post("/v1/{tenant}/reindex", status_code=202, dependencies=[Depends(no_parameters)])
    async def reindexed(tenant: str, request: Request) -> ReindexAnswer:
        """Drop a tenant's index and vectors, and make them anew."""
        await authorized(plane, request, tenant, Right.OPERATOR)
        return await plane.reindex(tenant)
