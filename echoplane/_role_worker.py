"""The worker role: the relay of the outbox and one projection worker."""

from __future__ import annotations

import asyncio
import platform
import signal

from contracts.errors import Unavailable
from echoplane._clock import wall_clock
from echoplane._embedded import find_servers
from echoplane._folders import DataFolder
from echoplane._keys import load_master_key
from echoplane._settings import Settings
from ledger.log import open_database
from projection import RuleProjector, run_projection


async def serve_worker(settings: Settings) -> None:
    """
    Fold every tenant to its head, until told to stop.

    Raises:
        Unavailable: The servers are not there.
    """
    servers = await find_servers(settings)
    if servers is None:
        raise Unavailable(part="servers", reason="not started")
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    database = open_database(
        plane_url=servers.database.plane,
        relay_url=servers.database.relay,
        master_key=load_master_key(settings, DataFolder.at(settings.data_dir)),
        clock=wall_clock,
    )
    try:
        # Stable over restarts of this role: what a killed one left pending is its own again.
        consumer = f"{platform.node()}-worker"
        await run_projection(database, servers.redis_url, RuleProjector(), consumer=consumer, stop=stop)
    finally:
        await database.close()
