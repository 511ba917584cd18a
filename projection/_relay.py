"""
The relay: from the outbox in PostgreSQL to the stream in Redis.

A tenant stands in the outbox while it has commits that are not folded. The relay looks when it is
woken (LISTEN), every `SWEEP_SECONDS` while any stands there, and every `QUIET_SECONDS` while none does.
It sends each new commit once at once, and sends again what stays unfolded. What it remembers is only
what it sent lately; losing it, or all of Redis, makes it send again, within `SWEEP_SECONDS` of the loss.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
import structlog
from faststream.redis import RedisBroker
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from contracts.errors import Unavailable
from ledger.log import Database, Wakes, listening
from projection._queue import STREAM
from projection._stream import STREAM_MESSAGES_MAX, ensure_group, new_broker
from projection._traces import link, span

SWEEP_SECONDS: Final = 0.5
QUIET_SECONDS: Final = 5.0
"""Between two looks while all is folded: a wake-up that was lost costs its tenant no more than this."""
SWEEP_SECONDS_MIN: Final = 0.025
"""Between two looks under load: wake-ups that come meanwhile are one."""
REPEAT_SECONDS: Final = 2.0
REPEAT_SECONDS_MAX: Final = 30.0
"""
What stays unfolded is sent again, ever less often: a tenant that poison stops must not spin.

So a single hint that is lost with the worker that held it costs no more than this.
"""
RETRY_SECONDS: Final = 1.0

_LOST: Final = (Unavailable, RedisError, SQLAlchemyError, psycopg.Error, OSError, TimeoutError)
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The last hint for a tenant: its commit, when (seconds of the loop's clock), how often by now."""

    commit: int
    at_seconds: float
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """An entry of the stream, and what stands in it: its id alone may be given again after a loss."""

    entry: bytes
    content: bytes


@dataclass(slots=True, kw_only=True)
class _Memory:
    """What was sent and is not folded yet, and an entry of the stream that is no younger than that."""

    sent: dict[str, Sent] = field(default_factory=dict)
    oldest: _Mark | None = None

    def forget(self) -> None:
        """Take everything for unsent."""
        self.sent.clear()
        self.oldest = None

    def keep(self, tenants: Iterable[str]) -> None:
        """Forget whoever is folded by now."""
        for folded in self.sent.keys() - set(tenants):
            del self.sent[folded]
        if not self.sent:
            self.oldest = None


def due(
    outbox: Iterable[tuple[str, int]],
    sent: dict[str, Sent],
    *,
    now_seconds: float,
    woken: Collection[str] = (),
) -> dict[str, Sent]:
    """Return what to send now: commits not sent yet, and those sent long enough ago. Pure."""
    found: dict[str, Sent] = {}
    for tenant, commit in outbox:
        before = sent.get(tenant)
        if before is None or commit != before.commit:
            found[tenant] = Sent(commit=commit, at_seconds=now_seconds, times=1)
            continue
        # Who is woken without a new commit has been freed of what stopped it.
        repeat_seconds = min(REPEAT_SECONDS * 2.0 ** (before.times - 1), REPEAT_SECONDS_MAX)
        wait_seconds = SWEEP_SECONDS if tenant in woken else repeat_seconds
        if now_seconds - before.at_seconds >= wait_seconds:
            found[tenant] = Sent(commit=commit, at_seconds=now_seconds, times=min(before.times + 1, 16))
    return found


async def run_relay(db: Database, redis_url: str, *, stop: asyncio.Event) -> None:
    """
    Relay until `stop` is set. Reconnects for as long as PostgreSQL or Redis is away.

    Args:
        db: The database; only its relay role is used.
        redis_url: Where the stream is.
        stop: Set to end; what is being sent is sent first.
    """
    while not stop.is_set():
        broker = new_broker(redis_url, stop_seconds=1.0)
        try:
            await _relay(db, broker, stop)
        except _LOST as error:
            _log.warning("relay_disconnected", error=type(error).__name__)
            await wait_for(stop, seconds=RETRY_SECONDS)
        finally:
            with contextlib.suppress(*_LOST):
                await broker.stop()


