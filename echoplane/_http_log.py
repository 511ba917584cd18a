"""The routes by which others check the log: checkpoints, commits and proofs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, ConfigDict

from contracts.grants import Right
from contracts.limits import PAGE_EVENTS_MAX
from contracts.log_wire import CheckpointAnswer, CommitsAnswer, ConsistencyAnswer, InclusionAnswer
from echoplane._http_calls import authorized, once_each
from echoplane._proofs import checkpoint, commits, consistency, inclusion
from echoplane._wiring import Plane

Commit = Annotated[int, Query(ge=0, le=2**53 - 1)]


class _Parameters(BaseModel):
    """Parameters in the query string: unknown ones are errors."""

    model_config = ConfigDict(extra="forbid")


class CheckpointParameters(_Parameters):
    """At how many commits; now, if nothing is said."""

    size: Commit | None = None


class CommitsParameters(_Parameters):
    """Which commits."""

    after_commit: Commit = 0
    limit: Annotated[int, Query(ge=1, le=PAGE_EVENTS_MAX)] = PAGE_EVENTS_MAX


class InclusionParameters(CheckpointParameters):
    """Which commit, and in the log of how many."""

    commit: Commit


class ConsistencyParameters(_Parameters):
    """From how many commits to how many."""

    old_size: Commit
    new_size: Commit | None = None


LOG_PARAMETERS: tuple[type[BaseModel], ...] = (
    CheckpointParameters, CommitsParameters, InclusionParameters, ConsistencyParameters,
)  # fmt: skip
"""All that can be said in a query string here."""


def add_log(router: APIRouter, plane: Plane) -> None:
    """Add the routes of this module."""

    @router.get("/v1/{tenant}/checkpoint", dependencies=[Depends(once_each)])
    async def signed(
        tenant: str, request: Request, given: Annotated[CheckpointParameters, Query()]
    ) -> CheckpointAnswer:
        """How the log stands, or stood, signed: kept elsewhere, it shows later whether that was changed."""
        await authorized(plane, request, tenant, Right.ASK)
        return await checkpoint(plane, tenant, size=given.size)

    @router.get("/v1/{tenant}/commits", dependencies=[Depends(once_each)])
    async def listed(
        tenant: str, request: Request, given: Annotated[CommitsParameters, Query()]
    ) -> CommitsAnswer:
        """Commits in order, with all that their hashes cover; of no event what it says."""
        await authorized(plane, request, tenant, Right.ASK)
        return await commits(plane, tenant, after_commit=given.after_commit, limit=given.limit)

    @router.get("/v1/{tenant}/proofs/inclusion", dependencies=[Depends(once_each)])
    async def included(
        tenant: str, request: Request, given: Annotated[InclusionParameters, Query()]
    ) -> InclusionAnswer:
        """What proves that a commit is in the log that a checkpoint is of."""
        await authorized(plane, request, tenant, Right.ASK)
        return await inclusion(plane, tenant, given.commit, size=given.size)

    @router.get("/v1/{tenant}/proofs/consistency", dependencies=[Depends(once_each)])
    async def consistent(
        tenant: str, request: Request, given: Annotated[ConsistencyParameters, Query()]
    ) -> ConsistencyAnswer:
        """What proves that a later log begins as the one that a checkpoint is of."""
        await authorized(plane, request, tenant, Right.ASK)
        return await consistency(plane, tenant, old=given.old_size, new=given.new_size)
