"""Appending: the only way by which facts are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import (
    AlreadyKnown,
    BadRequest,
    IdempotencyConflict,
    IntegrityFault,
    NotFound,
    VersionConflict,
)
from contracts.events import EventDraft, Receipt
from contracts.grants import Grant
from contracts.times import KnownAt
from ledger import _tables
from ledger._database import Database
from ledger._driver_errors import translated
from ledger._events import SealedEvent, new_id, seal_event
from ledger._grants import check_command, check_emit
from ledger._hashes import commit_hash
from ledger._keys import TenantKeys
from ledger._prepare import Prepared, PreparedEvent, key_named, prepare
from ledger._references import find_references
from ledger._tenants import tenant_keys
from ledger._wake import autocommit

_APPEND: Final = sa.text(
    "SELECT o_outcome, o_commit, o_first, o_recorded_at, o_previous, o_hash FROM echoplane_append("
    ":tenant, CAST(:clock AS timestamptz), CAST(:counts AS integer[]), CAST(:expected AS bigint[]), "
    "CAST(:event_ids AS text[]), CAST(:kinds AS text[]), CAST(:streams AS bytea[]), "
    "CAST(:sources AS bytea[]), CAST(:idempotency AS bytea[]), CAST(:contents AS bytea[]), "
    "CAST(:headers AS bytea[]), CAST(:ciphertexts AS bytea[]), CAST(:wrapped_keys AS bytea[]))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Appending:
    """One append on its way into a transaction."""

    events: tuple[PreparedEvent, ...]
    sealed: tuple[SealedEvent, ...]
    expected: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What the append function says of one append; the rest is None unless it was written."""

    outcome: str
    commit: int
    first_position: int
    recorded_at: datetime
    previous: bytes
    hash: bytes


async def append(
    db: Database,
    tenant: str,
    drafts: Sequence[EventDraft],
    *,
    grant: Grant,
    expected_version: int | None = None,
) -> Receipt:
    """
    Append all events as one commit, or none.

    An event is known by its idempotency key, or by stream and source id; one without either is
    always new. If every event is known, with the same content and by one append, that append's
    receipt is returned, `repeated`, and nothing is written. The same event twice in one append is
    written once and stands twice in the receipt.

    Args:
        db: The database.
        tenant: Whose log.
        drafts: One to `APPEND_EVENTS_MAX` events, in order.
        grant: What the caller may do.
        expected_version: Version of the stream's last event that the caller saw, 0 for none; all
            events must then be of that one stream.

    Raises:
        NotFound: No such tenant, or not this grant's.
        Forbidden: The grant lacks the right, an actor or a class.
        BadRequest: A kind with a command of its own, a target that names no earlier event, …
        LimitExceeded: A bound of `contracts.limits` was passed.
        IdempotencyConflict: A key was used for other content.
        AlreadyKnown: Some events are known, or all of them by several appends; says which.
        VersionConflict: The stream has moved; read again, then retry.
        Unavailable: Unknown whether written; retry with the same idempotency keys.

    Source: DESIGN, decision 2.
    """
    check_emit(grant, tenant, drafts)
    return await _append(db, tenant, drafts, expected_version=expected_version)


async def append_command(db: Database, tenant: str, draft: EventDraft, *, grant: Grant) -> Receipt:
    """
    Append one `relation`, `decision` or `erasure` event, each under a right of its own.

    What it must hold, and what it brings about, is the business of whoever calls this.

    Raises:
        Forbidden: The grant lacks `admin` (relation), `operator` (decision) or `erase` (erasure).
        BadRequest: Another kind. And all that `append` raises.
    """
    check_command(grant, tenant, draft)
    return await _append(db, tenant, [draft], expected_version=None)


async def append_within(
    conn: AsyncConnection, db: Database, keys: TenantKeys, draft: EventDraft, *, grant: Grant
) -> Receipt:
    """
    Append one command in the caller's transaction, which decides whether it is written at all.

    From then on until that ends, every other append of the tenant waits.

    Args:
        conn: A transaction of the tenant.
        db: The database.
        keys: The tenant's.
        draft: One `relation`, `decision` or `erasure` event without an idempotency key.
        grant: What the caller may do.

    Raises:
        Forbidden: The grant lacks the command's right.
    """
    check_command(grant, keys.tenant, draft)
    prepared = prepare(keys, [draft])
    sealed = await _sealed(db, keys, prepared)
    appending = _Appending(events=prepared.events, sealed=sealed, expected=None)
    (outcome,) = await _run(conn, db, keys.tenant, [appending])
    assert outcome.outcome == "written", "a command without a key can be neither known nor stale"
    return _receipt(keys, prepared, sealed, outcome)


