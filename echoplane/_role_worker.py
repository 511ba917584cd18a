"""The worker role: a projection worker, and in the first of its processes a relay of the outbox too."""

from __future__ import annotations

import asyncio
import platform
import signal
from typing import Final

from contracts.errors import Unavailable
from echoplane._clock import wall_clock
from echoplane._embedded import find_servers
from echoplane._folders import DataFolder
from echoplane._keys import load_master_key
from echoplane._settings import Settings
from echoplane._traces import exporting
from ledger.log import open_database
from projection import RuleProjector, run_projection, run_worker

RELAYS: Final = 2
"""So many of the workers relay: one that stands still stops nobody, and more would only say all again."""


async def serve_worker(settings: Settings, *, number: int) -> None:
    """
    Fold every tenant to its head, until told to stop.

    Args:
        settings: Of the plane.
        number: Of this process among its workers, from 1.

    Raises:
        Unavailable: The servers are not there.
    """
    servers = await find_servers(settings)
    if servers is None:
        raise Unavailable(part="servers", reason="not started")
    stop = asyncio.Event()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signal_number, stop.set)
    async with exporting(settings, role="worker"):
        database = open_database(
            plane_url=servers.database.plane,
            relay_url=servers.database.relay,
            master_key=load_master_key(settings, DataFolder.at(settings.data_dir)),
            clock=wall_clock,
        )
        try:
            # Stable over restarts of this role: what a killed one left pending is its own again.
            consumer = f"{platform.node()}-worker" + ("" if number == 1 else f"-{number}")
            run = run_projection if number <= RELAYS else run_worker
            await run(database, servers.redis_url, RuleProjector(), consumer=consumer, stop=stop)
        finally:
            await database.close()
