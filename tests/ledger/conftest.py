"""An open ledger with one tenant, `acme`, and a clock that stands where a test puts it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from echoplane._embedded import DatabaseUrls
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
