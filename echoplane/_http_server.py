"""
The server below the HTTP door: who may be connected, how long it may take, and how all of it ends.

The library has one bound of its own, on connections that say nothing after an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
from asyncio import TimerHandle, Transport
from collections.abc import Iterator
from email.utils import formatdate
from socket import socket
from typing import Any, Final, cast

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from contracts import limits
from contracts.errors import Busy, EchoplaneError, TooSlow
from echoplane._clock import wall_clock
from echoplane._failures import error_answer, http_status
from echoplane._http_stream import Streams

STOP_SECONDS: Final = 5.0
"""How long open requests may take to end when the API stops; then they are given up."""
GIVE_UP_SECONDS: Final = 1.0
"""How long what was given up may take to end."""
LAST_WORDS_SECONDS: Final = 0.25
"""How long what was said may lie unread, once nothing else is to be done, before the connection is cut."""
REST_SECONDS: Final = 2.0
"""How long the rest of a body that was answered before its end may go on to come."""
COME_AGAIN_SECONDS: Final = 1.0
"""When whoever found no place may try again."""


class Protocol(H11Protocol):
    """A connection. Whoever keeps it waiting is let go: for a head, the rest of a body, or its ears."""

    def __init__(self, *of: Any, **more: Any) -> None:  # noqa: ANN401 -- the library's own
        super().__init__(*of, **more)
        self._saying: TimerHandle | None = None
        self._hearing: TimerHandle | None = None
        self.lost: asyncio.Future[None] = self.loop.create_future()

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > limits.CONNECTIONS_MAX:
            reason = f"{limits.CONNECTIONS_MAX} connections are open"
            self._refuse(Busy(part="api", reason=reason, retry_after_seconds=COME_AGAIN_SECONDS))
            return
        self._saying = self.loop.call_later(limits.HEAD_SECONDS_MAX, self._end_head)

    def connection_lost(self, exc: Exception | None) -> None:
        self._unset("_saying")
        self._unset("_hearing")
        super().connection_lost(exc)
        if not self.lost.done():
            self.lost.set_result(None)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        was_rest = self._is_answered_early()
        super().data_received(data)
        if was_rest and not self._is_answered_early():
            self._unset("_saying")
        if self.conn.their_state is h11.IDLE:
            # A head that has begun, and not ended: from its first byte on, however many come after.
            if self._saying is None:
                self._saying = self.loop.call_later(limits.HEAD_SECONDS_MAX, self._end_head)
            return
        # Of bytes that are no HTTP there is none, whatever its type says.
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is not None and not cycle.response_complete:
            self._unset("_saying")

    def on_response_complete(self) -> None:
        if self.transport.is_closing():
            self._await_ears()
        elif self._is_answered_early():
            self._unset("_saying")
            self._saying = self.loop.call_later(REST_SECONDS, self.transport.abort)
        super().on_response_complete()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._await_ears()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_ears()

    def resume_writing(self) -> None:
        if not self.transport.is_closing():
            self._unset("_hearing")
        super().resume_writing()

    def _is_answered_early(self) -> bool:
        """Return whether the answer is out and the body is not in."""
        return self.conn.their_state is h11.SEND_BODY and self.cycle.response_complete

    def _await_ears(self) -> None:
        if self._hearing is None:
            self._hearing = self.loop.call_later(limits.ANSWER_SECONDS_MAX, self.transport.abort)

    def _end_head(self) -> None:
        self._saying = None
        if self.conn.trailing_data[0]:
            self._refuse(TooSlow(part="head", seconds=limits.HEAD_SECONDS_MAX))
        else:
            self.transport.close()

    def _refuse(self, error: EchoplaneError) -> None:
        """Answer what is no request yet, and hear no more."""
        status, body = http_status(error), error_answer(error).model_dump_json().encode()
        headers = [
            *self.server_state.default_headers,
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        if isinstance(error, Busy):
            headers.append((b"retry-after", b"%d" % error.retry_after_seconds))
        lines = [b"HTTP/1.1 %d " % status, *(b"\r\n%s: %s" % header for header in headers)]
        self.transport.write(b"".join([*lines, b"\r\n\r\n", body]))
        self.transport.close()

    def _unset(self, timer: str) -> None:
        if (handle := getattr(self, timer)) is not None:
            handle.cancel()
            setattr(self, timer, None)


class _Dated(ServerState):
    """What all answers begin with: the date of each, where the library would write a new one every second."""

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        return [(b"date", formatdate(wall_clock().timestamp(), usegmt=True).encode())]

    @default_headers.setter
    def default_headers(self, _: list[tuple[bytes, bytes]]) -> None:
        """Keep nothing of what the library says once, at its start."""


class Server(uvicorn.Server):
    """
    Serves until `stop` is set, where the library looks ten times a second and catches signals itself.

    It would catch them in the midst of whatever runs, and raise them again in the end: the process died
    of the signal before it had closed what it holds open.
    """

    def __init__(self, config: uvicorn.Config, *, streams: Streams, stop: asyncio.Event) -> None:
        super().__init__(config)
        self.server_state = _Dated()
        self._streams, self._stop = streams, stop

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Catch none: whoever made this does."""
        yield

    async def main_loop(self) -> None:
        await self._stop.wait()

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """
        End: streams and half sent requests at once, all else when it is done, or its time is over.

        The library looks every tenth of a second whether all have gone, and waits for whoever does not read.
        """
        for listening in (*self.servers, *(sockets or ())):
            listening.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        self._streams.close()
        if late := await self._ended(STOP_SECONDS):
            for task in late:
                task.cancel()
            await self._ended(GIVE_UP_SECONDS)
        held = [one for one in self.server_state.connections if isinstance(one, Protocol)]
        if held:
            await asyncio.wait([one.lost for one in held], timeout=LAST_WORDS_SECONDS)
        for one in held:
            one.transport.abort()
        await self.lifespan.shutdown()

    async def _ended(self, within_seconds: float) -> set[asyncio.Task[None]]:
        """Return the requests that go on after so long."""
        if not self.server_state.tasks:
            return set()
        return (await asyncio.wait(self.server_state.tasks, timeout=within_seconds))[1]


def serving(app: ASGIApp, *, host: str, port: int, streams: Streams, stop: asyncio.Event) -> Server:
    """Return a server of the door."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        # By name: another parser would be taken where one is installed, and has none of these bounds.
        http=Protocol,
        log_config=None,
        access_log=False,
        # Nothing is done by where a request says that it came from.
        proxy_headers=False,
        server_header=False,
    )
    return Server(config, streams=streams, stop=stop)
