"""
Open cells of one line while commits are folded: net effect per commit, each cell closed once.

After a commit the open cells of a line are exactly its segments: a cell lives on where an equal
segment is still there, so the rectangles do not depend on how commits were batched.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Self

from contracts.claims import DERIVED, Claim, ValidityKind
from contracts.events import Stance
from ledger._claims import UNSTATED, canonical
from ledger._decide import Standing, State, value_of
from ledger._entries import extent_of
from ledger._intervals import FOREVER
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
    """A claim about to be appended to a line, with what the contract says of its source there."""

    claim: Claim
    rank: int
    replaces_any: bool
    value: str


@dataclass(slots=True, kw_only=True, eq=False)
class Line:
    """
    One line and its open cells in memory.

    `whole` says that every open cell is here; else only the last. `blank` says that no claim was
    ever on it. `closed` are stored cells and
    the commit that closed them; `passed` cells that began and ended within this fold.
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
    closed: list[tuple[int, int]] = field(default_factory=list)
    passed: list[Cell] = field(default_factory=list)

    def become(self, segments: Iterable[Segment], commit: int) -> None:
        """Make the open cells equal to the segments, from this commit on."""
        assert self.whole
        self.blank = False
        wanted = set(segments)
        for segment in [segment for segment in self.cells if segment not in wanted]:
            self._close(segment, commit)
        for segment in sorted(wanted - self.cells.keys()):
            self._open(segment, commit)

    def append(self, incoming: Incoming, commit: int) -> bool:
        """
        Take in a claim by the tail alone; return False, having changed nothing, where that cannot be.

        Source: it is what `judge` comes to where every claim is comparable with every other: the
        latest by (start, position) stands.
        """
        if not _is_plain(incoming.claim):
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
        last = max(self.cells, key=lambda segment: segment.end)
        repeats = tail.value == incoming.value
        if start < tail.latest and not (repeats and start >= last.start):
            return False
        if not repeats:
            self._close(last, commit)
            if last.start < start:
                self._open(replace(last, end=start), commit)
            self._open(_segment(incoming, start, FOREVER), commit)
        actor_id = tail.actor_id if tail.actor_id == incoming.claim.source.actor_id else None
        self.tail = replace(
            tail,
            actor_id=actor_id,
            replaces_any=tail.replaces_any and incoming.replaces_any,
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
        # A stored cell that this same commit closed and opens again was never closed.
        self.cells[segment] = Cell(cell_id=None, segment=segment, known_from=commit, known_to=None)

    def _close(self, segment: Segment, commit: int) -> None:
        cell = self.cells.pop(segment)
        if cell.cell_id is not None:
            self.closed.append((cell.cell_id, commit))
        elif cell.known_from < commit:
            self.passed.append(replace(cell, known_to=commit))


def tail_of(line: Iterable[Standing], digest: Callable[[str], str], *, has_window: bool) -> Tail | None:
    """Return the tail of a line worked out from its claims; None where it has none."""
    entries = [standing.entry for standing in line]
    if not entries or any(
        entry.withdrawn
        or entry.inputs
        or entry.is_derived
        or entry.kind != ValidityKind.SINCE
        or (entry.is_end and entry.normal is not None)
        for entry in entries
    ):
        return None
    ranks = {entry.rank for entry in entries}
    actors = {entry.actor_id for entry in entries}
    # Within a window two sources cannot replace each other, whatever the rule.
    replaces_any = not has_window and all(entry.replaces_any for entry in entries)
    if len(ranks) > 1 or (len(actors) > 1 and not replaces_any):
        return None
    last = max(entries, key=lambda entry: entry.order)
    first = min(entry.earliest for entry in entries)
    return Tail(
        rank=last.rank,
        actor_id=last.actor_id if len(actors) == 1 else None,
        replaces_any=replaces_any,
        first=first,
        latest=last.start,
        value=digest(value_of(last)),
    )


def _is_plain(claim: Claim) -> bool:
    """Return whether the claim is a state that acts on nothing and was derived from nothing."""
    return (
        claim.stance in {Stance.ASSERT, Stance.END}
        and (claim.stance == Stance.ASSERT or claim.value is None)
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
