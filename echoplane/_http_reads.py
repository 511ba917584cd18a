"""Routes that read the record: what stands on a key, histories, differences and joins."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, ConfigDict

from contracts.grants import Right
from contracts.names import Name
from contracts.read_wire import DiffAnswer, HistoryAnswer, JoinAnswer, OccurrencesAnswer, ResolveAnswer
from contracts.views import ViewRequest
from echoplane._http_calls import authorized, once_each
from echoplane._reads import (
    DiffWanted,
    HistoryWanted,
    JoinWanted,
    OccurrencesWanted,
    diff,
    history,
    join,
    named,
    occurrences,
)
from echoplane._requests import read_bound, read_known, read_view
from echoplane._wiring import Plane


class _Parameters(BaseModel):
    """Parameters in the query string: unknown ones are errors."""

    model_config = ConfigDict(extra="forbid")


class KnownParameters(_Parameters):
    """As known when: an instant with offset, a generation, or a view by name; `min_commit` waits for it."""

    known_at: str | None = None
    generation: str | None = None
    min_commit: Annotated[int | None, Query(ge=0)] = None
    view: str | None = None

    def request(self, valid_at: str | None) -> ViewRequest:
        """Return which view is asked for, its name apart."""
        return read_view(
            valid_at=valid_at, known_at=self.known_at, generation=self.generation, min_commit=self.min_commit
        )


class ReadParameters(KnownParameters):
    """One key, and when it held."""

    entity: Name
    relation: Name
    valid_at: str | None = None


class HistoryParameters(KnownParameters):
    """Which keys, all relations of the entity if none is named; and which part of their history."""

    entity: Name
    relation: Name | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    known_from: str | None = None
    known_to: str | None = None
    timeline: bool = False
    at: str | None = None

    def wanted(self) -> HistoryWanted:
        """Return what is wanted."""
        return HistoryWanted(
            entity=self.entity,
            relation=self.relation,
            valid_from=read_bound(self.valid_from, field="valid_from"),
            valid_to=read_bound(self.valid_to, field="valid_to"),
            known_from=read_known(self.known_from, field="known_from"),
            known_to=read_known(self.known_to, field="known_to"),
            timeline=self.timeline,
            at=read_bound(self.at, field="at"),
        )


class DiffParameters(_Parameters):
    """Two views, the second the newest if nothing is said of it, and which lines to compare."""

    entity: Name | None = None
    relation: Name | None = None
    before_valid_at: str | None = None
    before_known_at: str | None = None
    before_generation: str | None = None
    before_view: str | None = None
    after_valid_at: str | None = None
    after_known_at: str | None = None
    after_generation: str | None = None
    after_view: str | None = None
    min_commit: Annotated[int | None, Query(ge=0)] = None
    instants: bool = False
    from_line: Annotated[int, Query(ge=0)] = 0

    def before(self) -> ViewRequest:
        """Return the first view that is asked for, its name apart."""
        return read_view(
            valid_at=self.before_valid_at,
            known_at=self.before_known_at,
            generation=self.before_generation,
            min_commit=None,
        )

    def after(self) -> ViewRequest:
        """Return the second."""
        return read_view(
            valid_at=self.after_valid_at,
            known_at=self.after_known_at,
            generation=self.after_generation,
            min_commit=self.min_commit,
        )

    def wanted(self) -> DiffWanted:
        """Return what is wanted; an instant that is given is one to compare at."""
        return DiffWanted(
            entity=self.entity,
            relation=self.relation,
            at_instants=self.instants or bool(self.before_valid_at or self.after_valid_at),
            from_line=self.from_line,
        )


class JoinParameters(KnownParameters):
    """Two keys, and how they are joined."""

    entity: Name
    relation: Name
    other_entity: Name
    other_relation: Name
    on_value: bool = False
    bitemporal: bool = False
    valid_from: str | None = None
    valid_to: str | None = None

    def wanted(self) -> JoinWanted:
        """Return what is wanted."""
        return JoinWanted(
            left=(self.entity, self.relation),
            right=(self.other_entity, self.other_relation),
            on_value=self.on_value,
            bitemporal=self.bitemporal,
            valid_from=read_bound(self.valid_from, field="valid_from"),
            valid_to=read_bound(self.valid_to, field="valid_to"),
        )


class OccurrencesParameters(KnownParameters):
    """Of which key, and the window of valid time."""

    entity: Name
    relation: Name
    valid_from: str | None = None
    valid_to: str | None = None

    def wanted(self) -> OccurrencesWanted:
        """Return what is wanted."""
        return OccurrencesWanted(
            entity=self.entity,
            relation=self.relation,
            valid_from=read_bound(self.valid_from, field="valid_from"),
            valid_to=read_bound(self.valid_to, field="valid_to"),
        )


PARAMETERS: tuple[type[BaseModel], ...] = (
    ReadParameters, HistoryParameters, DiffParameters, JoinParameters, OccurrencesParameters,
)  # fmt: skip
"""All that can be said in a query string."""


def add_reads(router: APIRouter, plane: Plane) -> None:
    """Add the routes of this module."""

    @router.get("/v1/{tenant}/resolve", dependencies=[Depends(once_each)])
    async def resolve_key(
        tenant: str, request: Request, given: Annotated[ReadParameters, Query()]
    ) -> ResolveAnswer:
        """What stands on one key at a view."""
        await authorized(plane, request, tenant, Right.ASK)
        view = await named(plane, tenant, given.view, given.request(given.valid_at))
        return await plane.resolve(tenant, given.entity, given.relation, view)

    @router.get("/v1/{tenant}/history", dependencies=[Depends(once_each)])
    async def read_history(
        tenant: str, request: Request, given: Annotated[HistoryParameters, Query()]
    ) -> HistoryAnswer:
        """What was ever answered on an entity's keys, up to the cut, or a part of it."""
        await authorized(plane, request, tenant, Right.ASK)
        view = await named(plane, tenant, given.view, given.request(None))
        return await history(plane, tenant, view, given.wanted())

    @router.get("/v1/{tenant}/occurrences", dependencies=[Depends(once_each)])
    async def read_occurrences(
        tenant: str, request: Request, given: Annotated[OccurrencesParameters, Query()]
    ) -> OccurrencesAnswer:
        """How often something happened within a window of valid time, and each time that it did."""
        await authorized(plane, request, tenant, Right.ASK)
        view = await named(plane, tenant, given.view, given.request(None))
        return await occurrences(plane, tenant, view, given.wanted())

    @router.get("/v1/{tenant}/diff", dependencies=[Depends(once_each)])
    async def read_diff(
        tenant: str, request: Request, given: Annotated[DiffParameters, Query()]
    ) -> DiffAnswer:
        """What changed in what was known, from one view to another, and by which events."""
        await authorized(plane, request, tenant, Right.ASK)
        before = await named(plane, tenant, given.before_view, given.before())
        after = await named(plane, tenant, given.after_view, given.after())
        return await diff(plane, tenant, before, after, given.wanted())

    @router.get("/v1/{tenant}/join", dependencies=[Depends(once_each)])
    async def read_join(
        tenant: str, request: Request, given: Annotated[JoinParameters, Query()]
    ) -> JoinAnswer:
        """What held on two keys at the same time."""
        await authorized(plane, request, tenant, Right.ASK)
        view = await named(plane, tenant, given.view, given.request(None))
        return await join(plane, tenant, view, given.wanted())
