"""The API role: the HTTP door over an open plane, and its tenants' retention."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Final

from contracts import limits
from contracts.errors import Unavailable
from echoplane._embedded import find_servers
from echoplane._http import make_app
from echoplane._http_server import serving
from echoplane._retention import retaining_meanwhile
from echoplane._settings import Settings
from echoplane._traces import exporting
from echoplane._wiring import open_plane

SWITCH_SECONDS: Final = 0.001
"""How long a thread beside the loop goes on while that waits for its turn, which it does at each step."""


async def serve_api(settings: Settings) -> None:
    """
    Serve HTTP until told to stop.

    Raises:
        Unavailable: The servers are not there.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    stop = asyncio.Event()
    # Between two steps of whatever runs, where Python's own handlers run in the midst of one.
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signal_number, stop.set)
    # Appends and questions go on without Redis, and so do those who come anew to serve them.
    servers = await find_servers(settings, redis_answers=False)
    if servers is None:
        raise Unavailable(part="servers", reason="not started")
    async with (
        exporting(settings, role="api"),
        open_plane(settings, servers, wait_ms=limits.WAIT_DEFAULT_MS) as plane,
        retaining_meanwhile(plane),
    ):
        app = make_app(plane)
        await serving(
            app, host=settings.http_host, port=settings.http_port, streams=app.state.streams, stop=stop
        ).serve()
