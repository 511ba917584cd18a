"""Appending: the only way by which facts are written."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import (
    AlreadyKnown,
    BadRequest,
    EchoplaneError,
    NotFound,
    Unavailable,
    VersionConflict,
    WrongValue,
)
from contracts.events import EventDraft, Receipt
from contracts.grants import Grant
from contracts.limits import CONTRACT_TRIES_MAX
from ledger._arrays import binaries, digests, numbers, texts
from ledger._border import NONE_REGISTERED, InForce, hold_newest, holds_values, newest_contracts
from ledger._database import Database
from ledger._events import SealedEvent, new_ids, seal_events
from ledger._grants import check_command, check_emit
from ledger._idle import refuse_idle
from ledger._keys import TenantKeys
from ledger._named import Named
from ledger._prepare import Prepared, PreparedEvent, prepare
from ledger._receipts import Outcome, known_receipt, receipt
from ledger._references import find_references
from ledger._refusals import TENANT_REFUSALS
from ledger._tenants import tenant_keys

_PARAMETERS: Final = {
    "tenant": "text", "clock": "timestamptz", "counts": "integer[]", "expected": "bigint[]",
    "relations": "bigint[]", "epochs": "integer[]", "event_ids": "text[]", "kinds": "text[]",
    "streams": "bytea[]", "stream_of": "integer[]", "sources": "bytea[]", "correlations": "bytea[]",
    "idempotency": "bytea[]",
    "contents": "bytea[]", "headers": "bytea[]", "ciphertexts": "bytea[]", "wrapped_keys": "bytea[]",
}  # fmt: skip
_GIVEN: Final = ", ".join(f"CAST(%({name})s AS {kind})" for name, kind in _PARAMETERS.items())
_APPEND: Final = (
    "SELECT o_outcome, o_commit, o_first, o_recorded_at, o_previous, o_hash "  # noqa: S608 — of the names above
    f"FROM echoplane_append({_GIVEN})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Appending:
    """One append on its way into a transaction."""

    events: tuple[PreparedEvent, ...]
    sealed: tuple[SealedEvent, ...]
    expected: int | None
    under: InForce | None
    """The contracts that its values were held against; None where it has no values."""


async def append(
    db: Database,
    tenant: str,
    drafts: Sequence[EventDraft],
    *,
    grant: Grant,
    expected_version: int | None = None,
    sent_at: datetime | None = None,
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
        sent_at: What the caller's clock says, with an offset: kept with the events, and never trusted.

    Raises:
        NotFound: No such tenant, or not this grant's.
        Forbidden: The grant lacks the right, an actor or a class.
        BadRequest: A kind with a command of its own, a target that names no earlier event, …
        WrongValue: A value is not of the type that its relation's contract names; says where.
        LimitExceeded: A bound of `contracts.limits` was passed.
        IdempotencyConflict: A key was used for other content.
        AlreadyKnown: Some events are known, or all of them by several appends; says which.
        VersionConflict: The stream has moved; read again, then retry.
        TenantSuspended, QuotaExceeded, RateExceeded: Operators bound the tenant (`ledger._tenancy`).
        Busy: Too many wait already; nothing was written.
        Unavailable: Unknown whether written; retry with the same idempotency keys.

    Source: DESIGN, decision 2.
    """
    check_emit(grant, tenant, drafts)
    if sent_at is not None and sent_at.tzinfo is None:
        raise BadRequest(field="sent_at", reason="an instant needs an offset, such as Z or +02:00")
    return await _append(db, tenant, drafts, expected_version=expected_version, sent_at=sent_at)


async def append_command(db: Database, tenant: str, draft: EventDraft, *, grant: Grant) -> Receipt:
    """
    Append one `relation`, `decision` or `erasure` event, each under a right of its own.

    What it must hold, and what it brings about, is the business of whoever calls this.

    Raises:
        Forbidden: The grant lacks `admin` (relation), `operator` (decision) or `erase` (erasure).
        BadRequest: Another kind. And all that `append` raises.
    """
    check_command(grant, tenant, draft)
    return await _append(db, tenant, [draft], expected_version=None, sent_at=None)


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
    return await append_commands_within(conn, db, keys, [draft])


async def append_commands_within(
    conn: AsyncConnection, db: Database, keys: TenantKeys, drafts: Sequence[EventDraft]
) -> Receipt:
    """Append several as one commit, as `append_within` does; who may is the caller's business."""
    prepared = prepare(keys, drafts)
    sealed = _sealed(db, keys, prepared, *await _named_by_id(db, keys, prepared), sent_at=None)
    appending = _Appending(events=prepared.events, sealed=sealed, expected=None, under=None)
    (outcome,) = await _run(conn, db, keys.tenant, [appending])
    assert outcome.outcome == "written", "a command without a key can be neither known nor stale"
    return receipt(keys, prepared, sealed, outcome)


async def _named_by_id(
    db: Database, keys: TenantKeys, prepared: Prepared
) -> tuple[list[str], list[dict[str, str]]]:
    """Return an id for each event, and the ids of the events that its targets name by their source's."""
    event_ids = new_ids("ev", len(prepared.events), db.randomness)
    return event_ids, await find_references(db, keys, prepared.events, event_ids)


