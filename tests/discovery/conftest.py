"""A ledger with two tenants, an embedder that is quick, and a service over it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from discovery import Client, serve
from echoplane._embedded import DatabaseUrls
from ledger import log
from tests.discovery.values import WordEmbedder

MASTER_KEY = bytes(range(32))


@pytest.fixture
async def db(database: DatabaseUrls) -> AsyncIterator[log.Database]:
    made = log.open_database(
        plane_url=database.plane,
        relay_url=database.relay,
        master_key=MASTER_KEY,
        clock=lambda: datetime.now(UTC),  # noqa: TID251 - the wiring's clock
    )
    await log.create_tenant(made, "acme")
    await log.create_tenant(made, "other")
    yield made
    await made.close()


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
def socket_path(tmp_path):
    folder = tmp_path / "s"
    folder.mkdir(mode=0o700)
    return folder / "d.sock"


@pytest.fixture
def start(db, socket_path, patient):
    """Start a service and wait until it answers; stopped at the end of the block."""

    class Running:
        def __init__(self, factory, redis_url=None):
            self._factory, self._redis_url = factory, redis_url

        async def __aenter__(self) -> Client:
            self._stop = asyncio.Event()
            self._task = asyncio.create_task(
                serve(
                    db,
                    socket_path,
                    redis_url=self._redis_url,
                    embedder_factory=self._factory,
                    stop=self._stop,
                )
            )
            while not socket_path.exists():
                if self._task.done():
                    await self._task
                await asyncio.sleep(0.01)
            return Client(socket_path)

        async def __aexit__(self, *_):
            self._stop.set()
            await self._task

    return Running
