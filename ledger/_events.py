"""
An event as stored: a canonical header in clear, a payload encrypted, and one hash over both.

The header says what an erased event may still say: its id, kind and time. Everything a caller
wrote is in the payload, under the event's own data key and bound to tenant and header.
"""

from __future__ import annotations

import functools
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from contracts.errors import IntegrityFault
from contracts.events import ErasedEvent, Event, EventDraft, Kind
from contracts.records import record
from contracts.times import (
    KnownAt,
    Precision,
    Term,
    format_instant,
    instant_form,
    parse_instant,
    parse_term,
)
from ledger._canonical import canonical, parse
from ledger._drafts import draft_of, resolved
from ledger._hashes import event_hash
from ledger._keys import EventKey, Randomness, TenantKeys, framed
from ledger._versions import EVENT_VERSION, is_version, lifted

_BACKFILLED: Final = b'{"backfilled":true,'
# Names of a canonical object are in order, so this one comes first; the append function looks for it too.

_VERSION: Final = b',"version":'
_VERSIONS: Final = {b"%d}" % version: version for version in range(1, EVENT_VERSION + 1)}
"""How a header ends, by version."""

ID_RANDOM_BYTES: Final = 26
"""What one id takes: a byte for each digit, of which eight make the same one."""
_DIGITS: Final = b"0123456789abcdefghjkmnpqrstvwxyz"
_DIGIT_OF_BYTE: Final = bytes(_DIGITS[byte % len(_DIGITS)] for byte in range(256))


# Not frozen, and nobody changes it: a frozen one takes three times as long to make, for each event.
@dataclass(slots=True, kw_only=True)
class SealedEvent:
    """The bytes of one event, ready to append."""

    event_id: str
    kind: Kind
    header: bytes
    ciphertext: bytes
    wrapped_key: bytes
    hash: bytes


@record
class StoredEvent:
    """One row of the log with its wrapped data key, None where that was destroyed, and what erased it."""

    event_id: str
    position: int
    commit: int
    recorded_at: datetime
    kind: str
    header: bytes
    ciphertext: bytes
    hash: bytes
    wrapped_key: bytes | None
    erased_by: str | None


def new_id(prefix: str, randomness: Randomness) -> str:
    """Return an id that says nothing but what kind of thing it names, such as `ev_3k…`."""
    return f"{prefix}_{randomness(ID_RANDOM_BYTES).translate(_DIGIT_OF_BYTE).decode()}"


def seal_event(
    keys: TenantKeys,
    *,
    event_id: str,
    draft: EventDraft,
    draft_bytes: bytes,
    references: dict[str, str],
    sent_at: datetime | None,
    backfilled: bool,
    randomness: Randomness,
) -> SealedEvent:
    """
    Encrypt and hash one event.

    Args:
        keys: The tenant's.
        event_id: A new one.
        draft: What the caller sent.
        draft_bytes: The same as canonical JSON.
        references: Event id by `source_event_id`, for the targets that name one.
        sent_at: By the clock of whoever sent it, if he said so.
        backfilled: Whether the clock of its append is stated.
        randomness: Where its data key comes from.
    """
    header_bytes = header_of(event_id, draft, backfilled=backfilled, version=EVENT_VERSION)
    # The draft is canonical already; joined by hand, it is not written a second time.
    named = canonical(references) if references else b"{}"
    sent = b"null" if sent_at is None else canonical(format_instant(sent_at))
    payload = b'{"draft":' + draft_bytes + b',"references":' + named + b',"sent_at":' + sent + b"}"
    wrapped_key, ciphertext = keys.encrypt_under_new(
        event_id, payload, context=_context(keys.tenant, header_bytes), randomness=randomness
    )
    return SealedEvent(
        event_id=event_id,
        kind=draft.kind,
        header=header_bytes,
        ciphertext=ciphertext,
        wrapped_key=wrapped_key,
        hash=event_hash(header_bytes, ciphertext),
    )


