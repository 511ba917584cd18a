"""
The `relation` event: what it says, and which of the log apply to an epoch from its beginning.

It brings a contract, which holds in every epoch from its place in the log on; or it begins an epoch,
with or without a contract, which then holds in that epoch and all later ones from the very first
event. So the contracts of an epoch are a function of the log and its number.

Source: SEMANTICS, "Relation contracts".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import BadRequest
from contracts.events import Event, EventDraft, Kind
from contracts.relations import RelationContract
from ledger import _tables
from ledger._keys import TenantKeys
from ledger._read import read_events_by_id
from ledger._relations import contract_bytes, contract_of

CONTRACT: Final = "contract"
"""The relation on which a `relation` event carries a contract, as JSON, for the relation it names."""
EPOCH: Final = "epoch"
"""The relation on which it names the epoch that it begins."""
LEDGER: Final = "ledger"
"""What the latter is said of where no contract changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What a `relation` event says: a contract, the number of an epoch, or both."""

    contract: RelationContract | None
    epoch: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A contract and the event of the log that brought it; `epoch` is the one that this began."""

    contract: RelationContract
    epoch: int | None
    event: Event


def registration_draft(registration: Registration, *, stream: str, actor_id: str) -> EventDraft:
    """Return the `relation` event that says it, by an operator."""
    claims: list[dict[str, Any]] = []
    about = LEDGER
    if registration.contract is not None:
        about = registration.contract.relation
        fields = contract_bytes(registration.contract).decode("ascii")
        claims.append({"entity": about, "relation": CONTRACT, "value": fields})
    if registration.epoch is not None:
        claims.append({"entity": about, "relation": EPOCH, "value": registration.epoch})
    return EventDraft.model_validate(
        {
            "stream": stream,
            "kind": "relation",
            "actor": {"id": actor_id, "class": "operator"},
            "claims": claims,
        }
    )


def registration_in(event: Event) -> Registration:
    """
    Return what a `relation` event says.

    Raises:
        BadRequest: It is none that `registration_draft` makes.
    """
    said = {claim.relation: claim.value for claim in event.draft.claims}
    contract, epoch = said.pop(CONTRACT, None), said.pop(EPOCH, None)
    if said or (contract is None and epoch is None):
        raise BadRequest(field="claims", reason="a relation event carries a contract, an epoch, or both")
    if not isinstance(contract, str | None) or not isinstance(epoch, int | None):
        raise BadRequest(field="claims", reason="a contract is JSON text, an epoch a number")
    return Registration(contract=None if contract is None else contract_of(contract.encode()), epoch=epoch)


async def registered_in_log(conn: AsyncConnection, keys: TenantKeys) -> Sequence[Registered]:
    """
    Return every contract that the log holds, in its order.

    Raises:
        IntegrityFault: An event is not what was written.
    """
    event = _tables.event
    query = sa.select(event.c.event_id).where(
        event.c.tenant == keys.tenant, event.c.kind == Kind.RELATION.value
    )
    events = (await read_events_by_id(conn, keys, list(await conn.scalars(query)))).values()
    found: list[Registered] = []
    for one in sorted(events, key=lambda one: one.position):
        if not isinstance(one, Event):
            continue
        said = registration_in(one)
        if said.contract is not None:
            found.append(Registered(contract=said.contract, epoch=said.epoch, event=one))
    return found


async def first_contracts(conn: AsyncConnection, keys: TenantKeys, epoch: int) -> dict[str, Registered]:
    """
    Return the contracts that hold in an epoch from its first event on: it, or one before, began with them.

    Raises:
        IntegrityFault: An event is not what was written.
    """
    if epoch == 1:
        # Nothing is changed by the first one.
        return {}
    return {
        one.contract.relation: one
        for one in await registered_in_log(conn, keys)
        if one.epoch is not None and one.epoch <= epoch
    }
