"""
The check of a bundle by whoever has nothing but the bundle: no service, no key, no network.

Every digest is recomputed from bytes, every row from predictions and gold, every number from rows.
With the data set beside it, the gold is read again as well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from audit._bundle import (
    COSTS,
    FILES,
    GOLD,
    LOST,
    MANIFEST,
    MEASURES,
    PREDICTIONS,
    ROWS,
    STATE,
    bundle_name,
    scored_rows,
)
from audit._bundle_files import canonical, data_digests, file_digest, read_lines
from audit._formulas import measure
from audit._gold_lines import gold_lines
from audit._sets import DATA_SETS
from contracts.artifacts import (
    Cost,
    FileDigest,
    GoldLine,
    Lost,
    Manifest,
    Measure,
    Number,
    Prediction,
    Row,
    Values,
)
from contracts.errors import EchoplaneError

PROBLEMS_LISTED_MAX: Final = 100
_TOLERANCE: Final = 1e-9
"""Of numbers that other versions of a library may add up in another order."""

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleReport:
    """
    What was found. `holds` where there is no problem; `problems` are the first in stable words.

    `checked` counts what was compared, by name; `manifest` is None where it cannot be read.
    """

    name: str
    manifest: Manifest | None
    measures: tuple[Measure, ...]
    checked: dict[str, int]
    problems: tuple[str, ...]
    problems_count: int

    @property
    def holds(self) -> bool:
        """Whether everything in the bundle is what the rest of it says."""
        return self.problems_count == 0


@dataclass(slots=True)
class _Check:
    problems: list[str] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)

    def that(self, name: str, holds: bool, problem: str) -> None:  # noqa: FBT001 - the condition itself
        self.checked[name] += 1
        if not holds:
            self.problems.append(problem)

    def read(self, what: str, read: Callable[[], list[Model]]) -> list[Model]:
        try:
            return read()
        except EchoplaneError as error:
            self.problems.append(f"{what}: {error}")
            return []


def check_bundle(folder: Path, *, data: Path | None = None) -> BundleReport:
    """
    Check a bundle, with its data set if there is one at hand. A fault is a verdict, not an error.

    Args:
        data: The file or folder that the run read: then its digests are compared, and the gold read again.
    """
    check = _Check()
    name = folder.resolve().name
    try:
        raw = (folder / MANIFEST).read_bytes()
        manifest = Manifest.model_validate_json(raw)
    except (OSError, ValidationError) as error:
        return _report(name, None, (), _Check(problems=[_no_bundle(folder, error)]))
    check.that("address", bundle_name(manifest) == name, "address: the folder's name is not its manifest's")
    check.that("address", canonical(manifest) == raw, "manifest: not in canonical form")
    _check_files(check, folder, manifest)
    gold = check.read(GOLD, lambda: read_lines(folder / GOLD, GoldLine))
    rows = check.read(ROWS, lambda: read_lines(folder / ROWS, Row))
    measures = check.read(MEASURES, lambda: read_lines(folder / MEASURES, Measure))
    predictions = check.read(PREDICTIONS, lambda: read_lines(folder / PREDICTIONS, Prediction))
    costs = check.read(COSTS, lambda: read_lines(folder / COSTS, Cost))
    check.read(LOST, lambda: read_lines(folder / LOST, Lost))
    if not check.problems:
        _check_rows(check, manifest, gold=gold, rows=rows, predictions=predictions, costs=costs)
        _check_measures(check, measures, rows, manifest.recorded)
        if data is not None:
            _check_data(check, manifest, gold, data)
    return _report(name, manifest, tuple(measures), check)


def _no_bundle(folder: Path, error: Exception) -> str:
    """Say why a folder is none that can be checked, and who can do something about it."""
    if not folder.is_dir():
        return "no bundle: there is no such folder; name one that a finished run left behind"
    if (folder / STATE).exists():
        return "no bundle yet: the run was cut off; whoever began it goes on with its command"
    if isinstance(error, FileNotFoundError):
        below = sorted(path.parent.name for path in folder.glob(f"*/{MANIFEST}"))
        hint = f"; below it lie {len(below)}, such as {below[0]}" if below else ""
        return f"no bundle: it has no {MANIFEST}; name a folder that a finished run left behind{hint}"
    return f"broken bundle: its {MANIFEST} is not as a run writes it; get it anew from whoever published it"


def _check_files(check: _Check, folder: Path, manifest: Manifest) -> None:
    found = {path.name for path in folder.iterdir()}
    check.that("files", found == {MANIFEST, *FILES}, "files: not those that a bundle has")
    check.that(
        "files", tuple(one.path for one in manifest.files) == FILES, "files: others are in the manifest"
    )
    for one in manifest.files:
        _check_file(check, one, lambda one=one: file_digest(folder / one.path, name=one.path))  # type: ignore[misc]
    sealed = next((one.sha256 for one in manifest.files if one.path == PREDICTIONS), None)
    check.that("seal", sealed == manifest.sealed, "seal: the predictions are not those that were sealed")
    times = [
        datetime.fromisoformat(time)
        for time in (manifest.started_at, manifest.sealed_at, manifest.gold_at, manifest.ended_at)
    ]
    check.that("seal", times == sorted(times), "seal: gold was read before the predictions were sealed")


def _check_file(check: _Check, told: FileDigest, digest: Callable[[], FileDigest]) -> None:
    try:
        check.that("files", digest() == told, f"{told.path}: its bytes are not those of the manifest")
    except EchoplaneError as error:
        check.problems.append(f"{told.path}: {error}")


def _check_rows(
    check: _Check,
    manifest: Manifest,
    *,
    gold: Sequence[GoldLine],
    rows: Sequence[Row],
    predictions: Sequence[Prediction],
    costs: Sequence[Cost],
) -> None:
    for what, keys in (
        ("gold", [one.question for one in gold]),
        ("predictions", [one.key for one in predictions]),
        ("costs", [one.key for one in costs]),
    ):
        check.that("rows", len(set(keys)) == len(keys), f"{what}: a line stands twice")
    try:
        expected = scored_rows(manifest.run, gold, predictions, costs)
    except EchoplaneError as error:
        check.problems.append(f"rows: {error}")
        return
    check.that("rows", len(expected) == len(rows), f"rows: {len(rows)} of {len(expected)} cells are there")
    for one, other in zip(expected, rows, strict=False):
        alike = one.model_copy(update={"values": {}}) == other.model_copy(update={"values": {}})
        check.that(
            "rows", alike and _close(one, other), f"rows: {one.question} of {one.arm} is scored otherwise"
        )


def _close(one: Row, other: Row) -> bool:
    return one.values.keys() == other.values.keys() and all(
        same_number(one.values[name], other.values[name]) for name in one.values
    )


def same_number(one: Number | None, other: Number | None) -> bool:
    """Say whether two numbers are one, up to how another machine rounds a sum."""
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)


def _check_measures(
    check: _Check, measures: Iterable[Measure], rows: Sequence[Row], recorded: Values
) -> None:
    for told in measures:
        name = told.formula.name
        try:
            found = measure(told.formula, rows, recorded)
        except EchoplaneError as error:
            check.problems.append(f"measure {name}: {error}")
            continue
        agrees = found.n == told.n and all(
            same_number(getattr(found, part), getattr(told, part)) for part in ("value", "low", "high")
        )
        check.that("measures", agrees, f"measure {name}: its rows give {found.value} of {found.n}")


def _check_data(check: _Check, manifest: Manifest, gold: Sequence[GoldLine], data: Path) -> None:
    found = {one.path: one for one in check.read("data", lambda: list(data_digests(data)))}
    for told in manifest.run.data:
        check.that("data", found.get(told.path) == told, f"data: {told.path} is another file")
    data_set = DATA_SETS.get(manifest.run.data_set)
    if data_set is None:
        check.problems.append(f"data: no reader is known of the set {manifest.run.data_set}")
        return
    answers = any(line.answer is not None for line in gold)
    expected = check.read("gold", lambda: gold_lines(data_set, data, answers=answers))
    check.that(
        "gold", len(expected) == len(gold), f"gold: {len(gold)} of {len(expected)} questions are there"
    )
    for one, other in zip(expected, gold, strict=False):
        check.that("gold", one == other, f"gold: {one.question} has another in the data")


def _report(
    name: str, manifest: Manifest | None, measures: tuple[Measure, ...], check: _Check
) -> BundleReport:
    return BundleReport(
        name=name,
        manifest=manifest,
        measures=measures,
        checked=dict(check.checked),
        problems=tuple(check.problems[:PROBLEMS_LISTED_MAX]),
        problems_count=len(check.problems),
    )
