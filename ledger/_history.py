"""What a key ever had: rectangles of valid time and known commits, with the claims that stand there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.claims import Claim
from contracts.errors import IntegrityFault
from contracts.histories import Rectangle
from contracts.limits import HISTORY_CELLS_MAX
from contracts.times import MICROSECOND, KnownAt
from contracts.views import View
from ledger._aside import aside
from ledger._cells import Cells, LineRow
from ledger._identity_history import PAIRS_FROM, pair_lines
from ledger._intervals import bound, lower, upper
from ledger._keys import TenantKeys
from ledger._lines import Cell
from ledger._reads_areas import areas_of, clipped
from ledger._world import Reader

_RELATIONS: Final = sa.text(
    "SELECT DISTINCT relation FROM line WHERE tenant = :tenant AND epoch = :epoch AND entity = :entity"
)
_CLOCK: Final = sa.text(
    "SELECT commit, recorded_at FROM commit WHERE tenant = :tenant "
    "AND commit = ANY(CAST(:commits AS bigint[]))"
)
_KNOWN: Final = sa.text(
    "SELECT coalesce(max(commit), 0) FROM commit WHERE tenant = :tenant "
    "AND recorded_at <= CAST(:known_at AS timestamptz)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """
    Which part of a history: half-open on both axes, None is an open bound.

    `valid_from` and `valid_to` cut off what lies outside; of known commits, `known_from` and
    `known_to`, every rectangle that touches them is shown whole.
    """

    valid_from: datetime | None
    valid_to: datetime | None
    known_from: int | None
    known_to: int | None

    @classmethod
    def at(cls, instant: datetime) -> Self:
        """Return the window that is one instant of valid time: how what is known about it changed."""
        return cls(valid_from=instant, valid_to=instant + MICROSECOND, known_from=None, known_to=None)


EVERYTHING: Final = Window(valid_from=None, valid_to=None, known_from=None, known_to=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """An entity's rectangles by relation, line, valid time and commit; `truncated` past the limit."""

    entity: str
    rectangles: tuple[Rectangle, ...]
    truncated: bool


async def history(
    conn: AsyncConnection,
    keys: TenantKeys,
    entity: str,
    relation: str | None,
    *,
    epoch: int,
    cut: int,
    window: Window = EVERYTHING,
) -> History:
    """
    Return every rectangle that began at or before a cut, as it was known then.

    Each is as long as it can be in known time: of each stretch of valid time the whole run of
    commits in which the same claims stood. Where `truncated`, some are shorter, and none is untrue.

    Args:
        conn: A snapshot of the tenant.
        keys: The tenant's.
        entity: Whose history.
        relation: One relation, or None for all.
        epoch: The epoch.
        cut: Rectangles that ended after it are open.
        window: The part of it that is wanted.

    Raises:
        IntegrityFault: A claim that was read is not what was written.
    """
    found = await _cells(
        conn, keys, entity, relation, epoch=epoch, known=(0, cut + 1),
        valid=(window.valid_from, window.valid_to),
    )  # fmt: skip
    start, end = lower(window.valid_from), upper(window.valid_to)

    def areas_within() -> list[tuple[LineRow, Cell]]:
        return [
            (line, area)
            for line, cells in found.lines
            for area in areas_of(clipped((_as_of(cell, cut) for cell in cells), start, end))
            if _touches(area, window)
        ]

    areas = await aside(areas_within, items=sum(len(cells) for _, cells in found.lines))
    return await _history(conn, keys, entity, areas, epoch=epoch, cut=cut, truncated=found.truncated)


async def timeline(
    conn: AsyncConnection,
    keys: TenantKeys,
    view: View,
    entity: str,
    relation: str | None,
    *,
    valid_from: datetime | None,
    valid_to: datetime | None,
) -> History:
    """
    Return the segments of valid time as known at a view's cut, in order.

    Those that touch `[valid_from, valid_to)`, whole; None is an open bound. Neighbours are one
    segment only where the same claims stand. The commits of each are those in which this very
    segment stood. `view.valid_at` plays no part.

    Raises:
        IntegrityFault: A claim that was read is not what was written.
    """
    found = await _cells(
        conn, keys, entity, relation, epoch=view.epoch, known=(view.cut, view.cut + 1),
        valid=(valid_from, valid_to),
    )  # fmt: skip
    segments = [(line, cell) for line, cells in found.lines for cell in cells]
    return await _history(
        conn, keys, entity, segments, epoch=view.epoch, cut=view.cut, truncated=found.truncated
    )


async def known_commits(
    conn: AsyncConnection, keys: TenantKeys, start: datetime | None, end: datetime | None
) -> tuple[int | None, int | None]:
    """
    Return the commits `[from, to)` that were known at some instant of `[start, end)`; None is open.

    The first is the newest commit that was recorded at or before `start`.
    """
    first = None if start is None else await _last_by(conn, keys, start)
    last = None if end is None else await _last_by(conn, keys, end - MICROSECOND)
    return first, None if last is None else last + 1


async def commit_clock(conn: AsyncConnection, keys: TenantKeys, commits: Iterable[int]) -> dict[int, KnownAt]:
    """Return when commits were recorded; one that is not there is left out."""
    parameters: dict[str, Any] = {"tenant": keys.tenant, "commits": sorted(set(commits))}
    rows = await conn.execute(_CLOCK, parameters)
    return {row.commit: KnownAt(row.recorded_at.astimezone(UTC)) for row in rows}


