"""The API role: the HTTP door over an open plane, and its tenants' retention."""

from __future__ import annotations

from socket import socket

import uvicorn

from contracts import limits
from contracts.errors import Unavailable
from echoplane._embedded import find_servers
from echoplane._http import make_app
from echoplane._http_stream import Streams
from echoplane._retention import retaining_meanwhile
from echoplane._settings import Settings
from echoplane._traces import exporting
from echoplane._wiring import open_plane

STOP_SECONDS = 5
"""How long open requests may take to end."""


class _Server(uvicorn.Server):
    """Ends its streams when it is told to stop: they would go on for ever, and be waited for."""

    def __init__(self, config: uvicorn.Config, streams: Streams) -> None:
        super().__init__(config)
        self._streams = streams

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        self._streams.closing.set()
        await super().shutdown(sockets)


async def serve_api(settings: Settings) -> None:
    """
    Serve HTTP until told to stop.

    Raises:
        Unavailable: The servers are not there.
    """
    servers = await find_servers(settings)
    if servers is None:
        raise Unavailable(part="servers", reason="not started")
    async with (
        exporting(settings, role="api"),
        open_plane(settings, servers, wait_ms=limits.WAIT_DEFAULT_MS) as plane,
    ):
        app = make_app(plane)
        server = _Server(
            uvicorn.Config(
                app,
                host=settings.http_host,
                port=settings.http_port,
                log_config=None,
                access_log=False,
                # Nothing is done by where a request says that it came from.
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=STOP_SECONDS,
            ),
            app.state.streams,
        )
        async with retaining_meanwhile(plane):
            await server.serve()
