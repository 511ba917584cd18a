"""Lines and cells as they stand in their tables; a fold writes them by `_rows`."""

from __future__ import annotations

import hmac
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import IntegrityFault
from contracts.records import record
from ledger import _tables
from ledger._arrays import moments, numbers, texts
from ledger._aside import aside
from ledger._direct import fetched
from ledger._intervals import FOREVER, lower, upper
from ledger._keys import TenantKeys, framed
from ledger._lines import Cell, Line
from ledger._timeline import Segment
from ledger._world import Key

Bounds: TypeAlias = tuple[int, int, int, int, int | None, str]
"""Of a cell: its epoch, from when to when it holds and is known, and its state."""

PART_CHARACTERS_MAX: Final = 256
"""Characters of a part that stand in the table as they are; of a longer one, its keyed digest."""

# Each key and line is looked up by itself, by index: `OFFSET 0` keeps the planner from joining whole
# tables, which it does as soon as its statistics are old.
_LINES: Final = sa.text(
    "SELECT l.* FROM unnest(CAST(:entities AS text[]), CAST(:relations AS text[])) AS k(entity, relation) "
    "CROSS JOIN LATERAL (SELECT l.line, l.entity, l.relation, l.part, l.tail FROM line l "
    "WHERE l.tenant = :tenant AND l.epoch = :epoch AND l.entity = k.entity AND l.relation = k.relation "
    "OFFSET 0) AS l"
)
_CELL: Final = (
    "c.cell, c.line, lower(c.valid) AS valid_from, upper(c.valid) AS valid_to, "
    "lower(c.known) AS known_from, upper(c.known) AS known_to, c.state, c.claims, c.seal"
)
_CELLS: Final = (
    "SELECT l.epoch, l.entity, l.relation, l.part, c.* FROM unnest(CAST(:lines AS bigint[])) AS k(line) "  # noqa: S608
    "CROSS JOIN LATERAL (SELECT l.epoch, l.entity, l.relation, l.part FROM line l "
    "WHERE l.tenant = :tenant AND l.line = k.line OFFSET 0) AS l CROSS JOIN LATERAL ("
    f"SELECT {_CELL} FROM cell c WHERE c.tenant = :tenant AND c.line = k.line AND "
)
# What is still known stands at node 0.
_OPEN: Final = sa.text(_CELLS + "c.node = 0 OFFSET 0) AS c")
# The last cell of those alone that a claim may be appended to by their tail.
_LINES_AT: Final = (
    "SELECT l.line, l.entity, l.relation, l.part, l.tail, c.* FROM unnest(CAST(%(entities)s AS text[]), "  # noqa: S608
    "CAST(%(relations)s AS text[]), CAST(%(parts)s AS text[])) AS k(entity, relation, part) "
    "CROSS JOIN LATERAL (SELECT l.line, l.entity, l.relation, l.part, l.tail FROM line l "
    "WHERE l.tenant = %(tenant)s AND l.epoch = %(epoch)s AND l.entity = k.entity AND l.relation = k.relation "
    f"AND l.part = k.part OFFSET 0) AS l LEFT JOIN LATERAL (SELECT {_CELL} FROM cell c "
    "WHERE l.tail IS NOT NULL AND c.tenant = %(tenant)s AND c.line = l.line AND c.node = 0 "
    "ORDER BY c.starts DESC LIMIT 1) AS c ON true"
)
# Of each line the cell that an instant lies in, or the last one before it; those that begin after it up to
# another, and so many more.
_AROUND: Final = sa.text(
    "SELECT l.epoch, l.entity, l.relation, l.part, k.place, c.* FROM unnest(CAST(:lines AS bigint[]), "  # noqa: S608
    "CAST(:starts AS timestamptz[]), CAST(:ends AS timestamptz[])) WITH ORDINALITY "
    "AS k(line, start_at, end_at, place) CROSS JOIN LATERAL (SELECT l.epoch, l.entity, l.relation, l.part "
    "FROM line l WHERE l.tenant = :tenant AND l.line = k.line OFFSET 0) AS l CROSS JOIN LATERAL ("
    f"(SELECT {_CELL} FROM cell c WHERE c.tenant = :tenant AND c.line = k.line AND c.node = 0 "
    "AND c.starts <= k.start_at ORDER BY c.starts DESC LIMIT 1) UNION ALL "
    f"(SELECT {_CELL} FROM cell c WHERE c.tenant = :tenant AND c.line = k.line AND c.node = 0 "
    "AND c.starts > k.start_at AND c.starts <= k.end_at) UNION ALL "
    f"(SELECT {_CELL} FROM cell c WHERE c.tenant = :tenant AND c.line = k.line AND c.node = 0 "
    "AND c.starts > greatest(k.start_at, k.end_at) ORDER BY c.starts LIMIT :more)) AS c"
)
_WITHIN: Final = sa.text(
    _CELLS + "c.known && int8range(CAST(:known_from AS bigint), CAST(:known_to AS bigint)) "
    "AND c.valid && tstzrange(CAST(:valid_from AS timestamptz), CAST(:valid_to AS timestamptz)) OFFSET 0) "
    "AS c ORDER BY c.line, c.valid_from NULLS FIRST, c.known_from LIMIT :limit"
)
# Which began or ended after one commit and by another.
_MOVED: Final = (
    "(lower(c.known) > CAST(:after AS bigint) AND lower(c.known) <= CAST(:until AS bigint) "
    "OR upper(c.known) > CAST(:after AS bigint) AND upper(c.known) <= CAST(:until AS bigint)) "
)
_CHANGED: Final = sa.text(
    _CELLS + _MOVED + "OFFSET 0) AS c ORDER BY c.line, c.valid_from NULLS FIRST, c.known_from LIMIT :limit"
)
_LINES_FROM: Final = (
    "SELECT l.line, l.entity, l.relation, l.part, l.tail FROM line l "
    "WHERE l.tenant = :tenant AND l.epoch = :epoch AND l.line >= CAST(:first AS bigint) "
)
_HAS_CHANGED: Final = (
    "AND EXISTS (SELECT FROM cell c WHERE c.tenant = :tenant AND c.line = l.line AND " + _MOVED + ") "
)
_REACHED: Final = sa.text(
    "SELECT k.entity, k.relation FROM unnest(CAST(:entities AS text[]), CAST(:relations AS text[])) "
    "AS k(entity, relation) WHERE EXISTS (SELECT FROM reach r WHERE r.tenant = :tenant "
    "AND r.epoch = :epoch AND r.entity = k.entity AND r.relation = k.relation)"
)
_RELATIONS_OF: Final = sa.text(
    "SELECT DISTINCT relation FROM line WHERE tenant = :tenant AND epoch = :epoch "
    "AND entity = ANY(CAST(:entities AS text[]))"
)
_KEYS_ON: Final = sa.text(
    "SELECT DISTINCT entity, relation FROM line WHERE tenant = :tenant AND epoch = :epoch "
    "AND relation = ANY(CAST(:relations AS text[]))"
)