def named_claims(names: Iterable[str], claims: Mapping[str, Claim]) -> tuple[Claim, ...]:
    """
    Return the claims that a cell names.

    Raises:
        IntegrityFault: One of them was not found.
    """
    try:
        return tuple(claims[name] for name in names)
    except KeyError as error:
        raise IntegrityFault(what="a cell names a claim that is not there") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    lines: tuple[tuple[LineRow, list[Cell]], ...]
    truncated: bool


async def _cells(
    conn: AsyncConnection,
    keys: TenantKeys,
    entity: str,
    relation: str | None,
    *,
    epoch: int,
    known: tuple[int, int],
    valid: tuple[datetime | None, datetime | None],
) -> _Found:
    """Return the lines of an entity with those of their cells that touch both ranges, up to the limit."""
    relations = [relation] if relation is not None else await _relations(conn, keys, entity, epoch)
    table = Cells(conn=conn, keys=keys, epoch=epoch)
    lines = await table.lines([(entity, name) for name in relations])
    found = await table.cells_within(
        [line.line_id for line in lines], known=known, valid=valid, limit=HISTORY_CELLS_MAX + 1
    )
    left = HISTORY_CELLS_MAX
    kept: list[tuple[LineRow, list[Cell]]] = []
    for line in sorted(lines, key=lambda line: (line.relation, line.part)):
        kept.append((line, found.get(line.line_id, [])[:left]))
        left -= len(kept[-1][1])
    # What was said of who it is one with: of every valid time, and so of the one that is wanted.
    reader = Reader(conn=conn, keys=keys, epoch=epoch, cut=known[1] - 1)
    pairs = await pair_lines(reader, entity=entity, relation=relation)
    by_name = sorted(pairs.lines, key=lambda each: each[0].part)
    own = [(line, [cell for cell in cells if _is_known(cell, known)]) for line, cells in by_name]
    for line, cells in own:
        kept.append((line, cells[:left]))
        left -= len(kept[-1][1])
    count = sum(map(len, found.values())) + sum(len(cells) for _, cells in own)
    return _Found(lines=tuple(kept), truncated=count > HISTORY_CELLS_MAX or bool(pairs.cut))


def _is_known(cell: Cell, known: tuple[int, int]) -> bool:
    return cell.known_from < known[1] and (cell.known_to is None or known[0] < cell.known_to)


def _as_of(cell: Cell, cut: int) -> Cell:
    """Return the cell as it stood at a cut: what ended later was open."""
    ended_later = cell.known_to is not None and cell.known_to > cut
    return Cell(
        cell_id=cell.cell_id,
        segment=cell.segment,
        known_from=cell.known_from,
        known_to=None if ended_later else cell.known_to,
    )


def _touches(area: Cell, window: Window) -> bool:
    starts_in_time = window.known_to is None or area.known_from < window.known_to
    return starts_in_time and (
        window.known_from is None or area.known_to is None or area.known_to > window.known_from
    )


async def _history(
    conn: AsyncConnection,
    keys: TenantKeys,
    entity: str,
    areas: Sequence[tuple[LineRow, Cell]],
    *,
    epoch: int,
    cut: int,
    truncated: bool,
) -> History:
    reader = Reader(conn=conn, keys=keys, epoch=epoch, cut=cut)
    claims = await reader.by_id(claim for _, area in areas for claim in area.segment.claims)
    shown = [(line, _as_of(area, cut)) for line, area in areas]
    commits = {area.known_from for _, area in shown}
    commits |= {area.known_to for _, area in shown if area.known_to is not None}
    clock = await commit_clock(conn, keys, commits)

    def rectangles() -> tuple[Rectangle, ...]:
        return tuple(
            _rectangle(line, area, named_claims(area.segment.claims, claims), clock) for line, area in shown
        )

    return History(entity=entity, rectangles=await aside(rectangles, items=len(shown)), truncated=truncated)


def _rectangle(line: LineRow, area: Cell, claims: tuple[Claim, ...], clock: dict[int, KnownAt]) -> Rectangle:
    return Rectangle(
        # A pair's line has both relations of identity: that of what stands.
        relation=claims[0].relation if line.line_id >= PAIRS_FROM and len(claims) == 1 else line.relation,
        part=line.part,
        valid_from=bound(area.segment.start),
        valid_to=bound(area.segment.end),
        known_from=area.known_from,
        known_to=area.known_to,
        known_from_at=clock[area.known_from],
        known_to_at=None if area.known_to is None else clock[area.known_to],
        state=area.segment.state,
        claims=claims,
    )


async def _relations(conn: AsyncConnection, keys: TenantKeys, entity: str, epoch: int) -> list[str]:
    parameters = {"tenant": keys.tenant, "epoch": epoch, "entity": entity}
    return list(await conn.scalars(_RELATIONS, parameters))


async def _last_by(conn: AsyncConnection, keys: TenantKeys, known_at: datetime) -> int:
    parameters = {"tenant": keys.tenant, "known_at": known_at}
    return int(await conn.scalar(_KNOWN, parameters) or 0)