def _sealed(
    db: Database,
    keys: TenantKeys,
    prepared: Prepared,
    event_ids: Sequence[str],
    references: Sequence[dict[str, str]],
    *,
    sent_at: datetime | None,
) -> tuple[SealedEvent, ...]:
    drafts = [(event.draft, event.draft_bytes) for event in prepared.events]
    return tuple(
        seal_events(
            keys, event_ids, drafts, references, sent_at=sent_at, backfilled=db.states_clock,
            randomness=db.randomness,
        )
    )  # fmt: skip


async def _append(
    db: Database,
    tenant: str,
    drafts: Sequence[EventDraft],
    *,
    expected_version: int | None,
    sent_at: datetime | None,
) -> Receipt:
    keys = await tenant_keys(db, tenant)
    prepared = prepare(keys, drafts)
    if expected_version is not None and len({event.stream for event in prepared.events}) > 1:
        raise BadRequest(field="expected_version", reason="all events must be of one stream")
    event_ids, references = await _named_by_id(db, keys, prepared)
    events = [event.draft for event in prepared.events]
    named = Named(db, keys, events, event_ids, references)
    under = db.contracts.get(tenant, NONE_REGISTERED) if any(map(holds_values, events)) else None
    sealed: tuple[SealedEvent, ...] = ()
    for _ in range(CONTRACT_TRIES_MAX):
        if under is not None:
            try:
                refuse_idle(events)
                under = await hold_newest(db, keys, events, under, named)
            except (BadRequest, WrongValue):
                # What was accepted once stays so, whatever is refused by now.
                with contextlib.suppress(AlreadyKnown):
                    return await known_receipt(db, keys, drafts, prepared)
                raise
        sealed = sealed or _sealed(db, keys, prepared, event_ids, references, sent_at=sent_at)
        outcome = await _submit(db, tenant, prepared, sealed, expected=expected_version, under=under)
        match outcome.outcome:
            case "written":
                db.waker.wake(tenant)
                return receipt(keys, prepared, sealed, outcome)
            case "known":
                return await known_receipt(db, keys, drafts, prepared)
            case "version":
                raise VersionConflict(stream=drafts[0].stream, expected=expected_version or 0)
            case "no_tenant":
                raise NotFound(what="tenant")
            case "contracts":
                under = await newest_contracts(db, keys)
            case other:
                raise AssertionError(f"the append function has no outcome {other}")
    raise Unavailable(part="relations", reason="contracts are registered faster than values are checked")


async def _submit(
    db: Database,
    tenant: str,
    prepared: Prepared,
    sealed: tuple[SealedEvent, ...],
    *,
    expected: int | None,
    under: InForce | None,
) -> Outcome:
    async def run(batch: Sequence[_Appending]) -> Sequence[Outcome | EchoplaneError]:
        try:
            return await _write(db, tenant, batch)
        except TENANT_REFUSALS as refusal:
            if len(batch) == 1:
                return [refusal]
            # Together they are too much: each by itself, so that none is refused for another's sake.
            return [one for appending in batch for one in await run([appending])]

    # A stated clock is one transaction's: what waits under another must not be written by it.
    queue = f"{tenant} {id(db.clock)}" if db.states_clock else tenant
    outcome: Outcome | EchoplaneError = await db.appends.submit(
        queue,
        _Appending(events=prepared.events, sealed=sealed, expected=expected, under=under),
        weight=len(sealed),
        size_bytes=sum(len(event.ciphertext) for event in sealed),
        run=run,
    )
    if isinstance(outcome, EchoplaneError):
        raise outcome
    return outcome


async def _write(db: Database, tenant: str, batch: Sequence[_Appending]) -> list[Outcome]:
    return _outcomes(await db.rows(_APPEND, _parameters(db, tenant, batch)))


async def _run(
    connection: AsyncConnection, db: Database, tenant: str, batch: Sequence[_Appending]
) -> list[Outcome]:
    found = await connection.exec_driver_sql(_APPEND, _parameters(db, tenant, batch))
    return _outcomes(found.all())


def _parameters(db: Database, tenant: str, batch: Sequence[_Appending]) -> dict[str, object]:
    events = [event for appending in batch for event in appending.events]
    sealed = [event for appending in batch for event in appending.sealed]
    streams: dict[bytes, int] = {}
    stream_of = [streams.setdefault(event.stream, len(streams) + 1) for event in events]
    return {
        "tenant": tenant,
        "clock": db.clock() if db.states_clock else None,
        "counts": numbers(len(appending.sealed) for appending in batch),
        "expected": numbers(appending.expected for appending in batch),
        "relations": numbers(None if one.under is None else one.under.position for one in batch),
        "epochs": numbers(None if one.under is None else one.under.epoch for one in batch),
        "event_ids": texts(event.event_id for event in sealed),
        "kinds": texts(event.kind for event in sealed),
        "streams": digests(list(streams)),
        "stream_of": numbers(stream_of),
        "sources": digests([event.source for event in events]),
        "correlations": digests([event.correlation for event in events]),
        "idempotency": digests([event.idempotency for event in events]),
        "contents": digests([event.content for event in events]),
        "headers": binaries(event.header for event in sealed),
        "ciphertexts": binaries(event.ciphertext for event in sealed),
        "wrapped_keys": binaries(event.wrapped_key for event in sealed),
    }


def _outcomes(rows: Sequence[Any]) -> list[Outcome]:
    return [
        Outcome(
            outcome=outcome, commit=commit, first_position=first, recorded_at=recorded_at, previous=previous,
            hash=own,
        )
        for outcome, commit, first, recorded_at, previous, own in rows
    ]  # fmt: skip
