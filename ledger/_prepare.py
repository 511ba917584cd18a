"""What can be said about an append before anything is written: bounds, digests, repeats within it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from contracts import limits
from contracts.errors import BadRequest, IdempotencyConflict, LimitExceeded
from contracts.events import AIMED, ClaimDraft, EventDraft, TargetDraft
from contracts.records import record
from ledger._canonical import canonical
from ledger._drafts import draft_bytes, targets_of
from ledger._keys import TenantKeys, framed

_SOURCE: Final = "idempotency"
_OWN: Final = "idempotency key"
_COUNTING_BYTES: Final = 2
_RUN_BYTES: Final = 8
"""Of a digest of 32: what is left cannot be met by chance either."""


@record
class PreparedEvent:
    """A draft with its canonical bytes, its targets with their paths, and the digests that its row holds."""

    draft: EventDraft
    draft_bytes: bytes
    targets: Sequence[tuple[str, TargetDraft]]
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
    written = list(map(draft_bytes, drafts))
    events: list[PreparedEvent] = []
    known: dict[bytes, int] = {}
    event_of_draft: list[int] = []
    size_bytes = references = 0
    # Of each stream once: mostly all are of one.
    streams = {stream: stream_digest(keys, stream) for stream in {draft.stream for draft in drafts}}
    contents = keys.digests_of("content", map(framed, written))
    sources = _key_digests(keys, _SOURCE, map(_source_of, drafts))
    own_keys = _key_digests(keys, _OWN, map(_own_of, drafts))
    columns = zip(drafts, written, contents, sources, own_keys, strict=True)
    for draft, own_bytes, content, source, own_key in columns:
        targets = targets_of(draft)
        own_references, own_size_bytes = _bounded(draft, own_bytes, targets)
        correlation = draft.correlation
        idempotency = source if own_key is None else own_key
        if idempotency is not None:
            first = known.setdefault(idempotency, len(events))
            event_of_draft.append(first)
            if first < len(events):
                if events[first].content != content:
                    raise IdempotencyConflict(idempotency_key=key_named(draft))
                continue
        else:
            event_of_draft.append(len(events))
        size_bytes += own_size_bytes
        references += own_references
        events.append(
            PreparedEvent(
                draft=draft,
                draft_bytes=own_bytes,
                targets=targets,
                stream=streams[draft.stream],
                source=source,
                correlation=None if correlation is None else correlation_digest(keys, correlation),
                idempotency=idempotency,
                content=content,
            )
        )
    _bound("APPEND_BYTES_MAX", limits.APPEND_BYTES_MAX, size_bytes)
    _bound("APPEND_REFERENCES_MAX", limits.APPEND_REFERENCES_MAX, references)
    return Prepared(events=tuple(events), event_of_draft=tuple(event_of_draft))


def stream_digest(keys: TenantKeys, stream: str) -> bytes:
    """Return what a stream is found by."""
    return keys.digest_of("stream", stream.encode())


def source_digest(keys: TenantKeys, stream: str, source_event_id: str) -> bytes:
    """Return what an event is found by that its source named, within its stream."""
    (found,) = _key_digests(keys, _SOURCE, [framed(stream.encode(), source_event_id.encode())])
    assert found is not None
    return found


def correlation_digest(keys: TenantKeys, correlation: str) -> bytes:
    """Return what events are found by that a caller gave one correlation id."""
    return keys.digest_of("correlation", correlation.encode())


def idempotency_digest(keys: TenantKeys, draft: EventDraft, source: bytes | None) -> bytes | None:
    """Return the digest of a draft's key: of its own, else that of its source's id, else None."""
    (own,) = _key_digests(keys, _OWN, [_own_of(draft)])
    return source if own is None else own


def _source_of(draft: EventDraft) -> bytes | None:
    named = draft.source_event_id
    return None if named is None else framed(draft.stream.encode(), named.encode())


def _own_of(draft: EventDraft) -> bytes | None:
    own = draft.idempotency_key
    return None if own is None else framed(own.encode())


def _key_digests(keys: TenantKeys, purpose: str, given: Iterable[bytes | None]) -> list[bytes | None]:
    """
    Return a digest of each key that is given: those that count, as `r-17` and `r-18` do, lie together.

    They begin with a digest of the key without its end, so whoever sends keys in order adds to one page of
    the index where else each would lie on a page of its own. Nobody without the tenant's key learns more
    of them than that.
    """
    texts = list(given)
    whole = iter(keys.digests_of(purpose, [text for text in texts if text is not None]))
    runs: dict[bytes, bytes] = {}
    found: list[bytes | None] = []
    for text in texts:
        if text is None:
            found.append(None)
            continue
        begun = text[:-_COUNTING_BYTES]
        if (run := runs.get(begun)) is None:
            run = runs[begun] = keys.digest_of(f"run of {purpose}", begun)[:_RUN_BYTES]
        found.append(run + next(whole)[_RUN_BYTES:])
    return found


def content_digest(keys: TenantKeys, draft_bytes: bytes) -> bytes:
    """Return what two drafts have in common that say the same."""
    return keys.digest_of("content", draft_bytes)


def key_named(draft: EventDraft) -> str:
    """Return the idempotency key of a draft as its caller knows it."""
    return draft.idempotency_key or draft.source_event_id or ""


def _bounded(
    draft: EventDraft, written: bytes, targets: Sequence[tuple[str, TargetDraft]]
) -> tuple[int, int]:
    """Check the bounds of an event, and return its references and bytes: with what its claims share."""
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
    return references, size_bytes


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