@record
class LineRow:
    """One row of the table `line`; `part` as it is stored."""

    line_id: int
    entity: str
    relation: str
    part: str
    tail: bytes | None


class _LineAt(NamedTuple):
    """A line with its last open cell, as the server sends them; without one all from `cell` on is None."""

    line: int
    entity: str
    relation: str
    part: str
    tail: bytes | None
    cell: int | None
    of_line: int
    valid_from: datetime | None
    valid_to: datetime | None
    known_from: int
    known_to: int | None
    state: str
    claims: list[bytes]
    seal: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """The lines and cells of one tenant and epoch, in the caller's transaction."""

    conn: AsyncConnection
    keys: TenantKeys
    epoch: int

    async def lines(self, keys: Iterable[Key]) -> list[LineRow]:
        """Return the lines of these keys."""
        ordered = sorted(set(keys))
        parameters = {
            "tenant": self.keys.tenant,
            "epoch": self.epoch,
            "entities": [entity for entity, _ in ordered],
            "relations": [relation for _, relation in ordered],
        }
        return [_row_of(row) for row in await self.conn.execute(_LINES, parameters)]

    async def lines_at(self, wanted: Iterable[tuple[Key, str]]) -> list[tuple[LineRow, Cell | None]]:
        """
        Return those of the lines, each by key and stored part, that are there.

        One with a tail comes with the last of its open cells in valid time.

        Raises:
            IntegrityFault: A cell is not what was written.
        """
        ordered = sorted(set(wanted))
        if not ordered:
            return []
        parameters = {
            "tenant": self.keys.tenant,
            "epoch": self.epoch,
            "entities": texts(key[0] for key, _ in ordered),
            "relations": texts(key[1] for key, _ in ordered),
            "parts": texts(part for _, part in ordered),
        }
        # Past SQLAlchemy's own execution: a fold reads as many of them as it has keys.
        driver: Any = (await self.conn.get_raw_connection()).driver_connection
        found: list[tuple[LineRow, Cell | None]] = []
        for row in [_LineAt(*columns) for columns in await fetched(driver, _LINES_AT, parameters)]:
            key = (row.entity, row.relation)
            last = None if row.cell is None else cell_of(row, row.cell, key, self.keys, self.epoch)
            found.append((_row_of(row), last))
        return found

    async def lines_from(
        self,
        first: int,
        *,
        entity: str | None,
        relation: str | None,
        changed: tuple[int, int] | None,
        limit: int,
    ) -> list[LineRow]:
        """
        Return lines by number, from one on; None is every entity, every relation.

        `changed` leaves out those of which no cell began or ended after its first commit and by its second.
        """
        parameters: dict[str, Any] = {
            "tenant": self.keys.tenant, "epoch": self.epoch, "first": first, "limit": limit,
        }  # fmt: skip
        statement = _LINES_FROM
        for name, value in (("entity", entity), ("relation", relation)):
            if value is not None:
                statement += f"AND l.{name} = :{name} "
                parameters[name] = value
        if changed is not None:
            statement += _HAS_CHANGED
            parameters["after"], parameters["until"] = changed
        rows = await self.conn.execute(sa.text(statement + "ORDER BY l.line LIMIT :limit"), parameters)
        return [_row_of(row) for row in rows]

    async def reached(self, keys: Iterable[Key]) -> set[Key]:
        """Return those of the keys that claims elsewhere bear on."""
        ordered = sorted(set(keys))
        if not ordered:
            return set()
        parameters = {
            "tenant": self.keys.tenant,
            "epoch": self.epoch,
            "entities": [entity for entity, _ in ordered],
            "relations": [relation for _, relation in ordered],
        }
        return {(row.entity, row.relation) for row in await self.conn.execute(_REACHED, parameters)}

    async def relations_of(self, entities: Iterable[str]) -> set[str]:
        """Return the relations that any of the entities has a line on."""
        parameters = {"tenant": self.keys.tenant, "epoch": self.epoch, "entities": sorted(entities)}
        return set(await self.conn.scalars(_RELATIONS_OF, parameters))

    async def keys_on(self, relations: Sequence[str]) -> list[Key]:
        """Return every key on these relations that has a line."""
        if not relations:
            return []
        parameters = {"tenant": self.keys.tenant, "epoch": self.epoch, "relations": sorted(relations)}
        return [(row.entity, row.relation) for row in await self.conn.execute(_KEYS_ON, parameters)]

    async def open_cells(self, lines: Sequence[int]) -> dict[int, list[Cell]]:
        """
        Return the open cells of lines.

        Raises:
            IntegrityFault: A cell is not what was written.
        """
        return await self._read(_OPEN, lines)

    async def cells_around(
        self, wanted: Sequence[tuple[int, int, int]], *, more: int
    ) -> list[tuple[list[Cell], int, int]]:
        """
        Return the open cells around stretches of lines, and from when to when these are all there are.

        Args:
            wanted: A line, and two instants in microseconds, for each stretch.
            more: Cells beyond its end that are read with it.

        Raises:
            IntegrityFault: A cell is not what was written.
        """
        parameters = {
            "tenant": self.keys.tenant,
            "lines": numbers(line for line, _, _ in wanted),
            "starts": moments(start for _, start, _ in wanted),
            "ends": moments(end for _, _, end in wanted),
            "more": more,
        }
        found: list[list[Cell]] = [[] for _ in wanted]
        for row in await self.conn.execute(_AROUND, parameters):
            cell = cell_of(row, row.cell, (row.entity, row.relation), self.keys, row.epoch)
            found[row.place - 1].append(cell)
        around: list[tuple[list[Cell], int, int]] = []
        for (_, start, end), cells in zip(wanted, found, strict=True):
            cells.sort(key=lambda cell: cell.segment.start)
            beyond = sum(cell.segment.start > max(start, end) for cell in cells)
            until = cells[-1].segment.end if cells and beyond == more else FOREVER
            around.append((cells, start, until))
        return around

    async def cells_within(
        self,
        lines: Sequence[int],
        *,
        known: tuple[int, int],
        valid: tuple[datetime | None, datetime | None],
        limit: int,
    ) -> dict[int, list[Cell]]:
        """
        Return at most `limit` cells that touch `[from, to)` of commits and of valid time; None is open.

        Raises:
            IntegrityFault: A cell is not what was written.
        """
        return await self._read(
            _WITHIN, lines, known_from=known[0], known_to=known[1], valid_from=valid[0], valid_to=valid[1],
            limit=limit,
        )  # fmt: skip

    async def cells_changed(
        self, lines: Sequence[int], *, known: tuple[int, int], limit: int
    ) -> dict[int, list[Cell]]:
        """
        Return at most `limit` cells that began or ended after one commit and by another.

        Raises:
            IntegrityFault: A cell is not what was written.
        """
        return await self._read(_CHANGED, lines, after=known[0], until=known[1], limit=limit)

    async def _read(
        self, statement: sa.TextClause, lines: Sequence[int], **parameters: object
    ) -> dict[int, list[Cell]]:
        if not lines:
            return {}
        bound_values: dict[str, Any] = {"tenant": self.keys.tenant, "lines": sorted(lines), **parameters}
        rows = (await self.conn.execute(statement, bound_values)).all()
        return await aside(partial(_by_line, rows, self.keys), items=len(rows))


