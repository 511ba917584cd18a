"""
The HTTP door: guards, errors, one log line a request. Routes are in `_http_routes`.

Nothing of a memory is logged or measured: routes appear as their template, never with a query string,
a body or an id.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote_to_bytes, urlsplit

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ValidationError
from pydantic.json_schema import JsonSchemaMode, models_json_schema
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contracts.dead_wire import SkipBody
from contracts.erasure_wire import ErasureBody
from contracts.errors import (
    BadRequest,
    Busy,
    EchoplaneError,
    Fault,
    Forbidden,
    NotFound,
    TooSlow,
    Unavailable,
)
from contracts.read_wire import PinRequest
from contracts.tenant_wire import QuotaBody, ReasonBody, RetentionBody
from contracts.wire import AppendRequest, AskRequest
from echoplane._failures import error_answer, http_status, refusal
from echoplane._http_attending import CLIENT_LEFT, STOPPING, ClientLeft
from echoplane._http_metrics import Metrics
from echoplane._http_routes import make_router
from echoplane._http_stream import Streams
from echoplane._wiring import Plane

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "::1"})

log = structlog.get_logger()


def make_app(plane: Plane) -> FastAPI:
    """Return the application over an open plane."""
    app = FastAPI(
        title="echoplane",
        version=plane.version,
        description="A memory plane: bitemporal facts, with proof of why this evidence and no other.",
        # The interactive pages load their script from elsewhere; `/openapi.json` is all we serve.
        docs_url=None,
        redoc_url=None,
        # Its spans and metrics would carry paths and query strings, which name tenants, ids and entities.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    metrics = Metrics()
    app.state.streams = Streams()
    app.include_router(make_router(plane, metrics, app.state.streams))
    app.add_exception_handler(EchoplaneError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_error)
    app.add_exception_handler(HTTPException, _on_error)
    app.openapi = partial(_describe, app)  # type: ignore[method-assign]  # as FastAPI's docs have it
    hosts = LOOPBACK_HOSTS | {plane.settings.http_host}
    app.add_middleware(Guard, hosts=hosts, metrics=metrics)
    return app


def _describe(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, with the bodies that routes validate as JSON text."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        bodies: list[tuple[type[BaseModel], JsonSchemaMode]] = [
            (AppendRequest, "validation"),
            (AskRequest, "validation"),
            (ErasureBody, "validation"),
            (PinRequest, "validation"),
            (SkipBody, "validation"),
            (ReasonBody, "validation"),
            (QuotaBody, "validation"),
            (RetentionBody, "validation"),
        ]
        _, found = models_json_schema(bodies, ref_template="#/components/schemas/{model}")
        document["components"]["schemas"] |= found["$defs"]
        app.openapi_schema = document
    return app.openapi_schema


async def _on_error(_request: Request, error: Exception) -> JSONResponse:
    return answer_error(error)


def answer_error(error: Exception) -> JSONResponse:
    """Return the answer to any error; one that is none of ours says no more than that it happened."""
    headers: Mapping[str, str] | None = None
    match error:
        case EchoplaneError():
            known = error
            if isinstance(error, TooSlow):
                # The rest of it is not waited for.
                headers = {"connection": "close"}
            elif isinstance(error, Busy):
                headers = {"retry-after": str(math.ceil(error.retry_after_seconds))}
        case RequestValidationError():
            known = _parameter(error)
        case ValidationError():
            known = refusal(error)
        case HTTPException():
            headers = error.headers
            if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
                body = error_answer(BadRequest(field="method", reason="not allowed here"))
                return JSONResponse(body.model_dump(mode="json"), status_code=405, headers=headers)
            known = NotFound(what="route")
        case _:
            known = Fault("something unexpected went wrong; it is in the log")
    body = error_answer(known)
    return JSONResponse(body.model_dump(mode="json"), status_code=http_status(known), headers=headers)


def _parameter(error: RequestValidationError) -> BadRequest:
    first = error.errors()[0]
    name = str(first["loc"][-1])
    if first["type"] == "extra_forbidden":
        return BadRequest(field=name, reason="unknown parameter")
    return BadRequest(field=name, reason=str(first["msg"]).removeprefix("Value error, "))


class Guard:
    """Around every request: whose page may call, what is logged and measured, and no error unanswered."""

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str], metrics: Metrics) -> None:
        self._app, self._hosts, self._metrics = app, hosts, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status, is_begun = int(HTTPStatus.INTERNAL_SERVER_ERROR), False

        async def watched(message: Message) -> None:
            nonlocal status, is_begun
            if message["type"] == "http.response.start":
                status, is_begun = message["status"], True
            await send(message)

        structlog.contextvars.clear_contextvars()
        try:
            self._check(scope)
            await self._app(scope, receive, watched)
        except ClientLeft:
            status = CLIENT_LEFT
        except asyncio.CancelledError:
            # The process ends: whether it was done nobody can say, and whoever asked may try again.
            if is_begun:
                raise
            await answer_error(Unavailable(part="api", reason=STOPPING))(scope, receive, watched)
        except EchoplaneError as error:
            await answer_error(error)(scope, receive, watched)
        except Exception as error:
            log.exception("request_failed")
            await answer_error(error)(scope, receive, watched)
        finally:
            duration = time.perf_counter() - started
            # The template of the route: a path itself names tenants and ids.
            route = getattr(scope.get("route"), "path", "none")
            # Any word may come as a method: one that nobody knows is neither a series nor a log line.
            method = scope["method"] if scope["method"] in METHODS else "other"
            self._metrics.observe(route=route, method=method, status=status, duration_seconds=duration)
            log.info(
                "request", route=route, method=method, status=status,
                duration_ms=round(duration * 1000, 1),
            )  # fmt: skip

    def _check(self, scope: Scope) -> None:
        """
        Refuse names that a hostile page could have pointed at us, and pages of other origins.

        Raises:
            BadRequest: The request does not name one of our hosts; or its path or query is not UTF-8.
            Forbidden: It comes from a page that is not ours.
        """
        for field, raw in (("path", scope.get("raw_path") or b""), ("query", scope["query_string"])):
            _check_text(raw, field=field)
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "")
        if _host_name(host) not in self._hosts:
            raise BadRequest(field="Host", reason="not a name of this server")
        origin = headers.get(b"origin")
        if origin is not None and _origin_host(origin) != host:
            raise Forbidden(needs="calls from another origin")


def _check_text(raw: bytes, *, field: str) -> None:
    """
    Refuse bytes that are no text: read on, they would be another name than was meant.

    Raises:
        BadRequest: They are not UTF-8.
    """
    try:
        unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        raise BadRequest(field=field, reason="is not UTF-8") from None


def _origin_host(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _host_name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