def header_of(event_id: str, draft: EventDraft, *, backfilled: bool, version: int) -> bytes:
    """Return the canonical header of an event: nothing in it that a caller worded."""
    # Names in order, and no text that would have to be escaped: joined by hand, it is canonical.
    observed = ""
    if draft.observed_at is not None:
        at, precision = instant_form(draft.observed_at, field="observed_at")
        observed = f'"observed":{{"at":"{at}","precision":"{precision}"}},'
    rest = f'"id":"{event_id}","kind":"{draft.kind}",{observed}"version":{version}}}'
    return (_BACKFILLED if backfilled else b"{") + rest.encode()


def open_event(keys: TenantKeys, stored: StoredEvent) -> Event | ErasedEvent:
    """
    Check, decrypt and read one event.

    Raises:
        IntegrityFault: A byte of it was changed, or its key belongs to another event.
    """
    what = f"event {stored.event_id}"
    if not hmac.compare_digest(event_hash(stored.header, stored.ciphertext), stored.hash):
        raise IntegrityFault(what=f"the hash of {what}")
    version = _version_in(stored, what=what)
    recorded_at = KnownAt(stored.recorded_at.astimezone(UTC))
    if stored.wrapped_key is None:
        return ErasedEvent(
            event_id=stored.event_id,
            position=stored.position,
            commit=stored.commit,
            recorded_at=recorded_at,
            observed=_observed_term(parse(stored.header).get("observed")),
            kind=Kind(stored.kind),
            backfilled=is_backfilled(stored.header),
            erased_by=stored.erased_by,
        )
    stored_payload = open_payload(keys, stored, keys.open_key(stored.event_id, stored.wrapped_key))
    payload = lifted(version, stored_payload)
    draft = _draft(resolved(payload["draft"], payload["references"]), what=what)
    return Event(
        event_id=stored.event_id,
        position=stored.position,
        commit=stored.commit,
        recorded_at=recorded_at,
        observed=None if draft.observed_at is None else parse_term(draft.observed_at, field="observed_at"),
        backfilled=is_backfilled(stored.header),
        sent_at=None if payload["sent_at"] is None else parse_instant(payload["sent_at"], field="sent_at"),
        draft=draft,
    )


def _version_in(stored: StoredEvent, *, what: str) -> int:
    """Return the version that a header states, once it is the one of its row."""
    begun, _, end = stored.header.rpartition(_VERSION)
    if begun.startswith(f'{{"id":"{stored.event_id}","kind":"{stored.kind}"'.encode()) and end in _VERSIONS:
        # As nearly all are written, and nothing else in it is asked for.
        return _VERSIONS[end]
    header = parse(stored.header)
    if (header["id"], header["kind"]) != (stored.event_id, stored.kind):
        raise IntegrityFault(what=f"the header of {what}")
    version = header["version"]
    if not is_version(version):
        raise IntegrityFault(what=f"the version of {what}")
    return int(version)


def is_backfilled(header: bytes) -> bool:
    """Return whether a header says that the clock of its append was stated: what the hash covers tells."""
    return header.startswith(_BACKFILLED)


def open_payload(keys: TenantKeys, stored: StoredEvent, key: EventKey) -> dict[str, Any]:
    """
    Decrypt an event's payload as it was written: `draft`, as the caller sent it, `references` and more.

    Raises:
        IntegrityFault: A byte of it or of its header was changed.
    """
    plain = key.decrypt(
        stored.ciphertext,
        context=_context(keys.tenant, stored.header),
        what=f"the payload of event {stored.event_id}",
    )
    payload: dict[str, Any] = parse(plain)
    return payload


def _draft(form: dict[str, Any], *, what: str) -> EventDraft:
    try:
        return draft_of(form)
    except (LookupError, TypeError, ValueError):
        # Without the words of the error: they quote the content.
        raise IntegrityFault(what=f"the draft of {what}") from None


def _context(tenant: str, header: bytes) -> bytes:
    return _context_begun(tenant) + framed(header)


@functools.lru_cache(maxsize=64)
def _context_begun(tenant: str) -> bytes:
    return framed(b"echoplane/payload/1", tenant.encode())


def _observed_term(form: dict[str, str] | None) -> Term | None:
    if form is None:
        return None
    return parse_term(form["at"], field="observed_at").with_precision(Precision(form["precision"]))
