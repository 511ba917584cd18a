"""When a claim holds: terms and defaults turned into instants (SEMANTICS: "Time", "Events and claims")."""

from __future__ import annotations

from datetime import datetime, timedelta

from contracts.claims import Validity, ValidityKind
from contracts.errors import BadRequest
from contracts.events import Stance, ValidDraft
from contracts.times import Precision, Term, parse_term
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
        BadRequest: The interval is empty or inverted.
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
    if valid.since is not None:
        latest = recorded_at if observed is None else min(observed.first, recorded_at)
        return _since(parse_term(valid.since, field="since", offset_minutes=offset_minutes), latest)
    if valid.at is not None:
        term = parse_term(valid.at, field="at", offset_minutes=offset_minutes)
        if valid.precision is not None:
            term = term.with_precision(Precision(valid.precision))
        return _exact(ValidityKind.AT, term.first, term.after)
    start, end = interval_of(valid.from_, valid.to, offset_minutes=offset_minutes)
    return _exact(ValidityKind.SPAN, start, end)


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


def interval_of(
    from_: str | None, to: str | None, *, offset_minutes: int | None
) -> tuple[datetime | None, datetime | None]:
    """
    Read a half-open interval: each bound is the first instant of its term, None is open.

    Raises:
        BadRequest: It is empty or inverted.
    """
    start = None if from_ is None else parse_term(from_, field="from", offset_minutes=offset_minutes).first
    end = None if to is None else parse_term(to, field="to", offset_minutes=offset_minutes).first
    if start is not None and end is not None and start >= end:
        raise BadRequest(field="valid", reason="the interval is empty or inverted")
    return start, end


def _since(term: Term, latest: datetime) -> Validity:
    # A coarse start covers, and is ordered, from the end of its precision on, but not after the
    # moment it was said: else "moved in 2023" would lose to "I live in Lyon", said in March 2023.
    start = max(term.first, min(term.after, latest)) if term.is_coarse else term.first
    return Validity(kind=ValidityKind.SINCE, start=start, end=None, earliest=term.first, timeless=False)


def _exact(kind: ValidityKind, start: datetime | None, end: datetime | None) -> Validity:
    return Validity(kind=kind, start=start, end=end, earliest=start, timeless=False)
