"""
What a fold reads of long keys beside the ends of their lines: the cells and states around late claims.

Read at once for all claims of a fold, before any is placed. What the fold itself has said by then stands
beside it in memory.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import Final, TypeAlias

from contracts.claims import Claim, ValidityKind
from contracts.events import Stance
from ledger._cells import Cells
from ledger._claims import state_start
from ledger._decide import ENDED
from ledger._entries import extent_of
from ledger._lines import Line, NotReadError
from ledger._occurrences import WHOLE
from ledger._placing import Said, own_source
from ledger._tails import Incoming
from ledger._values import is_wrong
from ledger._world import Key, Reader

CELLS_MAX: Final = 4
"""Cells beyond a late claim that are read with it."""
STATES_MAX: Final = 16
"""States after a late claim that are looked through for the next one on its line, where a key has several."""
STATES_OF_ONE_MAX: Final = 2
"""The same where it has one: only a value that the relation does not take is passed over."""

Order: TypeAlias = tuple[int, int, int]
"""(start, event, ordinal)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """A claim of the fold that its line's last cell may not be enough for."""

    line: Line
    incoming: Incoming


class Nearby:
    """
    What `read` read, beside the claims of the fold itself.

    `claims` are those by id, `on_key` by each key that they bear on: both grow as it goes on.
    """

    def __init__(
        self,
        reader: Reader,
        cells: Cells,
        *,
        claims: Mapping[str, Claim],
        on_key: Mapping[Key, Sequence[Claim]],
    ) -> None:
        self._reader = reader
        self._cells = cells
        self._said = claims
        self._said_on = on_key
        self._stored: dict[str, Claim] = {}
        self._after: dict[tuple[Key, int], Sequence[Claim]] = {}
        self._own: dict[Key, list[tuple[Order, Claim]]] = defaultdict(list)
        self._sorted_to: dict[Key, int] = {}

    def claim(self, claim_id: str) -> Claim:
        """
        Return a claim that a cell names.

        Raises:
            NotReadError: It was not read.
        """
        found = self._said.get(claim_id) or self._stored.get(claim_id)
        if found is None:
            raise NotReadError
        return found

    def states_after(self, line: Line, start: int, by: Claim) -> Iterator[Claim]:
        """
        Yield the states on the line's key that were said before a claim and begin after an instant.

        Raises:
            NotReadError: What follows was not read.
        """
        key = (line.entity, line.relation)
        stored: Sequence[Claim] = ()
        if line.stored_tail is not None and start < line.stored_tail.latest:
            if (key, start) not in self._after:
                raise NotReadError
            stored = self._after[key, start]
        own = self._sorted(key)
        later = own[bisect_right(own, (start + 1, -1, -1), key=_first) :]
        until = _stored_order(stored[-1]) if len(stored) == _states_max(line) else None
        for order, claim in merge(((_stored_order(one), one) for one in stored), later, key=_first):
            if until is not None and order > until:
                break
            if claim.position < by.position:
                yield claim
        if until is not None:
            raise NotReadError

    def _sorted(self, key: Key) -> list[tuple[Order, Claim]]:
        """Return the fold's own states on a key, in order: few keys are ever asked for them."""
        own, said = self._own[key], self._said_on.get(key, ())
        for claim in islice(said, self._sorted_to.get(key, 0), None):
            start = state_start(claim)
            if start is not None:
                insort(own, (_order(start, claim), claim), key=_first)
        self._sorted_to[key] = len(said)
        return own

    async def read(self, late: Sequence[Late]) -> None:
        """Load the cells around late claims, the states after them, and what those cells name."""
        stretches: list[tuple[Line, int, int]] = []
        after: set[tuple[Key, int, int]] = set()
        among: dict[int, Line] = {}
        for one in late:
            tail, line = one.line.tail, one.line
            assert tail is not None
            start, end, earliest = one.incoming.extent
            first = earliest if earliest < tail.first else start
            if one.incoming.is_state:
                if start < tail.latest:
                    after.add(((line.entity, line.relation), start, _states_max(line)))
                    among[id(line)] = line
                end = start
            else:
                among[id(line)] = line
            if not line.knows(first, end + 1):
                stretches.append((line, first, end))
        await self._read_cells(stretches)
        if after:
            ordered = sorted(after)
            found = await self._reader.states_after(ordered)
            self._after.update(
                ((key, start), states) for (key, start, _), states in zip(ordered, found, strict=True)
            )
        names = {name for line in among.values() for segment in line.cells for name in segment.claims}
        self._stored.update(await self._reader.by_id(names))

    async def _read_cells(self, stretches: Sequence[tuple[Line, int, int]]) -> None:
        if not stretches:
            return
        wanted = [(line.line_id or 0, start, end) for line, start, end in stretches]
        found = await self._cells.cells_around(wanted, more=CELLS_MAX)
        for (line, _, _), (cells, start, end) in zip(stretches, found, strict=True):
            line.load(cells, start=start, end=end)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnLine:
    """
    What was read around the claims that are to be placed on a line.

    `normal` gives the normal form of a claim's value, `part_of` the part that a form stands in, None on
    a key that has one line alone.
    """

    nearby: Nearby
    line: Line
    normal: Callable[[Claim], str]
    part_of: Callable[[str], str] | None
    digest: Callable[[str], str]

    def said(self, claim_id: str) -> Said:
        """
        Return what a claim says that a cell of the line names.

        Raises:
            NotReadError: It was not read.
        """
        return self._said(self.nearby.claim(claim_id))

    def state_after(self, start: int, *, by: Claim) -> Said | None:
        """
        Return the first state on the line that was said before a claim and begins after an instant.

        Raises:
            NotReadError: It was not looked for, or too many others stand before it.
        """
        states = self.nearby.states_after(self.line, start, by)
        return next((self._said(claim) for claim in states if self._is_on(claim)), None)

    def _is_on(self, claim: Claim) -> bool:
        if claim.value is None:
            return claim.stance == Stance.END
        normal = self.normal(claim)
        return not is_wrong(normal) and (self.part_of is None or self.part_of(normal) == self.line.part)

    def _said(self, claim: Claim) -> Said:
        start, end, _ = extent_of(claim.validity)
        value = ENDED if claim.stance == Stance.END else self.normal(claim)
        return Said(
            claim_id=claim.claim_id,
            start=start,
            end=end,
            is_state=claim.validity.kind == ValidityKind.SINCE,
            value=self.digest(value),
            source=own_source(claim),
        )


def _states_max(line: Line) -> int:
    return STATES_OF_ONE_MAX if line.part == WHOLE else STATES_MAX


def _order(start: int, claim: Claim) -> Order:
    return start, claim.position.event, claim.position.ordinal


def _stored_order(claim: Claim) -> Order:
    return _order(extent_of(claim.validity)[0], claim)


def _first(pair: tuple[Order, Claim]) -> Order:
    return pair[0]
