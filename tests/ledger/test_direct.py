"""Connections of their own: each is given out to one, and never with anything open."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from contracts.errors import Unavailable
from ledger._direct import Direct


@pytest.fixture
async def direct(database):
    conninfo = database.plane.replace("+psycopg", "")
    made = Direct(conninfo, connections_max=1, wait_seconds=0.05)
    yield made
    await made.close()


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
