"""
The worker: takes wake-ups and folds their tenants to the head of their logs.

A message is acknowledged after the fold it asks for, or after the event that stops it is recorded
as poison. One that is left (crash, outage) is sent again by the next life under the same name, or is
claimed by another worker after `LEASE_MS`; long before that the relay has sent another.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any, Final

import structlog
from faststream import AckPolicy
from faststream.redis import StreamSub
from faststream.redis.subscriber.usecases import LogicSubscriber
from redis.exceptions import RedisError

from contracts.errors import Fault, Incorrect, Poisoned, Unavailable
from contracts.limits import FOLD_EVENTS_MAX, FOLD_LEASE_SECONDS
from contracts.ports import Projector
from ledger.log import Database
from ledger.write import CURSOR, end_overdue_folds, fold
from projection._queue import GROUP, STREAM
from projection._relay import RETRY_SECONDS, SWEEP_SECONDS, wait_for
from projection._stream import (
    CLAIM_POLL_MS,
    GROUP_START,
    LEASE_MS,
    READ_BLOCK_MS,
    READ_MESSAGES_MAX,
    STREAM_MESSAGES_MAX,
    Left,
    ensure_group,
    new_broker,
)
from projection._traces import link, span

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
WAIT_SECONDS: Final = 0.25
"""How long another worker's fold of a tenant is waited for before the next tenant has its turn."""
TURN_SECONDS: Final = 2.0
"""How long one batch of wake-ups may fold before tenants with more go to the end of the queue."""
TURN_SECONDS_MAX: Final = 60.0
"""The same where no other wake-up waits: whoever folded a tenant last has at hand what comes next."""
STOP_SECONDS: Final = 10.0
WATCH_SECONDS: Final = 3.0
"""How long one that reads no more may go unnoticed while its handler still runs; else it is seen at once."""
OVERDUE_SECONDS: Final = 5.0
"""Between two looks for folds that outlast their lease, while one is in the way."""
START_SECONDS: Final = 3.0
"""How long the broker library waits for a subscriber to start."""
HEAL_SECONDS: Final = 20.0
"""
Whatever Redis loses, at whatever moment, wake-ups for all that is unfolded reach a handler this soon.

As a rule it takes a second; so long only where the group is lost while a fold runs.
"""

# The relay sends everything again while the worker notices, lets its fold end and begins a new life.
assert SWEEP_SECONDS + WATCH_SECONDS + STOP_SECONDS + 2 * START_SECONDS < HEAL_SECONDS

