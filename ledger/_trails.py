"""
Recall trails: what was asked, numbered in a log of its own, and the contexts that were built.

Numbers are gapless per tenant and advance no commit; `trail_head` is not `head`, so a question
never waits for an append nor an append for a question. Question, proposal and the context's
canonical form are encrypted, each under a data key of its own; a row's seal covers all of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any, Final, TypeAlias

from pydantic import TypeAdapter

from contracts.answers import AnswerStatus
from contracts.contexts import ContextPack
from contracts.errors import EchoplaneError, ErasedMeanwhile, IntegrityFault
from contracts.models import Reading
from contracts.proposals import Proposal
from contracts.trails import PACKER_UNSAID, Question, Trail
from contracts.views import View
from ledger._canonical import canonical, parse
from ledger._database import Database
from ledger._direct import fetched
from ledger._erasures import events_cited
from ledger._events import new_id
from ledger._keys import TenantKeys, framed
from ledger._tenants import tenant_keys

_QUESTION: Final = TypeAdapter(Question)
_PROPOSAL: Final = TypeAdapter(Proposal)
_READING: Final = TypeAdapter(Reading | None)
_VIEW: Final = TypeAdapter(View)

# The key of a context that is there already stays: it is what its form is encrypted under.
_STORE_CONTEXTS: Final = (
    "WITH given AS (SELECT * FROM unnest(CAST(%(context_hash)s AS text[]), CAST(%(content_hash)s AS text[]), "
    "CAST(%(ciphertext)s AS bytea[]), CAST(%(wrapped_key)s AS bytea[])) "
    "AS g(context_hash, content_hash, ciphertext, wrapped_key)), "
    "added AS (INSERT INTO context (tenant, context_hash, content_hash, ciphertext) "
    "SELECT %(tenant)s, context_hash, content_hash, ciphertext FROM given ORDER BY context_hash "
    "ON CONFLICT DO NOTHING RETURNING context_hash) "
    "INSERT INTO context_key (tenant, context_hash, wrapped_key) "
    "SELECT %(tenant)s, context_hash, wrapped_key FROM given JOIN added USING (context_hash) "
    "RETURNING context_hash"
)
_NEXT_NUMBERS: Final = (
    "UPDATE trail_head SET number = number + %(count)s WHERE tenant = %(tenant)s RETURNING number"
)
_LAST_ERASED: Final = (
    "SELECT max(commit) FROM erased WHERE tenant = %(tenant)s "
    "AND event_id = ANY(CAST(%(event_ids)s AS text[]))"
)
# Lists in a column of their own travel as JSON: an array of arrays must have them of one length.
_STORE_TRAILS: Final = (
    "WITH given AS (SELECT * FROM unnest(CAST(%(trail_id)s AS text[]), CAST(%(number)s AS bigint[]), "
    "CAST(%(context_hash)s AS text[]), CAST(%(asked_at)s AS timestamptz[]), CAST(%(body)s AS bytea[]), "
    "CAST(%(ciphertext)s AS bytea[]), CAST(%(seal)s AS bytea[]), CAST(%(status)s AS text[]), "
    "CAST(%(event_ids)s AS json[]), CAST(%(wrapped_key)s AS bytea[]), CAST(%(entities)s AS json[])) "
    "AS g(trail_id, number, context_hash, asked_at, body, ciphertext, seal, status, event_ids, wrapped_key, "
    "entities)), "
    "added AS (INSERT INTO trail (tenant, trail_id, number, context_hash, asked_at, body, ciphertext, seal, "
    "status, event_ids) SELECT %(tenant)s, trail_id, number, context_hash, asked_at, body, ciphertext, seal, "
    "status, ARRAY(SELECT json_array_elements_text(given.event_ids)) FROM given) "
    "INSERT INTO trail_key (tenant, trail_id, wrapped_key, entities) "
    "SELECT %(tenant)s, trail_id, wrapped_key, "
    "ARRAY(SELECT decode(json_array_elements_text(given.entities), 'hex')) FROM given RETURNING trail_id"
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recall:
    """One recall on its way into a transaction: its rows, but for the number and the seal."""

    cited: frozenset[str]
    context: dict[str, Any]
    context_key: bytes
    trail: dict[str, Any]
    trail_key: dict[str, Any]


async def store_recall(db: Database, tenant: str, trail: Trail, pack: ContextPack) -> int:
    """
    Store one recall with its context and return its number; the same context is kept once.

    It is on the disk when this returns. What is asked at the same time is stored in one transaction.

    Raises:
        NotFound: No such tenant.
        ErasedMeanwhile: An event that it cites was erased since it was read; nothing is stored.
        IntegrityFault: Trail and pack are not of one context, or its hash is not that of its form.
        Busy: Too many wait already; nothing was stored.
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

    async def run(batch: Sequence[_Recall]) -> Sequence[int | EchoplaneError]:
        try:
            return await _store(db, keys, batch)
        except ErasedMeanwhile as refusal:
            if len(batch) == 1:
                return [refusal]
            # Each by itself, so that none is refused for what another cites.
            return [one for recall in batch for one in await run([recall])]

    recall = _recall(db, keys, trail, pack)
    size_bytes = len(recall.trail["ciphertext"]) + len(recall.context["ciphertext"])
    stored: int | EchoplaneError = await db.recalls.submit(
        tenant, recall, weight=1, size_bytes=size_bytes, run=run
    )
    if isinstance(stored, EchoplaneError):
        raise stored
    return stored


