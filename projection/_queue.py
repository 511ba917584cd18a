"""How deep the queue is; without the broker library, which is slow to load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from contracts.errors import Unavailable

STREAM: Final = "echoplane:commits"
GROUP: Final = "projection"
LOOK_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """
    Wake-ups in the stream, read or not; those that nobody has read; those read and not acknowledged.

    `unread` is None where the server cannot tell, as after the stream was cut.
    """

    messages: int
    unread: int | None
    pending: int


async def queue(redis_url: str) -> Queue:
    """
    Return how deep the queue is.

    Raises:
        Unavailable: Redis is down or does not answer at once.
    """
    client = Redis.from_url(redis_url, socket_timeout=LOOK_SECONDS, socket_connect_timeout=LOOK_SECONDS)
    try:
        async with client:
            messages = await client.xlen(STREAM)
            try:
                groups = await client.xinfo_groups(STREAM)
            except ResponseError:
                # There is no stream yet.
                groups = []
    except (RedisError, OSError) as error:
        raise Unavailable(part="redis", reason="it does not answer") from error
    ours = [group for group in groups if group["name"] == GROUP.encode()]
    return Queue(
        messages=messages,
        unread=ours[0]["lag"] if ours else messages,
        pending=ours[0]["pending"] if ours else 0,
    )
