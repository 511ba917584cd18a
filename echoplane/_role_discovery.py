"""The discovery role: candidates over a private socket, from indexes that follow the log."""

from __future__ import annotations

import asyncio
import signal

from contracts.errors import Unavailable
from discovery import serve
from echoplane._clock import wall_clock
from echoplane._embedded import find_servers
from echoplane._embedders import embedder_factory
from echoplane._folders import DataFolder
from echoplane._keys import load_master_key
from echoplane._settings import Settings
from echoplane._sockets import discovery_sockets
from ledger.log import open_database


async def serve_discovery(settings: Settings, *, number: int = 1) -> None:
    """
    Serve proposals for the tenants of one process, numbered from 1, until told to stop.

    Raises:
        Unavailable: The servers are not there.
    """
    # Appends and questions go on without Redis, and so do those who come anew to serve them.
    servers = await find_servers(settings, redis_answers=False)
    if servers is None:
        raise Unavailable(part="servers", reason="not started")
    folder = DataFolder.at(settings.data_dir)
    stop = asyncio.Event()
    for told in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(told, stop.set)
    database = open_database(
        plane_url=servers.database.plane,
        relay_url=servers.database.relay,
        master_key=load_master_key(settings, folder),
        clock=wall_clock,
    )
    try:
        await serve(
            database,
            discovery_sockets(folder, count=settings.discoveries)[number - 1],
            redis_url=servers.redis_url,
            embedder_factory=embedder_factory(settings, folder),
            stop=stop,
            shard=number - 1,
            shards=settings.discoveries,
            cache_folder=folder.root / "index",
        )
    finally:
        await database.close()
