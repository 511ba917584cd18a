"""The route of erasing."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Depends, Request

from contracts.erasure_wire import ErasureAnswer, ErasureBody
from contracts.grants import Right
from echoplane._erasing import erase
from echoplane._http_calls import authorized, json_body, no_parameters, read_body
from echoplane._wiring import Plane

ERASURE_BYTES_MAX: Final = 1_048_576
"""Of the body: as many event ids as one erasure takes."""


def add_erasures(router: APIRouter, plane: Plane) -> None:
    """Add the route of erasing."""

    @router.post(
        "/v1/{tenant}/erasures",
        dependencies=[Depends(no_parameters)],
        openapi_extra=json_body(ErasureBody),
    )
    async def erasures(tenant: str, request: Request) -> ErasureAnswer:
        """
        Erase a subject or events for ever. Gone from every answer when this returns.

        The files are scrubbed in the background; `scrub` says how it stands, and the same request says it
        again later.
        """
        grant = await authorized(plane, request, tenant, Right.ERASE)
        body = await read_body(request, ErasureBody, bytes_max=ERASURE_BYTES_MAX)
        return await erase(plane, tenant, body.request(), grant=grant)
