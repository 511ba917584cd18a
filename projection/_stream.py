"""
The stream of wake-ups: its names, its bounds and its group.

Redis carries hints. What is not folded yet is in the outbox table, and the relay sends a hint
again for as long as it is there; so nothing below can lose an event, only time.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

import structlog
from faststream.redis import RedisBroker
from redis.exceptions import ResponseError

from contracts.limits import FOLD_LEASE_SECONDS
from projection._queue import GROUP, STREAM

READ_BLOCK_MS: Final = 8_000
READ_MESSAGES_MAX: Final = 64
"""Wake-ups taken in one read; several of one tenant are one."""
LEASE_MS: Final = FOLD_LEASE_SECONDS * 1_000
"""A message that long unacknowledged belonged to a worker that is gone."""
CLAIM_POLL_MS: Final = 10_000
SOCKET_TIMEOUT_SECONDS: Final = 20.0
CONNECT_TIMEOUT_SECONDS: Final = 3.0
STREAM_MESSAGES_MAX: Final = 20_000
"""
Where the stream is cut, oldest first, read or not. A hint that is cut unread is sent again by the
relay for as long as its tenant stands in the outbox, so the cut bounds memory and costs time only.
"""

GROUP_START: Final = "0"
"""The group reads from the start of the stream: what was published before it existed must reach it."""

# A read must come back before its socket gives up on it.
assert READ_BLOCK_MS / 1_000 < SOCKET_TIMEOUT_SECONDS

_log = structlog.get_logger(__name__)


class _BrokerLog:
    """What the broker library says, as one event with an error's name: its own lines name messages."""

    __slots__ = ()

    def log(
        self,
        level: int,
        _msg: Any,  # noqa: ANN401 — as the library declares it
        /,
        *,
        exc_info: Any = None,  # noqa: ANN401
        extra: Mapping[str, Any] | None = None,  # noqa: ARG002 — named by the library
    ) -> None:
        """Pass on warnings and worse; the rest may quote what was received, and are dropped."""
        if level >= logging.WARNING and not isinstance(exc_info, Left):
            _log.log(level, "broker_problem", error=type(exc_info).__name__)


class Left(Exception):
    """A message was not dealt with and must stay pending."""


def new_broker(redis_url: str, *, stop_seconds: float) -> RedisBroker:
    """Return a broker that is not connected yet."""
    return RedisBroker(
        redis_url,
        logger=_BrokerLog(),
        graceful_timeout=stop_seconds,
        socket_timeout=SOCKET_TIMEOUT_SECONDS,
        socket_connect_timeout=CONNECT_TIMEOUT_SECONDS,
        health_check_interval=30.0,
    )


async def ensure_group(client: Any) -> bool:  # noqa: ANN401 — redis-py's client types differ by version
    """Make the group, from the start of the stream; return whether it was not there."""
    try:
        await client.xgroup_create(name=STREAM, groupname=GROUP, id=GROUP_START, mkstream=True)
    except ResponseError as error:
        if str(error).startswith("BUSYGROUP"):
            return False
        raise
    _log.info("group_created", stream=STREAM, group=GROUP)
    return True