def _by_line(rows: Iterable[Any], keys: TenantKeys) -> dict[int, list[Cell]]:
    found: dict[int, list[Cell]] = defaultdict(list)
    for row in rows:
        found[row.line].append(cell_of(row, row.cell, (row.entity, row.relation), keys, row.epoch))
    return found


def cell_of(row: Any, cell_id: int | None, key: Key, keys: TenantKeys, epoch: int) -> Cell:  # noqa: ANN401 — a row
    """
    Return the cell of a row that says its key's part, both intervals, state, claims and seal.

    Raises:
        IntegrityFault: A column does not match the seal.
    """
    segment = Segment(
        start=lower(row.valid_from),
        end=upper(row.valid_to),
        state=row.state,
        claims=tuple([bytes(claim).hex() for claim in row.claims]),
    )
    cell = Cell(cell_id=cell_id, segment=segment, known_from=row.known_from, known_to=row.known_to)
    if not hmac.compare_digest(cell_seal(keys, epoch, key, row.part, cell), bytes(row.seal)):
        raise IntegrityFault(what=f"the seal of a cell, known from commit {cell.known_from}")
    return cell


def cell_seal(keys: TenantKeys, epoch: int, key: Key, part: str, cell: Cell) -> bytes:
    """Return the seal over a cell and the line that it is on; `part` as it is stored."""
    [seal] = keys.seals(_tables.cell.name, [framed_line(key, part) + _framed_cell(epoch, cell)])
    return seal


