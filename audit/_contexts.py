"""
Contexts of a run in words, beside its bundle, for a reader: every question, arm and budget.

The folder holds questions and contexts as they are and stays where it was made. The task matrix in it has
digests alone.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final, Self, TypeVar

from audit._bundle_files import canonical, salvage, write_lines
from audit._matrix import write_matrix
from audit._qa import CONTEXTS
from contracts.artifacts import ContextCell
from contracts.errors import RunRefused
from contracts.qa import QaCell

MATRIX: Final = "matrix.jsonl"

Record = TypeVar("Record", QaCell, ContextCell)


class ContextRecorder:
    """Writes contexts as they are made; a run that was cut off goes on, and a cell made again stands once."""

    def __init__(self, folder: Path) -> None:
        self._cells, self._matrix = folder / CONTEXTS, folder / MATRIX

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Begin in a folder, or go on in it: what was cut off while it was written is dropped."""
        folder.mkdir(parents=True, exist_ok=True)
        made = cls(folder)
        write_lines(made._cells, made._read(made._cells, QaCell))
        write_lines(made._matrix, made._read(made._matrix, ContextCell))
        return made

    def add(self, cell: QaCell, frozen: ContextCell) -> None:
        """Write one context. It is there before its prediction is recorded."""
        for path, record in ((self._cells, cell), (self._matrix, frozen)):
            with path.open("ab") as file:
                file.write(canonical(record) + b"\n")

    def finish(self, wanted: Collection[tuple[str, str, int | None]]) -> int:
        """
        Freeze what was written, and return how many contexts there are.

        Raises:
            RunRefused: A context of the run is not there: it was predicted before words were kept.
        """
        cells, frozen = self._read(self._cells, QaCell), self._read(self._matrix, ContextCell)
        missing = set(wanted) - {one.key for one in cells}
        if missing:
            reason = f"{len(missing)} of {len(wanted)} are not there: the run was begun without them"
            raise RunRefused(what="the contexts", reason=reason)
        cells.sort(key=lambda one: one.key)
        write_lines(self._cells, cells)
        write_matrix(self._matrix, frozen)
        return len(cells)

    def _read(self, path: Path, model: type[Record]) -> list[Record]:
        if not path.exists():
            return []
        kept: list[Record] = salvage(path, model)[0]
        return list({one.key: one for one in kept}.values())
