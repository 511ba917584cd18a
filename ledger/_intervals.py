"""
Sets of valid time: sorted, disjoint, half-open intervals of whole microseconds since 1970.

Open bounds are `NEVER` and `FOREVER`, farther out than any instant that a term can name, so that
one comparison orders every bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, TypeAlias

from ledger._claims import instant_of, micros

NEVER: Final = -(2**62)
FOREVER: Final = 2**62

Intervals: TypeAlias = tuple[tuple[int, int], ...]

EMPTY: Final[Intervals] = ()
ALWAYS: Final[Intervals] = ((NEVER, FOREVER),)


def lower(instant: datetime | None) -> int:
    """Return the lower bound; None is open."""
    return NEVER if instant is None else micros(instant)


def upper(instant: datetime | None) -> int:
    """Return the upper bound; None is open."""
    return FOREVER if instant is None else micros(instant)


def bound(value: int) -> datetime | None:
    """Return the instant of a bound; None where it is open."""
    return None if value in {NEVER, FOREVER} else instant_of(value)


def interval(start: int, end: int) -> Intervals:
    """Return `[start, end)`, or the empty set where that holds nothing."""
    return ((start, end),) if start < end else EMPTY


def covers(intervals: Intervals, at: int) -> bool:
    """Return whether the instant lies in the set."""
    return any(start <= at < end for start, end in intervals)


def union(*sets: Intervals) -> Intervals:
    """Return what lies in any of the sets, adjoining intervals joined."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(piece for intervals in sets for piece in intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


def intersection(left: Intervals, right: Intervals) -> Intervals:
    """Return what lies in both sets."""
    if left == ALWAYS:
        return right
    if right == ALWAYS:
        return left
    pieces = (
        (max(start, other_start), min(end, other_end))
        for start, end in left
        for other_start, other_end in right
    )
    return tuple(sorted((start, end) for start, end in pieces if start < end))


def difference(left: Intervals, right: Intervals) -> Intervals:
    """Return what lies in `left` and not in `right`."""
    if not right or not left:
        return left
    return intersection(left, complement(right))


def complement(intervals: Intervals) -> Intervals:
    """Return all time that is not in the set."""
    gaps: list[tuple[int, int]] = []
    at = NEVER
    for start, end in intervals:
        if at < start:
            gaps.append((at, start))
        at = end
    if at < FOREVER:
        gaps.append((at, FOREVER))
    return tuple(gaps)


def bounds(sets: Iterable[Intervals]) -> set[int]:
    """Return every bound that occurs in the sets, the open ones apart."""
    found = {edge for intervals in sets for piece in intervals for edge in piece}
    return found - {NEVER, FOREVER}
