"""The lines that a fold has in memory: some with their last cell alone, some with all open cells."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ledger._cells import Cells, LineRow
from ledger._intervals import FOREVER, NEVER
from ledger._lines import Line
from ledger._tails import Tail
from ledger._world import Key


class Shelf:
    """Lines by key and stored part. What it has is not read again: the fold changes it."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._lines: dict[Key, dict[str, Line]] = defaultdict(dict)
        self._looked_up: set[tuple[Key, str]] = set()
        self._whole: set[Key] = set()

    @property
    def all(self) -> list[Line]:
        """Every line that was looked at."""
        return [line for parts in self._lines.values() for line in parts.values()]

    def of(self, key: Key) -> dict[str, Line]:
        """Return the key's lines that are here, by stored part."""
        return self._lines[key]

    def get(self, key: Key, part: str) -> Line | None:
        """Return a line, None if it is not here."""
        return self._lines[key].get(part)

    def is_known(self, key: Key, part: str) -> bool:
        """Return whether a line that is not here is not there either."""
        return (key, part) in self._looked_up or key in self._whole

    def line(self, key: Key, part: str) -> Line:
        """Return a line, a new one if it is not here."""
        found = self._lines[key].get(part)
        if found is None:
            found = self._lines[key][part] = Line(
                entity=key[0],
                relation=key[1],
                part=part,
                line_id=None,
                tail=None,
                stored_tail=None,
                cells={},
                whole=True,
                blank=True,
            )
        return found

    async def look_up(self, wanted: Iterable[tuple[Key, str]]) -> None:
        """Load these lines, each with its last cell where a claim may be appended."""
        self._looked_up |= set(wanted)
        for row, last in await self._cells.lines_at(wanted):
            line = self._lines[row.entity, row.relation].setdefault(row.part, _line_of(row))
            if line.tail is None or line.whole:
                continue
            cells = [] if last is None else [last]
            line.load(cells, start=NEVER if last is None else last.segment.start, end=FOREVER)

    async def load_whole(self, keys: set[Key]) -> None:
        """Load every line of these keys with all of its open cells."""
        missing = keys - self._whole
        self._whole |= missing
        for row in await self._cells.lines(missing) if missing else []:
            self._lines[row.entity, row.relation].setdefault(row.part, _line_of(row))
        lines = [line for key in missing for line in self._lines[key].values() if not line.whole]
        found = await self._cells.open_cells([_id(line) for line in lines])
        for line in lines:
            line.load(found.get(_id(line), []), start=NEVER, end=FOREVER)
            line.whole = True


def _id(line: Line) -> int:
    assert line.line_id is not None
    return line.line_id


def _line_of(row: LineRow) -> Line:
    tail = None if row.tail is None else Tail.read(row.tail)
    return Line(
        entity=row.entity,
        relation=row.relation,
        part=row.part,
        line_id=row.line_id,
        tail=tail,
        stored_tail=tail,
        cells={},
        whole=False,
        blank=False,
    )
