"""
Since when a value holds, who told it, and what follows from dates that are values. Pure.

A state begins when somebody said that it does. Where it was only told to be so, it has begun at some
time before, and none is said. A coarse time ("in 2023") gives the two ends of what it can mean.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Any

from contracts.claims import Claim, ValidityKind
from contracts.histories import Rectangle
from contracts.relations import Cardinality
from contracts.resolutions import Resolved, ResolvedSet
from contracts.times import MICROSECOND, format_instant
from realize._arithmetic import elapsed
from realize._asking import AGE
from realize._days import Days, days_of
from realize._found import Derivation, Derived, Found, missing, number_in, says, standing_of, unclear
from realize._task import Task


def held_since(task: Task, found: Sequence[Found]) -> Derivation:
    """Return when the value that is named began to hold; of a coarse time, the earliest and the latest."""
    (one,) = found
    earliest, latest, claims = _start(one, _named(task))
    value: Any = format_instant(earliest)
    if earliest < latest:
        value = {"earliest": value, "latest": format_instant(latest)}
    return Derived(value=value, groups=tuple((claim,) for claim in claims))


def held_for(task: Task, found: Sequence[Found]) -> Derivation:
    """Return how long the value that is named has held by now."""
    (one,) = found
    earliest, latest, claims = _start(one, _named(task))
    at = one.resolution.view.valid_at
    # Up to `latest`, and not at it, unless it is exact.
    last = max(earliest, latest - MICROSECOND)
    value = _between(elapsed(last, at, unit=task.unit), elapsed(earliest, at, unit=task.unit))
    return Derived(value=value, groups=tuple((claim,) for claim in claims))


def first_told(task: Task, found: Sequence[Found]) -> Derivation:
    """Return when it was first known that the value that is named is what holds now."""
    (one,) = found
    words, at = _named(task), one.resolution.view.valid_at
    standing_on(one, words)
    told = [piece for piece in one.history.rectangles if _holds(piece, words)]
    now = [piece for piece in told if _covers(piece, at)]
    first = min(told, key=lambda piece: piece.known_from, default=None)
    if first is None or not now or first.known_from < min(piece.known_from for piece in now):
        # It was so before, ended, and is so again: which of the two is meant cannot be told.
        raise unclear("several_times")
    if one.erased_from is not None and one.erased_from <= first.known_from:
        # What was told before may have been the same.
        raise missing("erased")
    return Derived(value=format_instant(first.known_from_at), groups=(first.claims,))


def who_said(task: Task, found: Sequence[Found]) -> Derivation:
    """Return whose word a value is: the one that stands, or that is named."""
    (one,) = found
    standing = standing_of(one) if task.words is None else standing_on(one, _named(task))
    ordered = sorted(standing.claims, key=lambda claim: claim.position)
    sources = list(dict.fromkeys(claim.source.actor_id for claim in ordered))
    own = {source: [claim for claim in ordered if claim.source.actor_id == source] for source in sources}
    # Of a long history not every claim that says the same once more is listed.
    value = {"among": sources} if one.resolution.truncated else sources
    return Derived(value=value, groups=tuple(tuple(claims) for claims in own.values()))


def age(task: Task, found: Sequence[Found]) -> Derivation:
    """Return the whole years from a day of birth to the day that is asked about."""
    (one,) = found
    view = one.resolution.view.valid_at.date()
    on = Days(first=view, last=view) if task.on is None else _within(task.on.start, task.on.end)
    if one.subject.relation == AGE:
        return _age_since(one, on)
    born, claims = _days(one)
    if on.first < born.last:
        raise unclear("time_or_scope_not_resolved")
    return Derived(value=_apart(born, on, unit="years"), groups=(claims,))


def _age_since(found: Found, on: Days) -> Derivation:
    """Return the years of an age that was told on some day: on another, what has been added since."""
    standing = standing_of(found)
    told = max(standing.claims, key=lambda claim: claim.position)
    number, start = number_in(found, standing.value), told.validity.start
    if number.denominator != 1 or number < 0 or found.resolution.contract.unit not in {None, "year", "years"}:
        raise unclear("not_a_number")
    if start is None or told.validity.earliest != start or on.first < start.date():
        raise unclear("time_or_scope_not_resolved")
    day = Days(first=start.date(), last=start.date())
    least, most = _counted(day.last, on.first, "years"), _counted(day.first, on.last, "years")
    value = int(number) if on == day else {"at_least": int(number) + least, "at_most": int(number) + most + 1}
    return Derived(value=value, groups=(tuple(standing.claims),))


def apart(task: Task, found: Sequence[Found]) -> Derivation:
    """Return the time between two days that are values."""
    (one, own), (other, others) = sorted(map(_days, found), key=lambda days: (days[0].first, days[0].last))
    if other.first < one.last:
        raise unclear("time_or_scope_not_resolved")
    return Derived(value=_apart(one, other, unit=task.unit), groups=(own, others))


def standing_on(found: Found, words: Sequence[str]) -> Resolved:
    """Return the value that stands and is named by some words; withhold where it is not that, exactly."""
    match found.resolution.resolution:
        case ResolvedSet(members=members, disputed=disputed) as several:
            if found.resolution.contract.cardinality == Cardinality.OCCURRENCE:
                raise unclear("operation_not_typed")
            if disputed or several.members_count != len(members):
                raise unclear("not_all_listed")
            named = [member for member in members if says(member.value, words)]
        case _:
            named = [one for one in [standing_of(found)] if says(one.value, words)]
    if len(named) != 1:
        raise unclear("not_the_value")
    return named[0]


def _named(task: Task) -> list[str]:
    return [] if task.words is None else task.words.split()


def _start(found: Found, words: Sequence[str]) -> tuple[datetime, datetime, list[Claim]]:
    """Return the first and the last instant at which a value can have begun, and who says so."""
    standing = standing_on(found, words)
    if found.resolution.truncated:
        raise unclear("not_all_listed")
    pieces = list(_unbroken(found, words))
    begin = pieces[-1].valid_from if pieces else None
    told = {claim.claim_id: claim for piece in pieces for claim in piece.claims}
    told |= {claim.claim_id: claim for claim in standing.claims}
    at = found.resolution.view.valid_at
    spans = [
        (*stated, claim)
        for claim in sorted(told.values(), key=lambda claim: claim.position)
        if (stated := stated_start(claim)) is not None and begin is not None and begin <= stated[1] <= at
    ]
    return *agreed(spans, begin, "start_not_told"), [claim for _, _, claim in spans]


def agreed(
    spans: Sequence[tuple[datetime, datetime, Claim]], edge: datetime | None, reason: str
) -> tuple[datetime, datetime]:
    """
    Return the first and the last instant that all who tell of an edge leave to it.

    Raises:
        Cannot: For this reason, nobody tells of just this edge; or they do, and not alike.
    """
    if not any(latest == edge for _, latest, _ in spans):
        raise unclear(reason)
    earliest, latest = max(span[0] for span in spans), min(span[1] for span in spans)
    if earliest > latest:
        raise unclear("several_times")
    return earliest, latest


def check_states(states: Collection[str]) -> None:
    """
    Refuse to read anything off what is disputed, erased or not sure.

    Raises:
        Cannot: One of the states is.
    """
    if "conflict" in states:
        raise unclear("history_disputed")
    if "erased" in states:
        raise missing("erased")
    if "undetermined" in states:
        # One that was told without a time may have been at any before.
        raise unclear("time_or_scope_not_resolved")


def stated_start(claim: Claim) -> tuple[datetime, datetime] | None:
    """Return when a claim tells that its value began; None where it was only so when it was told."""
    validity = claim.validity
    if validity.kind == ValidityKind.AT or validity.start is None or validity.earliest is None:
        return None
    heard = claim.recorded_at if claim.observed_at is None else min(claim.observed_at, claim.recorded_at)
    # What was told without a start begins when it was heard; an interval that ends was told whole.
    is_told = validity.end is not None or validity.earliest < heard or validity.start > heard
    return (validity.earliest, validity.start) if is_told else None


def _unbroken(found: Found, words: Sequence[str]) -> Iterator[Rectangle]:
    """Yield the stretches, as known at the view, in which a value held up to its instant: the last first."""
    own = [piece for piece in found.history.rectangles if piece.known_to is None and _holds(piece, words)]
    piece = next((one for one in own if _covers(one, found.resolution.view.valid_at)), None)
    while piece is not None:
        yield piece
        begin, part = piece.valid_from, piece.part
        piece = next(
            (one for one in own if begin is not None and (one.valid_to, one.part) == (begin, part)), None
        )


def _holds(piece: Rectangle, words: Sequence[str]) -> bool:
    return piece.state == "value" and any(says(claim.value, words) for claim in piece.claims)


def _covers(piece: Rectangle, at: datetime) -> bool:
    return (piece.valid_from is None or piece.valid_from <= at) and (
        piece.valid_to is None or at < piece.valid_to
    )


def _days(found: Found) -> tuple[Days, tuple[Claim, ...]]:
    standing = standing_of(found)
    days = days_of(standing.value)
    if days is None:
        raise unclear("not_a_time")
    return days, tuple(standing.claims)


def _within(start: datetime, end: datetime) -> Days:
    return Days(first=start.date(), last=(end - MICROSECOND).date())


def _apart(one: Days, other: Days, *, unit: str | None) -> Any:  # noqa: ANN401 -- an answer is any JSON
    return _between(_counted(one.last, other.first, unit), _counted(one.first, other.last, unit))


def _counted(start: date, end: date, unit: str | None) -> Any:  # noqa: ANN401 -- a number, or days
    midnight = datetime.min.time()
    return elapsed(datetime.combine(start, midnight, UTC), datetime.combine(end, midnight, UTC), unit=unit)


def _between(least: Any, most: Any) -> Any:  # noqa: ANN401 -- an answer is any JSON
    return least if least == most else {"at_least": least, "at_most": most}
