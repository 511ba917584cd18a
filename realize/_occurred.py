"""
The first and the last of what happened, when it was, and what came next to it. Pure.

Which of several was last can be told only where all of them are listed and none of them is in dispute or
erased, and where their times do not overlap: of two trips "in May", neither was the later one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from contracts.claims import SENSOR, Claim
from contracts.errors import BadRequest
from contracts.relations import Cardinality
from contracts.resolutions import Resolved, ResolvedSet
from contracts.times import MICROSECOND, format_instant, parse_term
from contracts.values import with_unit
from realize._found import Derivation, Derived, Found, missing, says, standing_of, unclear
from realize._held import check_states
from realize._scope import words_of
from realize._stays import held_beside
from realize._task import Task

_COARSE: Final = timedelta(days=1)
"""A time of day is exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Happened:
    """One occurrence: what it is of, and the stretch in which it can have been."""

    value: Any
    start: datetime
    end: datetime
    claims: tuple[Claim, ...]


def occurred_when(task: Task, found: Sequence[Found]) -> Derivation:
    """Return when the first or the last of what happened was; of a coarse time, its two ends."""
    (one,) = found
    happened = _happened_on(one)
    if task.words is not None:
        happened = _of_value(happened, task.words.split())
    chosen = _first(happened) if task.first else _last(happened)
    value: Any = format_instant(chosen.start)
    if chosen.end - chosen.start >= _COARSE:
        value = {"earliest": value, "latest": format_instant(chosen.end)}
    return Derived(value=value, groups=(chosen.claims,))


def occurred_what(task: Task, found: Sequence[Found]) -> Derivation:
    """Return what the first or the last of what happened was of."""
    (one,) = found
    happened = _happened_on(one)
    chosen = _first(happened) if task.first else _last(happened)
    return Derived(value=with_unit(chosen.value, one.resolution.contract), groups=(chosen.claims,))


def occurred_beside(task: Task, found: Sequence[Found]) -> Derivation:
    """Return what happened next before or after the one occurrence that is named."""
    (one,) = found
    if one.resolution.contract.cardinality == Cardinality.ONE:
        # "Where did Ann live before Oslo?": of what holds, and does not happen.
        return held_beside(task, found)
    happened = _in_order(_happened_on(one))
    named, *more = _of_value(happened, [] if task.words is None else task.words.split())
    if more:
        raise unclear("several_times")
    beside = happened.index(named) + (-1 if task.first else 1)
    if not 0 <= beside < len(happened):
        raise missing("never_known", named.claims)
    chosen = happened[beside]
    value = with_unit(chosen.value, one.resolution.contract)
    return Derived(value=value, groups=(chosen.claims, named.claims))


def first_of_times(_: Task, found: Sequence[Found]) -> Derivation:
    """Return the earliest of all times that a key had as its value: when a thing was first seen."""
    (one,) = found
    standing_of(one)
    pieces = [piece for piece in one.history.rectangles if piece.known_to is None]
    check_states([piece.state for piece in pieces])
    told = [(claim, claim.value) for piece in pieces if piece.state == "value" for claim in piece.claims]
    try:
        terms = [(parse_term(value, field="value"), value, claim) for claim, value in told]
    except (BadRequest, TypeError):
        raise unclear("not_a_time") from None
    first, value, claim = min(terms, key=lambda term: (term[0].first, term[0].after))
    if any(term.first < first.after and other != value for term, other, _ in terms):
        raise unclear("several_times")
    return Derived(value=value, groups=((claim,),))


def _first(happened: Sequence[_Happened]) -> _Happened:
    chosen = min(happened, key=lambda each: (each.start, each.end))
    if any(other.start < chosen.end for other in happened if other is not chosen):
        raise unclear("several_times")
    return chosen


def _last(happened: Sequence[_Happened]) -> _Happened:
    chosen = max(happened, key=lambda each: (each.end, each.start))
    if any(other.end > chosen.start for other in happened if other is not chosen):
        raise unclear("several_times")
    return chosen


def _in_order(happened: Sequence[_Happened]) -> list[_Happened]:
    """Return occurrences each before the next one; withhold where it cannot be told which that is."""
    ordered = sorted(happened, key=lambda each: (each.start, each.end))
    if any(later.start < each.end for each, later in pairwise(ordered)):
        raise unclear("several_times")
    return ordered


def _happened_on(found: Found) -> list[_Happened]:
    """Return all that happened, or all of it that happened within the time that is named."""
    if found.resolution.contract.cardinality != Cardinality.OCCURRENCE:
        raise unclear("operation_not_typed")
    if found.erased_from is not None:
        # An occurrence that was erased leaves no rectangle, and may have been the one that is asked for.
        raise missing("erased")
    check_states([piece.state for piece in found.history.rectangles if piece.known_to is None])
    match found.resolution.resolution:
        case ResolvedSet(members=members, disputed=disputed) as several:
            if disputed or several.disputed_count:
                raise unclear("history_disputed")
            if several.members_count != len(members):
                raise unclear("not_all_listed")
        case _:
            members = ()
    if not members:
        raise missing("never_known")
    happened, period = [_happened(member) for member in members], found.subject.period
    if period is not None and any(each.start < period.start or period.end < each.end for each in happened):
        # "In 2024" may have been in May, and may not.
        raise unclear("time_or_scope_not_resolved")
    return happened


def _of_value(happened: Sequence[_Happened], words: Sequence[str]) -> list[_Happened]:
    """Return what is of the value that is named; in other words ("Rome, Italy") it may be meant as well."""
    named = [each for each in happened if says(each.value, words)]
    others = [each for each in happened if each not in named]
    if not named or any(words_of(each.value).intersection(words) for each in others):
        raise unclear("not_the_value")
    return named


def _is_as_heard(claim: Claim) -> bool:
    """
    Say whether an occurrence has no time but that at which it was told: it was at some time before.

    What a sensor reports, it reports when it happens.
    """
    validity = claim.validity
    heard = claim.recorded_at if claim.observed_at is None else min(claim.observed_at, claim.recorded_at)
    is_instant = validity.start is not None and validity.end == validity.start + MICROSECOND
    return is_instant and validity.start == heard and claim.source.actor_class != SENSOR


def _happened(member: Resolved) -> _Happened:
    """Return an occurrence with the narrowest time that it was told with."""
    dated = [claim for claim in member.claims if not _is_as_heard(claim)]
    starts = [claim.validity.start for claim in dated if claim.validity.start is not None]
    ends = [claim.validity.end for claim in dated if claim.validity.end is not None]
    if not starts or not ends:
        raise unclear("time_or_scope_not_resolved")
    return _Happened(value=member.value, start=max(starts), end=min(ends), claims=tuple(member.claims))
