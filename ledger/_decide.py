"""
What stands on one line of claims at one instant: the steps that decide, and nothing else does.

Source: SEMANTICS, "Resolving one-valued relations". A line is a one-valued key, one value of a
many-valued one, or one occurrence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from contracts.claims import ValidityKind
from ledger._entries import Entry
from ledger._intervals import Intervals, covers
from ledger._rivals import Contest

ENDED: Final = ""
"""In place of a value's normal form (which is JSON, never empty): that nothing holds."""


class State(StrEnum):
    """
    What a line has at an instant; `ABSENT` where no claim covers it or might.

    `ERASED` where what it has is carried by nothing that is left.
    """

    VALUE = "value"
    CONFLICT = "conflict"
    ENDED = "ended"
    ERASED = "erased"
    WITHDRAWN = "withdrawn"
    UNDETERMINED = "undetermined"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Standing:
    """
    An entry on a line: where it covers, where it would but was withdrawn, where it might.

    `cover` already leaves out what was withdrawn and, for a derived claim, what its inputs do not
    bear.
    """

    entry: Entry
    cover: Intervals
    gone: Intervals
    doubt: Intervals


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Side:
    """One value left: what carries it, in the order of places, and those of it that nothing beat."""

    normal: str
    carriers: tuple[Entry, ...]
    standing: tuple[Entry, ...]

    @property
    def latest(self) -> Entry:
        """Return the latest of its claims by (start, position): what a conflict shows of it."""
        return max(self.standing, key=lambda entry: entry.order)

    @property
    def representative(self) -> Entry:
        """
        Return the one claim that a cell names for this value.

        It is the first that still carries the value, so that ten thousand readings that repeat it
        leave the cell as it is: of states any, of intervals those that one source said with the
        bounds of the last.
        """
        spans = [entry for entry in self.standing if entry.kind != ValidityKind.SINCE]
        if spans:
            last = max(spans, key=lambda entry: entry.place)
            return min((entry for entry in self.carriers if _repeats(last, entry)), key=lambda e: e.place)
        states = [entry for entry in self.carriers if entry.kind == ValidityKind.SINCE]
        return min(states, key=lambda entry: entry.order)

    def without_erased(self) -> Side | None:
        """Return the side with those carriers alone that are left; None if there is none."""
        carriers = tuple(entry for entry in self.carriers if entry.erased_in is None)
        standing = tuple(entry for entry in self.standing if entry.erased_in is None)
        return replace(self, carriers=carriers, standing=standing or carriers) if carriers else None


def _repeats(entry: Entry, earlier: Entry) -> bool:
    """Return whether an interval is one that its source said before, in the same place."""
    own, other = (
        (each.kind == ValidityKind.SINCE, each.start, each.end, each.actor_id, each.rank)
        for each in (entry, earlier)
    )
    return own == other


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verdict:
    """What a line has at an instant: the values left (one, or several in conflict), and what left."""

    state: State
    sides: tuple[Side, ...]
    superseded: tuple[Entry, ...]


def verdict_at(line: Sequence[Standing], at: int, *, window_us: int) -> Verdict:
    """Return what the line has at an instant (microseconds)."""
    present = [standing.entry for standing in line if covers(standing.cover, at)]
    if present:
        return judge(present, window_us=window_us)
    if any(covers(standing.gone, at) for standing in line):
        return _nothing(State.WITHDRAWN)
    if any(covers(standing.doubt, at) for standing in line):
        return _nothing(State.UNDETERMINED)
    return _nothing(State.ABSENT)


def judge(present: Sequence[Entry], *, window_us: int) -> Verdict:
    """Decide between the claims that cover one instant. There is at least one."""
    verdict = judge_as_if(present, window_us=window_us)
    return _struck(verdict) if any(entry.erased_in is not None for entry in present) else verdict


def judge_as_if(present: Sequence[Entry], *, window_us: int) -> Verdict:
    """Decide as if nothing were erased."""
    highest = min(entry.rank for entry in present)
    kept = [entry for entry in present if entry.rank == highest]
    kept_values = {value_of(entry) for entry in kept}
    # Leaving for a lower class is leaving to all of the highest that are there.
    to_own = [entry for entry in present if entry.rank != highest and kept_values == {value_of(entry)}]
    left, left_to_own = _contest(kept, window_us)
    to_own += left_to_own
    # An end of another value is not counted, but nothing made it leave.
    remaining = {id(entry) for entry in left}
    left = _without_foreign_ends(left)
    by_value: dict[str, list[Entry]] = defaultdict(list)
    for entry in left:
        by_value[value_of(entry)].append(entry)
    sides = []
    for normal in sorted(by_value):
        carriers = by_value[normal] + [entry for entry in to_own if value_of(entry) == normal]
        sides.append(
            Side(
                normal=normal,
                carriers=tuple(sorted(carriers, key=lambda entry: entry.place)),
                standing=tuple(by_value[normal]),
            )
        )
    carrying = {id(entry) for side in sides for entry in side.carriers}
    superseded = [entry for entry in present if id(entry) not in carrying and id(entry) not in remaining]
    return Verdict(
        state=_state_of(sides),
        sides=tuple(sides),
        superseded=tuple(sorted(superseded, key=lambda entry: entry.place)),
    )


def _state_of(sides: Sequence[Side]) -> State:
    if len(sides) > 1:
        return State.CONFLICT
    if not sides:
        return State.ERASED
    return State.ENDED if sides[0].normal == ENDED else State.VALUE


