"""What changed in what was known, from one view to another, and by which claims."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import pairwise
from typing import Final, TypeAlias

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.claims import Claim
from contracts.errors import BadRequest
from contracts.limits import DIFF_CHANGES_MAX, DIFF_COMMITS_MAX, HISTORY_CELLS_MAX
from contracts.times import MICROSECOND
from contracts.views import View
from ledger._aside import aside
from ledger._cells import Cells, LineRow
from ledger._claims import micros
from ledger._history import named_claims
from ledger._identity_history import PAIRS_FROM, PairLines, pair_lines
from ledger._intervals import bound
from ledger._keys import TenantKeys
from ledger._lines import Cell
from ledger._reads_areas import areas_of, clipped
from ledger._reads_causes import Changed, causes_of
from ledger._world import Reader

NOTHING: Final = "nothing"
"""The state where no claim ever covered."""
_LINES_AT_ONCE: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """What stands on a line: its state, as in a rectangle or `nothing`, and one claim for each value."""

    state: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """
    Where in valid time one line differs, what stood there and what stands there now.

    None is an open bound; both are None where two instants were compared. `commits` are those
    between the views at which it changed, the newest, none where only valid time went by; `causes`
    the claims that brought it about.
    """

    entity: str
    relation: str
    part: str
    valid_from: datetime | None
    valid_to: datetime | None
    before: Stand
    after: Stand
    commits: tuple[int, ...]
    causes: tuple[Claim, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """
    One page of changes, line by line.

    `next_line` begins the next page, None at the end. `truncated` says that a line has more changes
    than are looked at.
    """

    changes: tuple[Change, ...]
    next_line: int | None
    truncated: bool


_Content: TypeAlias = tuple[str, tuple[str, ...]]
"""A state and the ids of the claims in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """A change before its claims are read."""

    line: LineRow
    start: int | None
    end: int | None
    before: _Content
    after: _Content
    commits: tuple[int, ...]


