"""
The stretches in which a key had a value: how long they were, when they ended, what came next to them. Pure.

A stretch ends when somebody said that it does, or that something else began. Where that was only told
to be so already, it has ended at some time before, and none is said. What may have been in between (a
coarse start that something else hides, a time in dispute, what was erased) is withheld.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import combinations
from typing import Any, Final

from contracts.claims import Claim
from contracts.histories import Rectangle
from contracts.relations import Cardinality
from contracts.times import MICROSECOND, format_instant
from contracts.values import with_unit
from realize._arithmetic import elapsed
from realize._found import Derivation, Derived, Found, alike, may_mean, missing, says, unclear
from realize._held import agreed, check_states, stated_start
from realize._task import Task

NOT_OF_KIND: Final = "not_one_valued"
"""Why nothing is derived where a question for all values is of a relation of many: they are a list."""
STRETCHES_MAX: Final = 64
"""Stretches of one key that a value is worked out from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stay:
    """One stretch of a value, as long as it is unbroken; None is an open bound."""

    value: Any
    part: str
    start: datetime | None
    end: datetime | None
    claims: tuple[Claim, ...]


def held_total(task: Task, found: Sequence[Found]) -> Derivation:
    """Return how long a value held, all its stretches together; in the past tense, only what has ended."""
    (one,) = found
    at = one.resolution.view.valid_at
    least = most = 0
    groups: list[tuple[Claim, ...]] = []
    stays = _named(one, task)
    if any(_overlap(stay, other) for stay, other in combinations(stays, 2)):
        # "French" and "french": of a key of many values two lines, and not more time than one.
        raise unclear("several_times")
    for stay in stays:
        if task.past and _is_open(stay, at):
            # It holds still: how long it did is not over.
            raise unclear("not_over")
        begun, ended = _begun(stay, at), _ended(one, stay, at)
        least += _counted(begun.last, ended.earliest, task.unit)
        most += _counted(begun.earliest, ended.last, task.unit)
        groups += [begun.claims, ended.claims]
    if task.unit not in {None, "days"} and len(stays) > 1:
        # What is left of each, short of a whole one, may add up.
        most += len(stays) - 1
    shown: Any = least if least == most else {"at_least": least, "at_most": most}
    if task.unit is None:
        shown = {"days": least} if least == most else {"at_least": {"days": least}, "at_most": {"days": most}}
    return Derived(value=shown, groups=_lines(groups))


def held_until(task: Task, found: Sequence[Found]) -> Derivation:
    """Return when the one stretch of a value ended; of a coarse time, its two ends."""
    (one,) = found
    at = one.resolution.view.valid_at
    stay, *more = _named(one, task)
    if more:
        raise unclear("several_times")
    if _is_open(stay, at):
        raise unclear("not_over")
    ended = _ended(one, stay, at)
    value: Any = format_instant(ended.earliest)
    if ended.earliest < ended.latest:
        value = {"earliest": value, "latest": format_instant(ended.latest)}
    return Derived(value=value, groups=_lines([stay.claims[:1], ended.claims]))


def held_ever(task: Task, found: Sequence[Found]) -> Derivation:
    """Return yes of a value that was ever told to hold by now and is not taken back; no is never said."""
    (one,) = found
    at, words = one.resolution.view.valid_at, _words(task)
    for piece in _pieces(one, at):
        for claim in piece.claims if piece.state == "value" else ():
            if says(claim.value, words):
                return Derived(value=True, groups=((claim,),))
    raise unclear("not_the_value")


def held_beside(task: Task, found: Sequence[Found]) -> Derivation:
    """Return the value that came next before or after the one that is named, or that stands."""
    (one,) = found
    if one.resolution.contract.cardinality != Cardinality.ONE:
        raise unclear("operation_not_typed")
    at = one.resolution.view.valid_at
    stays = _all(one, at)
    if task.words is None:
        chosen = [stay for stay in stays if _is_open(stay, at)]
    else:
        chosen = [stay for stay in stays if says(stay.value, _words(task))]
        _check_others(stays, _words(task))
    if len(chosen) != 1:
        raise unclear("several_times" if chosen else "not_the_value")
    place = stays.index(chosen[0]) + (-1 if task.first else 1)
    if not 0 <= place < len(stays):
        raise missing("never_known", chosen[0].claims[:1])
    beside = stays[place]
    value = with_unit(beside.value, one.resolution.contract)
    return Derived(value=value, groups=_lines([beside.claims[:1], chosen[0].claims[:1]]))


def held_values(task: Task, found: Sequence[Found]) -> Derivation:
    """Return every value that a key of one value had by now, in the order of valid time, each once."""
    (one,) = found
    if one.resolution.contract.cardinality != Cardinality.ONE:
        raise unclear(NOT_OF_KIND)
    stays = _all(one, one.resolution.view.valid_at)
    if not stays:
        raise missing("never_known")
    once: list[Any] = []
    for stay in stays:
        if not any(alike(one, value, stay.value) for value in once):
            once.append(stay.value)
    shown = [with_unit(value, one.resolution.contract) for value in once]
    return Derived(
        value=len(shown) if task.number else shown, groups=_lines(stay.claims[:1] for stay in stays)
    )


# --- stretches -----------------------------------------------------------------------------------


def _words(task: Task) -> list[str]:
    return [] if task.words is None else task.words.split()


def _named(found: Found, task: Task) -> list[_Stay]:
    stays = _all(found, found.resolution.view.valid_at)
    words = _words(task)
    named = [stay for stay in stays if says(stay.value, words)]
    if not named:
        raise unclear("not_the_value")
    _check_others(stays, words)
    return named


