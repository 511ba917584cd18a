"""
Server-sent events: one commit a message, a sign of life between them, and an end for who does not read.

What is read next is read when the last message is out, so a follower holds one page of the log at most.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import structlog
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from contracts.errors import EchoplaneError
from contracts.limits import FOLLOW_SECONDS_MAX
from echoplane._failures import error_answer

HEARTBEAT_SECONDS: Final = 10.0
"""How long a follower hears nothing at most; as long his rights may have been taken before he is let go."""
RETRY_MS: Final = 1_000
"""After which a browser that lost us comes again."""

Item = TypeVar("Item")
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Streams:
    """
    All of a process that ends before the last request has: streams, bodies to come, and reads.

    A read that is cut off is asked again elsewhere, or later, and nothing is lost.
    """

    closing: asyncio.Event = field(default_factory=asyncio.Event)
    _waiting: dict[asyncio.Timeout, float] = field(default_factory=dict)

    @contextlib.contextmanager
    def ending(self, waiting: asyncio.Timeout, *, within_seconds: float = 0.0) -> Iterator[None]:
        """Let the time for something be over so long after the process begins to end."""
        self._waiting[waiting] = within_seconds
        if self.closing.is_set():
            _end(waiting, within_seconds)
        try:
            yield
        finally:
            del self._waiting[waiting]

    def close(self) -> None:
        """End all of them."""
        self.closing.set()
        for waiting, within_seconds in self._waiting.items():
            if not waiting.expired():
                _end(waiting, within_seconds)


def _end(waiting: asyncio.Timeout, within_seconds: float) -> None:
    waiting.reschedule(asyncio.get_running_loop().time() + within_seconds)


class EventStream(Response, Generic[Item]):
    """An answer that goes on until its reader leaves, has no more right to it, or does not read."""

    def __init__(
        self,
        opened: AbstractAsyncContextManager[AsyncIterator[Item]],
        *,
        streams: Streams,
        message: Callable[[Item], bytes],
        check: Callable[[], Awaitable[None]],
        limit: int | None,
    ) -> None:
        super().__init__(
            media_type="text/event-stream", headers={"cache-control": "no-store", "x-accel-buffering": "no"}
        )
        del self.headers["content-length"]
        self._opened, self._streams, self._message = opened, streams, message
        self._check, self._limit = check, limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """
        Send what comes.

        Raises:
            EchoplaneError: Nothing was sent yet: it is answered like any other.
        """
        del scope
        async with self._opened as items:
            await send({
                "type": "http.response.start", "status": self.status_code, "headers": self.raw_headers,
            })  # fmt: skip
            ends = [
                asyncio.create_task(self._send_all(items, send)),
                asyncio.create_task(_left(receive)),
                asyncio.create_task(self._streams.closing.wait()),
            ]
            try:
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in ends:
                    task.cancel()
                await asyncio.gather(*ends, return_exceptions=True)
            with contextlib.suppress(TimeoutError):
                # Who was let go is not waited for again: the server cuts him off.
                if ends[0].cancelled() or ends[0].result():
                    await _send(send, b"", more=False)

    async def _send_all(self, items: AsyncIterator[Item], send: Send) -> bool:
        """Return whether its reader took all of it."""
        clock = asyncio.get_running_loop().time
        sent, checked = 0, clock()
        coming: asyncio.Future[Item] | None = None
        try:
            await _send(send, f"retry: {RETRY_MS}\n\n".encode())
            while self._limit is None or sent < self._limit:
                coming = coming or asyncio.ensure_future(anext(items))
                await asyncio.wait([coming], timeout=HEARTBEAT_SECONDS)
                if clock() - checked >= HEARTBEAT_SECONDS:
                    await self._check()
                    checked = clock()
                if coming.done():
                    item, coming = coming.result(), None
                    await _send(send, self._message(item))
                    sent += 1
                else:
                    await _send(send, b":\n\n")
        except EchoplaneError as error:
            words = error_answer(error).model_dump_json()
            await _send(send, f"event: error\ndata: {words}\n\n".encode())
        except TimeoutError:
            log.warning("follower_let_go", sent_count=sent)
            return False
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)
        return True


async def _send(send: Send, body: bytes, *, more: bool = True) -> None:
    async with asyncio.timeout(FOLLOW_SECONDS_MAX):
        await send({"type": "http.response.body", "body": body, "more_body": more})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