async def diff(
    conn: AsyncConnection,
    keys: TenantKeys,
    before: View,
    after: View,
    *,
    entity: str | None,
    relation: str | None,
    at_instants: bool,
    from_line: int = 0,
) -> Difference:
    """
    Return what differs between two views, page by page.

    Args:
        conn: A snapshot of the tenant.
        keys: The tenant's.
        before: One view.
        after: The other, of the same epoch; it may be the earlier one.
        entity: Only its lines; None for all.
        relation: Only lines of it; None for all.
        at_instants: Compare what holds at each view's own `valid_at`; else all of valid time.
        from_line: Where the page begins: the `next_line` of the page before, or 0.

    Raises:
        BadRequest: The views are of two epochs, which tell claims apart otherwise.
        IntegrityFault: A claim that was read is not what was written.
    """
    if before.epoch != after.epoch:
        raise BadRequest(field="view", reason="both must be of one epoch")
    reader = Reader(conn=conn, keys=keys, epoch=after.epoch, cut=max(before.cut, after.cut))
    comparison = _Comparison(
        table=Cells(conn=conn, keys=keys, epoch=after.epoch),
        pairs=await pair_lines(reader, entity=entity, relation=relation),
        before=before,
        after=after,
        at_instants=at_instants,
    )
    pieces: list[_Piece] = []
    line_id: int | None = from_line
    truncated = is_full = False
    while line_id is not None and not is_full:
        lines = await comparison.lines(line_id, entity=entity, relation=relation)
        line_id = lines.pop().line_id if len(lines) > _LINES_AT_ONCE else None
        for line, own, is_cut in await comparison.pieces(lines):
            if pieces and len(pieces) + len(own) > DIFF_CHANGES_MAX:
                line_id, is_full = line.line_id, True
                break
            pieces += own[:DIFF_CHANGES_MAX]
            truncated = truncated or is_cut or len(own) > DIFF_CHANGES_MAX
    return Difference(changes=await _changes(reader, pieces), next_line=line_id, truncated=truncated)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comparison:
    """Two views of one ledger, at their own instants or along all valid time."""

    table: Cells
    pairs: PairLines
    before: View
    after: View
    at_instants: bool

    @property
    def known(self) -> tuple[int, int]:
        """Return both cuts, the earlier first."""
        return min(self.before.cut, self.after.cut), max(self.before.cut, self.after.cut)

    async def lines(self, first: int, *, entity: str | None, relation: str | None) -> list[LineRow]:
        """Return some lines that may differ, and one more if there are more."""
        limit = _LINES_AT_ONCE + 1
        changed = None if self.at_instants else self.known
        found: list[LineRow] = []
        if first < PAIRS_FROM:
            found = await self.table.lines_from(
                first, entity=entity, relation=relation, changed=changed, limit=limit
            )
        # Pairs stand behind all lines of the table.
        return [*found, *self.pairs.rows_from(first)][:limit]

    async def pieces(self, lines: Sequence[LineRow]) -> list[tuple[LineRow, list[_Piece], bool]]:
        """Return where each line differs, and whether more of it was changed than is looked at."""
        held = await self._held(lines) if self.at_instants else {}
        changed = await self._changed(lines)
        return await aside(
            partial(self._pieces, changed, held), items=sum(len(cells) for _, cells in changed)
        )

    def _pieces(
        self,
        changed: Sequence[tuple[LineRow, list[Cell]]],
        held: Mapping[int, tuple[_Content, _Content]],
    ) -> list[tuple[LineRow, list[_Piece], bool]]:
        found: list[tuple[LineRow, list[_Piece], bool]] = []
        for line, cells in changed:
            areas = areas_of(cells[:HISTORY_CELLS_MAX])
            own = self._at(line, areas, held[line.line_id]) if self.at_instants else self._along(line, areas)
            is_cut = len(cells) > HISTORY_CELLS_MAX or line.line_id in self.pairs.cut
            found.append((line, own, is_cut))
        return found

    async def _changed(self, lines: Sequence[LineRow]) -> list[tuple[LineRow, list[Cell]]]:
        """Return the cells of lines that changed between the views, of each one more than is looked at."""
        limit = HISTORY_CELLS_MAX + 1
        line_ids = [line.line_id for line in lines]
        stored = [line_id for line_id in line_ids if line_id < PAIRS_FROM]
        read = await self.table.cells_changed(stored, known=self.known, limit=limit)
        if len(lines) > 1 and sum(map(len, read.values())) == limit:
            # Together they have too many: one by one each has room of its own.
            return [found for line in lines for found in await self._changed([line])]
        of_pairs = {
            line_id: [cell for cell in cells if _edges(cell, self.known)]
            for line_id, cells in self.pairs.cells_of(line_ids).items()
        }
        read = {**read, **of_pairs}
        return [(line, read.get(line.line_id, [])) for line in lines]

    async def _held(self, lines: Sequence[LineRow]) -> dict[int, tuple[_Content, _Content]]:
        """Return what lines hold at either view's own instant."""
        line_ids = [line.line_id for line in lines]
        stored = [line_id for line_id in line_ids if line_id < PAIRS_FROM]
        of_pairs = self.pairs.cells_of(line_ids)
        sides = []
        for view in (self.before, self.after):
            at = (view.valid_at, view.valid_at + MICROSECOND)
            known = (view.cut, view.cut + 1)
            held = await self.table.cells_within(stored, known=known, valid=at, limit=len(lines))
            sides.append({**held, **of_pairs})
        return {
            line_id: (
                _content(sides[0].get(line_id, ()), self.before.cut),
                _content(sides[1].get(line_id, ()), self.after.cut),
            )
            for line_id in line_ids
        }

    def _along(self, line: LineRow, areas: Sequence[Cell]) -> list[_Piece]:
        pieces: list[_Piece] = []
        for start, end, before, after, commits in self._stretches(areas):
            piece = _Piece(line=line, start=start, end=end, before=before, after=after, commits=commits)
            last = pieces[-1] if pieces else None
            if last is not None and replace(last, start=start, end=end) == piece and last.end == start:
                pieces[-1] = replace(last, end=end)
            else:
                pieces.append(piece)
        return pieces

    def _stretches(
        self, areas: Sequence[Cell]
    ) -> Iterator[tuple[int, int, _Content, _Content, tuple[int, ...]]]:
        """Yield each elementary stretch of valid time that differs, with both contents and its commits."""
        begin: dict[int, list[Cell]] = defaultdict(list)
        leave: dict[int, list[Cell]] = defaultdict(list)
        for area in areas:
            begin[area.segment.start].append(area)
            leave[area.segment.end].append(area)
        present = _Present(before=self.before.cut, after=self.after.cut, known=self.known)
        for start, end in pairwise(sorted(begin.keys() | leave.keys())):
            # What leaves goes first: at each cut there is one at most.
            present.move(leave.get(start, ()), begin.get(start, ()))
            if present.before != present.after:
                yield start, end, present.before, present.after, present.commits

    def _at(self, line: LineRow, areas: Sequence[Cell], held: tuple[_Content, _Content]) -> list[_Piece]:
        """Compare the views' own instants: known time may have gone by, or valid time, or both."""
        was, now = held
        if was == now:
            return []
        first, last = sorted(micros(view.valid_at) for view in (self.before, self.after))
        commits = self._commits(clipped(areas, first, last + 1))
        return [_Piece(line=line, start=None, end=None, before=was, after=now, commits=commits)]

    def _commits(self, areas: Iterable[Cell]) -> tuple[int, ...]:
        """Return the commits between the views at which one of the areas began or ended; the newest."""
        edges = {edge for area in areas for edge in _edges(area, self.known)}
        return tuple(sorted(edges)[-DIFF_COMMITS_MAX:])


