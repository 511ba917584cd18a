"""
The task matrix: every question, arm and budget with its context, before a model is asked anything.

Built again and held against the frozen parent, field by field. One difference voids the run: an answer
over another context is no answer to the same task.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from audit._bundle_files import read_lines, write_lines
from contracts.artifacts import ContextCell
from contracts.errors import RunRefused

DIFFERENCES_SAID_MAX: Final = 10


def write_matrix(path: Path, cells: Iterable[ContextCell]) -> None:
    """Freeze a matrix: one cell a line, in one order."""
    ordered = sorted(cells, key=_place)
    write_lines(path, ordered)


def read_matrix(path: Path) -> list[ContextCell]:
    """
    Read a frozen matrix.

    Raises:
        BadRequest: It is not there, or a line is no cell.
    """
    return read_lines(path, ContextCell)


def matrix_differences(parent: Iterable[ContextCell], rebuilt: Iterable[ContextCell]) -> tuple[str, ...]:
    """Return where a matrix that was built again differs from its parent: cells, then fields."""
    before, after = _by_key(parent), _by_key(rebuilt)
    found = []
    for cell in sorted({**before, **after}.values(), key=_place):
        one, other = before.get(cell.key), after.get(cell.key)
        name = f"{cell.question} of {cell.arm} under {cell.budget}"
        if one is None or other is None:
            found.append(f"{name}: {'is new' if one is None else 'is missing'}")
            continue
        fields = [field for field in ContextCell.model_fields if getattr(one, field) != getattr(other, field)]
        if fields:
            found.append(f"{name}: {', '.join(fields)}")
    return tuple(found)


def check_matrix(parent: Sequence[ContextCell], rebuilt: Sequence[ContextCell]) -> None:
    """
    Void a run whose matrix is not its parent's.

    Raises:
        RunRefused: A cell or a field of one differs, or a cell stands twice; says which.
    """
    for cells in (parent, rebuilt):
        if len(_by_key(cells)) != len(cells):
            raise RunRefused(what="the task matrix", reason="a cell stands twice")
    found = matrix_differences(parent, rebuilt)
    if found:
        more = f" (and {len(found) - DIFFERENCES_SAID_MAX} more)" if len(found) > DIFFERENCES_SAID_MAX else ""
        said = "; ".join(found[:DIFFERENCES_SAID_MAX])
        raise RunRefused(what="the task matrix", reason=f"is not its frozen parent: {said}{more}")


def _by_key(cells: Iterable[ContextCell]) -> dict[tuple[str, str, int | None], ContextCell]:
    return {cell.key: cell for cell in cells}


def _place(cell: ContextCell) -> tuple[str, str, int]:
    return cell.question, cell.arm, -1 if cell.budget is None else cell.budget
