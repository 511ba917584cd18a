"""
Rectangles as a reader wants them: each as long as it can be in known time.

Cells are cut wherever a neighbour changed, and so differ with what stands beside them. An area does
not: of each elementary stretch of valid time it is the whole run of commits in which the same claims
stood, and stretches side by side with one and the same run are one area.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from ledger._intervals import Intervals, difference, union
from ledger._lines import Cell

_Piece: TypeAlias = tuple[int, int, int]
"""`[start, end)` in microseconds, and the commit since which it stands."""


def areas_of(cells: Iterable[Cell]) -> list[Cell]:
    """Return the areas that the cells of one line make up, by valid and known time."""
    by_content: dict[tuple[str, tuple[str, ...]], list[Cell]] = defaultdict(list)
    for cell in cells:
        by_content[cell.segment.state, cell.segment.claims].append(cell)
    areas = [area for alike in by_content.values() for area in _areas_alike(alike)]
    return sorted(areas, key=lambda area: (area.segment.start, area.known_from, area.segment.end))


def clipped(cells: Iterable[Cell], start: int, end: int) -> list[Cell]:
    """Return what of the cells lies within `[start, end)` of valid time."""
    return [
        replace(
            cell,
            segment=cell.segment._replace(
                start=max(start, cell.segment.start), end=min(end, cell.segment.end)
            ),
        )
        for cell in cells
        if cell.segment.start < end and start < cell.segment.end
    ]


def _areas_alike(cells: Sequence[Cell]) -> list[Cell]:
    """Return the areas of cells that all hold the same; what goes on past a commit is left as it is."""
    opening: dict[int, list[tuple[int, int]]] = defaultdict(list)
    closing: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for cell in cells:
        piece = (cell.segment.start, cell.segment.end)
        opening[cell.known_from].append(piece)
        if cell.known_to is not None:
            closing[cell.known_to].append(piece)
    standing: list[_Piece] = []
    found: list[tuple[_Piece, int | None]] = []
    for commit in sorted(opening.keys() | closing.keys()):
        begun, ended = union(tuple(opening[commit])), union(tuple(closing[commit]))
        for start, end in difference(ended, begun):
            found += [(piece, commit) for piece in _taken(standing, start, end)]
        _add(standing, difference(begun, ended), commit)
    found += [(piece, None) for piece in standing]
    segment = cells[0].segment
    return [
        Cell(
            cell_id=None,
            segment=segment._replace(start=start, end=end),
            known_from=since,
            known_to=until,
        )
        for (start, end, since), until in _joined(found)
    ]


def _taken(standing: list[_Piece], start: int, end: int) -> list[_Piece]:
    """Take `[start, end)` out of what stands, and return it."""
    first = bisect_left(standing, start, key=lambda piece: piece[1])
    if first < len(standing) and standing[first][1] == start:
        first += 1
    last = bisect_left(standing, end, key=lambda piece: piece[0])
    touched = standing[first:last]
    kept = [(piece[0], start, piece[2]) for piece in touched if piece[0] < start]
    kept += [(end, piece[1], piece[2]) for piece in touched if end < piece[1]]
    standing[first:last] = kept
    return [(max(start, piece[0]), min(end, piece[1]), piece[2]) for piece in touched]


def _add(standing: list[_Piece], where: Intervals, commit: int) -> None:
    for start, end in where:
        place = bisect_left(standing, start, key=lambda piece: piece[0])
        standing.insert(place, (start, end, commit))


def _joined(found: Iterable[tuple[_Piece, int | None]]) -> list[tuple[_Piece, int | None]]:
    """Join pieces side by side that stood in the same commits."""
    by_run: dict[tuple[int, int | None], list[tuple[int, int]]] = defaultdict(list)
    for (start, end, since), until in found:
        by_run[since, until].append((start, end))
    return [
        ((start, end, since), until)
        for (since, until), pieces in by_run.items()
        for start, end in union(tuple(pieces))
    ]
