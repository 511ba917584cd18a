"""
The worker: takes wake-ups and folds their tenants to the head of their logs.

A message is acknowledged after the fold it asks for, or after the event that stops it is recorded
as poison. One that is left (crash, outage) is claimed by the second subscriber after `LEASE_MS`,
and long before that the relay has sent another.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any, Final

import structlog
from faststream import AckPolicy
from faststream.redis import StreamSub
from redis.exceptions import RedisError

from contracts.errors import Fault, Incorrect, Poisoned, Unavailable
from contracts.limits import FOLD_EVENTS_MAX
from contracts.ports import Projector
from ledger.log import Database
from ledger.write import fold
from projection._relay import RETRY_SECONDS, wait_for
from projection._stream import (
    CLAIM_POLL_MS,
    GROUP,
    LEASE_MS,
    READ_BLOCK_MS,
    READ_MESSAGES_MAX,
    STREAM,
    STREAM_MESSAGES_MAX,
    Left,
    ensure_group,
    new_broker,
)

HANDLER_SECONDS: Final = 120.0
"""A handler's own deadline: a fold that hangs longer is given up, and its message left."""
FOLD_SECONDS: Final = 10.0
"""
How long one fold may take: batches shrink above it, and grow while full ones take less than half.

Far below the handler's deadline, and not lower than that: a fold of few events on a long key costs
as much as one of many, so small batches are no cure for it.
"""
FOLD_EVENTS_MIN: Final = 64
FOLD_EVENTS_FIRST: Final = 256
TURN_SECONDS: Final = 2.0
"""How long one batch of wake-ups may fold before tenants with more go to the end of the queue."""
STOP_SECONDS: Final = 10.0
WATCH_SECONDS: Final = 1.0
PING_SECONDS: Final = 5.0

# A live handler's messages must not be claimed by another worker.
assert HANDLER_SECONDS * 1_000 < LEASE_MS

_log = structlog.get_logger(__name__)


async def run_worker(
    db: Database, redis_url: str, projector: Projector, *, consumer: str, stop: asyncio.Event
) -> None:
    """
    Fold until `stop` is set. Reconnects for as long as PostgreSQL or Redis is away.

    Args:
        db: The database.
        redis_url: Where the stream is.
        projector: Reads claims out of events; pure.
        consumer: Unique among the workers of this Redis, and the same after a restart.
        stop: Set to end; a fold that runs is finished first, for `STOP_SECONDS` at most.
    """
    while not stop.is_set():
        worker = _Worker(db, redis_url, projector, consumer=consumer, stop=stop)
        try:
            await worker.run()
        except (RedisError, OSError, TimeoutError) as error:
            _log.warning("worker_disconnected", consumer=consumer, error=type(error).__name__)
            await wait_for(stop, seconds=RETRY_SECONDS)
        finally:
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                await worker.broker.stop()
    _log.info("worker_stopped", consumer=consumer)


