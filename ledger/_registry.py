"""
Registering a relation's contract: an event like any other, that the fold takes in at its place.

Source: SEMANTICS, "Relation contracts".
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import BadRequest
from contracts.events import Event, EventDraft, Receipt
from contracts.grants import Grant
from contracts.relations import RelationContract
from ledger import _tables
from ledger._append import append_command
from ledger._database import Database
from ledger._keys import TenantKeys
from ledger._read import serving
from ledger._relations import check_contract, contract_bytes, contract_of
from ledger._world import relation_seal

CONTRACT: Final = "contract"
"""The relation on which a `relation` event carries a contract, as JSON, for the relation it names."""

_IN_USE: Final = sa.text(
    "SELECT EXISTS (SELECT FROM claim WHERE tenant = :tenant AND epoch = :epoch AND relation = :relation)"
)


def contract_draft(contract: RelationContract, *, stream: str, actor_id: str) -> EventDraft:
    """Return the `relation` event that registers a contract, said by an operator."""
    fields = contract_bytes(contract).decode("ascii")
    return EventDraft.model_validate(
        {
            "stream": stream,
            "kind": "relation",
            "actor": {"id": actor_id, "class": "operator"},
            "claims": [{"entity": contract.relation, "relation": CONTRACT, "value": fields}],
        }
    )


async def register_contract(
    db: Database, tenant: str, contract: RelationContract, *, stream: str, actor_id: str, grant: Grant
) -> Receipt:
    """
    Register a relation's contract; it holds from its commit on.

    Raises:
        BadRequest: It cannot be applied, with the field and the reason; or there are claims on the
            relation already, which only another epoch may read otherwise.
        Forbidden: The grant lacks the right.
    """
    check_contract(contract)
    async with db.tenant(tenant) as conn:
        generation = await serving(conn)
        if await is_in_use(conn, tenant, generation.epoch, contract.relation):
            raise BadRequest(field="relation", reason="claims on it were made already in this epoch")
    draft = contract_draft(contract, stream=stream, actor_id=actor_id)
    return await append_command(db, tenant, draft, grant=grant)


async def is_in_use(conn: AsyncConnection, tenant: str, epoch: int, relation: str) -> bool:
    parameters = {"tenant": tenant, "epoch": epoch, "relation": relation}
    return bool(await conn.scalar(_IN_USE, parameters))


def contract_in(event: Event) -> RelationContract:
    if not event.draft.claims or not isinstance(event.draft.claims[0].value, str):
        raise BadRequest(field="claims", reason="a relation event carries one contract")
    return contract_of(event.draft.claims[0].value.encode())


async def store_contract(
    conn: AsyncConnection, keys: TenantKeys, contract: RelationContract, *, epoch: int, commit: int
) -> None:
    """Write the row of a contract, sealed; one that nothing was claimed under yet is replaced."""
    form = contract_bytes(contract)
    seal = relation_seal(keys, epoch, contract.relation, commit, form)
    row = {"relation": contract.relation, "commit": commit, "contract": form, "seal": seal}
    statement = insert(_tables.relation).values(tenant=keys.tenant, epoch=epoch, **row)
    await conn.execute(
        statement.on_conflict_do_update(index_elements=["tenant", "epoch", "relation"], set_=row)
    )
