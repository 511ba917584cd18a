"""
What pairs of names had, commit by commit: the lines of identity, told from its claims.

No cells are kept of them: whatever asks who is one with whom reads all claims that say so. A pair's
line is at its own name, as `pair_of` writes it, and holds for all valid time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from contracts.claims import Claim
from contracts.identity import IDENTITY, SAME_AS
from contracts.limits import HISTORY_CELLS_MAX, PAIR_COMPARISONS_MAX
from ledger._cells import LineRow
from ledger._entries import NOBODY, Entry
from ledger._identity import identity_of, pair_verdict
from ledger._intervals import FOREVER, NEVER, difference
from ledger._keys import TenantKeys
from ledger._lines import Cell
from ledger._pair_claims import PairClaims
from ledger._register import names_of_pair
from ledger._relations import Contracts
from ledger._timeline import Segment, claims_of_cell
from ledger._withdrawal import Replay
from ledger._world import Key, Reader

PAIRS_FROM: Final = 2**52
"""Where the numbers of lines of pairs begin, beyond every line of the table; exact in any JSON reader."""
_NUMBER_BYTES: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class PairLines:
    """The lines of pairs by number, with their cells in order; `cut` are those of which some are left out."""

    lines: tuple[tuple[LineRow, tuple[Cell, ...]], ...]
    cut: frozenset[int]

    def rows_from(self, first: int) -> list[LineRow]:
        """Return the lines from a number on."""
        return [line for line, _ in self.lines if line.line_id >= first]

    def cells_of(self, line_ids: Iterable[int]) -> dict[int, list[Cell]]:
        """Return all cells of lines by number; of those that are no pair's, nothing."""
        wanted = set(line_ids)
        return {line.line_id: list(cells) for line, cells in self.lines if line.line_id in wanted}


NO_PAIRS: Final = PairLines(lines=(), cut=frozenset())


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

    def is_wanted(pair: str) -> bool:
        return names is None or not names.isdisjoint({pair, *names_of_pair(pair)})

    return _numbered(_cells(claims, contracts, is_wanted), reader.keys)


def _numbered(found: Mapping[str, _Told], keys: TenantKeys) -> PairLines:
    """Number each pair by a digest of its name: what comes or goes beside it moves no page."""
    ordered = sorted((_number_of(pair, keys), pair) for pair in found)
    lines, cut, last = [], set(), 0
    for wanted, pair in ordered:
        # Should two names have one number, the later takes the next.
        last = max(wanted, last + 1)
        row = LineRow(line_id=last, entity=pair, relation=SAME_AS, part=pair, tail=None)
        lines.append((row, tuple(found[pair].cells)))
        if found[pair].is_cut:
            cut.add(last)
    return PairLines(lines=tuple(lines), cut=frozenset(cut))


def _number_of(pair: str, keys: TenantKeys) -> int:
    digest = keys.digest_of("pair line", pair.encode())
    return PAIRS_FROM + int.from_bytes(digest[:_NUMBER_BYTES], "big")


def keys_of_pair(key: Key) -> set[Key]:
    """Return the keys on which claims of a pair stand, be they about another pair of its names too."""
    return {(name, relation) for name in names_of_pair(key[0]) for relation in IDENTITY}


def is_pair(key: Key) -> bool:
    """Return whether a key is that of a pair's line."""
    return key[1] == SAME_AS and len(names_of_pair(key[0])) > 1


@dataclass(slots=True, kw_only=True)
class _Told:
    """
    A pair's cells so far; the last is open.

    `left_out` is the last commit that was left out, None where none was: the verdict of that one is told
    in the end, and what stood between is not.
    """

    claims: PairClaims = field(default_factory=PairClaims)
    cells: list[Cell] = field(default_factory=list)
    left_out: int | None = None
    is_cut: bool = False

    def become(self, entries: Sequence[Entry], commit: int) -> None:
        verdict = pair_verdict(entries)
        segment = Segment(start=NEVER, end=FOREVER, state=verdict.state.value, claims=claims_of_cell(verdict))
        last = self.cells[-1] if self.cells else None
        if last is not None and last.known_to is None:
            if last.segment == segment:
                return
            self.close(commit)
        self.cells.append(Cell(cell_id=None, segment=segment, known_from=commit, known_to=None))

    def close(self, commit: int) -> None:
        last = self.cells[-1]
        self.cells[-1] = Cell(cell_id=None, segment=last.segment, known_from=last.known_from, known_to=commit)

    def leave_out(self, commit: int) -> None:
        if self.cells and not self.is_cut:
            self.close(commit)
        self.left_out, self.is_cut = commit, True

    def end(self) -> None:
        if self.left_out is not None:
            self.become(self.claims.all(), self.left_out)


class _Telling:
    """What pairs had, told commit by commit: of each the work is as much as moved in it."""

    def __init__(self, is_wanted: Callable[[str], bool]) -> None:
        self.told: dict[str, _Told] = defaultdict(_Told)
        self._is_wanted = is_wanted
        self._comparisons_left = PAIR_COMPARISONS_MAX
        self._derived: dict[int, list[Entry]] = defaultdict(list)
        self._gone: set[int] = set()

    def tell(self, moved: Sequence[Entry], commit: int) -> None:
        """Take in what came or left in a commit."""
        for entry in moved:
            for source in entry.inputs:
                self._derived[id(source)].append(entry)
        touched: dict[str, None] = {}
        for entry in [*moved, *self._gone_with(moved)]:
            if entry.relation != SAME_AS or not self._is_wanted(entry.entity):
                continue
            claims = self.told[entry.entity].claims
            if entry.withdrawn or id(entry) in self._gone:
                claims.drop(entry)
            else:
                claims.put(entry)
            touched[entry.entity] = None
        for pair in touched:
            self._judge(self.told[pair], commit)

    def _gone_with(self, moved: Sequence[Entry]) -> list[Entry]:
        """Return what was derived from what left, however far off; each once, for it never comes back."""
        found: list[Entry] = []
        waiting = [
            entry for entry in moved if _is_gone(entry) or not self._gone.isdisjoint(map(id, entry.inputs))
        ]
        while waiting:
            entry = waiting.pop()
            if id(entry) not in self._gone:
                self._gone.add(id(entry))
                derived = self._derived.pop(id(entry), [])
                found += derived
                waiting += derived
        return found

    def _judge(self, told: _Told, commit: int) -> None:
        if told.is_cut or len(told.cells) >= HISTORY_CELLS_MAX:
            told.leave_out(commit)
            return
        entries = told.claims.deciding()
        if entries is not None:
            told.become(entries, commit)
        elif told.claims.comparisons_count > self._comparisons_left:
            told.leave_out(commit)
        else:
            self._comparisons_left -= told.claims.comparisons_count
            told.become(told.claims.all(), commit)


def _is_gone(entry: Entry) -> bool:
    """Return whether anything of it left: with that goes all that was derived from it."""
    return bool(entry.withdrawn) and difference(entry.extent, entry.withdrawn) != entry.extent


def _cells(
    claims: Sequence[Claim], contracts: Contracts, is_wanted: Callable[[str], bool] = lambda _: True
) -> dict[str, _Told]:
    replay = Replay(contracts, NOBODY)
    telling = _Telling(is_wanted)
    for commit, said in groupby(claims, key=lambda claim: claim.commit):
        replay.extend(said)
        telling.tell(replay.take_moved(), commit)
    for own in telling.told.values():
        own.end()
    return {
        pair: own
        for pair, own in telling.told.items()
        # The name of what is erased altogether would stand there.
        if any(entry.erased_in is None for entry in replay.entries_of(pair, SAME_AS))
    }
