"""Numbers of a run out of its rows, each by a formula that stands beside it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from audit._statistics import Interval, Sums, bootstrap, mcnemar_exact, wilson
from contracts.artifacts import Formula, FormulaKind, Measure, Number, Row, Unit, Values
from contracts.errors import BadRequest

_DIFFERENCES: Final = {FormulaKind.SHARE, FormulaKind.MEAN, FormulaKind.RATIO}


def measure(formula: Formula, rows: Iterable[Row], recorded: Values | None = None) -> Measure:
    """
    Return what a formula gives over rows, or over what was `recorded` beside them.

    Raises:
        BadRequest: The formula lacks a part that its kind needs, or a share's column has other numbers
            than zeros and ones.
    """
    _check(formula)
    if formula.of is FormulaKind.RECORDED:
        number = (recorded or {}).get(formula.column or "")
        return _measure(formula, number, None, n=0 if number is None else 1)
    taken = [row for row in rows if _is_taken(formula, row)]
    ours = [row for row in taken if row.arm == formula.arm and _has_columns(formula, row)]
    if formula.against is None:
        value, interval = _of_one(formula, ours)
        return _measure(formula, value, interval, n=len(ours))
    theirs = {
        (row.question, row.budget): row
        for row in taken
        if row.arm == formula.against and _has_columns(formula, row)
    }
    pairs = [(row, theirs[row.question, row.budget]) for row in ours if (row.question, row.budget) in theirs]
    value, interval = _of_two(formula, pairs)
    return _measure(formula, value, interval, n=len(pairs))


def _check(formula: Formula) -> None:
    needs = {
        "column": formula.of is not FormulaKind.COUNT,
        "over": formula.of is FormulaKind.RATIO,
        "quantile": formula.of is FormulaKind.QUANTILE,
        "against": formula.of is FormulaKind.MCNEMAR,
    }
    for part, is_needed in needs.items():
        if is_needed and getattr(formula, part) is None:
            raise BadRequest(field=f"{formula.name}.{part}", reason=f"{formula.of.value} needs it")
    if formula.against is not None and formula.of not in _DIFFERENCES | {FormulaKind.MCNEMAR}:
        raise BadRequest(field=f"{formula.name}.against", reason=f"{formula.of.value} compares no two arms")


def _is_taken(formula: Formula, row: Row) -> bool:
    return (
        row.budget == formula.budget
        and formula.kind in {None, row.kind}
        and formula.apart in {None, row.apart}
    )


def _has_columns(formula: Formula, row: Row) -> bool:
    return all(name is None or row.values.get(name) is not None for name in (formula.column, formula.over))


def _of_one(formula: Formula, rows: Sequence[Row]) -> tuple[Number | None, Interval | None]:
    numbers = _column(formula.column, rows)
    match formula.of:
        case FormulaKind.COUNT:
            return len(rows), None
        case FormulaKind.SUM:
            return math.fsum(numbers), None
        case FormulaKind.QUANTILE:
            return _quantile(numbers, formula.quantile or 0.0), None
        case FormulaKind.SHARE:
            right = _right(formula, numbers)
            return (right / len(rows), wilson(right, len(rows))) if rows else (None, None)
        case FormulaKind.MEAN | FormulaKind.RATIO:
            sums = _sums(formula, rows)
            return sums.ratio(), _bootstrap(formula, sums, None, rows)
        case FormulaKind.MCNEMAR | FormulaKind.RECORDED:
            raise AssertionError(formula)


def _of_two(formula: Formula, pairs: Sequence[tuple[Row, Row]]) -> tuple[Number | None, Interval | None]:
    ours, theirs = [one for one, _ in pairs], [other for _, other in pairs]
    if not pairs:
        return None, None
    if formula.of in {FormulaKind.MCNEMAR, FormulaKind.SHARE}:
        for rows in (ours, theirs):
            _right(formula, _column(formula.column, rows))
    if formula.of is FormulaKind.MCNEMAR:
        both = list(zip(_column(formula.column, ours), _column(formula.column, theirs), strict=True))
        return mcnemar_exact(sum(a > b for a, b in both), sum(a < b for a, b in both)), None
    sums, others = _sums(formula, ours), _sums(formula, theirs)
    one, other = sums.ratio(), others.ratio()
    value = None if one is None or other is None else one - other
    return value, _bootstrap(formula, sums, others, ours)


def _sums(formula: Formula, rows: Sequence[Row]) -> Sums:
    numbers = _column(formula.column, rows)
    if formula.of is not FormulaKind.RATIO:
        return Sums.mean(numbers)
    return Sums(numerators=numbers, denominators=_column(formula.over, rows))


def _bootstrap(formula: Formula, ours: Sums, theirs: Sums | None, rows: Sequence[Row]) -> Interval | None:
    return bootstrap(
        ours,
        theirs,
        seed=formula.seed,
        strata=[row.kind for row in rows] if formula.stratified else None,
        clusters=[row.history for row in rows] if formula.unit is Unit.HISTORIES else None,
    )


def _column(name: str | None, rows: Sequence[Row]) -> list[float]:
    return [] if name is None else [float(row.values[name] or 0) for row in rows]


def _right(formula: Formula, numbers: Sequence[float]) -> int:
    if not set(numbers) <= {0.0, 1.0}:
        raise BadRequest(field=f"{formula.name}.column", reason="a share is of zeros and ones")
    return int(sum(numbers))


def _quantile(numbers: Sequence[float], q: float) -> float | None:
    ordered = sorted(numbers)
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)] if ordered else None


def _measure(formula: Formula, value: Number | None, interval: Interval | None, *, n: int) -> Measure:
    return Measure(
        formula=formula,
        value=value,
        n=n,
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
    )
