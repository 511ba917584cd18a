"""The routes of relation contracts: how claims on a relation are decided, and what values it takes."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request, Response

from contracts.epoch_wire import RegisteredAnswer
from contracts.errors import BadRequest
from contracts.grants import Right
from contracts.relation_wire import ContractAnswer, ContractRequest, ContractsAnswer
from echoplane._http_calls import authorized, json_body, no_parameters, once_each, read_body
from echoplane._http_lists import NamesPage
from echoplane._requests import page_of, read_name
from echoplane._wiring import Plane

CONTRACT_BYTES_MAX: Final = 65_536
"""Of the body: more than every bound of a contract's fields together."""


def add_relations(router: APIRouter, plane: Plane) -> None:
    """Add the routes of relation contracts."""

    @router.get("/v1/{tenant}/relations", dependencies=[Depends(once_each)])
    async def relations(
        tenant: str, request: Request, given: Annotated[NamesPage, Query()]
    ) -> ContractsAnswer:
        """The contracts that were registered, by relation."""
        await authorized(plane, request, tenant, Right.ASK)
        found = await plane.contracts(tenant)
        page = page_of(found, lambda one: one.relation, after=given.after, limit=given.limit)
        return ContractsAnswer(relations=page)

    @router.get("/v1/{tenant}/relations/{relation}", dependencies=[Depends(no_parameters)])
    async def relation(tenant: str, relation: str, request: Request) -> ContractAnswer:
        """The contract that decides a relation, registered or not."""
        await authorized(plane, request, tenant, Right.ASK)
        return await plane.contract(tenant, read_name(relation, field="relation"))

    @router.post(
        "/v1/{tenant}/relations",
        status_code=201,
        dependencies=[Depends(no_parameters)],
        openapi_extra=json_body(ContractRequest),
    )
    async def register(tenant: str, request: Request, response: Response) -> RegisteredAnswer:
        """Register how claims on a relation are decided; once some are, that takes a new epoch."""
        await authorized(plane, request, tenant, Right.ADMIN)
        body = await read_body(request, ContractRequest, bytes_max=CONTRACT_BYTES_MAX)
        contract = body.contract()
        answer = await plane.register_contract(tenant, contract, new_epoch=body.new_epoch)
        if not answer.is_of(contract):
            raise BadRequest(field="relation", reason="a claim on it came first: it is passed over")
        if answer.unchanged:
            response.status_code = 200
        return answer
