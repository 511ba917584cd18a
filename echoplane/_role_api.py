"""The API role: the HTTP door over an open plane."""

from __future__ import annotations

import uvicorn

from contracts import limits
from contracts.errors import Unavailable
from echoplane._embedded import find_servers
from echoplane._http import make_app
from echoplane._settings import Settings
from echoplane._wiring import open_plane

STOP_SECONDS = 5
"""How long open requests may take to end."""


async def serve_api(settings: Settings) -> None:
    """
    Serve HTTP until told to stop.

    Raises:
        Unavailable: The servers are not there.
    """
    servers = await find_servers(settings)
    if servers is None:
        raise Unavailable(part="servers", reason="not started")
    async with open_plane(settings, servers, wait_ms=limits.WAIT_DEFAULT_MS) as plane:
        server = uvicorn.Server(
            uvicorn.Config(
                make_app(plane),
                host=settings.http_host,
                port=settings.http_port,
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=STOP_SECONDS,
            )
        )
        await server.serve()