class _Worker:
    """One life of a worker: from connecting until Redis or the group is lost, or it is stopped."""

    def __init__(
        self, db: Database, redis_url: str, projector: Projector, *, consumer: str, stop: asyncio.Event
    ) -> None:
        self.db = db
        self.projector = projector
        self.consumer = consumer
        self.stop = stop
        self.events_max = FOLD_EVENTS_FIRST
        self.broker = new_broker(redis_url, stop_seconds=STOP_SECONDS)
        # A subscriber that claims reads nothing new, so there are two on one handler.
        for stream in (
            StreamSub(
                STREAM, group=GROUP, consumer=consumer, batch=True, max_records=READ_MESSAGES_MAX,
                polling_interval=READ_BLOCK_MS,
            ),
            StreamSub(
                STREAM, group=GROUP, consumer=f"{consumer}-claims", batch=True, min_idle_time=LEASE_MS,
                polling_interval=CLAIM_POLL_MS,
            ),
        ):  # fmt: skip
            # Acknowledged when the handler returns; left pending when it raises.
            self.broker.subscriber(stream=stream, ack_policy=AckPolicy.NACK_ON_ERROR)(self.handle)

    async def run(self) -> None:
        """Consume until stopped, or until the group or the server is gone."""
        client = await self.broker.connect()
        await ensure_group(client)
        await self.broker.start()
        _log.info("worker_started", consumer=self.consumer, projector=self.projector.version)
        clock = asyncio.get_running_loop().time
        pinged_at = clock()
        while not self.stop.is_set():
            await wait_for(self.stop, seconds=WATCH_SECONDS)
            if not all(subscriber.running for subscriber in self.broker.subscribers):
                # It stops for good where the group was deleted; the next life makes it anew.
                _log.warning("group_lost", consumer=self.consumer)
                return
            if clock() - pinged_at >= PING_SECONDS:
                await client.ping()
                pinged_at = clock()

    async def handle(self, body: list[Any]) -> None:
        """
        Fold the tenants of a batch of wake-ups, in turns.

        Raises:
            Left: Something was not folded; the messages stay pending.
        """
        clock = asyncio.get_running_loop().time
        started = clock()
        try:
            async with asyncio.timeout(HANDLER_SECONDS):
                await self._fold_in_turns(_tenants(body), until=started + TURN_SECONDS)
        except TimeoutError as error:
            self.events_max = FOLD_EVENTS_MIN
            _log.error("fold_timed_out", consumer=self.consumer, waited_ms=round((clock() - started) * 1_000))
            raise Left from error

    async def _fold_in_turns(self, tenants: list[str], *, until: float) -> None:
        clock = asyncio.get_running_loop().time
        waiting = tenants
        left = False
        while waiting:
            unfinished: list[str] = []
            for tenant in waiting:
                if self.stop.is_set():
                    raise Left
                if clock() > until:
                    unfinished.append(tenant)
                    continue
                match await self._fold(tenant):
                    case None:
                        left = True
                    case False:
                        unfinished.append(tenant)
                    case True:
                        pass
            if unfinished and clock() > until:
                await self._send_again(unfinished)
                unfinished = []
            waiting = unfinished
        if left:
            raise Left

    async def _fold(self, tenant: str) -> bool | None:
        """Fold once; return whether the head is reached, None where nothing could be done just now."""
        clock = asyncio.get_running_loop().time
        started = clock()
        log = _log.bind(tenant=tenant, consumer=self.consumer)
        try:
            report = await fold(self.db, tenant, self.projector, events_max=self.events_max)
        except Unavailable as error:
            log.warning("fold_unavailable", part=error.part, reason=error.reason)
            return None
        except Poisoned as error:
            # Recorded by the ledger, and in health: the message has done its work.
            log.error("fold_poisoned", position=error.position, error=error.error)  # noqa: TRY400 — a trace may quote content
            return True
        except Incorrect as error:
            log.warning("fold_refused", error=error.code)
            return True
        except Fault as error:
            log.error("fold_failed", error=error.code)  # noqa: TRY400 — as above
            return True
        except Exception as error:  # noqa: BLE001 — a bug of ours: said loudly, and the worker goes on
            # Acknowledged: the outbox keeps the tenant, and the relay sends it again, ever less often.
            log.error("fold_failed", error=type(error).__name__)  # noqa: TRY400 — as above
            return True
        log.info(
            "folded", epoch=report.epoch, commit=report.commit, head=report.head, events_count=report.events,
            claims_count=report.claims, unplaced_count=report.unplaced,
            refused_contracts_count=report.refused_contracts,
            duration_ms=round((clock() - started) * 1_000),
        )  # fmt: skip
        self.events_max = next_batch(self.events_max, events=report.events, seconds=clock() - started)
        return report.is_at_head

    async def _send_again(self, tenants: Iterable[str]) -> None:
        """Put tenants that have more to fold behind those that wait."""
        for tenant in tenants:
            await self.broker.publish(
                {"tenant": tenant, "commit": 0}, stream=STREAM, maxlen=STREAM_MESSAGES_MAX
            )


def next_batch(events_max: int, *, events: int, seconds: float) -> int:
    """
    Return how many events to fold at once after a fold of `events` that took `seconds`.

    A batch that is too long for the handler's deadline would be given up and begun anew for ever.
    """
    if seconds > FOLD_SECONDS:
        return max(min(events_max, events) // 2, FOLD_EVENTS_MIN)
    if seconds < FOLD_SECONDS / 2 and events * 2 > events_max:
        return min(events_max * 2, FOLD_EVENTS_MAX)
    return events_max


def _tenants(body: list[Any]) -> list[str]:
    """Return whose wake-ups they are, each once; what is no wake-up is passed over."""
    found: dict[str, None] = {}
    for message in body:
        tenant = message.get("tenant") if isinstance(message, dict) else None
        if isinstance(tenant, str) and tenant:
            found[tenant] = None
        else:
            _log.warning("wakeup_malformed")
    return list(found)
