"""
A line over all valid time, as known at one cut: segments with what stands there.

A segment is what a cell holds. Neighbours with the same state and the same claims are one segment,
so a line's segments are one canonical list, however it was arrived at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ledger._decide import Standing, State, Verdict, judge, judge_as_if, verdict_at
from ledger._entries import Entry
from ledger._intervals import FOREVER, NEVER, Intervals, bounds, union


class Segment(NamedTuple):
    """`[start, end)` in microseconds, and what stands there: claim ids as hex, one a value."""

    start: int
    end: int
    state: str
    claims: tuple[str, ...]


def claims_of_cell(verdict: Verdict) -> tuple[str, ...]:
    """Return the claims that a cell names: one for each value, by value."""
    return tuple(side.representative.claim.claim_id for side in verdict.sides)


def verdicts(
    line: Sequence[Standing],
    *,
    window_us: int,
    start: int = NEVER,
    end: int = FOREVER,
    as_if: bool = False,
) -> list[tuple[int, int, Verdict]]:
    """
    Return what the line has on each elementary interval within `[start, end)`.

    `as_if` says as if nothing were erased.
    """
    decide = judge_as_if if as_if else judge
    begin: dict[int, list[Entry]] = defaultdict(list)
    stop: dict[int, list[Entry]] = defaultdict(list)
    for standing in line:
        for from_, to in standing.cover:
            if to > start:
                begin[max(from_, start)].append(standing.entry)
                stop[to].append(standing.entry)
    edges = bounds(piece for standing in line for piece in (standing.cover, standing.gone, standing.doubt))
    points = [start, *sorted(edge for edge in edges if start < edge < end), end]
    present: dict[int, Entry] = {}
    found: list[tuple[int, int, Verdict]] = []
    verdict = None
    for from_, to in pairwise(points):
        if _step(present, begin[from_], stop[from_]) or verdict is None or not present:
            verdict = (
                decide(list(present.values()), window_us=window_us)
                if present
                else verdict_at(line, from_, window_us=window_us)
            )
        found.append((from_, to, verdict))
    return found


def _step(present: dict[int, Entry], begin: list[Entry], stop: list[Entry]) -> bool:
    """Let entries come and go; return whether any did."""
    for entry in stop:
        present.pop(id(entry), None)
    for entry in begin:
        present[id(entry)] = entry
    return bool(begin or stop)


def carried_by(entry: Entry, line: Sequence[Standing], *, window_us: int) -> Intervals:
    """
    Return where the entry carries what the line resolves to (for an end: that it ended).

    As if nothing were erased: what is derived must not come up because something else was erased.
    """
    pieces: list[tuple[int, int]] = []
    for from_, to, verdict in verdicts(line, window_us=window_us, as_if=True):
        if verdict.state in {State.VALUE, State.ENDED} and entry in verdict.sides[0].carriers:
            pieces.append((from_, to))
    return union(tuple(pieces))
