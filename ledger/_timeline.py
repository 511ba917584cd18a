"""
A line over all valid time, as known at one cut: segments with what stands there.

A segment is what a cell holds. Neighbours with the same state and the same claims are one segment,
so a line's segments are one canonical list, however it was arrived at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ledger._decide import Standing, State, Verdict, verdict_at
from ledger._entries import Entry
from ledger._intervals import FOREVER, NEVER, Intervals, bounds, union


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Segment:
    """`[start, end)` in microseconds, and what stands there: claim ids as hex, one a value."""

    start: int
    end: int
    state: str
    claims: tuple[str, ...]


def timeline(
    line: Sequence[Standing], *, window_us: int, start: int = NEVER, end: int = FOREVER
) -> list[Segment]:
    """Return the segments of a line within `[start, end)`, where it has anything, in order."""
    segments: list[Segment] = []
    for from_, to, verdict in verdicts(line, window_us=window_us, start=start, end=end):
        if verdict.state == State.ABSENT:
            continue
        claims = claims_of_cell(verdict)
        last = segments[-1] if segments else None
        if last is not None and (last.end, last.state, last.claims) == (from_, verdict.state.value, claims):
            segments[-1] = Segment(start=last.start, end=to, state=last.state, claims=claims)
        else:
            segments.append(Segment(start=from_, end=to, state=verdict.state.value, claims=claims))
    return segments


def claims_of_cell(verdict: Verdict) -> tuple[str, ...]:
    """Return the claims that a cell names: one for each value, by value."""
    return tuple(side.representative.claim.claim_id for side in verdict.sides)


def verdicts(
    line: Sequence[Standing], *, window_us: int, start: int = NEVER, end: int = FOREVER
) -> list[tuple[int, int, Verdict]]:
    """Return what the line has on each elementary interval within `[start, end)`."""
    edges = bounds(piece for standing in line for piece in (standing.cover, standing.gone, standing.doubt))
    inner = sorted(edge for edge in edges if start < edge < end)
    points = [start, *inner, end]
    return [(from_, to, verdict_at(line, from_, window_us=window_us)) for from_, to in pairwise(points)]


def carried_by(entry: Entry, line: Sequence[Standing], *, window_us: int) -> Intervals:
    """Return where the entry carries what the line resolves to (for an end: that it ended)."""
    pieces: list[tuple[int, int]] = []
    for from_, to, verdict in verdicts(line, window_us=window_us):
        if verdict.state in {State.VALUE, State.ENDED} and entry in verdict.sides[0].carriers:
            pieces.append((from_, to))
    return union(tuple(pieces))
