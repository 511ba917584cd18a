"""
The `decision` event: an operator's word. Here: that an event is passed over, in an epoch and all later ones.

It stands in the log after the event that it is about, and every fold of those epochs obeys it at that
event's place: what an epoch holds stays a function of the log and its number, so folding it again gives
the same bytes.

Source: SEMANTICS, "Time" (what is not a function of the log enters through the log).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import BadRequest
from contracts.events import Event, EventDraft, Kind
from contracts.grants import DECISIONS
from ledger import _tables
from ledger._keys import TenantKeys
from ledger._read import read_events_by_id

SKIP: Final = "skip"
"""The relation on which a `decision` event names the first epoch that passes over an event, its entity."""
TENANCY: Final = "tenancy"
"""The relation on which one says what holds of its tenant from then on (`ledger._tenancy`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """Which event is passed over, from which epoch on, and at which commit that was decided."""

    event_id: str
    epoch: int
    decided: int


def decision_draft(entity: str, relation: str, value: object, *, reason: str, actor_id: str) -> EventDraft:
    """Return a `decision` event: an operator says something of an event or a tenant, and why."""
    return EventDraft.model_validate(
        {
            "stream": DECISIONS,
            "kind": Kind.DECISION.value,
            "actor": {"id": actor_id, "class": "operator"},
            "text": reason,
            "claims": [{"entity": entity, "relation": relation, "value": value}],
        }
    )


def skip_draft(event_id: str, *, epoch: int, reason: str, actor_id: str) -> EventDraft:
    """Return the `decision` event that says it, by an operator."""
    return decision_draft(event_id, SKIP, epoch, reason=reason, actor_id=actor_id)


def skip_in(event: Event) -> Skip:
    """
    Return what a `decision` event says.

    Raises:
        BadRequest: It is none that `skip_draft` makes.
    """
    match event.draft.claims:
        case [claim] if claim.relation == SKIP and claim.entity and type(claim.value) is int:
            return Skip(event_id=claim.entity, epoch=claim.value, decided=event.commit)
        case _:
            raise BadRequest(
                field="claims", reason="a decision says which event is skipped, from which epoch"
            )


async def skips_after(conn: AsyncConnection, keys: TenantKeys, position: int) -> list[Skip]:
    """
    Return what was decided about events after a position: all that a fold from there can meet.

    Raises:
        IntegrityFault: An event is not what was written.
    """
    event = _tables.event
    query = sa.select(event.c.event_id).where(
        event.c.tenant == keys.tenant, event.c.kind == Kind.DECISION.value, event.c.position > position
    )
    found = await read_events_by_id(conn, keys, list(await conn.scalars(query)))
    # What was decided about the tenant itself says nothing to a fold.
    return [
        skip_in(one)
        for one in found.values()
        if isinstance(one, Event) and not any(claim.relation == TENANCY for claim in one.draft.claims)
    ]


async def skipped_in(conn: AsyncConnection, keys: TenantKeys, epoch: int, *, after: int) -> frozenset[str]:
    """Return the ids of the events after a position that an epoch passes over."""
    return frozenset(skip.event_id for skip in await skips_after(conn, keys, after) if skip.epoch <= epoch)