class _Present:
    """The areas that stand at a place in valid time, as far as two cuts need them."""

    def __init__(self, *, before: int, after: int, known: tuple[int, int]) -> None:
        self.before: _Content = (NOTHING, ())
        self.after: _Content = (NOTHING, ())
        self._cuts = (before, after)
        self._known = known
        self._counts: Counter[int] = Counter()
        self._ordered: list[int] = []

    def move(self, left: Iterable[Cell], begun: Iterable[Cell]) -> None:
        """Go on to a place where areas ended and others begin."""
        for area in left:
            self._put((NOTHING, ()), area)
            for edge in _edges(area, self._known):
                self._counts[edge] -= 1
                if not self._counts[edge]:
                    del self._ordered[bisect_left(self._ordered, edge)]
        for area in begun:
            self._put((area.segment.state, area.segment.claims), area)
            for edge in _edges(area, self._known):
                if not self._counts[edge]:
                    insort(self._ordered, edge)
                self._counts[edge] += 1

    @property
    def commits(self) -> tuple[int, ...]:
        """Return the commits between the views at which one of them began or ended; the newest."""
        return tuple(self._ordered[-DIFF_COMMITS_MAX:])

    def _put(self, content: _Content, area: Cell) -> None:
        before, after = (_stands(area, cut) for cut in self._cuts)
        self.before = content if before else self.before
        self.after = content if after else self.after


def _edges(area: Cell, known: tuple[int, int]) -> list[int]:
    first, last = known
    return [edge for edge in (area.known_from, area.known_to) if edge is not None and first < edge <= last]


def _stands(area: Cell, cut: int) -> bool:
    return area.known_from <= cut and (area.known_to is None or cut < area.known_to)


def _content(cells: Iterable[Cell], cut: int) -> _Content:
    for cell in cells:
        if _stands(cell, cut):
            return cell.segment.state, cell.segment.claims
    return NOTHING, ()


async def _changes(reader: Reader, pieces: Sequence[_Piece]) -> tuple[Change, ...]:
    named = {claim for piece in pieces for _, claims in (piece.before, piece.after) for claim in claims}
    claims = await reader.by_id(named)
    causes = await causes_of(
        reader,
        [
            Changed(
                key=(piece.line.entity, piece.line.relation),
                commits=piece.commits,
                claims=(*piece.before[1], *piece.after[1]),
            )
            for piece in pieces
        ],
        claims,
    )
    return await aside(partial(_named, pieces, claims, causes), items=len(pieces))


def _named(
    pieces: Sequence[_Piece], claims: Mapping[str, Claim], causes: Sequence[tuple[Claim, ...]]
) -> tuple[Change, ...]:
    return tuple(
        Change(
            entity=piece.line.entity,
            relation=piece.line.relation,
            part=piece.line.part,
            valid_from=None if piece.start is None else bound(piece.start),
            valid_to=None if piece.end is None else bound(piece.end),
            before=_stand(piece.before, claims),
            after=_stand(piece.after, claims),
            commits=piece.commits,
            causes=own,
        )
        for piece, own in zip(pieces, causes, strict=True)
    )


def _stand(content: _Content, claims: Mapping[str, Claim]) -> Stand:
    state, names = content
    return Stand(state=state, claims=named_claims(names, claims))
