"""Medians with their n, the table that they are printed as, and the yardstick that goes with them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import psycopg

_LAPS: Final = 9
_STATEMENT: Final = "SELECT sum(sqrt(n)) FROM generate_series(1, 2000) AS n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Yardstick:
    """
    What always the same work takes on this machine just now: medians, in microseconds.

    The same bench has gone at half its rate a few minutes later, by the machine alone. Figures of
    different minutes can be compared by how many of these they are.
    """

    python_us: float
    sql_us: float

    def __str__(self) -> str:
        return f"{self.python_us:,.0f} us Python, {self.sql_us:,.0f} us SQL"


async def yardstick(plain: psycopg.AsyncConnection[Any]) -> Yardstick:
    """Take the measure of the machine: in a few milliseconds."""
    python, sql = [], []
    for _ in range(_LAPS):
        started = time.perf_counter()
        sorted({f"{number % 97}.{number}": number for number in range(2_000)})
        python.append(time.perf_counter() - started)
        started = time.perf_counter()
        await (await plain.execute(_STATEMENT)).fetchone()
        sql.append(time.perf_counter() - started)
    return Yardstick(python_us=1e6 * statistics.median(python), sql_us=1e6 * statistics.median(sql))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """
    One measured thing. `value` is the median of `n` in `unit`; the percentiles are those of single calls.

    `beside` is the same of what it is compared with, measured in the same run.
    """

    bench: str
    size: int
    n: int
    unit: str
    value: float
    p95: float | None = None
    p99: float | None = None
    beside: float | None = None
    note: str = ""

    def as_json(self, growth: float | None) -> dict[str, Any]:
        ratio = None if not self.beside else self.value / self.beside
        return asdict(self) | {"ratio_to_beside": ratio, "ratio_to_size_before": growth}


def latencies(*, bench: str, size: int, seconds: Sequence[float], note: str = "", **more: Any) -> Row:
    """Return a row of single calls, in milliseconds."""
    ordered = sorted(1_000 * one for one in seconds)
    p95, p99 = (ordered[min(len(ordered) - 1, round(share * len(ordered)))] for share in (0.95, 0.99))
    return Row(
        bench=bench, size=size, n=len(ordered), unit="ms", value=statistics.median(ordered), p95=p95, p99=p99,
        note=note, **more,
    )  # fmt: skip


def rate(*, bench: str, size: int, events: int, seconds: Sequence[float], note: str = "", **more: Any) -> Row:
    """Return a row of runs of `events` each, in events a second."""
    median = events / statistics.median(seconds)
    return Row(bench=bench, size=size, n=len(seconds), unit="/s", value=median, note=note, **more)


async def timed(call: Callable[[], Awaitable[Any]]) -> float:
    """Return how many seconds a call took."""
    started = time.perf_counter()
    await call()
    return time.perf_counter() - started


def with_growth(rows: Sequence[Row]) -> list[tuple[Row, float | None]]:
    """Return each row with its ratio to the row of the same bench at the size before."""
    before: dict[tuple[str, str], Row] = {}
    found: list[tuple[Row, float | None]] = []
    for row in rows:
        last = before.get((row.bench, row.unit))
        found.append((row, row.value / last.value if last is not None and last.size < row.size else None))
        before[(row.bench, row.unit)] = row
    return found


def table(rows: Sequence[Row]) -> str:
    """Return the rows for a person."""
    head = ("bench", "size", "n", "median", "p95", "p99", "beside", "ratio", "x10", "")
    lines = [head, *(_cells(row, growth) for row, growth in with_growth(rows))]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in {0, len(head) - 1} else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _cells(row: Row, growth: float | None) -> tuple[str, ...]:
    def shown(value: float | None, unit: str = "") -> str:
        if value is None:
            return ""
        return f"{value:,.0f}{unit}" if value >= 100 else f"{value:.2f}{unit}"

    ratio = row.value / row.beside if row.beside else None
    return (
        row.bench, f"{row.size:,}", str(row.n), shown(row.value, f" {row.unit}"), shown(row.p95),
        shown(row.p99), shown(row.beside), shown(ratio), shown(growth), row.note,
    )  # fmt: skip