def _recall(db: Database, keys: TenantKeys, trail: Trail, pack: ContextPack) -> _Recall:
    key, wrapped_key = keys.new_key(trail.trail_id, randomness=db.randomness)
    form_key, wrapped_form_key = keys.new_key(pack.context_hash, randomness=db.randomness)
    # What is shown and what decided, not what was proposed: an index may go on naming what is gone.
    cited = events_cited(_content_of(pack.form))
    body = canonical(_body(trail))
    return _Recall(
        cited=frozenset(cited),
        context={
            "tenant": keys.tenant,
            "context_hash": pack.context_hash,
            "content_hash": pack.content_hash,
            "ciphertext": form_key.encrypt(
                pack.form,
                context=_form_context(keys, pack.context_hash, pack.content_hash),
                randomness=db.randomness,
            ),
        },
        context_key=wrapped_form_key,
        trail={
            "tenant": keys.tenant,
            "trail_id": trail.trail_id,
            "context_hash": trail.context_hash,
            "asked_at": db.clock(),
            "body": body,
            "ciphertext": key.encrypt(
                canonical(secret_of(trail)),
                context=_trail_context(keys, trail.trail_id, body),
                randomness=db.randomness,
            ),
            "status": None if trail.status is None else trail.status.value,
            "event_ids": sorted(cited),
        },
        trail_key={
            "tenant": keys.tenant,
            "trail_id": trail.trail_id,
            "wrapped_key": wrapped_key,
            "entities": sorted(entity_digest(keys, name) for name in names_in(trail)),
        },
    )


async def _store(db: Database, keys: TenantKeys, batch: Sequence[_Recall]) -> list[int]:
    async with db.tenant(keys.tenant) as conn:
        driver: Any = (await conn.get_raw_connection()).driver_connection
        await fetched(driver, _STORE_CONTEXTS, _contexts(keys, batch))
        # Last of what waits for others: the number's row is locked until the commit.
        [[last]] = await fetched(driver, _NEXT_NUMBERS, {"tenant": keys.tenant, "count": len(batch)})
        # From here on no erasure goes on before this is stored: it would not find what cites its events.
        cited = sorted(frozenset[str]().union(*(recall.cited for recall in batch)))
        [[erased]] = await fetched(driver, _LAST_ERASED, {"tenant": keys.tenant, "event_ids": cited})
        if erased is not None:
            raise ErasedMeanwhile(commit=erased)
        numbers = range(last - len(batch) + 1, last + 1)
        await fetched(driver, _STORE_TRAILS, _trails(keys, batch, numbers))
    return list(numbers)


def _contexts(keys: TenantKeys, batch: Sequence[_Recall]) -> dict[str, Any]:
    # Each once, and in one order, so that two processes with the same ones wait for each other in turn.
    contexts = {recall.context["context_hash"]: recall for recall in batch}
    ordered = [contexts[context_hash] for context_hash in sorted(contexts)]
    columns = ("context_hash", "content_hash", "ciphertext")
    return {
        "tenant": keys.tenant,
        "wrapped_key": [recall.context_key for recall in ordered],
        **{name: [recall.context[name] for recall in ordered] for name in columns},
    }


def _trails(keys: TenantKeys, batch: Sequence[_Recall], numbers: Sequence[int]) -> dict[str, Any]:
    rows = [{**recall.trail, "number": number} for recall, number in zip(batch, numbers, strict=True)]
    columns = ("trail_id", "number", "context_hash", "asked_at", "body", "ciphertext", "status")
    return {
        "tenant": keys.tenant,
        "seal": [trail_seal(keys, row) for row in rows],
        "event_ids": [json.dumps(row["event_ids"]) for row in rows],
        "wrapped_key": [recall.trail_key["wrapped_key"] for recall in batch],
        "entities": [json.dumps([one.hex() for one in recall.trail_key["entities"]]) for recall in batch],
        **{name: [row[name] for row in rows] for name in columns},
    }


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
        # Rows that are older than these columns were sealed without them.
        *(
            ()
            if row["event_ids"] is None
            else ((row["status"] or "").encode(), canonical(list(row["event_ids"])))
        ),
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


def names_in(trail: Trail) -> set[str]:
    """Return the names that a recall is about: those of its plan, and of every key that was looked at."""
    return {*trail.proposal.plan.entities, *(key.entity for key in trail.proposal.keys)}


def entity_digest(keys: TenantKeys, name: str) -> bytes:
    """Return what stands for a name beside a trail's key."""
    return keys.digest_of("entity of a trail", name.encode())


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
        "packer": trail.packer,
        "view": _VIEW.dump_python(trail.view, mode="json"),
    }


def secret_of(trail: Trail) -> dict[str, Any]:
    """Return what of a trail is encrypted: everything that anybody worded."""
    return {
        "proposal": _PROPOSAL.dump_python(trail.proposal, mode="json"),
        "question": _QUESTION.dump_python(trail.question, mode="json"),
        "reading": _READING.dump_python(trail.reading, mode="json"),
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
        status=None if row["status"] is None else AnswerStatus(row["status"]),
        reading=_READING.validate_json(canonical(secret.get("reading"))),
        packer=body.get("packer", PACKER_UNSAID),
    )


def _trail_context(keys: TenantKeys, trail_id: str, body: bytes) -> bytes:
    return framed(b"echoplane/trail/1", keys.tenant.encode(), trail_id.encode(), body)


def _form_context(keys: TenantKeys, context_hash: str, content_hash: str) -> bytes:
    return framed(b"echoplane/context/1", keys.tenant.encode(), context_hash.encode(), content_hash.encode())
