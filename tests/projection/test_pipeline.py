"""From an append to a folded ledger, with Redis and workers that fail in between."""

import asyncio
import itertools
import time

from contracts.limits import FOLD_EVENTS_MAX
from ledger import log
from projection import RuleProjector, run_worker
from projection._relay import REPEAT_SECONDS, REPEAT_SECONDS_MAX, SWEEP_SECONDS, Sent, due
from projection._stream import GROUP, STREAM, ensure_group
from projection._worker import FOLD_EVENTS_MIN, next_batch
from tests.projection.choking import Choking
from tests.projection.conftest import until

PLACES = ("Lyon", "Graz", "Oslo")


async def lags(plane):
    return {one.tenant: one.head - one.cursor for one in await log.standings(plane.db)}


async def test_what_is_appended_is_folded_soon(plane):
    plane.start()
    await plane.say("acme", "I live in Lyon.")
    await plane.folded("acme")
    waits = []
    for place in (*PLACES, *PLACES):
        started = time.monotonic()
        await plane.say("acme", f"I moved to {place}.")
        await plane.folded("acme")
        waits.append(time.monotonic() - started)

    # The best of several: what others do on the machine is not the plane's.
    assert min(waits) < 1.5
    assert await lags(plane) == {"acme": 0, "beta": 0}


async def test_commits_from_before_any_group_existed_are_folded(plane):
    await plane.say_many("acme", 5)
    await plane.say_many("beta", 3)

    plane.start()
    await plane.folded("acme")
    await plane.folded("beta")

    assert await plane.digest("acme") == await plane.quiet_digest("acme")


async def test_losing_all_of_redis_in_the_middle_loses_nothing(plane):
    plane.start()
    for _ in range(4):
        await plane.say_many("acme", 5)
        await plane.redis.flushall()

    await plane.say_many("acme", 5)
    await plane.folded("acme")

    assert await plane.digest("acme") == await plane.quiet_digest("acme")


async def test_a_group_that_was_deleted_is_made_again(plane):
    plane.start()
    await plane.say("acme", "I live in Lyon.")
    await plane.folded("acme")

    await plane.redis.xgroup_destroy(STREAM, GROUP)
    await plane.say("acme", "I moved to Graz.")
    await plane.folded("acme")

    assert GROUP.encode() in {group["name"] for group in await plane.redis.xinfo_groups(STREAM)}


async def test_a_killed_worker_leaves_nothing_unfolded(plane):
    plane.start(consumer="w1")
    writing = asyncio.create_task(plane.say_many("acme", 60))
    await asyncio.sleep(0.3)
    await plane.kill()
    await writing

    plane.start(consumer="w2")
    await plane.folded("acme")

    assert await plane.digest("acme") == await plane.quiet_digest("acme")


async def test_repeated_and_reordered_wakeups_change_nothing(plane):
    await plane.say_many("acme", 12)
    plane.start()
    await plane.folded("acme")
    before = await plane.digest("acme")

    entries = await plane.redis.xrange(STREAM)
    for _, fields in [*reversed(entries), *entries]:
        await plane.redis.xadd(STREAM, fields)
    await plane.redis.xadd(STREAM, {b"junk": b"\xff\x00"})
    await plane.say("acme", "I moved to Graz.")
    await plane.folded("acme")
    await plane.say_many("acme", 1)
    await plane.folded("acme")

    assert await plane.digest("acme") != before
    assert await plane.digest("acme") == await plane.quiet_digest("acme")


async def test_two_workers_fold_as_one_does(plane):
    plane.start(consumer="w1")
    stop = asyncio.Event()
    second = asyncio.create_task(
        run_worker(plane.db, plane.redis_url, RuleProjector(), consumer="w2", stop=stop)
    )

    await asyncio.gather(plane.say_many("acme", 25), plane.say_many("beta", 25))
    await plane.folded("acme")
    await plane.folded("beta")
    stop.set()
    await second

    assert await plane.digest("acme") == await plane.quiet_digest("acme")
    assert await plane.digest("beta") == await plane.quiet_digest("beta")


