"""The routes of epochs: which ones there are, folding the log again, and dropping what is retired."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from contracts.epoch_wire import DropAnswer, EpochsAnswer, RebuildAnswer
from contracts.grants import LOCAL_GRANT, Right
from echoplane._epochs import drop, epochs, rebuild
from echoplane._http_calls import authorized, no_parameters, once_each
from echoplane._http_lists import NumbersPage
from echoplane._requests import read_number
from echoplane._wiring import Plane

_DIGITS_MAX = 9


def add_epochs(router: APIRouter, plane: Plane) -> None:
    """Add the routes of epochs."""

    @router.get("/v1/{tenant}/epochs", dependencies=[Depends(once_each)])
    async def listed(tenant: str, request: Request, given: Annotated[NumbersPage, Query()]) -> EpochsAnswer:
        """The epochs by number: state, how far each is folded, and by which projector."""
        await authorized(plane, request, tenant, Right.ASK)
        return await epochs(plane, tenant, after=given.after, limit=given.limit)

    @router.post("/v1/{tenant}/epochs", status_code=202, dependencies=[Depends(no_parameters)])
    async def begun(tenant: str, request: Request, response: Response) -> RebuildAnswer:
        """Fold the whole log again beside the epoch that serves. 200 if that is under way already."""
        await authorized(plane, request, tenant, Right.ADMIN)
        # The right is checked above; the event is the plane's own, so no actor need be granted.
        answer = await rebuild(plane, tenant, grant=LOCAL_GRANT, actor_id="operator")
        if not answer.begun:
            response.status_code = 200
        return answer

    @router.delete("/v1/{tenant}/epochs/{epoch}", dependencies=[Depends(no_parameters)])
    async def dropped(tenant: str, epoch: str, request: Request) -> DropAnswer:
        """Delete what a retired epoch made of the log; it can be neither asked nor replayed from then on."""
        await authorized(plane, request, tenant, Right.ADMIN)
        number = read_number(epoch, field="epoch", digits_max=_DIGITS_MAX)
        return await drop(plane, tenant, number, grant=LOCAL_GRANT)
