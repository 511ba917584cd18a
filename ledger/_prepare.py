"""What can be said about an append before anything is written: bounds, digests, repeats within it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from contracts import limits
from contracts.errors import BadRequest, IdempotencyConflict, LimitExceeded
from contracts.events import AIMED, ClaimDraft, EventDraft, TargetDraft
from ledger._canonical import canonical
from ledger._drafts import draft_bytes, targets_of
from ledger._keys import TenantKeys


# Not frozen, and nobody changes it: a frozen one takes three times as long to make, for each event.
@dataclass(slots=True, kw_only=True)
class PreparedEvent:
    """
    A draft with its canonical bytes and the tenant-keyed digests that its row holds.

    `targets` are all in it, with their paths; `references` and `size_bytes` are those of its claims, with
    what these share of its targets.
    """

    draft: EventDraft
    draft_bytes: bytes
    targets: Sequence[tuple[str, TargetDraft]]
    references: int
    size_bytes: int
    stream: bytes
    source: bytes | None
    correlation: bytes | None
    idempotency: bytes | None
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """
    The different events of an append, and which of them each draft is.

    A batch that says the same thing under one key twice (a file may) holds it once.
    """

    events: tuple[PreparedEvent, ...]
    event_of_draft: tuple[int, ...]


def prepare(keys: TenantKeys, drafts: Sequence[EventDraft]) -> Prepared:
    """
    Check the bounds of an append and compute its digests.

    Raises:
        BadRequest: It holds no event.
        LimitExceeded: Too many events, or too many bytes or references in one of them or all together.
        IdempotencyConflict: One key stands in it twice, for different content.
    """
    if not drafts:
        raise BadRequest(field="events", reason="at least one is needed")
    _bound("APPEND_EVENTS_MAX", limits.APPEND_EVENTS_MAX, len(drafts))
    events: list[PreparedEvent] = []
    known: dict[bytes, int] = {}
    event_of_draft: list[int] = []
    size_bytes = references = 0
    # Of each stream once: mostly all are of one.
    streams = {stream: stream_digest(keys, stream) for stream in {draft.stream for draft in drafts}}
    for draft in drafts:
        event = _prepare_event(keys, draft, streams[draft.stream])
        if event.idempotency is not None and event.idempotency in known:
            first = known[event.idempotency]
            if events[first].content != event.content:
                raise IdempotencyConflict(idempotency_key=key_named(draft))
            event_of_draft.append(first)
            continue
        if event.idempotency is not None:
            known[event.idempotency] = len(events)
        size_bytes += event.size_bytes
        references += event.references
        event_of_draft.append(len(events))
        events.append(event)
    _bound("APPEND_BYTES_MAX", limits.APPEND_BYTES_MAX, size_bytes)
    _bound("APPEND_REFERENCES_MAX", limits.APPEND_REFERENCES_MAX, references)
    return Prepared(events=tuple(events), event_of_draft=tuple(event_of_draft))


def stream_digest(keys: TenantKeys, stream: str) -> bytes:
    """Return what a stream is found by."""
    return keys.digest_of("stream", stream.encode())


def source_digest(keys: TenantKeys, stream: str, source_event_id: str) -> bytes:
    """Return what an event is found by that its source named, within its stream."""
    return keys.digest_of("idempotency", stream.encode(), source_event_id.encode())


def correlation_digest(keys: TenantKeys, correlation: str) -> bytes:
    """Return what events are found by that a caller gave one correlation id."""
    return keys.digest_of("correlation", correlation.encode())


def idempotency_digest(keys: TenantKeys, draft: EventDraft, source: bytes | None) -> bytes | None:
    """Return the digest of a draft's key: of its own, else that of its source's id, else None."""
    if draft.idempotency_key is not None:
        return keys.digest_of("idempotency key", draft.idempotency_key.encode())
    return source


def content_digest(keys: TenantKeys, draft_bytes: bytes) -> bytes:
    """Return what two drafts have in common that say the same."""
    return keys.digest_of("content", draft_bytes)


def key_named(draft: EventDraft) -> str:
    """Return the idempotency key of a draft as its caller knows it."""
    return draft.idempotency_key or draft.source_event_id or ""


def _prepare_event(keys: TenantKeys, draft: EventDraft, stream: bytes) -> PreparedEvent:
    written, targets = draft_bytes(draft), targets_of(draft)
    aimed = [claim for claim in draft.claims if draft.stance_of(claim) in AIMED]
    references, size_bytes = 0, len(written)
    if targets or aimed:
        references = _references(draft, aimed)
        size_bytes += _shared_bytes(aimed, draft)
    _bound("EVENT_REFERENCES_MAX", limits.EVENT_REFERENCES_MAX, references)
    _bound("EVENT_BYTES_MAX", limits.EVENT_BYTES_MAX, size_bytes)
    if len(written) > limits.VALUE_BYTES_MAX:
        # Only an event that is larger than a value may be can hold a value that is too large.
        for value in (*(claim.value for claim in draft.claims), *(target.value for _, target in targets)):
            _bound("VALUE_BYTES_MAX", limits.VALUE_BYTES_MAX, len(canonical(value)))
    named, correlation = draft.source_event_id, draft.correlation
    source = None if named is None else source_digest(keys, draft.stream, named)
    return PreparedEvent(
        draft=draft,
        draft_bytes=written,
        targets=targets,
        references=references,
        size_bytes=size_bytes,
        stream=stream,
        source=source,
        correlation=None if correlation is None else correlation_digest(keys, correlation),
        idempotency=idempotency_digest(keys, draft, source),
        content=content_digest(keys, written),
    )


def _references(draft: EventDraft, aimed: Sequence[ClaimDraft]) -> int:
    """Return how many targets, inputs and winners the claims of an event have, be they its own or shared."""
    own = sum(len(claim.inputs) for claim in draft.claims)
    own += sum(len(draft.targets if claim.targets is None else claim.targets) + 1 for claim in aimed)
    return own or len(draft.targets)


def _shared_bytes(aimed: Sequence[ClaimDraft], draft: EventDraft) -> int:
    """Return the bytes that an event's claims have in common, for each claim but one that has them."""
    shared = 0
    if draft.targets:
        sharing = sum(claim.targets is None for claim in aimed)
        shared += max(sharing - 1, 0) * len(draft_bytes(draft.targets))
    if draft.winner is not None:
        sharing = sum(claim.winner is None for claim in aimed)
        shared += max(sharing - 1, 0) * len(draft_bytes(draft.winner))
    return shared


def _bound(limit: str, allowed: int, given: int) -> None:
    if given > allowed:
        raise LimitExceeded(limit=limit, allowed=allowed, given=given)
