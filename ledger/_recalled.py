"""Reading recalls: one of them, or those that used an event, were about a name, or were answered so."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

import sqlalchemy as sa

from contracts.answers import AnswerStatus
from contracts.errors import IntegrityFault, NotFound
from contracts.limits import PAGE_EVENTS_MAX
from contracts.trails import TrailsWanted
from ledger import _tables
from ledger._database import Database
from ledger._erasures import erased_recall
from ledger._keys import TenantKeys
from ledger._tenants import tenant_keys
from ledger._trails import (
    ErasedTrail,
    RecalledContext,
    RecalledTrail,
    StoredContext,
    entity_digest,
    open_context,
    open_trail,
    trail_seal,
)

EVERY_TRAIL: Final = TrailsWanted()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailHeader:
    """
    One recall in the numbered list of them.

    `status` is None for those that were stored before it was kept. `erased` says that its question
    is gone; what it cited, and that it was asked, stays.
    """

    number: int
    trail_id: str
    context_hash: str
    asked_at: datetime
    status: AnswerStatus | None
    erased: bool


async def read_trail(db: Database, tenant: str, reference: str) -> RecalledTrail:
    """
    Read a recall by its trail id, or the first one that built the context of that hash.

    Raises:
        NotFound: The tenant has no such trail or context.
        IntegrityFault: A byte of it was changed.
    """
    table, key = _tables.trail, _tables.trail_key
    query = (
        sa.select(table, key.c.wrapped_key)
        .outerjoin(key, sa.and_(key.c.tenant == table.c.tenant, key.c.trail_id == table.c.trail_id))
        .where(table.c.tenant == tenant)
        .where(sa.or_(table.c.trail_id == reference, table.c.context_hash == reference))
        .order_by(table.c.number)
        .limit(1)
    )
    async with db.snapshot(tenant) as conn:
        keys = await tenant_keys(db, tenant, conn)
        row = (await conn.execute(query)).mappings().one_or_none()
        if row is None:
            raise NotFound(what="context or trail")
        if not hmac.compare_digest(trail_seal(keys, row), bytes(row["seal"])):
            raise IntegrityFault(what=f"the seal of trail {row['trail_id']}")
        if row["wrapped_key"] is not None:
            return open_trail(keys, row)
        by, event_ids = await erased_recall(conn, keys, row["trail_id"])
    return ErasedTrail(
        trail_id=row["trail_id"],
        context_hash=row["context_hash"],
        erased_by=by,
        erased_event_ids=event_ids,
    )


async def read_context(db: Database, tenant: str, context_hash: str) -> RecalledContext:
    """
    Read a stored context by its hash.

    Raises:
        NotFound: The tenant has no such context.
        IntegrityFault: A byte of it was changed.
    """
    table, key = _tables.context, _tables.context_key
    query = (
        sa.select(table, key.c.wrapped_key)
        .outerjoin(key, sa.and_(key.c.tenant == table.c.tenant, key.c.context_hash == table.c.context_hash))
        .where(table.c.tenant == tenant, table.c.context_hash == context_hash)
    )
    async with db.snapshot(tenant) as conn:
        keys = await tenant_keys(db, tenant, conn)
        row = (await conn.execute(query)).mappings().one_or_none()
        if row is None:
            raise NotFound(what="context")
        stored = open_context(keys, row)
        if isinstance(stored, StoredContext):
            return stored
        by, event_ids = await erased_recall(conn, keys, context_hash)
    return replace(stored, erased_by=by, erased_event_ids=event_ids)


async def list_trails(
    db: Database, tenant: str, *, after_number: int, limit: int, wanted: TrailsWanted = EVERY_TRAIL
) -> list[TrailHeader]:
    """
    Return recalls in the order of their numbers, at most `PAGE_EVENTS_MAX`; empty means no more.

    Raises:
        NotFound: No such tenant.
    """
    table, key = _tables.trail, _tables.trail_key
    async with db.snapshot(tenant) as conn:
        keys = await tenant_keys(db, tenant, conn)
        query = (
            sa.select(
                table.c.number,
                table.c.trail_id,
                table.c.context_hash,
                table.c.asked_at,
                table.c.status,
                key.c.trail_id.is_(None).label("erased"),
            )
            .outerjoin(key, sa.and_(key.c.tenant == table.c.tenant, key.c.trail_id == table.c.trail_id))
            .where(table.c.tenant == tenant, table.c.number > after_number, *_conditions(wanted, keys))
            .order_by(table.c.number)
            .limit(min(limit, PAGE_EVENTS_MAX))
        )
        return [
            TrailHeader(
                number=row.number,
                trail_id=row.trail_id,
                context_hash=row.context_hash,
                asked_at=row.asked_at.astimezone(UTC),
                status=None if row.status is None else AnswerStatus(row.status),
                erased=row.erased,
            )
            for row in await conn.execute(query)
        ]


def _conditions(wanted: TrailsWanted, keys: TenantKeys) -> list[sa.ColumnElement[bool]]:
    table, key = _tables.trail, _tables.trail_key
    found: list[sa.ColumnElement[bool]] = []
    if wanted.context_hash is not None:
        found.append(table.c.context_hash == wanted.context_hash)
    if wanted.event_id is not None:
        found.append(table.c.event_ids.contains([wanted.event_id]))
    if wanted.entity is not None:
        found.append(key.c.entities.contains([entity_digest(keys, wanted.entity)]))
    if wanted.status is not None:
        found.append(table.c.status == wanted.status.value)
    if wanted.asked_from is not None:
        found.append(table.c.asked_at >= wanted.asked_from)
    if wanted.asked_to is not None:
        found.append(table.c.asked_at < wanted.asked_to)
    return found