# A live handler's messages must not be claimed by another worker, nor its fold be cut off.
assert HANDLER_SECONDS < FOLD_LEASE_SECONDS

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
        self.subscribers: list[LogicSubscriber] = []
        self.overdue_at = 0.0
        self.held_by_others: set[str] = set()
        # A subscriber that claims reads nothing new, so there are two on one handler.
        for stream in (
            StreamSub(
                STREAM, group=GROUP, consumer=consumer, batch=True, max_records=READ_MESSAGES_MAX,
                polling_interval=READ_BLOCK_MS,
            ),
            StreamSub(
                STREAM, group=GROUP, consumer=claims_consumer(consumer), batch=True, min_idle_time=LEASE_MS,
                polling_interval=CLAIM_POLL_MS,
            ),
        ):  # fmt: skip
            # Acknowledged when the handler returns; left pending when it raises.
            subscriber = self.broker.subscriber(stream=stream, ack_policy=AckPolicy.NACK_ON_ERROR)
            # Where it finds no group at its start it makes one, from the end of the stream unless told.
            subscriber.last_id = GROUP_START
            subscriber(self.handle)
            self.subscribers.append(subscriber)

    async def run(self) -> None:
        """Consume until stopped, or until the group, a consumer or the server is gone."""
        client = await self.broker.connect()
        await ensure_group(client)
        await self._take_back(client)
        await self.broker.start()
        _log.info("worker_started", consumer=self.consumer, projector=self.projector.version)
        stopped = asyncio.create_task(self.stop.wait())
        reading = [task for subscriber in self.subscribers for task in subscriber.tasks]
        try:
            while not self.stop.is_set():
                if any(task.done() for task in reading) or not all(map(consumes, self.subscribers)):
                    _log.warning("consumer_lost", consumer=self.consumer)
                    return
                await asyncio.wait(
                    [stopped, *reading], timeout=WATCH_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            stopped.cancel()

    async def _take_back(self, client: Any) -> None:  # noqa: ANN401 — redis-py's client types differ by version
        """Send again what an earlier life under our names read and did not acknowledge."""
        for name in (self.consumer, claims_consumer(self.consumer)):
            while True:
                [(_, left)] = await client.xreadgroup(GROUP, name, {STREAM: "0"}, count=READ_MESSAGES_MAX)
                if not left:
                    break
                for _, hint in left:
                    # One that was cut from the stream is there without its content.
                    if hint:
                        await client.xadd(STREAM, hint, maxlen=STREAM_MESSAGES_MAX)
                await client.xack(STREAM, GROUP, *(entry for entry, _ in left))

    async def _end_overdue(self) -> None:
        """
        Cut off workers that stand still in a fold, whosever they are: their tenants are ours by then.

        Looked for where a fold is in the way: one that holds a tenant with nothing to fold holds up nobody.
        """
        now_seconds = asyncio.get_running_loop().time()
        if now_seconds < self.overdue_at:
            return
        self.overdue_at = now_seconds + OVERDUE_SECONDS
        with contextlib.suppress(Unavailable):
            ended = await end_overdue_folds(self.db, lease_seconds=FOLD_LEASE_SECONDS)
            if ended:
                _log.warning("folds_cut_off", consumer=self.consumer, folds_count=ended)

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
        left = is_over = False
        while waiting:
            unfinished: list[str] = []
            for tenant in waiting:
                if self.stop.is_set():
                    raise Left
                is_over = is_over or (clock() > until and await self._is_over(until))
                if is_over:
                    unfinished.append(tenant)
                    continue
                match await self._fold(tenant):
                    case None:
                        left = True
                    case False:
                        unfinished.append(tenant)
                    case True:
                        pass
            if unfinished and is_over:
                await self._send_again(unfinished)
                unfinished = []
            waiting = unfinished
        if left:
            raise Left

    async def _is_over(self, until: float) -> bool:
        """Return whether a turn that has lasted until then ends now."""
        if asyncio.get_running_loop().time() > until - TURN_SECONDS + TURN_SECONDS_MAX:
            return True
        client = await self.broker.connect()
        try:
            stream, [group] = await client.xinfo_stream(STREAM), await client.xinfo_groups(STREAM)
        except (RedisError, OSError, ValueError):
            return True
        return bool(stream["last-generated-id"] != group["last-delivered-id"])

    async def _fold(self, tenant: str) -> bool | None:
        """Fold once; return whether the head is reached, None where nothing could be done just now."""
        clock = asyncio.get_running_loop().time
        started = clock()
        log = _log.bind(tenant=tenant, consumer=self.consumer)
        try:
            with span("fold") as folding:
                # Whoever folds it goes on doing so: it is not waited for in a line with that one's next fold.
                wait_seconds = 0.0 if tenant in self.held_by_others else WAIT_SECONDS
                report = await fold(
                    self.db, tenant, self.projector, events_max=self.events_max, wait_seconds=wait_seconds
                )
                self.held_by_others.discard(tenant)
                # From when this span ends, they are visible.
                link(folding, tenant, range(report.after + 1, report.commit + 1))
        except Unavailable as error:
            if error.part == CURSOR:
                # Whoever folds it may not have seen what this message is about: it comes round again.
                await self._end_overdue()
                if tenant in self.held_by_others:
                    await wait_for(self.stop, seconds=WAIT_SECONDS)
                self.held_by_others.add(tenant)
                return False
            # Ended from outside, it may have been too long: as long again, it would be for ever.
            self.events_max = max(self.events_max // 2, FOLD_EVENTS_MIN)
            log.warning("fold_unavailable", part=error.part, reason=error.reason)
            return None
        except Poisoned as error:
            # Recorded by the ledger, and in health: the message has done its work.
            where = {"epoch": error.epoch, "position": error.position}
            log.error("fold_poisoned", **where, error=error.error)  # noqa: TRY400 — a trace may quote content
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
        done = [report] if report.built is None else [report, report.built]
        for one in done:
            log.info(
                "folded", epoch=one.epoch, commit=one.commit, head=one.head, events_count=one.events,
                claims_count=one.claims, unplaced_count=one.unplaced, building=report.building,
                refused_contracts_count=one.refused_contracts, skipped_count=one.skipped,
                read_whole_count=one.read_whole, duration_ms=round((clock() - started) * 1_000),
            )  # fmt: skip
        events = sum(one.events for one in done)
        self.events_max = next_batch(self.events_max, events=events, seconds=clock() - started)
        return report.is_at_head

    async def _send_again(self, tenants: Iterable[str]) -> None:
        """Put tenants that have more to fold behind those that wait."""
        for tenant in tenants:
            await self.broker.publish(
                {"tenant": tenant, "commit": 0}, stream=STREAM, maxlen=STREAM_MESSAGES_MAX
            )


def claims_consumer(consumer: str) -> str:
    """Return the name of the subscriber that claims what others left."""
    return f"{consumer}-claims"


def consumes(subscriber: LogicSubscriber) -> bool:
    """
    Return whether a subscriber still reads.

    It stops for good where the group was deleted. Where its task died of anything else it goes on
    calling itself running, whether the library's own supervisor has begun a new task or not.
    """
    return subscriber.running and not any(task.done() for task in subscriber.tasks)


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
