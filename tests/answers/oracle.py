"""
What is true of a table of revisions: read from its rows alone, with no code of ours.

A cell is an entity and a period. From a record time on it has the value of the last row recorded by
then; a value that only repeats the one before revises nothing.
"""

from __future__ import annotations

import csv
import gzip
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Cell:
    """One period of one entity; `steps` are its values, each with the day from which it was known."""

    entity: str
    period: date
    steps: tuple[tuple[date, Decimal], ...]

    def known(self, day: date) -> Decimal | None:
        """Return the value as known on a day."""
        place = bisect_right([step[0] for step in self.steps], day)
        return self.steps[place - 1][1] if place else None

    def values(self) -> list[Decimal]:
        return list(dict.fromkeys(value for _, value in self.steps))

    def largest(self) -> Decimal | None:
        changes = [
            after - before for (_, before), (_, after) in zip(self.steps, self.steps[1:], strict=False)
        ]
        return max(changes, key=abs) if changes else None

    def changes(self, start: date, end: date) -> list[tuple[date, Decimal | None, Decimal]]:
        before: list[Decimal | None] = [None, *(value for _, value in self.steps)]
        return [
            (day, was, value)
            for was, (day, value) in zip(before, self.steps, strict=False)
            if start < day <= end
        ]


def read(path: Path, *, entity: str, valid: str, known: str, value: str) -> dict[tuple[str, date], Cell]:
    """Read a table: its cells."""
    rows: dict[tuple[str, date], list[tuple[date, Decimal]]] = defaultdict(list)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            if row[value]:
                cell = row[entity], date.fromisoformat(row[valid])
                rows[cell].append((date.fromisoformat(row[known]), Decimal(row[value])))
    return {cell: Cell(entity=cell[0], period=cell[1], steps=_steps(told)) for cell, told in rows.items()}


def _steps(told: list[tuple[date, Decimal]]) -> tuple[tuple[date, Decimal], ...]:
    kept: list[tuple[date, Decimal]] = []
    for day, value in sorted(told):
        if not kept or kept[-1][1] != value:
            kept.append((day, value))
    return tuple(kept)


def number(value: Decimal | None) -> Any:
    """Return a number as JSON reads it."""
    return None if value is None else float(value)


def instant(day: date) -> str:
    return f"{day.isoformat()}T00:00:00Z"


def months(start: date, end: date) -> int:
    """Return how often the day of the month came round."""
    count = 0
    year, month = start.year, start.month
    while True:
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
        # The first of a month exists always; a day that the month lacks comes after its last.
        if (year, month, start.day) > (end.year, end.month, end.day):
            return count
        count += 1
