"""The routes of tenants: making, listing and showing them, deciding about them, and deleting them."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request

from contracts.grants import Right
from contracts.tenant_wire import (
    DecidedAnswer,
    DeletedAnswer,
    QuotaBody,
    ReasonBody,
    RetentionBody,
    TenantsAnswer,
    TenantUseAnswer,
)
from contracts.wire import TenantAnswer
from echoplane._http_calls import authorized, granted, json_body, no_parameters, once_each, read_body
from echoplane._http_lists import NamesPage
from echoplane._tenants import OPERATOR, decide, delete, show, tenants
from echoplane._tokens import bearer_of, demand
from echoplane._wiring import Plane

TENANT_BYTES_MAX: Final = 16_384
"""Of a body: a reason is as long as a name, in whatever escapes."""
_PLAIN: Final = [Depends(no_parameters)]


def add_tenants(router: APIRouter, plane: Plane) -> None:
    """Add the routes of tenants."""

    @router.get("/v1", dependencies=[Depends(once_each)])
    async def listed(request: Request, given: Annotated[NamesPage, Query()]) -> TenantsAnswer:
        """Every tenant, deleted ones too; with a tenant's token, that one alone."""
        grant = await plane.grant_of(bearer_of(request.headers.get("authorization")))
        return await tenants(plane, after=given.after or "", limit=given.limit, only=grant.tenant)

    @router.put("/v1/{tenant}", dependencies=_PLAIN)
    async def put_tenant(tenant: str, request: Request) -> TenantAnswer:
        """Make a tenant unless it is there. Needs the right `admin`."""
        grant = await plane.grant_of(bearer_of(request.headers.get("authorization")))
        demand(grant, tenant=tenant, right=Right.ADMIN)
        by = OPERATOR if grant.tenant is None else Right.ADMIN.value
        return TenantAnswer(tenant=tenant, created=await plane.make_tenant(tenant, created_by=by))

    @router.get("/v1/{tenant}", dependencies=_PLAIN)
    async def shown(tenant: str, request: Request) -> TenantUseAnswer:
        """A tenant's state, what its log takes, and what holds of it. Of a deleted one, what is left."""
        await granted(plane, request, tenant, Right.ASK)
        return await show(plane, tenant)

    @router.delete("/v1/{tenant}", dependencies=_PLAIN, openapi_extra=json_body(ReasonBody))
    async def deleted(tenant: str, request: Request) -> DeletedAnswer:
        """Delete a tenant for ever; where that was cut off, go on. Files are scrubbed in the background."""
        grant = await granted(plane, request, tenant, Right.ERASE)
        body = await read_body(request, ReasonBody, bytes_max=TENANT_BYTES_MAX)
        return await delete(plane, tenant, reason=body.reason, grant=grant)

    _add_decisions(router, plane)


def _add_decisions(router: APIRouter, plane: Plane) -> None:
    @router.post("/v1/{tenant}/suspend", dependencies=_PLAIN, openapi_extra=json_body(ReasonBody))
    async def suspended(tenant: str, request: Request) -> DecidedAnswer:
        """Take no more appends of a tenant, until it is resumed."""
        grant = await authorized(plane, request, tenant, Right.OPERATOR)
        body = await read_body(request, ReasonBody, bytes_max=TENANT_BYTES_MAX)
        return await decide(plane, tenant, {"suspended": True}, reason=body.reason, grant=grant)

    @router.post("/v1/{tenant}/resume", dependencies=_PLAIN, openapi_extra=json_body(ReasonBody))
    async def resumed(tenant: str, request: Request) -> DecidedAnswer:
        """Take appends of a suspended tenant again."""
        grant = await authorized(plane, request, tenant, Right.OPERATOR)
        body = await read_body(request, ReasonBody, bytes_max=TENANT_BYTES_MAX)
        return await decide(plane, tenant, {"suspended": False}, reason=body.reason, grant=grant)

    @router.put("/v1/{tenant}/quota", dependencies=_PLAIN, openapi_extra=json_body(QuotaBody))
    async def bounded(tenant: str, request: Request) -> DecidedAnswer:
        """Bound a tenant's log: its events, their bytes, and how many come in a minute."""
        grant = await authorized(plane, request, tenant, Right.OPERATOR)
        body = await read_body(request, QuotaBody, bytes_max=TENANT_BYTES_MAX)
        return await decide(plane, tenant, body.change(), reason=body.reason, grant=grant)

    @router.put("/v1/{tenant}/retention", dependencies=_PLAIN, openapi_extra=json_body(RetentionBody))
    async def retained(tenant: str, request: Request) -> DecidedAnswer:
        """Have events erased once they are so many days old."""
        grant = await authorized(plane, request, tenant, Right.OPERATOR)
        body = await read_body(request, RetentionBody, bytes_max=TENANT_BYTES_MAX)
        return await decide(plane, tenant, {"retention_days": body.days}, reason=body.reason, grant=grant)