def _check_others(stays: Sequence[_Stay], words: Sequence[str]) -> None:
    """Withhold where another value shares a word with the one that is named: "Rome, Italy" may be meant."""
    if any(may_mean(stay.value, words) for stay in stays if not says(stay.value, words)):
        raise unclear("not_the_value")


def _all(found: Found, at: datetime) -> list[_Stay]:
    """Return all stretches by now, in order; withhold where one may be hidden."""
    if found.resolution.contract.cardinality == Cardinality.OCCURRENCE:
        raise unclear("operation_not_typed")
    if found.erased_from is not None:
        raise missing("erased")
    pieces = list(_pieces(found, at))
    check_states({piece.state for piece in pieces if not _is_before(piece, pieces)})
    _check_hidden(found)
    stays: list[_Stay] = []
    for piece in pieces:
        if piece.state != "value":
            continue
        stay = _Stay(
            value=piece.claims[0].value,
            part=piece.part,
            start=piece.valid_from,
            end=piece.valid_to,
            claims=piece.claims,
        )
        last = next((one for one in reversed(stays) if one.part == piece.part), None)
        if last is not None and last.end == stay.start and alike(found, last.value, stay.value):
            # More was told of what held already.
            stay = replace(stay, start=last.start, claims=(*last.claims, *stay.claims))
            stays.remove(last)
        stays.append(stay)
    if len(stays) > STRETCHES_MAX:
        raise unclear("not_all_listed")
    return stays


def _pieces(found: Found, at: datetime) -> Iterator[Rectangle]:
    """Yield what is known at the view of each stretch that has begun by its instant, in order."""
    now = [piece for piece in found.history.rectangles if piece.known_to is None]
    begun = [piece for piece in now if piece.valid_from is None or piece.valid_from <= at]
    yield from sorted(begun, key=lambda piece: (piece.valid_from is not None, piece.valid_from or at))


def _is_before(piece: Rectangle, pieces: Sequence[Rectangle]) -> bool:
    """Say whether nothing is sure only because what follows was told with a coarse start."""
    following = (one for one in pieces if one.part == piece.part and one.valid_from == piece.valid_to)
    starts = [
        claim.validity.earliest
        for one in following
        if one.state in {"value", "ended"}
        for claim in one.claims
    ]
    return piece.state == "undetermined" and any(
        earliest is not None and (piece.valid_from is None or earliest <= piece.valid_from)
        for earliest in starts
    )


def _check_hidden(found: Found) -> None:
    """Withhold where what was told with a coarse start stands nowhere: it may have been in between."""
    standing = {
        claim.claim_id
        for piece in found.history.rectangles
        if piece.known_to is None
        for claim in piece.claims
    }
    for piece in found.history.rectangles:
        for claim in piece.claims:
            validity = claim.validity
            is_coarse = validity.earliest is not None and validity.earliest != validity.start
            if claim.claim_id not in standing and (is_coarse or validity.timeless):
                raise unclear("time_or_scope_not_resolved")


def _is_open(stay: _Stay, at: datetime) -> bool:
    return stay.end is None or at < stay.end


def _overlap(stay: _Stay, other: _Stay) -> bool:
    begun = [one.start for one in (stay, other) if one.start is not None]
    ended = [one.end for one in (stay, other) if one.end is not None]
    return not begun or not ended or max(begun) < min(ended)


# --- their ends ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edge:
    """The first and the last instant at which a stretch can have begun, or ended, and who says so."""

    earliest: datetime
    latest: datetime
    claims: tuple[Claim, ...]

    @property
    def last(self) -> datetime:
        """Up to `latest`, and not at it, unless it is exact."""
        return max(self.earliest, self.latest - MICROSECOND)


def _begun(stay: _Stay, at: datetime) -> _Edge:
    if stay.start is None:
        raise unclear("start_not_told")
    until = at if stay.end is None else min(at, stay.end)
    spans = [
        (*stated, claim)
        for claim in stay.claims
        if (stated := stated_start(claim)) is not None and stay.start <= stated[1] <= until
    ]
    return _edge(spans, stay.start, "start_not_told")


def _ended(found: Found, stay: _Stay, at: datetime) -> _Edge:
    if stay.end is None or at < stay.end:
        return _Edge(earliest=at, latest=at, claims=())
    own = [(stay.end, stay.end, claim) for claim in stay.claims if claim.validity.end == stay.end]
    following = [
        piece
        for piece in found.history.rectangles
        if piece.known_to is None and piece.part == stay.part and piece.valid_from == stay.end
    ]
    own += [
        (*stated, claim)
        for piece in following
        for claim in piece.claims
        if (stated := stated_start(claim)) is not None and stated[1] == stay.end
    ]
    return _edge(own, stay.end, "end_not_told")


def _edge(spans: Sequence[tuple[datetime, datetime, Claim]], edge: datetime, reason: str) -> _Edge:
    earliest, latest = agreed(spans, edge, reason)
    return _Edge(earliest=earliest, latest=latest, claims=tuple(claim for _, _, claim in spans))


def _counted(start: datetime, end: datetime, unit: str | None) -> int:
    found = elapsed(start, max(start, end), unit=unit or "days")
    assert isinstance(found, int)
    return found


def _lines(groups: Any) -> tuple[tuple[Claim, ...], ...]:  # noqa: ANN401 -- any iterable of claims
    once = {claim.claim_id: claim for group in groups for claim in group}
    return tuple((claim,) for claim in once.values())
