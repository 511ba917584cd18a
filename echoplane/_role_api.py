"""The API role: the HTTP door over an open plane, and its tenants' retention."""

from __future__ import annotations

import asyncio
from email.utils import formatdate
from socket import socket
from types import FrameType

import uvicorn
from uvicorn.server import ServerState

from contracts import limits
from contracts.errors import Unavailable
from echoplane._clock import wall_clock
from echoplane._embedded import find_servers
from echoplane._http import make_app
from echoplane._http_stream import Streams
from echoplane._retention import retaining_meanwhile
from echoplane._settings import Settings
from echoplane._traces import exporting
from echoplane._wiring import open_plane

STOP_SECONDS = 5
"""How long open requests may take to end."""


class _Dated(ServerState):
    """What all answers begin with: the date of each, where the library would write a new one every second."""

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        return [(b"date", formatdate(wall_clock().timestamp(), usegmt=True).encode())]

    @default_headers.setter
    def default_headers(self, _: list[tuple[bytes, bytes]]) -> None:
        """Keep nothing of what the library says once, at its start."""


class _Server(uvicorn.Server):
    """
    Waits to be told to stop, where the library looks ten times a second whether it was.

    Then it ends its streams: they would go on for ever, and be waited for.
    """

    def __init__(self, config: uvicorn.Config, streams: Streams) -> None:
        super().__init__(config)
        self.server_state = _Dated()
        self._streams = streams
        self._told = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._loop.call_soon_threadsafe(self._told.set)

    async def main_loop(self) -> None:
        await self._told.wait()

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        self._streams.closing.set()
        await super().shutdown(sockets)


async def serve_api(settings: Settings) -> None:
    """
    Serve HTTP until told to stop.

    Raises:
        Unavailable: The servers are not there.
    """
    # Appends and questions go on without Redis, and so do those who come anew to serve them.
    servers = await find_servers(settings, redis_answers=False)
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