def _struck(verdict: Verdict) -> Verdict:
    """Strike what is erased, and with it each value that nothing carries which is left."""
    found = (side.without_erased() for side in verdict.sides)
    sides = tuple(side for side in found if side is not None)
    superseded = tuple(entry for entry in verdict.superseded if entry.erased_in is None)
    return Verdict(state=_state_of(sides), sides=sides, superseded=superseded)


def replaced_by_span(entry: Entry, other: Entry) -> bool:
    """Return whether the other is an interval that step 1 lets the entry leave to."""
    return (
        other.kind != ValidityKind.SINCE
        and other.place > entry.place
        and comparable(entry, other, window_us=0)
    )


def value_of(entry: Entry) -> str:
    """Return the value a claim counts for: ENDED for every end."""
    return ENDED if entry.is_end or entry.normal is None else entry.normal


def competes(end: Entry, other: Entry) -> bool:
    """Return whether an end that names a value competes: only with that value and what corrected it."""
    if other.is_end:
        return other.normal is None or other.normal == end.normal
    return end.normal in other.lineage


def comparable(one: Entry, other: Entry, *, window_us: int) -> bool:
    """Return whether the contract lets one replace the other; `window_us` 0 where it plays no part."""
    if one.is_end and one.normal is not None and not competes(one, other):
        return False
    if other.is_end and other.normal is not None and not competes(other, one):
        return False
    if one.actor_id == other.actor_id:
        return True
    if not (one.replaces_any or other.replaces_any):
        return False
    return abs(one.start - other.start) >= window_us


def _nothing(state: State) -> Verdict:
    return Verdict(state=state, sides=(), superseded=())


def _without_foreign_ends(left: list[Entry]) -> list[Entry]:
    """An end that names a value is not counted beside a different one."""
    values = [entry for entry in left if not entry.is_end]
    return [
        entry
        for entry in left
        if not (entry.is_end and entry.normal is not None) or all(competes(entry, value) for value in values)
    ]


def _contest(kept: list[Entry], window_us: int) -> tuple[list[Entry], list[Entry]]:
    """Return what is left of one rank, and what left only to claims of its own value."""
    if len(kept) == 1:
        return kept, []
    groups = None if has_foreign_ends(kept) else _groups(kept, window_us)
    if groups is None:
        return _contest_mixed(kept, window_us)
    left: list[Entry] = []
    to_own: list[Entry] = []
    for group in groups:
        group_left, group_to_own = _contest_group(group)
        left += group_left
        to_own += group_to_own
    return left, to_own


def has_foreign_ends(entries: Sequence[Entry]) -> bool:
    """Return whether an end names a value and does not compete with everything else there."""
    named = {entry.normal for entry in entries if entry.is_end and entry.normal is not None}
    if not named:
        return False
    if len(named) > 1:
        return True
    (normal,) = named
    return any(normal not in entry.lineage for entry in entries if not entry.is_end)


def _groups(kept: list[Entry], window_us: int) -> Iterable[list[Entry]] | None:
    """
    Return the groups within which all are comparable and between which none are, if that is how it is.

    It nearly always is.
    """
    rules = {entry.replaces_any for entry in kept}
    if rules == {True}:
        one_source = len({entry.actor_id for entry in kept}) == 1
        return [kept] if one_source or window_us == 0 else None
    if rules == {False}:
        by_actor: dict[str, list[Entry]] = defaultdict(list)
        for entry in kept:
            by_actor[entry.actor_id].append(entry)
        return by_actor.values()
    return None


def _contest_group(group: list[Entry]) -> tuple[list[Entry], list[Entry]]:
    spans = sorted((entry for entry in group if entry.kind != ValidityKind.SINCE), key=lambda e: e.place)
    to_own: list[Entry] = []
    remaining = group
    if spans:
        last = spans[-1].place
        remaining = [entry for entry in group if entry.place >= last]
        # From this place on, every span has the value of the last: who leaves to those alone carries it.
        foreign = [span.place for span in spans if value_of(span) != value_of(spans[-1])]
        uniform_from = max(foreign, default=(0, 0))
        to_own = [
            entry
            for entry in group
            if uniform_from <= entry.place < last and value_of(entry) == value_of(spans[-1])
        ]
    ordered = sorted(remaining, key=lambda entry: entry.order)
    winner = ordered.pop()
    while ordered and value_of(ordered[-1]) == value_of(winner):
        to_own.append(ordered.pop())
    return [winner], to_own


def _contest_mixed(kept: list[Entry], window_us: int) -> tuple[list[Entry], list[Entry]]:
    spans = [entry for entry in kept if entry.kind != ValidityKind.SINCE]
    left = kept
    to_own: list[Entry] = []
    if spans:
        left, to_own = _leave_to(Contest(spans, value_of, by_place=True, window_us=0), kept)
    left, later_to_own = _leave_to(Contest(left, value_of, by_place=False, window_us=window_us), left)
    return left, to_own + later_to_own


def _leave_to(contest: Contest, entries: list[Entry]) -> tuple[list[Entry], list[Entry]]:
    left: list[Entry] = []
    to_own: list[Entry] = []
    for entry in entries:
        beaters = contest.beaters(entry)
        if beaters is None:
            left.append(entry)
        elif beaters[0] == value_of(entry):
            to_own.append(entry)
    return left, to_own
