"""The routes of the HTTP door. Each parses, calls a use case and maps its answer."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Depends, Request, Response

from contracts import limits
from contracts.grants import Right
from contracts.reports import HealthAnswer, ReadyAnswer
from contracts.times import parse_instant
from contracts.trails import Question
from contracts.wire import (
    AppendRequest,
    AskAnswer,
    AskRequest,
    ErrorAnswer,
    ReceiptAnswer,
    ReplayAnswer,
    StoredContextAnswer,
)
from echoplane._health import look, readiness
from echoplane._http_attending import AttendedRoute
from echoplane._http_calls import authorized, granted, json_body, no_parameters, read_body
from echoplane._http_dead import add_dead
from echoplane._http_discovery import add_discovery
from echoplane._http_epochs import add_epochs
from echoplane._http_erasures import add_erasures
from echoplane._http_events import add_events
from echoplane._http_log import add_log
from echoplane._http_metrics import Metrics
from echoplane._http_reads import add_reads
from echoplane._http_relations import add_relations
from echoplane._http_stream import Streams
from echoplane._http_tenants import add_tenants
from echoplane._http_trails import add_trails
from echoplane._http_views import add_views
from echoplane._reads import named
from echoplane._requests import read_name, read_view
from echoplane._tokens import bearer_of
from echoplane._wiring import Plane

ASK_BYTES_MAX: Final = 65_536
ENVELOPE_BYTES: Final = 65_536
"""What the body of an append may hold besides its events."""


def make_router(plane: Plane, metrics: Metrics, streams: Streams) -> APIRouter:
    """Return all routes."""
    router = APIRouter(
        route_class=AttendedRoute, responses={"4XX": {"model": ErrorAnswer}, "5XX": {"model": ErrorAnswer}}
    )
    # First what is called most: a request is held against one route after the other.
    _add_appends(router, plane, metrics)
    _add_health(router, plane, metrics)
    add_tenants(router, plane)
    add_events(router, plane, streams)
    add_log(router, plane)
    add_epochs(router, plane)
    add_dead(router, plane)
    add_discovery(router, plane)
    add_erasures(router, plane)
    add_relations(router, plane)
    add_trails(router, plane)
    add_reads(router, plane)
    add_views(router, plane)
    _add_questions(router, plane, metrics)
    return router


def _add_health(router: APIRouter, plane: Plane, metrics: Metrics) -> None:
    @router.get("/healthz", dependencies=[Depends(no_parameters)])
    async def healthz() -> HealthAnswer:
        """The process lives."""
        return HealthAnswer(status="ok")

    @router.get("/readyz", dependencies=[Depends(no_parameters)])
    async def readyz(response: Response) -> ReadyAnswer:
        """Whether questions can be answered, and why not."""
        answer = await readiness(plane)
        response.status_code = 200 if answer.ready else 503
        return answer

    @router.get("/metrics", dependencies=[Depends(no_parameters)], response_class=Response)
    async def measured(request: Request) -> Response:
        """Numbers for Prometheus: of all tenants together; with a token, of each one that it may ask too."""
        bearer = request.headers.get("authorization")
        grant = None if bearer is None else await plane.grant_of(bearer_of(bearer))
        text = metrics.text(await look(plane, grant=grant))
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def _add_appends(router: APIRouter, plane: Plane, metrics: Metrics) -> None:
    @router.post(
        "/v1/{tenant}/events",
        status_code=201,
        dependencies=[Depends(no_parameters)],
        openapi_extra=json_body(AppendRequest),
    )
    async def append(tenant: str, request: Request, response: Response) -> ReceiptAnswer:
        """Append all events as one commit, or none. 200 if the idempotency keys were known."""
        # Whether there is such a tenant is found out by the append itself: a round trip less.
        grant = await granted(plane, request, tenant, Right.EMIT)
        body = await read_body(request, AppendRequest, bytes_max=limits.APPEND_BYTES_MAX + ENVELOPE_BYTES)
        receipt = await plane.append(
            tenant,
            body.events,
            grant=grant,
            expected_version=body.expected_version,
            sent_at=None if body.sent_at is None else parse_instant(body.sent_at, field="sent_at"),
        )
        if receipt.repeated:
            response.status_code = 200
        else:
            metrics.appended(len(body.events))
        return receipt


def _add_questions(router: APIRouter, plane: Plane, metrics: Metrics) -> None:
    @router.post(
        "/v1/{tenant}/ask", dependencies=[Depends(no_parameters)], openapi_extra=json_body(AskRequest)
    )
    async def ask(tenant: str, request: Request) -> AskAnswer:
        """Answer a question from resolved state, or hand out the evidence."""
        await authorized(plane, request, tenant, Right.ASK)
        body = await read_body(request, AskRequest, bytes_max=ASK_BYTES_MAX)
        view = read_view(
            valid_at=body.valid_at,
            known_at=body.known_at,
            generation=body.generation,
            min_commit=body.min_commit,
        )
        answer = await plane.ask(
            tenant,
            Question(
                text=body.question,
                budget_tokens=body.budget,
                budget_bytes=body.budget_bytes,
                disclose_conflicts=body.disclose_conflicts,
            ),
            await named(plane, tenant, body.view, view),
            read=body.reader,
        )
        metrics.answered(status=answer.status, degraded=answer.degraded)
        if answer.reading is not None:
            metrics.read(status=answer.reading.status, failure=answer.reading.failure)
        return answer

    @router.get("/v1/{tenant}/contexts/{context_hash}", dependencies=[Depends(no_parameters)])
    async def context(tenant: str, context_hash: str, request: Request) -> StoredContextAnswer:
        """A stored context in its canonical form."""
        await authorized(plane, request, tenant, Right.ASK)
        return await plane.context(tenant, read_name(context_hash, field="context_hash"))

    @router.post("/v1/{tenant}/contexts/{context_hash}/replay", dependencies=[Depends(no_parameters)])
    async def replay(tenant: str, context_hash: str, request: Request) -> ReplayAnswer:
        """Build the context anew from the ledger and compare."""
        await authorized(plane, request, tenant, Right.ASK)
        return await plane.replay(tenant, read_name(context_hash, field="context_hash"))
