"""Receipts: of what was just written, and of what was before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import AlreadyKnown, IdempotencyConflict, IntegrityFault
from contracts.events import EventDraft, Receipt
from contracts.times import KnownAt
from ledger import _tables
from ledger._database import Database
from ledger._events import SealedEvent
from ledger._hashes import commit_hash
from ledger._keys import TenantKeys
from ledger._prepare import Prepared, key_named


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the append function says of one append; the rest is None unless it was written."""

    outcome: str
    commit: int
    first_position: int
    recorded_at: datetime
    previous: bytes
    hash: bytes


def receipt(keys: TenantKeys, prepared: Prepared, sealed: Sequence[SealedEvent], outcome: Outcome) -> Receipt:
    """
    Return the receipt of what was just written.

    Raises:
        IntegrityFault: The server stored other bytes than were sent, or hashes them otherwise.
    """
    recorded_at = outcome.recorded_at.astimezone(UTC)
    computed = commit_hash(
        previous=bytes(outcome.previous),
        tenant=keys.tenant,
        commit=outcome.commit,
        recorded_at=recorded_at,
        first_position=outcome.first_position,
        event_hashes=[event.hash for event in sealed],
    )
    if computed != bytes(outcome.hash):
        raise IntegrityFault(what=f"the hash of commit {outcome.commit}, as it was written")
    return Receipt(
        tenant=keys.tenant,
        commit=outcome.commit,
        recorded_at=KnownAt(recorded_at),
        event_ids=tuple([sealed[index].event_id for index in prepared.event_of_draft]),
        positions=tuple([outcome.first_position + index for index in prepared.event_of_draft]),
        event_hashes=tuple([sealed[index].hash.hex() for index in prepared.event_of_draft]),
        commit_hash=bytes(outcome.hash).hex(),
        repeated=False,
    )


async def receipt_of(conn: AsyncConnection, keys: TenantKeys, event_id: str) -> Receipt:
    """Return the receipt of an event that was appended alone, as for a repetition of it."""
    event, commit = _tables.event, _tables.commit
    query = (
        sa.select(
            event.c.position,
            event.c.commit,
            event.c.hash,
            commit.c.recorded_at,
            commit.c.hash.label("commit_hash"),
        )
        .join(commit, sa.and_(commit.c.tenant == event.c.tenant, commit.c.commit == event.c.commit))
        .where(event.c.tenant == keys.tenant, event.c.event_id == event_id)
    )
    row = (await conn.execute(query)).one()
    return Receipt(
        tenant=keys.tenant,
        commit=row.commit,
        recorded_at=KnownAt(row.recorded_at.astimezone(UTC)),
        event_ids=(event_id,),
        positions=(row.position,),
        event_hashes=(bytes(row.hash).hex(),),
        commit_hash=bytes(row.commit_hash).hex(),
        repeated=True,
    )


async def known_receipt(
    db: Database, keys: TenantKeys, drafts: Sequence[EventDraft], prepared: Prepared
) -> Receipt:
    """
    Find out what of an append is known, and return the receipt of the append that wrote it.

    Raises:
        AlreadyKnown: Not all of it is, or several appends wrote it.
        IdempotencyConflict: A key was used for other content.
    """
    rows = await _known_events(db, keys, prepared)
    of_draft: list[Any] = []
    for draft, index in zip(drafts, prepared.event_of_draft, strict=True):
        event = prepared.events[index]
        row = None if event.idempotency is None else rows.get(event.idempotency)
        if row is not None and bytes(row.content_digest) != event.content:
            raise IdempotencyConflict(idempotency_key=key_named(draft))
        of_draft.append(row)
    known = tuple(index for index, row in enumerate(of_draft) if row is not None)
    unknown = tuple(index for index, row in enumerate(of_draft) if row is None)
    if unknown or len({row.commit for row in of_draft}) != 1:
        raise AlreadyKnown(known=known, unknown=unknown)
    return Receipt(
        tenant=keys.tenant,
        commit=of_draft[0].commit,
        recorded_at=KnownAt(of_draft[0].recorded_at.astimezone(UTC)),
        event_ids=tuple(row.event_id for row in of_draft),
        positions=tuple(row.position for row in of_draft),
        event_hashes=tuple(bytes(row.hash).hex() for row in of_draft),
        commit_hash=bytes(of_draft[0].commit_hash).hex(),
        repeated=True,
    )


async def _known_events(db: Database, keys: TenantKeys, prepared: Prepared) -> dict[bytes, Any]:
    event, commit = _tables.event, _tables.commit
    digests = [event.idempotency for event in prepared.events if event.idempotency is not None]
    query = (
        sa.select(
            event.c.idempotency_digest,
            event.c.content_digest,
            event.c.event_id,
            event.c.position,
            event.c.commit,
            event.c.hash,
            commit.c.recorded_at,
            commit.c.hash.label("commit_hash"),
        )
        .join(commit, sa.and_(commit.c.tenant == event.c.tenant, commit.c.commit == event.c.commit))
        .where(event.c.tenant == keys.tenant)
        .where(event.c.idempotency_digest == sa.any_(sa.literal(digests, sa.ARRAY(sa.LargeBinary))))
    )
    async with db.tenant(keys.tenant) as conn:
        return {bytes(row.idempotency_digest): row for row in await conn.execute(query)}
