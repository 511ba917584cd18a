"""
Open cells of one line while commits are folded: net effect per commit, each cell closed once.

After a commit the open cells of a line are exactly its segments: a cell lives on where an equal
segment is still there, so the rectangles do not depend on how commits were batched.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from contracts.records import record
from ledger._chains import Coverage
from ledger._decide import State
from ledger._intervals import FOREVER, Intervals, difference, interval
from ledger._tails import Tail
from ledger._timeline import Segment


@record
class Cell:
    """A rectangle: a segment known from one commit until another (None while it is open)."""

    cell_id: int | None
    segment: Segment
    known_from: int
    known_to: int | None

    def until(self, commit: int) -> Cell:
        """Return it closed by a commit."""
        # Twice as fast as the library's `replace`, and each state that comes closes one.
        return Cell(cell_id=self.cell_id, segment=self.segment, known_from=self.known_from, known_to=commit)


class NotReadError(Exception):
    """Cells or claims that a decision needs were not read: read all of the key."""


@dataclass(slots=True, kw_only=True, eq=False)
class Line:
    """
    One line and its open cells in memory.

    `whole` says that every open cell is here; else those that it knows of. `blank` says that no claim
    was ever on it. `closed` are stored cells that this fold closed, by id; `passed` cells that began
    and ended within this fold.
    """

    entity: str
    relation: str
    part: str
    line_id: int | None
    tail: Tail | None
    stored_tail: Tail | None
    cells: dict[Segment, Cell]
    whole: bool
    blank: bool
    closed: dict[int, Cell] = field(default_factory=dict)
    passed: list[Cell] = field(default_factory=list)
    _ordered: list[Segment] = field(default_factory=list)
    _closing: int = 0
    _just_closed: dict[Segment, Cell] = field(default_factory=dict)
    _known: Coverage = field(default_factory=Coverage)

    def load(self, cells: Iterable[Cell], *, start: int, end: int) -> None:
        """Take in all stored open cells that touch `[start, end)`, save what this fold closed or has."""
        self._known.add(start, end)
        for cell in cells:
            if cell.cell_id not in self.closed and cell.segment not in self.cells:
                self.cells[cell.segment] = cell
                insort(self._ordered, cell.segment, key=_start)

    def become(self, segments: Iterable[Segment], commit: int) -> None:
        """Make the open cells equal to the segments, from this commit on."""
        assert self.whole
        self.blank = False
        wanted = set(segments)
        for segment in [segment for segment in self.cells if segment not in wanted]:
            self._close(segment, commit)
        for segment in sorted(wanted - self.cells.keys()):
            self._open(segment, commit)

    def splice(self, start: int, end: int, segments: Sequence[Segment], commit: int) -> None:
        """Make the open cells within `[start, end)` equal to the segments, from this commit on."""
        assert self.knows(start, end)
        self.blank = False
        if self._follow(start, segments, commit):
            return
        old = self._touching(start, end)
        outer = [one._replace(end=start) for one in old if one.start < start < one.end]
        outer += [one for one in old if one.end == start or one.start == end]
        outer += [one._replace(start=end) for one in old if one.start < end < one.end]
        wanted: list[Segment] = []
        for one in sorted([*outer, *segments], key=_start):
            last = wanted[-1] if wanted else None
            if last is not None and (last.end, last.state, last.claims) == (one.start, one.state, one.claims):
                wanted[-1] = last._replace(end=one.end)
            else:
                wanted.append(one)
        kept = set(wanted)
        for one in old:
            if one not in kept:
                self._close(one, commit)
        for one in wanted:
            if one not in self.cells:
                self._open(one, commit)

    def _follow(self, start: int, segments: Sequence[Segment], commit: int) -> bool:
        """Let what begins within the last segment, and never ends, take its place, as most does."""
        last = self.last
        if last is None or len(segments) != 1 or segments[0].start != start:
            # Nothing is left there, or nothing before what is.
            return False
        (new,) = segments
        if not last.start < start < last.end == new.end == FOREVER:
            return False
        if (last.state, last.claims) == (new.state, new.claims):
            return False
        self._close(last, commit)
        self._open(last._replace(end=new.start), commit)
        self._open(new, commit)
        return True

    def knows(self, start: int, end: int) -> bool:
        """Return whether all open cells that touch `[start, end)` are here."""
        return self.whole or self._known.covers(start, end)

    @property
    def last(self) -> Segment | None:
        """The last open segment, None where there is none."""
        return self._ordered[-1] if self._ordered else None

    def pieces(self, start: int, end: int) -> Iterator[tuple[int, int, Segment | None]]:
        """
        Yield what is open within `[start, end)` in order, each piece with its segment: None is a gap.

        Raises:
            NotReadError: The cells from there on were not read.
        """
        at = start
        place = bisect_right(self._ordered, start, key=_end)
        while at < end:
            here = self._ordered[place] if place < len(self._ordered) else None
            covers = here is not None and here.start <= at
            if here is None:
                until = end
            elif covers:
                until = min(here.end, end)
                place += 1
            else:
                until = min(here.start, end)
            if not self.knows(at, until):
                raise NotReadError
            yield at, until, here if covers else None
            at = until

    def undecided(self, start: int, end: int) -> Intervals:
        """Return where within `[start, end)` no claim covers, by the open cells."""
        decided = tuple(
            (one.start, one.end)
            for one in self._touching(start, end)
            if one.state != State.UNDETERMINED.value
        )
        return difference(interval(start, end), decided)

    def _touching(self, start: int, end: int) -> list[Segment]:
        """Return the open segments that overlap or adjoin an interval, in order."""
        first = bisect_left(self._ordered, start, key=_end)
        return self._ordered[first : bisect_right(self._ordered, end, key=_start)]

    def _open(self, segment: Segment, commit: int) -> None:
        # A cell that this same commit closed and opens again was never closed.
        cell = self._just_closed.pop(segment, None) if self._closing == commit else None
        if cell is None:
            cell = Cell(cell_id=None, segment=segment, known_from=commit, known_to=None)
        elif cell.cell_id is not None:
            del self.closed[cell.cell_id]
        elif cell.known_from < commit:
            self.passed.remove(cell.until(commit))
        self.cells[segment] = cell
        last = self.last
        if last is None or last.start < segment.start:
            self._ordered.append(segment)
        else:
            insort(self._ordered, segment, key=_start)

    def _close(self, segment: Segment, commit: int) -> None:
        if self._closing != commit:
            self._closing, self._just_closed = commit, {}
        cell = self.cells.pop(segment)
        if self.last is segment:
            self._ordered.pop()
        else:
            del self._ordered[bisect_left(self._ordered, segment.start, key=_start)]
        self._just_closed[segment] = cell
        if cell.cell_id is not None:
            self.closed[cell.cell_id] = cell.until(commit)
        elif cell.known_from < commit:
            self.passed.append(cell.until(commit))


def _start(segment: Segment) -> int:
    return segment.start


def _end(segment: Segment) -> int:
    return segment.end
