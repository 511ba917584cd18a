"""
A line as it stands, kept so that one more claim is judged only where it can make a difference.

It decides nothing: it finds the instants at which something may have changed, and for each the few
claims that `judge` comes to the same verdict from as from all that cover it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain as joined
from itertools import pairwise
from typing import Final, TypeAlias

from contracts.claims import ValidityKind
from ledger import _mixed as mixed
from ledger import _windowed as windowed
from ledger._chains import Chain, Coverage, Pieces
from ledger._decide import Standing, State, judge, value_of
from ledger._entries import Entry
from ledger._intervals import FOREVER, NEVER, Intervals, difference, union
from ledger._tails import Tail, TailBasis
from ledger._timeline import Segment, claims_of_cell

Open: TypeAlias = Callable[[int, int], Intervals]
"""Returns where nothing is decided within an interval: there a doubt makes a difference."""
_Group: TypeAlias = tuple[int, str]
"""Rank, and source; `_FREE` for all whose rule is `any`."""
_FREE: Final = ""


@dataclass(slots=True, kw_only=True)
class _Rank:
    """Which rules the claims of a rank ever had, and the sources of those whose rule is `any`."""

    has_same: bool = False
    any_actors: set[str] = field(default_factory=set)

    @property
    def is_mixed(self) -> bool:
        """Return whether some replace anyone and others only themselves."""
        return bool(self.any_actors) and self.has_same

    def hangs_on_window(self, window_us: int) -> bool:
        """Return whether it counts how far apart claims of two sources start."""
        return window_us > 0 and (self.is_mixed or len(self.any_actors) > 1)


class LiveLine:
    """
    Standings of one line, and where they changed since `changed` was last asked.

    `value` is the normal form that the whole line is about, None where it has several. `has_left`
    says that not everything that was ever on it is erased.
    """

    def __init__(self, *, window_us: int, value: str | None) -> None:
        self.standings: dict[int, Standing] = {}
        self._window_us = window_us
        self._value = value
        self._has_foreign_ends = False
        self._has_erased = False
        self._ranks: dict[int, _Rank] = {}
        self._chains: dict[int, dict[str, Chain]] = defaultdict(lambda: defaultdict(Chain))
        self._free_of: dict[int, dict[str, Chain]] = defaultdict(lambda: defaultdict(Chain))
        self._boxes: dict[_Group, Pieces[Entry]] = defaultdict(Pieces)
        self._doubts: Pieces[Entry] = Pieces()
        self._doubted = Coverage()
        self._gone = Coverage()
        self._regions: list[tuple[int, int]] = []
        self._basis = TailBasis(value, has_window=window_us > 0)
        self.has_left = False

    def put(self, standing: Standing, *, is_open: Open) -> None:
        """Take in an entry, or where it now covers."""
        entry = standing.entry
        old = self.standings.get(id(entry))
        self.standings[id(entry)] = standing
        self._basis.note(entry, is_new=old is None)
        if old is None:
            self._note_rules(entry)
            for start, end in standing.gone:
                self._regions += self._gone.missing(start, end)
        before = () if old is None else old.cover
        if before != standing.cover or old is None:
            self._move(entry, before, standing.cover)
        for start, end in standing.gone:
            self._gone.add(start, end)
        self._move_doubt(entry, () if old is None else old.doubt, standing.doubt, is_open)

    def changed(self) -> Intervals:
        """Return where something may have changed, and begin anew."""
        found = union(tuple(self._regions))
        self._regions = []
        return tuple((start, end) for start, end in found if start < end)

    def segments(self, start: int, end: int) -> list[Segment]:
        """Return what stands within `[start, end)`, neighbours joined."""
        segments: list[Segment] = []
        for from_, to, state, claims in self._decided(start, end):
            last = segments[-1] if segments else None
            if last is not None and (last.end, last.state, last.claims) == (from_, state, claims):
                segments[-1] = Segment(start=last.start, end=to, state=state, claims=claims)
            else:
                segments.append(Segment(start=from_, end=to, state=state, claims=claims))
        return segments

    def tail(self, digest: Callable[[str], str]) -> Tail | None:
        """Return what the next claim can be decided by without these; None where it cannot be."""
        chains = {rank: list(own.values()) for rank, own in self._chains.items()}
        return self._basis.tail(chains, digest)

    # --- where a claim makes a difference ---------------------------------------------------

    def _note_rules(self, entry: Entry) -> None:
        if entry.is_end and entry.normal not in {None, self._value}:
            self._has_foreign_ends = True
        if entry.erased_in is None:
            self.has_left = True
        else:
            self._has_erased = True
        rank = self._ranks.setdefault(entry.rank, _Rank())
        if entry.replaces_any:
            rank.any_actors.add(entry.actor_id)
        else:
            rank.has_same = True

    def _move(self, entry: Entry, before: Intervals, after: Intervals) -> None:
        group = _group_of(entry)
        chain = self._chains[group[0]][group[1]]
        state = ((entry.start, FOREVER),) if entry.kind == ValidityKind.SINCE else None
        was_state, is_state = before == state, after == state
        if was_state:
            chain.remove(entry)
            if self._is_free_of_many(entry):
                self._free_of[entry.rank][entry.actor_id].remove(entry)
        else:
            for start, end in before:
                self._boxes[group].remove(start, end, entry)
        if is_state:
            chain.add(entry)
            if self._is_free_of_many(entry):
                self._free_of[entry.rank][entry.actor_id].add(entry)
        else:
            for start, end in after:
                self._boxes[group].add(start, end, entry)
        if (is_state and not before) or (was_state and not after):
            self._regions += self._reach(entry, chain, group)
        else:
            self._regions += difference(before, after)
            self._regions += difference(after, before)

    def _reach(self, entry: Entry, chain: Chain, group: _Group) -> Iterator[tuple[int, int]]:
        """Yield where a state makes a difference by being there or not, everything else being equal."""
        if not self._is_known_by_few() or self._has_erased:
            # Also a value that stands already is carried by what is left alone.
            yield entry.start, FOREVER
            return
        rank, alone = group[0], len(self._ranks) == 1
        boxes = [self._boxes[group]]
        if self._ranks[rank].is_mixed:
            boxes = [found for (of, _), found in self._boxes.items() if of == rank]
        if self._ranks[rank].hangs_on_window(self._window_us):
            far = windowed.reach(entry, self._sources(rank), window_us=self._window_us) if alone else FOREVER
            yield entry.start, far
        elif self._ranks[rank].is_mixed:
            free, own = self._free_and_own(rank)
            yield entry.start, mixed.reach(entry, chain, free, own) if alone else FOREVER
        else:
            yield entry.start, chain.reach(entry, alone=alone)
            if not alone and not chain.has_before(entry):
                # A higher claim of the same value is carried by the first of all that say the same.
                yield entry.start, FOREVER
        for start, end, _ in joined.from_iterable(found.overlapping(entry.start, FOREVER) for found in boxes):
            yield max(start, entry.start), end

    def _is_known_by_few(self) -> bool:
        """Return whether few of a rank's states decide an instant that no interval of theirs covers."""
        return not self._has_foreign_ends and not (self._has_erased and len(self._ranks) > 1)

    def _is_free_of_many(self, entry: Entry) -> bool:
        """Return whether its source's states are kept apart too, though its rule is `any`."""
        return self._window_us > 0 and entry.replaces_any

    def _sources(self, rank: int) -> windowed.Sources:
        chains = self._chains[rank]
        own = {name: chain for name, chain in chains.items() if name != _FREE}
        return windowed.Sources(free=chains[_FREE], own=own, free_of=self._free_of[rank])

    def _free_and_own(self, rank: int) -> tuple[Chain, list[Chain]]:
        chains = self._chains[rank]
        return chains[_FREE], [chain for name, chain in chains.items() if name != _FREE]

    def _move_doubt(self, entry: Entry, before: Intervals, after: Intervals, is_open: Open) -> None:
        if before == after:
            return
        for start, end in before:
            self._doubts.remove(start, end, entry)
        for start, end in after:
            self._doubts.add(start, end, entry)
        for start, end in difference(after, before):
            for from_, to in tuple(self._doubted.missing(start, end)):
                self._regions += is_open(from_, to)
            self._doubted.add(start, end)
        left = difference(before, after)
        if left:
            for start, end in left:
                self._regions += is_open(start, end)
            self._doubted = Coverage()
            for start, end, _ in self._doubts.overlapping(NEVER, FOREVER):
                self._doubted.add(start, end)

    # --- what stands there ------------------------------------------------------------------

    def _decided(self, start: int, end: int) -> Iterator[tuple[int, int, str, tuple[str, ...]]]:
        boxes = [
            (max(from_, start), min(to, end), entry)
            for own in self._boxes.values()
            for from_, to, entry in own.overlapping(start, end)
        ]
        edges = {start, end}
        for chains in self._chains.values():
            for chain in chains.values():
                edges.update(chain.starts(start, end))
        for pieces in (self._gone.within(start, end), self._doubted.within(start, end)):
            edges.update(edge for piece in pieces for edge in piece)
        begin: dict[int, list[Entry]] = defaultdict(list)
        stop: dict[int, list[Entry]] = defaultdict(list)
        for from_, to, entry in boxes:
            edges |= {from_, to}
            begin[from_].append(entry)
            stop[to].append(entry)
        ordered = sorted(edges)
        here: dict[int, Entry] = {}
        for at, until in pairwise(ordered):
            for entry in stop[at]:
                del here[id(entry)]
            for entry in begin[at]:
                here[id(entry)] = entry
            present = [*here.values(), *self._states(at, here.values())]
            if present:
                verdict = judge(present, window_us=self._window_us)
                yield at, until, verdict.state.value, claims_of_cell(verdict)
            elif self._gone.holds(at):
                yield at, until, State.WITHDRAWN.value, ()
            elif self._doubted.holds(at):
                yield at, until, State.UNDETERMINED.value, ()

    def _states(self, at: int, boxes: Iterable[Entry]) -> list[Entry]:
        """Return the states that decide an instant, beside the boxes that cover it."""
        groups = {_group_of(entry) for entry in boxes}
        alone = len(self._ranks) == 1
        values: dict[int, set[str]] = defaultdict(set)
        if not alone:
            for entry in boxes:
                values[entry.rank].add(value_of(entry))
        found: list[Entry] = []
        higher: set[str] = set()
        for rank in sorted(self._ranks):
            told = None if alone else higher
            own = self._of_rank(rank, at, {name for of, name in groups if of == rank}, told)
            if not alone:
                higher |= values[rank] | {value_of(entry) for entry in own}
            found += own
        return found

    def _of_rank(self, rank: int, at: int, covered: set[str], values: Iterable[str] | None) -> list[Entry]:
        """Return the states of a rank that decide an instant; of `covered` groups an interval covers it."""
        chains = self._chains[rank]
        by_few = self._is_known_by_few()
        if by_few and not covered and self._ranks[rank].hangs_on_window(self._window_us):
            return windowed.kernel(self._sources(rank), at, values, window_us=self._window_us)
        if by_few and self._ranks[rank].is_mixed and not covered:
            return mixed.kernel(*self._free_and_own(rank), at, values)
        whole = set(chains) if self._ranks[rank].is_mixed or not by_few else covered
        found: list[Entry] = []
        for name, chain in chains.items():
            found += chain.present(at) if name in whole else chain.kernel(at, values)
        return found


def timeline(line: Sequence[Standing], *, window_us: int) -> list[Segment]:
    """Return the segments of a line over all valid time, where it has anything, in order."""
    live = LiveLine(window_us=window_us, value=None)
    for standing in line:
        live.put(standing, is_open=_nowhere)
    return live.segments(NEVER, FOREVER)


def tail_of(
    line: Iterable[Standing], digest: Callable[[str], str], *, value: str | None, window_us: int
) -> Tail | None:
    """Return the tail of a line from all of its standings; `value` as in `LiveLine`."""
    live = LiveLine(window_us=window_us, value=value)
    for standing in line:
        live.put(standing, is_open=_nowhere)
    return live.tail(digest)


def _nowhere(start: int, end: int) -> Intervals:  # noqa: ARG001 — nothing is asked of what it leaves
    return ()


def _group_of(entry: Entry) -> _Group:
    return entry.rank, _FREE if entry.replaces_any else entry.actor_id
