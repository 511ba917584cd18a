"""
Registering a relation's contract: an event like any other, that the fold takes in at its place.

A change to a relation that claims stand on begins an epoch: there it holds from the first event on.

Source: SEMANTICS, "Relation contracts".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import LimitExceeded, RelationInUse
from contracts.events import Event, Receipt
from contracts.grants import Grant, Right
from contracts.limits import CONTRACTS_MAX
from contracts.relations import RelationContract
from ledger import _tables
from ledger._append import append_within
from ledger._database import Database
from ledger._epochs import Live, begin_within, lock_live
from ledger._grants import check_right
from ledger._keys import TenantKeys
from ledger._read import head
from ledger._receipts import receipt_of
from ledger._registrations import (
    Registered,
    Registration,
    first_contracts,
    registered_in_log,
    registration_draft,
    registration_in,
)
from ledger._relations import Contracts, check_contract, contract_bytes, relation_seal, unregistered
from ledger._tenants import tenant_keys
from ledger._tombstones import veiled
from ledger._unit_changes import check_unit_change
from ledger._world import Reader

# What was erased was in use all the same: else a rebuild would take in what was refused when it came.
_IN_USE: Final = sa.text(
    "SELECT EXISTS (SELECT FROM claim WHERE tenant = :tenant AND epoch = ANY(CAST(:epochs AS integer[])) "
    "AND relation = :relation) OR EXISTS (SELECT FROM tombstone WHERE tenant = :tenant "
    "AND relation = :veil AND (commit < :before OR CAST(:before AS bigint) IS NULL))"
)
_COUNT: Final = sa.text(
    "SELECT count(*) FROM claim WHERE tenant = :tenant AND epoch = :epoch AND relation = :relation"
)
_STORED: Final = sa.text(
    "SELECT e.commit AS folded, r.commit AS commit FROM epoch e LEFT JOIN relation r ON r.tenant = e.tenant "
    "AND r.epoch = e.epoch AND r.relation = :relation WHERE e.tenant = :tenant AND e.epoch = :epoch"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractReceipt:
    """Proof that a contract was registered, and the epoch that it holds in; `building` if that is to come."""

    receipt: Receipt
    epoch: int
    building: bool


async def register_contract(
    db: Database,
    tenant: str,
    contract: RelationContract,
    *,
    stream: str,
    actor_id: str,
    grant: Grant,
    new_epoch: bool = False,
) -> ContractReceipt:
    """
    Register a relation's contract.

    Where nothing was claimed on the relation it holds from its commit on. Where something was, it
    begins an epoch if the caller wants that, and is refused if not. The contract that was
    registered last is not registered again: its receipt is returned, `repeated`.

    Raises:
        BadRequest: It cannot be applied, with the field and the reason; also where numbers that were said
            without a unit would be read in another than they were said in.
        RelationInUse: There are claims on the relation, and `new_epoch` was not asked for.
        LimitExceeded: The tenant has registered contracts of as many relations as it may.
        Forbidden: The grant lacks the right.
        Unavailable: Unknown whether registered; registering it again is safe.
    """
    check_contract(contract)
    check_right(grant, tenant, Right.ADMIN)
    async with db.tenant(tenant) as conn:
        live = await lock_live(conn, tenant)
        keys = await tenant_keys(db, tenant, conn)
        logged = await registered_in_log(conn, keys)
        relations = {one.contract.relation for one in logged} | {contract.relation}
        if len(relations) > CONTRACTS_MAX:
            raise LimitExceeded(limit="CONTRACTS_MAX", allowed=CONTRACTS_MAX, given=len(relations))
        last = await _last(conn, keys, live, contract.relation, logged)
        if last is not None and last.contract == contract:
            to_come = last.epoch is not None and last.epoch > live.serving
            return ContractReceipt(
                receipt=await receipt_of(conn, keys, last.event.event_id),
                epoch=live.newest if to_come else live.serving,
                building=to_come,
            )
        if not await is_in_use(conn, keys, live.numbers, contract.relation, before=None):
            draft = registration_draft(
                Registration(contract=contract, epoch=None), stream=stream, actor_id=actor_id
            )
            receipt = await append_within(conn, db, keys, draft, grant=grant)
            registered = ContractReceipt(receipt=receipt, epoch=live.serving, building=False)
        elif not new_epoch:
            raise await _in_use(conn, tenant, live, contract.relation)
        else:
            before = unregistered(contract.relation) if last is None else last.contract
            await check_unit_change(conn, keys, before, contract, epochs=live.numbers)
            receipt = await begin_within(
                conn, db, keys, live, contract=contract, stream=stream, actor_id=actor_id, grant=grant
            )
            registered = ContractReceipt(receipt=receipt, epoch=live.next, building=True)
    db.waker.wake(tenant)
    return registered


async def _last(
    conn: AsyncConnection, keys: TenantKeys, live: Live, relation: str, logged: Sequence[Registered]
) -> Registered | None:
    """Return the contract that a relation got last, of those that the fold did not pass over."""
    bound = {"tenant": keys.tenant, "epoch": live.serving, "relation": relation}
    stored = (await conn.execute(_STORED, bound)).one()
    for one in reversed(logged):
        commit = one.event.commit
        if one.contract.relation == relation and (
            one.epoch is not None or commit > stored.folded or commit == stored.commit
        ):
            return one
    return None


async def _in_use(conn: AsyncConnection, tenant: str, live: Live, relation: str) -> RelationInUse:
    bound = {"tenant": tenant, "epoch": live.serving, "relation": relation}
    return RelationInUse(
        relation=relation,
        claims=await conn.scalar(_COUNT, bound) or 0,
        events=(await head(conn)).position,
        epoch=live.next,
    )


async def is_in_use(
    conn: AsyncConnection, keys: TenantKeys, epochs: Sequence[int], relation: str, *, before: int | None
) -> bool:
    """
    Return whether anything was claimed on a relation in one of these epochs.

    Of what was erased since, only what stands before a commit counts, if one is given.
    """
    parameters = {
        "tenant": keys.tenant,
        "epochs": list(epochs),
        "relation": relation,
        "veil": veiled(keys, relation),
        "before": before,
    }
    return bool(await conn.scalar(_IN_USE, parameters))


# --- in the fold ---------------------------------------------------------------------------------


async def contracts_at(reader: Reader) -> Contracts:
    """
    Return the contracts that hold where a fold goes on, having stored those with which its epoch begins.

    Raises:
        IntegrityFault: A row or an event is not what was written.
    """
    if reader.cut:
        return await reader.contracts()
    first = await first_contracts(reader.conn, reader.keys, reader.epoch)
    for one in first.values():
        await store_contract(reader.conn, reader.keys, one.contract, epoch=reader.epoch, commit=0)
    return Contracts(registered={relation: one.contract for relation, one in first.items()})


async def contract_taken(reader: Reader, event: Event) -> RelationContract | None:
    """
    Return the contract that a `relation` event brings at its place in the log of an epoch.

    None where it began an epoch: there it holds from the first event on, before that not at all. And
    none where a later one of the log has such a contract of this epoch: that one holds already.

    Raises:
        BadRequest: It is no relation event of ours.
    """
    said = registration_in(event)
    if said.contract is None or said.epoch is not None:
        return None
    first = (await first_contracts(reader.conn, reader.keys, reader.epoch)).get(said.contract.relation)
    if first is not None and first.event.position > event.position:
        return None
    return said.contract


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
