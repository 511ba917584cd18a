"""Connections of their own: each is given out to one, and never with anything open."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import psycopg
import pytest

from contracts.errors import Unavailable
from ledger import _direct
from ledger._direct import Connection, Direct


@pytest.fixture
async def direct(database):
    conninfo = database.plane.replace("+psycopg", "")
    made = Direct(conninfo, connections_max=1, wait_seconds=0.05)
    yield made
    await made.close()


@pytest.fixture
async def made(database):
    async with await Connection.connect(database.plane.replace("+psycopg", ""), autocommit=True) as made:
        yield made


@pytest.fixture
async def other(database):
    async with await Connection.connect(database.plane.replace("+psycopg", ""), autocommit=True) as made:
        yield made


async def test_whoever_finds_all_in_use_waits_and_is_then_told(direct):
    busy = asyncio.create_task(direct.rows("SELECT pg_sleep(60)", {}))
    await asyncio.sleep(0)

    with pytest.raises(Unavailable):
        await direct.rows("SELECT 1", {})

    busy.cancel()
    with pytest.raises(asyncio.CancelledError):
        await busy
    assert await direct.rows("SELECT 1", {}) == [(1,)]


async def test_a_connection_with_something_open_is_not_given_out_again(direct):
    [[first]] = await direct.rows("SELECT pg_backend_pid()", {})
    [[again]] = await direct.rows("SELECT pg_backend_pid()", {})
    with pytest.raises(psycopg.ProgrammingError):
        await direct.rows("BEGIN", {})
    [[other]] = await direct.rows("SELECT pg_backend_pid()", {})

    assert (again == first, other == first) == (True, False)


async def test_who_is_cancelled_while_a_connection_is_asked_whether_it_stands_leaves_none_open(
    direct, monkeypatch
):
    await direct.rows("SELECT 1", {})
    monkeypatch.setattr(_direct, "IDLE_SECONDS_MAX", 0.0)
    [held] = direct._held
    asked = asyncio.Event()

    async def no_answer(_):
        asked.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(held.driver, "execute", no_answer)
    reading = asyncio.create_task(direct.rows("SELECT 1", {}))
    await asked.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading

    assert held.driver.closed


async def test_a_read_under_way_at_the_end_keeps_no_connection(direct, monkeypatch):
    given = []
    give_back = Direct._give_back

    async def spied(self, held):
        given.append(held.driver)
        await give_back(self, held)

    monkeypatch.setattr(Direct, "_give_back", spied)
    reading = asyncio.create_task(direct.rows("SELECT pg_sleep(0.2)", {}))
    while direct._places._value:
        await asyncio.sleep(0)
    await direct.close()
    await reading

    assert given[0].closed
    with pytest.raises(Unavailable, match="closed"):
        await direct.rows("SELECT 1", {})


async def test_a_statement_is_made_ready_once_for_all_its_values_of_one_type(direct):
    for value in (7, 8, None, "nine"):
        assert await direct.rows("SELECT %(value)s::text, %(value)s IS NULL", {"value": value}) == [
            (None if value is None else str(value), value is None)
        ]

    assert await direct.rows("SELECT count(*) FROM pg_prepared_statements", {}) == [(3,)]


async def test_what_comes_in_many_pieces_or_leaves_in_many_is_whole(direct):
    text = "é" * 8_000_000

    assert await direct.rows("SELECT %(text)s::text", {"text": text}) == [(text,)]
    assert await direct.rows("SELECT repeat('y', 30000000)", {}) == [("y" * 30_000_000,)]


async def _cancelled_asleep(reading, made, other):
    """Cancel a read when its server sleeps: one that has not begun yet overlooks that it is to end it."""
    asleep = "SELECT FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'"
    while not await (await other.execute(asleep, [made.info.backend_pid])).fetchall():
        await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


async def test_a_connection_whose_read_was_cancelled_serves_the_next_one(made, other):
    reading = asyncio.create_task(made.execute("SELECT pg_sleep(60)"))
    await _cancelled_asleep(reading, made, other)

    found = await made.execute("SELECT 1")

    assert await found.fetchall() == [(1,)]


async def test_what_leaves_in_many_pieces_after_something_was_read_is_whole(database):
    text = "é" * 8_000_000
    async with await Connection.connect(database.plane.replace("+psycopg", "")) as made:
        async with asyncio.timeout(20):
            # A transaction begins first, and its answer is read before this is sent.
            found = await made.execute("SELECT %s::text", [text], prepare=True)

            assert await found.fetchall() == [(text,)]


async def test_who_is_cancelled_while_a_statement_is_made_ready_leaves_the_connection_fit_for_others(
    direct, monkeypatch
):
    [[first]] = await direct.rows("SELECT pg_backend_pid()", {})
    result = _direct._Held._result

    async def cancelled_after(held):
        await result(held)
        monkeypatch.undo()
        raise asyncio.CancelledError

    monkeypatch.setattr(_direct._Held, "_result", cancelled_after)
    with pytest.raises(asyncio.CancelledError):
        await direct.rows("SELECT 1", {})

    assert await direct.rows("SELECT 2, pg_backend_pid()", {}) == [(2, first)]


async def test_rows_come_one_by_one_and_whoever_stops_leaves_the_connection_fit_for_others(made):
    async with aclosing(made.held.streamed("SELECT generate_series(1, 50000)", {})) as rows:
        first = [await anext(rows), await anext(rows)]

    every = [row async for row in made.held.streamed("SELECT generate_series(1, %(n)s::int)", {"n": 3})]

    assert (first, every) == ([(1,), (2,)], [(1,), (2,), (3,)])


async def test_what_the_driver_gives_up_after_a_rollback_is_made_ready_again(database):
    async with await Connection.connect(database.plane.replace("+psycopg", "")) as made:
        for _ in range(2):
            await made.execute("SELECT 1", prepare=True)
            found = [row async for row in made.held.streamed("SELECT 2", {})]
            await made.rollback()

    assert found == [(2,)]


async def test_what_fails_after_some_rows_says_so_and_leaves_the_connection_fit_for_others(made):
    coming = made.held.streamed("SELECT 6 / (3 - n) FROM generate_series(1, 9) AS n", {})

    found = [await anext(coming), await anext(coming)]
    with pytest.raises(psycopg.errors.DivisionByZero):
        await anext(coming)

    assert found == [(3,), (6,)]
    assert await made.held.rows("SELECT 1", {}) == [(1,)]


async def test_who_is_cancelled_amid_rows_leaves_the_connection_fit_for_others(made, other):
    # Rows that fill what the server sends at once, and then a long time nothing.
    slow = "SELECT repeat('y', 100000), CASE WHEN n > 3 THEN pg_sleep(60) END FROM generate_series(1, 4) AS n"
    coming = made.held.streamed(slow, {})
    found = [await anext(coming), await anext(coming)]

    reading = asyncio.create_task(_rest_of(coming))
    await _cancelled_asleep(reading, made, other)

    assert len(found) == 2
    assert await made.held.rows("SELECT 1", {}) == [(1,)]


async def _rest_of(coming):
    return [row async for row in coming]


async def test_no_more_statements_are_kept_ready_than_the_bound(direct, monkeypatch):
    monkeypatch.setattr(_direct, "PLANS_MAX", 3)

    found = [await direct.rows(f"SELECT {number}", {}) for number in [*range(8), 0]]

    assert found == [[(number,)] for number in [*range(8), 0]]
    [[kept]] = await direct.rows("SELECT count(*) FROM pg_prepared_statements", {})
    assert kept <= 3


async def test_what_the_driver_keeps_ready_itself_outlives_the_bound_of_ours(made, monkeypatch):
    monkeypatch.setattr(_direct, "PLANS_MAX", 3)
    await made.execute("SELECT 'its own'", prepare=True)

    for number in range(8):
        await made.held.rows(f"SELECT {number}", {})

    assert await (await made.execute("SELECT 'its own'", prepare=True)).fetchone() == ("its own",)


async def test_a_connection_that_was_cut_is_not_given_out_again(db):
    [[process]] = await db.rows("SELECT pg_backend_pid()", {})

    with pytest.raises(Unavailable):
        await db.rows("SELECT pg_terminate_backend(pg_backend_pid())", {})
    [[other]] = await db.rows("SELECT pg_backend_pid()", {})

    assert other != process
