"""The use cases of recalls: to find them, to hold them against today, to see what hangs on an event."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from audit import if_retracted, replay_today
from contracts.answers import AnswerStatus
from contracts.audit_wire import ChangedAnswer, TodayAnswer, TrailAnswer, TrailsAnswer, WithoutAnswer
from contracts.errors import BadRequest
from contracts.limits import PAGE_EVENTS_MAX
from contracts.names import Name
from contracts.ports import QueryPath
from contracts.times import format_instant
from contracts.trails import TrailsWanted
from echoplane._event_pages import Number
from echoplane._requests import read_bound
from echoplane._wiring import Plane
from ledger.log import Database, list_trails
from projection import RuleProjector


class TrailsParameters(BaseModel):
    """Which recalls: all that fit everything that is given."""

    model_config = ConfigDict(extra="forbid")

    event: Name | None = None
    entity: Name | None = None
    context: Name | None = None
    status: AnswerStatus | None = None
    asked_from: str | None = None
    asked_to: str | None = None
    after_number: Number = 0
    limit: Annotated[int, Field(ge=1, le=PAGE_EVENTS_MAX)] = PAGE_EVENTS_MAX


class WithoutParameters(BaseModel):
    """Which page of the answers that used an event."""

    model_config = ConfigDict(extra="forbid")

    after_number: Number = 0


async def trails(plane: Plane, tenant: str, given: TrailsParameters) -> TrailsAnswer:
    """Return a page of recalls."""
    wanted = TrailsWanted(
        context_hash=given.context,
        event_id=given.event,
        entity=given.entity,
        status=given.status,
        asked_from=read_bound(given.asked_from, field="asked_from"),
        asked_to=read_bound(given.asked_to, field="asked_to"),
    )
    if wanted.asked_from is not None and wanted.asked_to is not None and wanted.asked_to <= wanted.asked_from:
        raise BadRequest(field="asked_to", reason="is not after asked_from")
    found = await list_trails(
        plane.database, tenant, after_number=given.after_number, limit=given.limit, wanted=wanted
    )
    return TrailsAnswer(
        tenant=tenant,
        trails=[
            TrailAnswer(
                number=one.number,
                trail=one.trail_id,
                context=one.context_hash,
                asked_at=format_instant(one.asked_at),
                status=None if one.status is None else one.status.value,
                erased=one.erased,
            )
            for one in found
        ],
    )


async def today(plane: Plane, tenant: str, context_hash: str) -> TodayAnswer:
    """Say what today's logic says to a stored question."""
    async with plane.long_reads.of(tenant):
        report = await replay_today(plane.path, plane.database, tenant, context_hash)
    return TodayAnswer(
        context=report.context_hash,
        epoch_then=report.epoch_then,
        epoch_now=report.epoch_now,
        then=report.then,
        now=report.now,
        same=report.is_same,
        differences=list(report.differences),
        erased=report.erased,
        erased_events=list(report.erased_event_ids),
    )


async def without(plane: Plane, tenant: str, event_id: str, given: WithoutParameters) -> WithoutAnswer:
    """Say what would change without an event."""

    def path_on(database: Database) -> QueryPath:
        return replace(plane.path, database=database)

    async with plane.long_reads.of(tenant):
        found = await if_retracted(
            path_on,
            plane.database,
            tenant,
            RuleProjector(),
            event_id,
            after_number=given.after_number,
            wait_ms=plane.wait_ms,
        )
    return WithoutAnswer(
        tenant=tenant,
        event=found.event_id,
        erased=found.erased,
        keys=list(found.keys),
        answers=[
            ChangedAnswer(
                trail=one.trail_id,
                context=one.context_hash,
                changes=one.changes,
                before=one.before,
                after=one.after,
                differences=list(one.differences),
            )
            for one in found.answers
        ],
        erased_count=found.erased_count,
        next_number=found.next_number,
    )