async def _sealed(db: Database, keys: TenantKeys, prepared: Prepared) -> tuple[SealedEvent, ...]:
    event_ids = [new_id("ev", db.randomness) for _ in prepared.events]
    references = await find_references(db, keys, prepared.events, event_ids)
    return tuple(
        seal_event(
            keys,
            event_id=event_id,
            draft=event.draft,
            draft_bytes=event.draft_bytes,
            references=own_references,
            randomness=db.randomness,
        )
        for event, event_id, own_references in zip(prepared.events, event_ids, references, strict=True)
    )


async def _append(
    db: Database, tenant: str, drafts: Sequence[EventDraft], *, expected_version: int | None
) -> Receipt:
    keys = await tenant_keys(db, tenant)
    prepared = prepare(keys, drafts)
    if expected_version is not None and len({event.stream for event in prepared.events}) > 1:
        raise BadRequest(field="expected_version", reason="all events must be of one stream")
    sealed = await _sealed(db, keys, prepared)

    async def run(batch: Sequence[_Appending]) -> list[_Outcome]:
        return await _write(db, tenant, batch)

    outcome: _Outcome = await db.appends.submit(
        tenant,
        _Appending(events=prepared.events, sealed=sealed, expected=expected_version),
        weight=len(sealed),
        size_bytes=sum(len(event.ciphertext) for event in sealed),
        run=run,
    )
    match outcome.outcome:
        case "written":
            db.waker.wake(tenant)
            return _receipt(keys, prepared, sealed, outcome)
        case "known":
            return await _known_receipt(db, keys, drafts, prepared)
        case "version":
            raise VersionConflict(stream=drafts[0].stream, expected=expected_version or 0)
        case _:
            raise NotFound(what="tenant")


async def _write(db: Database, tenant: str, batch: Sequence[_Appending]) -> list[_Outcome]:
    with translated():
        async with autocommit(db.plane).connect() as connection:
            return await _run(connection, db, tenant, batch)


async def _run(
    connection: AsyncConnection, db: Database, tenant: str, batch: Sequence[_Appending]
) -> list[_Outcome]:
    events = [event for appending in batch for event in appending.events]
    sealed = [event for appending in batch for event in appending.sealed]
    parameters = {
        "tenant": tenant,
        "clock": db.clock() if db.states_clock else None,
        "counts": [len(appending.sealed) for appending in batch],
        "expected": [appending.expected for appending in batch],
        "event_ids": [event.event_id for event in sealed],
        "kinds": [event.kind.value for event in sealed],
        "streams": [event.stream for event in events],
        "sources": [event.source for event in events],
        "idempotency": [event.idempotency for event in events],
        "contents": [event.content for event in events],
        "headers": [event.header for event in sealed],
        "ciphertexts": [event.ciphertext for event in sealed],
        "wrapped_keys": [event.wrapped_key for event in sealed],
    }
    rows = (await connection.execute(_APPEND, parameters)).all()
    return [
        _Outcome(
            outcome=row.o_outcome,
            commit=row.o_commit,
            first_position=row.o_first,
            recorded_at=row.o_recorded_at,
            previous=row.o_previous,
            hash=row.o_hash,
        )
        for row in rows
    ]


def _receipt(
    keys: TenantKeys, prepared: Prepared, sealed: Sequence[SealedEvent], outcome: _Outcome
) -> Receipt:
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
        # The server stored other bytes than we sent, or hashes them otherwise.
        raise IntegrityFault(what=f"the hash of commit {outcome.commit}, as it was written")
    return Receipt(
        tenant=keys.tenant,
        commit=outcome.commit,
        recorded_at=KnownAt(recorded_at),
        event_ids=tuple(sealed[index].event_id for index in prepared.event_of_draft),
        positions=tuple(outcome.first_position + index for index in prepared.event_of_draft),
        event_hashes=tuple(sealed[index].hash.hex() for index in prepared.event_of_draft),
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


async def _known_receipt(
    db: Database, keys: TenantKeys, drafts: Sequence[EventDraft], prepared: Prepared
) -> Receipt:
    """Find out what of an append is known, and return the receipt of the append that wrote it."""
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
