"""The routes of dead letters: what stops a tenant, trying it again, and deciding that it is passed over."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Depends, Request, Response

from contracts.dead_wire import DeadLettersAnswer, RetryAnswer, SkipAnswer, SkipBody
from contracts.grants import LOCAL_GRANT, Right
from echoplane._dead import dead, retry, skip
from echoplane._http_calls import authorized, json_body, no_parameters, read_body
from echoplane._requests import read_number
from echoplane._wiring import Plane

SKIP_BYTES_MAX: Final = 16_384
"""Of the body: a reason is as long as a name, in whatever escapes."""


def add_dead(router: APIRouter, plane: Plane) -> None:
    """Add the routes of dead letters."""

    @router.get("/v1/{tenant}/dead", dependencies=[Depends(no_parameters)])
    async def listed(tenant: str, request: Request) -> DeadLettersAnswer:
        """The events that stop a tenant: where they stand, the kind of error, how often they were tried."""
        await authorized(plane, request, tenant, Right.ASK)
        return await dead(plane, tenant)

    @router.post("/v1/{tenant}/dead/{position}/retry", dependencies=[Depends(no_parameters)])
    async def retried(tenant: str, position: str, request: Request) -> RetryAnswer:
        """Try now to fold an event that stops a tenant."""
        grant = await authorized(plane, request, tenant, Right.OPERATOR)
        return await retry(plane, tenant, read_number(position, field="position"), grant=grant)

    @router.post(
        "/v1/{tenant}/dead/{position}/skip",
        status_code=201,
        dependencies=[Depends(no_parameters)],
        openapi_extra=json_body(SkipBody),
    )
    async def skipped(tenant: str, position: str, request: Request, response: Response) -> SkipAnswer:
        """Decide, for good, that an event is passed over. 200 if that was decided before."""
        await authorized(plane, request, tenant, Right.OPERATOR)
        at = read_number(position, field="position")
        body = await read_body(request, SkipBody, bytes_max=SKIP_BYTES_MAX)
        # The right is checked above; the event is the plane's own, so no actor need be granted.
        answer = await skip(plane, tenant, at, reason=body.reason, grant=LOCAL_GRANT)
        if not answer.decided:
            response.status_code = 200
        return answer
