"""
An event as stored: a canonical header in clear, a payload encrypted, and one hash over both.

The header says what an erased event may still say: its id, kind and time. Everything a caller
wrote is in the payload, under the event's own data key and bound to tenant and header.
"""

from __future__ import annotations

import functools
import hmac
import itertools
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from contracts.errors import IntegrityFault
from contracts.events import ErasedEvent, Event, EventDraft, Kind
from contracts.limits import APPEND_EVENTS_MAX
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
_COUNTED_DIGITS: Final = 2
_COUNTED: Final = ["".join(pair) for pair in itertools.product(_DIGITS.decode(), repeat=_COUNTED_DIGITS)]
assert len(_COUNTED) >= APPEND_EVENTS_MAX, "each event of an append has an id of its own"


@record
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


def new_ids(prefix: str, count: int, randomness: Randomness) -> list[str]:
    """
    Return ids that differ in their last digits alone, which count them; all others nobody can guess.

    So the events of one append lie together in every index of ids, where each by itself would have the
    server fetch, change and log a page of its own.
    """
    begun = new_id(prefix, randomness)[:-_COUNTED_DIGITS]
    return [begun + one for one in _COUNTED[:count]]


def seal_events(
    keys: TenantKeys,
    event_ids: Sequence[str],
    drafts: Sequence[tuple[EventDraft, bytes]],
    references: Sequence[Mapping[str, str]],
    *,
    sent_at: datetime | None,
    backfilled: bool,
    randomness: Randomness,
) -> list[SealedEvent]:
    """
    Encrypt and hash the events of one append.

    Args:
        keys: The tenant's.
        event_ids: New ones.
        drafts: What the caller sent, and the same as canonical JSON.
        references: Of each the event ids by `source_event_id`, for the targets that name one.
        sent_at: By the clock of whoever sent them, if he said so.
        backfilled: Whether the clock of their append is stated.
        randomness: Where data keys come from.
    """
    headers = [
        header_of(event_id, draft, backfilled=backfilled, version=EVENT_VERSION)
        for event_id, (draft, _) in zip(event_ids, drafts, strict=True)
    ]
    # Drafts are canonical already; joined by hand, they are not written a second time.
    sent = b"null" if sent_at is None else canonical(format_instant(sent_at))
    end = b',"sent_at":' + sent + b"}"
    payloads = [
        b"".join((b'{"draft":', written, b',"references":', canonical(named) if named else b"{}", end))
        for (_, written), named in zip(drafts, references, strict=True)
    ]
    begun = _context_begun(keys.tenant)
    contexts = [begun + framed(header) for header in headers]
    named = [event_id.encode() for event_id in event_ids]
    secrets, ciphertexts = keys.encrypt_under_new(named, payloads, contexts, randomness=randomness)
    hashes = map(event_hash, headers, ciphertexts)
    columns = zip(event_ids, drafts, headers, ciphertexts, secrets, hashes, strict=True)
    return [
        SealedEvent(
            event_id=event_id,
            kind=draft.kind,
            header=header,
            ciphertext=ciphertext,
            wrapped_key=secret,
            hash=own,
        )
        for event_id, (draft, _), header, ciphertext, secret, own in columns
    ]


def header_of(event_id: str, draft: EventDraft, *, backfilled: bool, version: int) -> bytes:
    """Return the canonical header of an event: nothing in it that a caller worded."""
    # Names in order, and no text that would have to be escaped: joined by hand, it is canonical.
    observed = ""
    if draft.observed_at is not None:
        at, precision = instant_form(draft.observed_at, field="observed_at")
        observed = f'"observed":{{"at":"{at}","precision":"{precision}"}},'
    rest = f'"id":"{event_id}","kind":"{draft.kind}",{observed}"version":{version}}}'
    return (_BACKFILLED if backfilled else b"{") + rest.encode()


def open_event(keys: TenantKeys, stored: StoredEvent, key: EventKey | None = None) -> Event | ErasedEvent:
    """
    Check, decrypt and read one event; `key` is its own, where it was unwrapped already.

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
    key = keys.open_key(stored.event_id, stored.wrapped_key) if key is None else key
    payload = lifted(version, open_payload(keys, stored, key))
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
