"""An open ledger with one tenant, `acme`, and a clock that stands where a test puts it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import psycopg
import pytest

from echoplane._embedded import DatabaseUrls, ensure_database
from echoplane._postgres import SUPERUSER
from ledger import log

MASTER_KEY = bytes(range(32))


class SettableClock:
    """Says what it was told last."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
async def db(database: DatabaseUrls, clock: SettableClock) -> AsyncIterator[log.Database]:
    """The ledger as backfill opens it: `recorded_at` follows `clock`."""
    assert database.backfill is not None
    made = log.open_database(
        plane_url=database.backfill,
        relay_url=database.relay,
        master_key=MASTER_KEY,
        clock=clock,
        states_clock=True,
    )
    await log.create_tenant(made, "acme")
    yield made
    await made.close()


@pytest.fixture
async def plane_db(database: DatabaseUrls, clock: SettableClock) -> AsyncIterator[log.Database]:
    """The ledger as the plane opens it: `recorded_at` is the server's."""
    made = log.open_database(
        plane_url=database.plane, relay_url=database.relay, master_key=MASTER_KEY, clock=clock
    )
    await log.create_tenant(made, "acme")
    yield made
    await made.close()


@pytest.fixture(scope="module", name="many_tenants")
def one_ledger_for_many_tenants(postgres, template, database_numbers):
    """A ledger under one event loop, with a tenant for each example of a property."""
    # It reads the master key out of this file.
    from tests.ledger.folded import Ledger  # noqa: PLC0415

    name = f"test_{next(database_numbers)}"
    made = Ledger(asyncio.run(ensure_database(postgres, name, template=template)))
    yield made
    made.close()
    with psycopg.connect(
        postgres.conninfo(role=SUPERUSER, database="postgres"), autocommit=True
    ) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
