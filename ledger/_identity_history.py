"""
What pairs of names had, commit by commit: the lines of identity, told from its claims.

No cells are kept of them: whatever asks who is one with whom reads all claims that say so. A pair's
line is at its own name, as `pair_of` writes it, and holds for all valid time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from contracts.claims import Claim
from contracts.identity import IDENTITY, SAME_AS
from ledger._cells import LineRow
from ledger._entries import NOBODY, Entry
from ledger._identity import identity_of, pair_verdict
from ledger._intervals import FOREVER, NEVER
from ledger._lines import Cell
from ledger._register import names_of_pair
from ledger._relations import Contracts
from ledger._timeline import Segment, claims_of_cell
from ledger._withdrawal import Replay
from ledger._world import Key, Reader

PAIRS_FROM: Final = 2**52
"""The number of the first line of a pair, beyond every line of the table; exact in any JSON reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairLines:
    """The lines of pairs by number, in the order of the pairs' names, with their cells in order."""

    lines: tuple[tuple[LineRow, tuple[Cell, ...]], ...]

    def rows_from(self, first: int) -> list[LineRow]:
        """Return the lines from a number on."""
        return [line for line, _ in self.lines if line.line_id >= first]

    def cells_of(self, line_ids: Iterable[int]) -> dict[int, list[Cell]]:
        """Return all cells of lines by number; of those that are no pair's, nothing."""
        wanted = set(line_ids)
        return {line.line_id: list(cells) for line, cells in self.lines if line.line_id in wanted}


NO_PAIRS: Final = PairLines(lines=())


async def pair_lines(reader: Reader, *, entity: str | None, relation: str | None) -> PairLines:
    """
    Return the lines of pairs, as known up to the reader's cut.

    Args:
        reader: In a snapshot, at an epoch and a cut.
        entity: Only pairs with one of the names that are this entity at the cut, or the pair of this
            very name; None for all.
        relation: None if a line of any relation is wanted; nothing is found of one but identity.

    Raises:
        IntegrityFault: A claim or contract is not what was written.
    """
    if relation is not None and relation not in IDENTITY:
        return NO_PAIRS
    claims = await reader.identity_claims()
    if not claims:
        return NO_PAIRS
    contracts = await reader.contracts()
    names = None if entity is None else {entity, *identity_of(claims, contracts).names_of(entity)}
    found = sorted(_cells(claims, contracts).items())
    return PairLines(
        lines=tuple(
            (
                LineRow(line_id=PAIRS_FROM + number, entity=pair, relation=SAME_AS, part=pair, tail=None),
                tuple(cells),
            )
            for number, (pair, cells) in enumerate(found)
            if names is None or not names.isdisjoint({pair, *names_of_pair(pair)})
        )
    )


def keys_of_pair(key: Key) -> set[Key]:
    """Return the keys on which claims of a pair stand, be they about another pair of its names too."""
    return {(name, relation) for name in names_of_pair(key[0]) for relation in IDENTITY}


def is_pair(key: Key) -> bool:
    """Return whether a key is that of a pair's line."""
    return key[1] == SAME_AS and len(names_of_pair(key[0])) > 1


@dataclass(slots=True, kw_only=True)
class _Told:
    """A pair's cells so far; the last is open."""

    cells: list[Cell] = field(default_factory=list)

    def become(self, segment: Segment, commit: int) -> None:
        last = self.cells[-1] if self.cells else None
        if last is not None:
            if last.segment == segment:
                return
            self.cells[-1] = Cell(
                cell_id=None, segment=last.segment, known_from=last.known_from, known_to=commit
            )
        self.cells.append(Cell(cell_id=None, segment=segment, known_from=commit, known_to=None))


def _cells(claims: Sequence[Claim], contracts: Contracts) -> dict[str, list[Cell]]:
    replay = Replay(contracts, NOBODY)
    told: dict[str, _Told] = defaultdict(_Told)
    derived: set[str] = set()
    for commit, said in groupby(claims, key=lambda claim: claim.commit):
        replay.extend(said)
        moved = {entry.entity: entry for entry in replay.take_moved() if entry.relation == SAME_AS}
        derived |= {pair for pair, entry in moved.items() if entry.inputs}
        # What is derived may go with what it was derived from, without being touched itself.
        for pair in moved.keys() | derived:
            told[pair].become(_segment(replay.entries_of(pair, SAME_AS)), commit)
    return {
        pair: own.cells
        for pair, own in told.items()
        # The name of what is erased altogether would stand there.
        if any(entry.erased_in is None for entry in replay.entries_of(pair, SAME_AS))
    }


def _segment(entries: Sequence[Entry]) -> Segment:
    verdict = pair_verdict(entries)
    return Segment(start=NEVER, end=FOREVER, state=verdict.state.value, claims=claims_of_cell(verdict))
