"""What a key ever had: rectangles of valid time and known commits, with the claims that stand there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.claims import Claim
from contracts.errors import IntegrityFault
from contracts.limits import HISTORY_CELLS_MAX
from contracts.times import KnownAt
from ledger._cells import Cells, LineRow
from ledger._intervals import bound
from ledger._keys import TenantKeys
from ledger._lines import Cell
from ledger._world import Reader

_RELATIONS: Final = sa.text(
    "SELECT DISTINCT relation FROM line WHERE tenant = :tenant AND epoch = :epoch AND entity = :entity"
)
_CLOCK: Final = sa.text(
    "SELECT commit, recorded_at FROM commit WHERE tenant = :tenant "
    "AND commit = ANY(CAST(:commits AS bigint[]))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rectangle:
    """
    What stood in `[valid_from, valid_to)` as known in commits `[known_from, known_to)`.

    None is an open bound. `state` is value, conflict, ended, withdrawn or undetermined; `claims`
    has one for each value. `part` tells the lines of a many-valued key or occurrences apart.
    """

    relation: str
    part: str
    valid_from: datetime | None
    valid_to: datetime | None
    known_from: int
    known_to: int | None
    known_from_at: KnownAt
    known_to_at: KnownAt | None
    state: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """An entity's rectangles by relation, line, valid time and commit; `truncated` past the limit."""

    entity: str
    rectangles: tuple[Rectangle, ...]
    truncated: bool


async def history(
    conn: AsyncConnection, keys: TenantKeys, entity: str, relation: str | None, *, epoch: int, cut: int
) -> History:
    """
    Return every rectangle that began at or before a cut, as it was known then.

    Args:
        conn: A snapshot of the tenant.
        keys: The tenant's.
        entity: Whose history.
        relation: One relation, or None for all.
        epoch: The epoch.
        cut: Rectangles that ended after it are open.

    Raises:
        IntegrityFault: A claim that was read is not what was written.
    """
    relations = [relation] if relation is not None else await _relations(conn, keys, entity, epoch)
    cells = Cells(conn=conn, tenant=keys.tenant, epoch=epoch)
    lines = await cells.lines([(entity, name) for name in relations])
    found = await cells.all_cells([line.line_id for line in lines], cut=cut, limit=HISTORY_CELLS_MAX + 1)
    ordered = [
        (line, cell)
        for line in sorted(lines, key=lambda line: (line.relation, line.part))
        for cell in found.get(line.line_id, [])
    ]
    shown = ordered[:HISTORY_CELLS_MAX]
    reader = Reader(conn=conn, keys=keys, epoch=epoch, cut=cut)
    claims = await reader.by_id(claim for _, cell in shown for claim in cell.segment.claims)
    clock = await _clock(conn, keys, shown, cut)
    return History(
        entity=entity,
        rectangles=tuple(_rectangle(line, cell, claims, clock) for line, cell in shown),
        truncated=len(ordered) > HISTORY_CELLS_MAX,
    )


def _rectangle(line: LineRow, cell: Cell, claims: dict[str, Claim], clock: dict[int, KnownAt]) -> Rectangle:
    try:
        named = tuple(claims[name] for name in cell.segment.claims)
    except KeyError as error:
        raise IntegrityFault(what="a cell names a claim that is not there") from error
    known_to = cell.known_to if cell.known_to in clock else None
    return Rectangle(
        relation=line.relation,
        part=line.part,
        valid_from=bound(cell.segment.start),
        valid_to=bound(cell.segment.end),
        known_from=cell.known_from,
        known_to=known_to,
        known_from_at=clock[cell.known_from],
        known_to_at=None if known_to is None else clock[known_to],
        state=cell.segment.state,
        claims=named,
    )


async def _relations(conn: AsyncConnection, keys: TenantKeys, entity: str, epoch: int) -> list[str]:
    parameters = {"tenant": keys.tenant, "epoch": epoch, "entity": entity}
    return list(await conn.scalars(_RELATIONS, parameters))


async def _clock(
    conn: AsyncConnection, keys: TenantKeys, shown: list[tuple[LineRow, Cell]], cut: int
) -> dict[int, KnownAt]:
    commits = {cell.known_from for _, cell in shown}
    commits |= {cell.known_to for _, cell in shown if cell.known_to is not None and cell.known_to <= cut}
    parameters: dict[str, Any] = {"tenant": keys.tenant, "commits": sorted(commits)}
    rows = await conn.execute(_CLOCK, parameters)
    return {row.commit: KnownAt(row.recorded_at.astimezone(UTC)) for row in rows}
