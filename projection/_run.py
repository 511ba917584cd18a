"""Relay and worker in one process: what the embedded plane runs."""

from __future__ import annotations

import asyncio

from contracts.ports import Projector
from ledger.log import Database
from projection._relay import run_relay
from projection._worker import run_worker


async def run_projection(
    db: Database, redis_url: str, projector: Projector, *, consumer: str, stop: asyncio.Event
) -> None:
    """Run the relay and one worker until `stop` is set; a bug in either sets it, ends both, and is raised."""
    async with asyncio.TaskGroup() as group:
        group.create_task(run_relay(db, redis_url, stop=stop), name="relay")
        group.create_task(run_worker(db, redis_url, projector, consumer=consumer, stop=stop), name="worker")
        try:
            await stop.wait()
        finally:
            # Before Python 3.12 `asyncio.wait_for`, which redis-py waits with, can lose a cancellation;
            # one of the two would go on alone for ever.
            stop.set()
