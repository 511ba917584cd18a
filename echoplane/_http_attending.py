"""
What a request and its client owe each other: a body comes in time, and what nobody waits for is given up.

A read whose client has left, or whose process ends, is cancelled where it is, with the statement that
the server is at. What writes goes on: an append that was begun is done
whole, whether or not anybody hears of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, TypeVar

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.types import Message, Receive

from contracts import limits
from contracts.errors import TooSlow, Unavailable
from echoplane._http_stream import Streams

CLIENT_LEFT: Final = 499
"""What is logged and counted where nobody was left to be answered; no answer ever has it."""
WATCH_AFTER_SECONDS: Final = 0.05
"""A read that is done sooner is not watched: it is over before anybody could have left it."""
READ_STOP_SECONDS: Final = 1.0
"""How long reads may take to end when the API stops; what writes has longer."""
STOPPING: Final = "it is stopping"

POSTED_READS: Final[Mapping[str, bool]] = {
    "/v1/{tenant}/ask": True,
    "/v1/{tenant}/contexts/{context_hash}/replay": False,
    "/v1/{tenant}/contexts/{context_hash}/today": False,
}
"""Routes that are posted to and change nothing of what is known, with whether a body is. Every GET reads."""

_BODILESS: Final = frozenset({"GET", "HEAD"})

Done = TypeVar("Done")


class ClientLeft(Exception):
    """Who asked is gone: there is nobody to answer."""


class AttendedRoute(APIRoute):
    """A route that reads its body within bounds, and is given up with its client if it only reads."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what handles a request."""
        handle = super().get_route_handler()
        is_got = _BODILESS.issuperset(self.methods or ())
        only_reads, has_body = is_got or self.path in POSTED_READS, POSTED_READS.get(self.path, not is_got)

        async def attended(request: Request) -> Response:
            streams: Streams = request.app.state.streams
            body = _Body(request.receive, streams, is_read=has_body)
            handling = handle(Request(request.scope, receive=body.receive))
            if not only_reads:
                return await handling
            return await _unless_stopped(unless_left(handling, body.left), streams)

        return attended


class _Body:
    """What a client still has to say: its body, and after it only that it leaves."""

    def __init__(self, receive: Receive, streams: Streams, *, is_read: bool) -> None:
        self._receive, self._streams = receive, streams
        self._deadline: float | None = None
        self._whole = asyncio.Event()
        if not is_read:
            self._whole.set()

    async def receive(self) -> Message:
        """
        Return the next part of the body.

        Raises:
            TooSlow: It has not come whole in its time.
            Unavailable: It has not come whole, and the process ends.
            ClientLeft: It never will.
        """
        if self._whole.is_set():
            return await self._receive()
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + limits.BODY_SECONDS_MAX
        try:
            async with asyncio.timeout_at(self._deadline) as waiting:
                with self._streams.ending(waiting):
                    message = await self._receive()
        except TimeoutError:
            if self._streams.closing.is_set():
                raise Unavailable(part="api", reason=STOPPING) from None
            raise TooSlow(part="body", seconds=limits.BODY_SECONDS_MAX) from None
        if message["type"] == "http.disconnect":
            raise ClientLeft
        if not message.get("more_body", False):
            self._whole.set()
        return message

    async def left(self) -> None:
        """Return when the client has left, once nobody reads its body any more."""
        await self._whole.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


async def _unless_stopped(read: Awaitable[Done], streams: Streams) -> Done:
    """
    Return what a read comes to, unless the process ends first.

    Raises:
        Unavailable: It does.
    """
    lasting = asyncio.timeout(None)
    try:
        async with lasting:
            with streams.ending(lasting, within_seconds=READ_STOP_SECONDS):
                return await read
    except TimeoutError:
        if lasting.expired():
            raise Unavailable(part="api", reason=STOPPING) from None
        raise


async def unless_left(work: Awaitable[Done], left: Callable[[], Awaitable[None]]) -> Done:
    """
    Return what a piece of work comes to, unless whoever wants it leaves first: then it is cancelled.

    Raises:
        ClientLeft: It was given up.
    """
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    cancelled_before = task.cancelling()
    watching: asyncio.Task[None] | None = None
    is_given_up = False

    async def watch() -> None:
        nonlocal is_given_up
        await left()
        is_given_up = True
        # It waits for something: were it at work, this would not be.
        task.cancel()

    def begin() -> None:
        nonlocal watching
        watching = loop.create_task(watch())

    timer = loop.call_later(WATCH_AFTER_SECONDS, begin)
    try:
        return await work
    except asyncio.CancelledError:
        if is_given_up and task.uncancel() <= cancelled_before:
            raise ClientLeft from None
        raise
    finally:
        timer.cancel()
        if watching is not None:
            watching.cancel()