def cell_seals(keys: TenantKeys, epoch: int, cells: Iterable[tuple[Line, Cell]]) -> list[bytes]:
    """Return the seals of cells, as `cell_seal` does; those of one line stand together."""
    on, name = None, b""
    rows: list[bytes] = []
    for line, cell in cells:
        if line is not on:
            on, name = line, framed_line((line.entity, line.relation), line.part)
        rows.append(name + _framed_cell(epoch, cell))
    return keys.seals(_tables.cell.name, rows)


def framed_line(key: Key, part: str) -> bytes:
    """Return what the seal of a cell is over, of its line."""
    return framed(key[0].encode(), key[1].encode(), part.encode())


def _framed_cell(epoch: int, cell: Cell) -> bytes:
    segment = cell.segment
    bounds = (epoch, segment.start, segment.end, cell.known_from, cell.known_to, segment.state)
    return framed_bounds(bounds, segment.claims)


def framed_bounds(bounds: Bounds, claims: Iterable[str]) -> bytes:
    """Return what the seal of a cell is over, after that."""
    form = "%d %d %d %d %s %s" % bounds  # noqa: UP031 — a tuple of as many
    return framed(form.encode()) + b"".join([framed(claim.encode()) for claim in claims])


def stored_part(part: str, keys: TenantKeys) -> str:
    """Return a part as it is stored: a long one would not fit in an index row, so its keyed digest."""
    if len(part) <= PART_CHARACTERS_MAX:
        return part
    return "#" + keys.digest(part.encode()).hex()


def _row_of(row: Any) -> LineRow:  # noqa: ANN401 — a row
    return LineRow(
        line_id=row.line,
        entity=row.entity,
        relation=row.relation,
        part=row.part,
        tail=None if row.tail is None else bytes(row.tail),
    )