async def _relay(db: Database, broker: RedisBroker, stop: asyncio.Event) -> None:
    client = await broker.connect()
    await ensure_group(client)
    clock = asyncio.get_running_loop().time
    # Forgotten with the connection: another server may be behind it now.
    memory = _Memory()
    async with listening(db.relay) as wakes:
        _log.info("relay_started", stream=STREAM)
        woken: Collection[str] = ()
        while not stop.is_set():
            looked_at = clock()
            # Where the subscription is: it was heard of just now, so nobody has to ask whether it stands.
            outbox = await wakes.pending()
            await _send(broker, client, memory, outbox, now_seconds=looked_at, woken=woken)
            woken = await _woken(wakes, stop, seconds=SWEEP_SECONDS if outbox else QUIET_SECONDS)
            await asyncio.sleep(max(0.0, looked_at + SWEEP_SECONDS_MIN - clock()))


async def _woken(wakes: Wakes, stop: asyncio.Event, *, seconds: float) -> Collection[str]:
    """Wait until somebody is woken, and return who; nobody after so long, or when `stop` is set."""
    waking = asyncio.create_task(wakes.wait(timeout_seconds=seconds))
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({waking, stopped}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waking.cancel()
        stopped.cancel()
        # The connection is the other's until it has ended.
        await asyncio.wait({waking, stopped})
    return () if waking.cancelled() else waking.result()


async def _send(
    broker: RedisBroker,
    client: Any,  # noqa: ANN401 — redis-py's client types differ by version
    memory: _Memory,
    outbox: Collection[tuple[str, int]],
    *,
    now_seconds: float,
    woken: Collection[str],
) -> None:
    memory.keep(tenant for tenant, _ in outbox)
    sending = due(outbox, memory.sent, now_seconds=now_seconds, woken=woken)
    if memory.sent.keys() <= sending.keys():
        # Nothing that was sent is relied upon. A group that is missing is made from the start of the
        # stream, so it may be missing now.
        memory.forget()
    elif await ensure_group(client) or await _is_emptied(client, memory):
        memory.forget()
        sending = due(outbox, memory.sent, now_seconds=now_seconds, woken=woken)
    for number, (tenant, hint) in enumerate(sending.items()):
        content = f"{now_seconds!r}-{number}"
        with span("relay") as relaying:
            link(relaying, tenant, [hint.commit])
            entry = await broker.publish(
                {"tenant": tenant, "commit": hint.commit},
                stream=STREAM,
                maxlen=STREAM_MESSAGES_MAX,
                correlation_id=content,
            )
        memory.sent[tenant] = hint
        memory.oldest = memory.oldest or _Mark(entry=entry, content=content.encode())
    if sending:
        repeated = sum(hint.times > 1 for hint in sending.values())
        _log.debug("wakeups_sent", messages_count=len(sending), repeated_count=repeated)


async def _is_emptied(client: Any, memory: _Memory) -> bool:  # noqa: ANN401 — as above
    """
    Return whether the stream was emptied since the oldest hint was sent.

    The group does not tell: a worker may have made it anew since. Nor does the youngest hint, which may
    have been sent after the loss.
    """
    oldest = memory.oldest
    if oldest is None:
        return False
    for _, fields in await client.xrange(STREAM, min=oldest.entry, max=oldest.entry):
        return not any(oldest.content in value for value in fields.values())
    if await client.xlen(STREAM) < STREAM_MESSAGES_MAX:
        return True
    # Cut for its length: to send all that is unfolded again would only make it longer.
    entries = await client.xrange(STREAM, count=1)
    memory.oldest = _Mark(entry=entries[0][0], content=b"") if entries else None
    return False


async def wait_for(stop: asyncio.Event, *, seconds: float) -> None:
    """Wait, or return at once when `stop` is set."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
