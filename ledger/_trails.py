"""
Recall trails: what was asked, numbered in a log of its own, and the contexts that were built.

Numbers are gapless per tenant and advance no commit; `trail_head` is not `head`, so a question
never waits for an append nor an append for a question. Question, proposal and the context's
canonical form are encrypted, each under a data key of its own; a row's seal covers all of it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.contexts import ContextPack
from contracts.errors import ErasedMeanwhile, IntegrityFault, NotFound
from contracts.limits import PAGE_EVENTS_MAX
from contracts.proposals import Proposal
from contracts.trails import Question, Trail
from contracts.views import View
from ledger import _tables
from ledger._canonical import canonical, parse
from ledger._database import Database
from ledger._erasures import erased_recall, events_cited
from ledger._events import new_id
from ledger._keys import TenantKeys, framed
from ledger._tenants import tenant_keys

_QUESTION: Final = TypeAdapter(Question)
_PROPOSAL: Final = TypeAdapter(Proposal)
_VIEW: Final = TypeAdapter(View)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailHeader:
    """One recall in the numbered list of them."""

    number: int
    trail_id: str
    context_hash: str
    asked_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedTrail:
    """
    A recall whose question was erased.

    `erased_by` is the event that erased it, None where its key was lost and no erasure says so;
    `erased_event_ids` what it cited of what was erased.
    """

    trail_id: str
    context_hash: str
    erased_by: str | None
    erased_event_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredContext:
    """A context: `form` is the canonical JSON that `context_hash` is the SHA-256 of."""

    context_hash: str
    content_hash: str
    form: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedContext:
    """A context whose form was erased; `erased_by` and `erased_event_ids` as of a trail."""

    context_hash: str
    content_hash: str
    erased_by: str | None
    erased_event_ids: tuple[str, ...]


RecalledTrail: TypeAlias = Trail | ErasedTrail
RecalledContext: TypeAlias = StoredContext | ErasedContext


def new_trail_id(db: Database) -> str:
    """Return a new opaque id, such as `tr_3k…`."""
    return new_id("tr", db.randomness)


async def store_recall(db: Database, tenant: str, trail: Trail, pack: ContextPack) -> int:
    """
    Store one recall with its context and return its number; the same context is kept once.

    Raises:
        NotFound: No such tenant.
        ErasedMeanwhile: An event that it cites was erased since it was read; nothing is stored.
        IntegrityFault: Trail and pack are not of one context, or its hash is not that of its form.
        Unavailable: Unknown whether stored; nothing that was asked depends on it.
    """
    _check_context(trail.context_hash, pack.form)
    if (trail.tenant, trail.context_hash, trail.content_hash) != (
        tenant,
        pack.context_hash,
        pack.content_hash,
    ):
        raise IntegrityFault(what="a trail that is not of its context")
    keys = await tenant_keys(db, tenant)
    key, wrapped_key = keys.new_key(trail.trail_id, randomness=db.randomness)
    body = canonical(_body(trail))
    row: dict[str, Any] = {
        "tenant": tenant,
        "trail_id": trail.trail_id,
        "context_hash": trail.context_hash,
        "asked_at": db.clock(),
        "body": body,
        "ciphertext": key.encrypt(
            canonical(secret_of(trail)),
            context=_trail_context(keys, trail.trail_id, body),
            randomness=db.randomness,
        ),
    }
    head = _tables.trail_head
    next_number = sa.update(head).where(head.c.tenant == tenant).values(number=head.c.number + 1)
    async with db.tenant(tenant) as conn:
        await _store_context(db, conn, keys, pack)
        # Last of what waits for others: the number's row is locked until the commit.
        row["number"] = (await conn.execute(next_number.returning(head.c.number))).scalar_one()
        # From here on no erasure goes on before this is stored: it would not find what cites its events.
        await _check_nothing_erased(conn, pack)
        row["seal"] = trail_seal(keys, row)
        await conn.execute(sa.insert(_tables.trail), row)
        await conn.execute(
            sa.insert(_tables.trail_key),
            {"tenant": tenant, "trail_id": trail.trail_id, "wrapped_key": wrapped_key},
        )
    return int(row["number"])


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


async def list_trails(db: Database, tenant: str, *, after_number: int, limit: int) -> list[TrailHeader]:
    """Return recalls in the order of their numbers, at most `PAGE_EVENTS_MAX`; empty means no more."""
    table = _tables.trail
    query = (
        sa.select(table.c.number, table.c.trail_id, table.c.context_hash, table.c.asked_at)
        .where(table.c.tenant == tenant, table.c.number > after_number)
        .order_by(table.c.number)
        .limit(min(limit, PAGE_EVENTS_MAX))
    )
    async with db.tenant(tenant) as conn:
        return [
            TrailHeader(
                number=row.number,
                trail_id=row.trail_id,
                context_hash=row.context_hash,
                asked_at=row.asked_at.astimezone(UTC),
            )
            for row in await conn.execute(query)
        ]


def trail_seal(keys: TenantKeys, row: Any) -> bytes:  # noqa: ANN401 - a row, as read or to be written
    """Return the seal of a trail's row."""
    return keys.seal(
        "trail",
        row["trail_id"].encode(),
        str(row["number"]).encode(),
        row["context_hash"].encode(),
        row["asked_at"].astimezone(UTC).isoformat().encode(),
        bytes(row["body"]),
        bytes(row["ciphertext"]),
    )


