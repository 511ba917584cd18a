"""
One key with a long history, at any cut and instant; and a hundred keys of many in one call.

What is measured "in the database" is the sum of planning and execution, by the server's own account
(`EXPLAIN ANALYZE` without timing each node), of every statement that one resolve sends. All are planned once
for a connection, and so they are measured.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.times import KnownAt, ValidAt
from contracts.views import View
from ledger._direct import _Held, _numbered
from ledger._world import Key
from ledger.resolve import resolve_many
from tests.bench.grounds import Grounds
from tests.bench.histories import SHAPES, START, STEP, Made, history_of, recorded_at
from tests.bench.measure import Row, latencies

RUNS = 41
CUTS = {"newest": 1.0, "middle": 0.5, "first percent": 0.01}


async def histories(at: Grounds, *, large: bool) -> AsyncIterator[Row]:
    """Resolve one key of each shape, at three cuts and at any instant."""
    for name, shape in SHAPES.items():
        for size in (100, 1_000, 10_000, 100_000, *((1_000_000,) if large else ())):
            made = await history_of(at, f"{name}-{size}", [("thing", "located_in")], shape, size=size)
            for cut, part in CUTS.items():
                known = max(1, round(part * size))
                views = [_view(known, at, size) for _ in range(RUNS)]
                async for row in _measured(at, made, [("thing", "located_in")], views, f"{name}, {cut}"):
                    yield row


async def hundred(at: Grounds, *, large: bool) -> AsyncIterator[Row]:
    """Resolve a hundred keys in one call, of ten thousand or more with ten claims each."""
    for size in (1_000, 10_000, *((100_000,) if large else ())):
        keys = [(f"thing {number}", "located_in") for number in range(size)]
        made = await history_of(at, f"hundred-{size}", keys, SHAPES["steady"], size=10)
        wanted = at.chance.sample(keys, 100)
        views = [_view(made.commits, at, 10) for _ in range(RUNS)]
        async for row in _measured(at, made, wanted, views, "100 keys at once"):
            yield row


def _view(cut: int, at: Grounds, size: int) -> View:
    when = START + at.chance.random() * size * STEP
    return View(valid_at=ValidAt(when), known_at=KnownAt(recorded_at(cut)), cut=cut, epoch=1)


async def _measured(
    at: Grounds, made: Made, wanted: Sequence[Key], views: Sequence[View], name: str
) -> AsyncIterator[Row]:
    database = at.plane.database
    wall, within, calls = [], [], []
    for view in views:
        async with database.snapshot(made.tenant) as conn:
            started = time.perf_counter()
            await resolve_many(conn, made.keys, view, wanted)
            wall.append(time.perf_counter() - started)
            with _statements() as sent:
                await resolve_many(conn, made.keys, view, wanted)
            within.append(sum([await _seconds(conn, *one) for one in list(sent)]))
            calls.append(len(sent))
    size = made.commits
    yield latencies(bench=f"resolve {name}", size=size, seconds=wall)
    yield latencies(
        bench=f"  in the database, {name}", size=size, seconds=within,
        note=f"{statistics.median(calls):g} statements",
    )  # fmt: skip


@contextmanager
def _statements() -> Iterator[list[tuple[str, Any]]]:
    """Collect what the driver sends."""
    sent: list[tuple[str, Any]] = []
    execute, send = psycopg.AsyncCursor.execute, _Held._sent

    async def noted(cursor: Any, statement: str, parameters: Any = None, **more: Any) -> Any:
        sent.append((statement, parameters))
        return await execute(cursor, statement, parameters, **more)

    async def noted_too(held: Any, statement: str, parameters: Any) -> Any:
        sent.append((statement, parameters))
        return await send(held, statement, parameters)

    psycopg.AsyncCursor.execute = noted  # type: ignore[method-assign,assignment]
    _Held._sent = noted_too  # type: ignore[method-assign,assignment]
    try:
        yield sent
    finally:
        psycopg.AsyncCursor.execute = execute  # type: ignore[method-assign]
        _Held._sent = send  # type: ignore[method-assign]


async def _seconds(conn: AsyncConnection, statement: str, parameters: Any) -> float:
    driver: Any = (await conn.get_raw_connection()).driver_connection
    text, names = _numbered(statement)
    given = ", ".join(f"%({name})s" for name in names)
    row = None
    async with psycopg.AsyncClientCursor(driver) as cursor:
        await cursor.execute(
            f"SET LOCAL plan_cache_mode = force_generic_plan; PREPARE measured AS {text}".encode()
        )
        for _ in range(2):
            # The second time it is planned.
            await cursor.execute(
                f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE measured({given})".encode(), parameters
            )
            row = await cursor.fetchone()
        await cursor.execute("DEALLOCATE measured; SET LOCAL plan_cache_mode = auto")
    assert row is not None
    [said] = row[0]
    return float(said["Planning Time"] + said["Execution Time"]) / 1_000
