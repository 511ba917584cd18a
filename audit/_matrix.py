"""
The task matrix: every question, arm and budget with its context, before a model is asked anything.

Built again and held against the frozen parent, field by field. One difference voids the run: an answer
over another context is no answer to the same task.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from audit._bundle_files import read_lines, write_lines
from contracts.artifacts import ContextCell
from contracts.errors import RunRefused
from contracts.qa import QaCell

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


def check_contexts(parent: Sequence[ContextCell], cells: Sequence[QaCell]) -> None:
    """
    Void a run that is about to be read over other contexts than were frozen.

    Raises:
        RunRefused: A cell is not in the matrix, or a frozen context is not among the cells; or its lines or
            tokens are others; says which.
    """
    frozen: dict[tuple[str, str, int | None], tuple[str | None, int]]
    frozen = {one.key: (one.context_sha256, one.tokens) for one in parent if one.failure is None}
    given: dict[tuple[str, str, int | None], tuple[str | None, int]]
    given = {one.key: (digest_of_lines(one.lines), one.tokens) for one in cells}
    others = [key for key in {**frozen, **given} if frozen.get(key) != given.get(key)]
    _void(sorted(f"{question} of {arm} under {budget}" for question, arm, budget in others))


def digest_of_lines(lines: Sequence[str]) -> str:
    """Return the digest of a context: over its lines, each with its line end."""
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def check_matrix(parent: Sequence[ContextCell], rebuilt: Sequence[ContextCell]) -> None:
    """
    Void a run whose matrix is not its parent's.

    Raises:
        RunRefused: A cell or a field of one differs, or a cell stands twice; says which.
    """
    for cells in (parent, rebuilt):
        if len(_by_key(cells)) != len(cells):
            raise RunRefused(what="the task matrix", reason="a cell stands twice")
    _void(matrix_differences(parent, rebuilt))


def _void(found: Sequence[str]) -> None:
    if found:
        more = f" (and {len(found) - DIFFERENCES_SAID_MAX} more)" if len(found) > DIFFERENCES_SAID_MAX else ""
        said = "; ".join(found[:DIFFERENCES_SAID_MAX])
        raise RunRefused(what="the task matrix", reason=f"is not its frozen parent: {said}{more}")


def _by_key(cells: Iterable[ContextCell]) -> dict[tuple[str, str, int | None], ContextCell]:
    return {cell.key: cell for cell in cells}


def _place(cell: ContextCell) -> tuple[str, str, int]:
    return cell.question, cell.arm, -1 if cell.budget is None else cell.budget