async def test_poison_stops_its_tenant_alone_and_is_acknowledged_and_seen_in_health(plane):
    await plane.say("acme", "I live in Lyon.")
    await plane.say("acme", "poison")
    await plane.say("acme", "I moved to Graz.")
    await plane.say("beta", "I live in Oslo.")

    plane.start(projector=Choking())
    await plane.folded("beta")

    async def is_stopped():
        return [one.tenant for one in await log.standings(plane.db) if one.dead_letters] == ["acme"]

    await until(is_stopped)
    # Between one repeat of the relay and the next; each is pending while it is tried.
    await plane.acknowledged()

    assert await lags(plane) == {"acme": 2, "beta": 0}


async def test_a_worker_stops_at_once_when_told(plane):
    plane.start()
    await plane.say_many("acme", 3)
    await plane.at_rest("acme")
    started = time.monotonic()

    await plane.finish()

    assert time.monotonic() - started < 8
    assert await plane.pending() == 0


async def test_a_worker_that_is_told_to_stop_while_it_folds_ends_the_fold_and_acknowledges_it(plane):
    class Telling(RuleProjector):
        """Tells the worker to stop when it has begun."""

        def project(self, event):
            plane.stop.set()
            return super().project(event)

    await plane.say("acme", "I live in Lyon.")

    plane.start(projector=Telling())
    await plane.folded("acme")
    await plane.finish()

    assert await plane.pending() == 0
    assert (await plane.redis.xinfo_groups(STREAM))[0]["entries-read"] == 1


async def test_the_group_starts_at_the_beginning_and_is_made_once(plane):
    await plane.redis.xadd(STREAM, {"a": "b"})

    assert await ensure_group(plane.redis)
    assert not await ensure_group(plane.redis)

    assert await plane.redis.xreadgroup(GROUP, "test", {STREAM: ">"})


async def test_what_is_not_folded_is_counted_and_waits_to_be_sent(plane):
    await plane.say_many("acme", 4)

    assert await lags(plane) == {"acme": 4, "beta": 0}
    assert [tenant for tenant, _ in await log.pending(plane.db)] == ["acme"]


def test_a_new_commit_is_sent_at_once_and_an_old_one_ever_less_often():
    sent = due([("t", 1)], {}, now_seconds=0.0)
    assert sent == {"t": Sent(commit=1, at_seconds=0.0, times=1)}
    assert due([("t", 1)], sent, now_seconds=REPEAT_SECONDS - 0.01) == {}
    assert due([("t", 2)], sent, now_seconds=0.1)["t"].times == 1
    # Freed of what stopped it, and not merely told of what was sent just now.
    assert due([("t", 1)], sent, now_seconds=SWEEP_SECONDS, woken={"t"})
    assert due([("t", 1)], sent, now_seconds=SWEEP_SECONDS - 0.01, woken={"t"}) == {}

    times, now = [], 0.0
    while len(times) < 8:
        again = due([("t", 1)], sent, now_seconds=now)
        if again:
            sent |= again
            times.append(now)
        now += 0.5

    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert times[0] == REPEAT_SECONDS
    assert gaps == sorted(gaps)
    assert gaps[-1] == REPEAT_SECONDS_MAX


def test_batches_shrink_when_folds_are_slow_and_grow_when_full_ones_are_quick():
    assert next_batch(512, events=512, seconds=30.0) == 256
    assert next_batch(512, events=200, seconds=30.0) == 100
    assert next_batch(100, events=100, seconds=30.0) == FOLD_EVENTS_MIN
    assert next_batch(256, events=256, seconds=0.1) == 512
    assert next_batch(256, events=3, seconds=0.001) == 256
    assert next_batch(FOLD_EVENTS_MAX, events=FOLD_EVENTS_MAX, seconds=0.1) == FOLD_EVENTS_MAX


async def test_a_backlog_longer_than_a_batch_is_folded_to_its_end(plane):
    texts = [f"I moved to {PLACES[number % len(PLACES)]}." for number in range(700)]
    for start in range(0, len(texts), 50):
        await plane.say_together("acme", texts[start : start + 50], number=start)

    plane.start()
    await plane.folded("acme")

    assert (await lags(plane))["acme"] == 0
    assert await plane.digest("acme") == await plane.quiet_digest("acme")
