"""What every route of the HTTP door does first: who calls, with which body and parameters."""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from contracts.errors import BadRequest, LimitExceeded, NotFound
from contracts.grants import Grant, Right
from echoplane._failures import refusal
from echoplane._requests import is_tenant, members_once
from echoplane._tokens import bearer_of, demand
from echoplane._wiring import Plane

Body = TypeVar("Body", bound=BaseModel)


# Coroutines, though they wait for nothing: the framework gives any other function a thread at each request.


async def no_parameters(request: Request) -> None:
    """Refuse every query parameter."""
    for name in request.query_params:
        raise BadRequest(field=name, reason="unknown parameter")


async def once_each(request: Request) -> None:
    """Refuse a parameter that is given twice: which of them was meant?"""
    for name, count in Counter(name for name, _ in request.query_params.multi_items()).items():
        if count > 1:
            raise BadRequest(field=name, reason="given more than once")


async def granted(plane: Plane, request: Request, tenant: str, right: Right) -> Grant:
    """
    Return what the caller may do in a tenant that there may or may not be.

    Raises:
        Unauthenticated: No valid token.
        NotFound: The tenant is not the token's, or is no name that one can have; the two are not told apart.
        Forbidden: The right is missing.
    """
    grant = await plane.grant_of(bearer_of(request.headers.get("authorization")))
    demand(grant, tenant=tenant, right=right)
    if not is_tenant(tenant):
        raise NotFound(what="tenant")
    return grant


async def authorized(plane: Plane, request: Request, tenant: str, right: Right) -> Grant:
    """
    Return what the caller may do in an existing tenant.

    Raises:
        NotFound: There is no such tenant. And all that `granted` raises.
    """
    grant = await granted(plane, request, tenant, right)
    if not await plane.has_tenant(tenant):
        raise NotFound(what="tenant")
    return grant


async def read_body(request: Request, model: type[Body], *, bytes_max: int) -> Body:
    """
    Read and validate a JSON body.

    Raises:
        LimitExceeded: It is longer than its bound; not read to its end.
        BadRequest: It is not JSON of this shape, names the first wrong field; or a member stands twice.
    """
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > bytes_max:
            raise LimitExceeded(limit="body bytes", allowed=bytes_max, given=len(raw))
    try:
        body = model.model_validate_json(bytes(raw))
    except ValidationError as error:
        raise refusal(error) from None
    members_once(bytes(raw), field="body")
    return body


def json_body(model: type[BaseModel]) -> dict[str, Any]:
    # The body is validated as JSON text, so its schema is named here instead of by a parameter.
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