def open_context(keys: TenantKeys, row: Any) -> RecalledContext:  # noqa: ANN401 - a row joined with its key
    """
    Decrypt a context's row and check it against its hash; what erased it is not in its row.

    Raises:
        IntegrityFault: A byte of it was changed.
    """
    context_hash, content_hash = row["context_hash"], row["content_hash"]
    if row["wrapped_key"] is None:
        return ErasedContext(
            context_hash=context_hash, content_hash=content_hash, erased_by=None, erased_event_ids=()
        )
    form = keys.open_key(context_hash, bytes(row["wrapped_key"])).decrypt(
        bytes(row["ciphertext"]),
        context=_form_context(keys, context_hash, content_hash),
        what=f"context {context_hash}",
    )
    _check_context(context_hash, form)
    return StoredContext(context_hash=context_hash, content_hash=content_hash, form=form)


async def _store_context(db: Database, conn: AsyncConnection, keys: TenantKeys, pack: ContextPack) -> None:
    key, wrapped_key = keys.new_key(pack.context_hash, randomness=db.randomness)
    row = {
        "tenant": keys.tenant,
        "context_hash": pack.context_hash,
        "content_hash": pack.content_hash,
        "ciphertext": key.encrypt(
            pack.form,
            context=_form_context(keys, pack.context_hash, pack.content_hash),
            randomness=db.randomness,
        ),
    }
    table = _tables.context
    added = pg.insert(table).values(row).on_conflict_do_nothing().returning(table.c.context_hash)
    if await conn.scalar(added) is not None:
        await conn.execute(
            sa.insert(_tables.context_key),
            {"tenant": keys.tenant, "context_hash": pack.context_hash, "wrapped_key": wrapped_key},
        )


async def _check_nothing_erased(conn: AsyncConnection, pack: ContextPack) -> None:
    # What is shown and what decided, not what was proposed: an index may go on naming what is gone.
    cited = events_cited(_content_of(pack.form))
    erased = _tables.erased
    query = sa.select(sa.func.max(erased.c.commit)).where(erased.c.event_id.in_(sorted(cited)))
    commit = await conn.scalar(query) if cited else None
    if commit is not None:
        raise ErasedMeanwhile(commit=commit)


def _content_of(form: bytes) -> str:
    try:
        return json.dumps(json.loads(form)["content"])
    except (ValueError, KeyError, TypeError):
        # No form that the packer makes: then all of it counts.
        return form.decode("utf-8", errors="replace")


def _check_context(context_hash: str, form: bytes) -> None:
    if hashlib.sha256(form).hexdigest() != context_hash:
        raise IntegrityFault(what=f"context {context_hash}, whose form has another hash")


def _body(trail: Trail) -> dict[str, Any]:
    return {
        "answer_digest": trail.answer_digest,
        "configuration_hash": trail.configuration_hash,
        "content_hash": trail.content_hash,
        "view": _VIEW.dump_python(trail.view, mode="json"),
    }


def secret_of(trail: Trail) -> dict[str, Any]:
    """Return what of a trail is encrypted: everything that anybody worded."""
    return {
        "proposal": _PROPOSAL.dump_python(trail.proposal, mode="json"),
        "question": _QUESTION.dump_python(trail.question, mode="json"),
    }


def open_trail(keys: TenantKeys, row: Any) -> Trail:  # noqa: ANN401 - a row joined with its key
    """
    Decrypt a trail's row.

    Raises:
        IntegrityFault: A byte of it was changed.
    """
    trail_id = row["trail_id"]
    body = parse(bytes(row["body"]))
    secret = parse(
        keys.open_key(trail_id, bytes(row["wrapped_key"])).decrypt(
            bytes(row["ciphertext"]),
            context=_trail_context(keys, trail_id, bytes(row["body"])),
            what=f"trail {trail_id}",
        )
    )
    return Trail(
        trail_id=trail_id,
        tenant=keys.tenant,
        question=_QUESTION.validate_json(canonical(secret["question"])),
        view=_VIEW.validate_json(canonical(body["view"])),
        proposal=_PROPOSAL.validate_json(canonical(secret["proposal"])),
        configuration_hash=body["configuration_hash"],
        context_hash=row["context_hash"],
        content_hash=body["content_hash"],
        answer_digest=body["answer_digest"],
    )


def _trail_context(keys: TenantKeys, trail_id: str, body: bytes) -> bytes:
    return framed(b"echoplane/trail/1", keys.tenant.encode(), trail_id.encode(), body)


def _form_context(keys: TenantKeys, context_hash: str, content_hash: str) -> bytes:
    return framed(b"echoplane/context/1", keys.tenant.encode(), context_hash.encode(), content_hash.encode())
