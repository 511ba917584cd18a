"""
Open cells of one line while commits are folded: net effect per commit, each cell closed once.

After a commit the open cells of a line are exactly its segments: a cell lives on where an equal
segment is still there, so the rectangles do not depend on how commits were batched.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from contracts.claims import DERIVED, Claim, ValidityKind
from contracts.events import Stance
from ledger._claims import UNSTATED, canonical
from ledger._decide import Standing, State, value_of
from ledger._entries import Entry, extent_of
from ledger._intervals import FOREVER, Intervals, difference, interval
from ledger._timeline import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A rectangle: a segment known from one commit until another (None while it is open)."""

    cell_id: int | None
    segment: Segment
    known_from: int
    known_to: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """
    What an appended state is decided by where every claim on a line can replace every other.

    All claims so far are states of one rank, by one source (`actor_id`) or by classes whose rule
    is `any` (None). `first` and `latest` are their first covered or doubtful and their last start
    in microseconds; `value` is a keyed digest of the last one's normal form.
    """

    rank: int
    actor_id: str | None
    replaces_any: bool
    first: int
    latest: int
    value: str

    def stored(self) -> bytes:
        """Return it as a column."""
        return canonical([self.rank, self.actor_id, self.replaces_any, self.first, self.latest, self.value])

    @classmethod
    def read(cls, stored: bytes) -> Self:
        """Return it from a column."""
        rank, actor_id, replaces_any, first, latest, value = json.loads(stored)
        return cls(
            rank=rank,
            actor_id=actor_id,
            replaces_any=replaces_any,
            first=first,
            latest=latest,
            value=value,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """
    A claim about to be appended to a line, with what the contract says of its source there.

    `may_end_value` says that the line is about one value, which an end may name.
    """

    claim: Claim
    rank: int
    replaces_any: bool
    value: str
    may_end_value: bool


@dataclass(slots=True, kw_only=True, eq=False)
class Line:
    """
    One line and its open cells in memory.

    `whole` says that every open cell is here; else only the last. `blank` says that no claim was
    ever on it. `closed` are stored cells that this fold closed, by id; `passed` cells that began
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

    def load(self, cells: Iterable[Cell]) -> None:
        """Take in stored open cells, save those that this fold closed or already has."""
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
        assert self.whole
        self.blank = False
        old = self._touching(start, end)
        outer = [replace(one, end=start) for one in old if one.start < start < one.end]
        outer += [one for one in old if one.end == start or one.start == end]
        outer += [replace(one, start=end) for one in old if one.start < end < one.end]
        wanted: list[Segment] = []
        for one in sorted([*outer, *segments], key=_start):
            last = wanted[-1] if wanted else None
            if last is not None and (last.end, last.state, last.claims) == (one.start, one.state, one.claims):
                wanted[-1] = replace(last, end=one.end)
            else:
                wanted.append(one)
        kept = set(wanted)
        for one in old:
            if one not in kept:
                self._close(one, commit)
        for one in wanted:
            if one not in self.cells:
                self._open(one, commit)

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

    def append(self, incoming: Incoming, commit: int) -> bool:
        """
        Take in a claim by the tail alone; return False, having changed nothing, where that cannot be.

        Source: it is what `judge` comes to where every claim is comparable with every other: the
        latest by (start, position) stands.
        """
        if not _is_plain(incoming):
            return False
        start, _, earliest = extent_of(incoming.claim.validity)
        if self.tail is None:
            if not self.blank:
                return False
            self._begin(incoming, start, earliest, commit)
            return True
        tail = self.tail
        if not _is_comparable(tail, incoming) or earliest < tail.first:
            return False
        last = self._ordered[-1]
        repeats = tail.value == incoming.value
        if start < tail.latest and not (repeats and start >= last.start):
            return False
        if not repeats:
            self._close(last, commit)
            if last.start < start:
                ended = Segment(start=last.start, end=start, state=last.state, claims=last.claims)
                self._open(ended, commit)
            self._open(_segment(incoming, start, FOREVER), commit)
        self.tail = Tail(
            rank=tail.rank,
            actor_id=tail.actor_id if tail.actor_id == incoming.claim.source.actor_id else None,
            replaces_any=tail.replaces_any and incoming.replaces_any,
            first=tail.first,
            latest=max(tail.latest, start),
            value=incoming.value,
        )
        return True

    def _begin(self, incoming: Incoming, start: int, earliest: int, commit: int) -> None:
        if earliest < start:
            doubt = Segment(start=earliest, end=start, state=State.UNDETERMINED.value, claims=())
            self._open(doubt, commit)
        self._open(_segment(incoming, start, FOREVER), commit)
        self.blank = False
        self.tail = Tail(
            rank=incoming.rank,
            actor_id=incoming.claim.source.actor_id,
            replaces_any=incoming.replaces_any,
            first=earliest,
            latest=start,
            value=incoming.value,
        )

    def _open(self, segment: Segment, commit: int) -> None:
        # A cell that this same commit closed and opens again was never closed.
        cell = self._just_closed.pop(segment, None) if self._closing == commit else None
        if cell is None:
            cell = Cell(cell_id=None, segment=segment, known_from=commit, known_to=None)
        elif cell.cell_id is not None:
            del self.closed[cell.cell_id]
        elif cell.known_from < commit:
            self.passed.remove(replace(cell, known_to=commit))
        self.cells[segment] = cell
        insort(self._ordered, segment, key=_start)

    def _close(self, segment: Segment, commit: int) -> None:
        if self._closing != commit:
            self._closing, self._just_closed = commit, {}
        cell = self.cells.pop(segment)
        del self._ordered[bisect_left(self._ordered, segment.start, key=_start)]
        self._just_closed[segment] = cell
        if cell.cell_id is not None:
            self.closed[cell.cell_id] = replace(cell, known_to=commit)
        elif cell.known_from < commit:
            self.passed.append(replace(cell, known_to=commit))


class TailBasis:
    """
    What a line's tail is told from, entry by entry; nothing that once ruled a tail out ever goes.

    `value` is the one that the whole line is about, None where it has several.
    """

    def __init__(self, value: str | None) -> None:
        self._value = value
        self._is_plain = True
        self._ranks: set[int] = set()
        self._actors: set[str] = set()
        self._replaces_any = True
        self._last: Entry | None = None
        self._first = FOREVER

    def note(self, entry: Entry, *, is_new: bool) -> None:
        """Take in an entry, or that it left somewhere."""
        self._is_plain = self._is_plain and not (
            entry.withdrawn
            or entry.inputs
            or entry.is_derived
            or entry.erased_in is not None
            or entry.kind != ValidityKind.SINCE
            or (entry.is_end and entry.normal not in {None, self._value})
        )
        if not self._is_plain or not is_new:
            return
        self._ranks.add(entry.rank)
        self._actors.add(entry.actor_id)
        self._replaces_any = self._replaces_any and entry.replaces_any
        self._first = min(self._first, entry.earliest)
        if self._last is None or self._last.order < entry.order:
            self._last = entry

    def tail(self, digest: Callable[[str], str], *, has_window: bool) -> Tail | None:
        """Return the tail, None where the line has none."""
        if not self._is_plain or self._last is None or len(self._ranks) > 1:
            return None
        # Within a window two sources cannot replace each other, whatever the rule.
        replaces_any = self._replaces_any and not has_window
        if len(self._actors) > 1 and not replaces_any:
            return None
        return Tail(
            rank=self._last.rank,
            actor_id=self._last.actor_id if len(self._actors) == 1 else None,
            replaces_any=replaces_any,
            first=self._first,
            latest=self._last.start,
            value=digest(value_of(self._last)),
        )


def tail_of(
    line: Iterable[Standing], digest: Callable[[str], str], *, value: str | None, has_window: bool
) -> Tail | None:
    """Return the tail of a line from all of its standings; `value` as in `TailBasis`."""
    basis = TailBasis(value)
    for standing in line:
        basis.note(standing.entry, is_new=True)
    return basis.tail(digest, has_window=has_window)


def _start(segment: Segment) -> int:
    return segment.start


def _end(segment: Segment) -> int:
    return segment.end


def _is_plain(incoming: Incoming) -> bool:
    """Return whether the claim is a state that acts on nothing and was derived from nothing."""
    claim = incoming.claim
    return (
        claim.stance in {Stance.ASSERT, Stance.END}
        and (claim.stance == Stance.ASSERT or claim.value is None or incoming.may_end_value)
        and claim.validity.kind == ValidityKind.SINCE
        and claim.validity != UNSTATED
        and not claim.inputs
        and claim.source.actor_class != DERIVED
    )


def _is_comparable(tail: Tail, incoming: Incoming) -> bool:
    if tail.rank != incoming.rank:
        return False
    if tail.actor_id == incoming.claim.source.actor_id:
        return True
    return tail.replaces_any and incoming.replaces_any


def _segment(incoming: Incoming, start: int, end: int) -> Segment:
    ended = incoming.claim.stance == Stance.END
    return Segment(
        start=start,
        end=end,
        state=(State.ENDED if ended else State.VALUE).value,
        claims=(incoming.claim.claim_id,),
    )
