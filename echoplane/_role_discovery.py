"""The discovery role: candidates over a private socket, from indexes that follow the log."""

from __future__ import annotations

import asyncio
import signal
from functools import partial

from contracts.errors import Unavailable
from discovery import load_minilm, serve
from echoplane._clock import wall_clock
from echoplane._embedded import find_servers
from echoplane._folders import DataFolder
from echoplane._keys import load_master_key
from echoplane._settings import Settings
from echoplane._sockets import discovery_socket
from ledger.log import open_database


async def serve_discovery(settings: Settings) -> None:
    """
    Serve proposals until told to stop.

    Raises:
        Unavailable: The servers are not there.
    """
    servers = await find_servers(settings)
    if servers is None:
        raise Unavailable(part="servers", reason="not started")
    folder = DataFolder.at(settings.data_dir)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    database = open_database(
        plane_url=servers.database.plane,
        relay_url=servers.database.relay,
        master_key=load_master_key(settings, folder),
        clock=wall_clock,
    )
    try:
        await serve(
            database,
            discovery_socket(folder),
            redis_url=servers.redis_url,
            embedder_factory=partial(load_minilm, folder.root / "models", model_dir=settings.model_dir),
            stop=stop,
        )
    finally:
        await database.close()
