"""When a claim holds: terms and defaults turned into instants (SEMANTICS: "Time", "Events and claims")."""

from __future__ import annotations

from datetime import datetime, timedelta

from contracts.claims import Validity, ValidityKind
from contracts.events import Stance, ValidDraft
from contracts.times import Term
from ledger._claims import UNSTATED

_ALL_TIME = Validity(kind=ValidityKind.SPAN, start=None, end=None, earliest=None, timeless=False)


def validity_of(
    valid: ValidDraft | None,
    *,
    stance: Stance,
    default_kind: ValidityKind,
    observed: Term | None,
    recorded_at: datetime,
) -> Validity:
    """
    Return when a claim of this stance holds.

    A correction that states none carries `UNSTATED`; a retraction, settlement or dispute that
    states none means all time.

    Raises:
        BadRequest: A time cannot be read; the draft's own validator refused such already.
    """
    if valid is None:
        if stance == Stance.CORRECT:
            return UNSTATED
        if stance in {Stance.RETRACT, Stance.SETTLE, Stance.DISPUTE}:
            return _ALL_TIME
        return default_validity(
            default_kind, observed_at=None if observed is None else observed.first, recorded_at=recorded_at
        )
    offset_minutes = None if observed is None else observed.offset_minutes
    term = valid.term(offset_minutes=offset_minutes)
    if term is None:
        return _exact(ValidityKind.SPAN, *valid.bounds(offset_minutes=offset_minutes))
    if valid.at is not None:
        return _exact(ValidityKind.AT, term.first, term.after)
    return _since(term, recorded_at if observed is None else min(observed.first, recorded_at))


def default_validity(kind: ValidityKind, *, observed_at: datetime | None, recorded_at: datetime) -> Validity:
    """
    Return the validity of a claim that states none, of the kind its relation's contract names.

    It starts at the earlier of the two clocks: a source whose clock runs ahead must not hide what
    it says until that date comes.
    """
    start = recorded_at if observed_at is None else min(observed_at, recorded_at)
    end = start + timedelta(microseconds=1) if kind == ValidityKind.AT else None
    timeless = observed_at is None
    return Validity(kind=kind, start=start, end=end, earliest=None if timeless else start, timeless=timeless)


def _since(term: Term, latest: datetime) -> Validity:
    # A coarse start covers, and is ordered, from the end of its precision on, but not after the
    # moment it was said: else "moved in 2023" would lose to "I live in Lyon", said in March 2023.
    start = max(term.first, min(term.after, latest)) if term.is_coarse else term.first
    return Validity(kind=ValidityKind.SINCE, start=start, end=None, earliest=term.first, timeless=False)


def _exact(kind: ValidityKind, start: datetime | None, end: datetime | None) -> Validity:
    return Validity(kind=kind, start=start, end=end, earliest=start, timeless=False)
