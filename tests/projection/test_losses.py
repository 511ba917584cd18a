"""
Redis loses something at the worst moment: wake-ups come again all the same, and soon.

Nothing is repeated here for its age: what is lost has to be noticed. Each moment is hit exactly, by a
call that loses everything before it goes on.
"""

import asyncio
import contextlib
import pkgutil
import random

import pytest
import redis as redis_py
from redis.exceptions import ResponseError

from contracts.grants import LOCAL_GRANT
from ledger import log
from projection import RuleProjector, run_relay, run_worker
from projection._stream import GROUP, STREAM
from projection._worker import HEAL_SECONDS
from tests.projection.conftest import MASTER_KEY, PLACES, clock, turn, until


@pytest.fixture(autouse=True)
def no_repeats(monkeypatch):
    monkeypatch.setattr("projection._relay.REPEAT_SECONDS", 3_600.0)
    monkeypatch.setattr("projection._relay.REPEAT_SECONDS_MAX", 3_600.0)


async def test_a_wake_up_is_enough_and_one_that_is_lost_is_made_up_for(
    plane, database, monkeypatch, tmp_path
):
    deaf = log.open_database(
        plane_url=database.plane, relay_url=f"postgresql://echoplane_relay@/nothing?host={tmp_path}",
        master_key=MASTER_KEY, clock=clock,
    )  # fmt: skip
    monkeypatch.setattr("projection._relay.QUIET_SECONDS", 3_600.0)
    plane.start()
    for place in PLACES:
        await plane.say("acme", f"I live in {place}.")
        await plane.at_rest("acme")
    monkeypatch.setattr("projection._relay.QUIET_SECONDS", 0.1)
    await plane.say("acme", "I like tea.")
    await plane.at_rest("acme")

    await log.append(deaf, "acme", [turn("I like maps.")], grant=LOCAL_GRANT)
    await deaf.close()

    await healed(plane)


@pytest.fixture
async def running(plane):
    """Start parts of a plane by themselves, and stop them at the end."""
    stop = asyncio.Event()
    tasks = []

    def start(run, *arguments, **options):
        tasks.append(asyncio.create_task(run(plane.db, plane.redis_url, *arguments, stop=stop, **options)))

    yield start
    stop.set()
    await asyncio.gather(*tasks)


def once(monkeypatch, name, *, then):
    """Do something after the first call of a function, before its caller goes on."""
    called = pkgutil.resolve_name(name)
    done = []

    async def calling(*arguments, **options):
        answer = await called(*arguments, **options)
        if not done:
            done.append(True)
            await then()
        return answer

    monkeypatch.setattr(name, calling)


async def healed(plane):
    await plane.folded("acme", seconds=HEAL_SECONDS)
    assert await plane.digest("acme") == await plane.quiet_digest("acme")


async def sent_count(plane):
    return await plane.redis.xlen(STREAM)


async def hint_of(plane, running):
    """Return what the relay sends for `acme`, which has something to fold."""
    running(run_relay)
    await until(lambda: sent_count(plane))
    [(_, fields)] = await plane.redis.xrange(STREAM)
    return fields


async def lose_all_but_the_group(plane, *, then=()):
    """Lose everything, where a worker makes the group anew before the relay looks, and others send."""
    async with plane.redis.pipeline(transaction=True) as together:
        together.flushall()
        together.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
        for entry, fields in then:
            together.xadd(STREAM, fields, id=entry)
        await together.execute()


@pytest.mark.parametrize("part", ["_relay", "_worker"])
async def test_between_making_the_group_and_using_it(plane, monkeypatch, part):
    await plane.say_many("acme", 3)
    once(monkeypatch, f"projection.{part}.ensure_group", then=plane.redis.flushall)

    plane.start()

    await healed(plane)


async def test_what_was_sent_when_the_library_finds_no_group_is_read(plane, monkeypatch, running):
    await plane.say_many("acme", 3)
    fields = await hint_of(plane, running)

    async def lose_and_send():
        await plane.redis.flushall()
        await plane.redis.xadd(STREAM, fields)

    once(monkeypatch, "projection._worker.ensure_group", then=lose_and_send)
    # The relay has sent its hint, and would notice the loss too.
    monkeypatch.setattr("projection._relay._is_emptied", lambda *_: asyncio.sleep(0, result=False))
    monkeypatch.setattr("projection._relay.ensure_group", lambda *_: asyncio.sleep(0, result=False))
    running(run_worker, RuleProjector(), consumer="w1")

    await healed(plane)


async def test_between_sending_and_reading_where_another_makes_the_group_anew(plane, running):
    await plane.say_many("acme", 3)
    await hint_of(plane, running)

    for _ in range(3):
        await lose_all_but_the_group(plane)
        await until(lambda: sent_count(plane), seconds=HEAL_SECONDS)


async def test_in_the_very_millisecond_where_what_comes_next_has_the_same_id(plane, running):
    await plane.say_many("acme", 3)
    await hint_of(plane, running)
    [(entry, _)] = await plane.redis.xrange(STREAM)

    await lose_all_but_the_group(plane, then=[(entry, {b"said": b"by another"})])

    async def is_sent_again():
        return await sent_count(plane) > 1

    await until(is_sent_again, seconds=HEAL_SECONDS)


async def test_between_one_hint_and_the_next_where_another_makes_the_group_anew(plane, monkeypatch, running):
    for tenant in ("acme", "beta"):
        await plane.say_many(tenant, 3)
    once(monkeypatch, "faststream.redis.RedisBroker.publish", then=lambda: lose_all_but_the_group(plane))

    running(run_relay)

    async def both_are_sent():
        said = repr(await plane.redis.xrange(STREAM))
        return "acme" in said and "beta" in said

    await until(both_are_sent, seconds=HEAL_SECONDS)


async def test_while_a_wake_up_is_dealt_with(plane):
    class Losing(RuleProjector):
        """Loses all of Redis in the middle of each fold, five times."""

        times = 0

        def project(self, event):
            if self.times < 5:
                self.times += 1
                with redis_py.Redis.from_url(plane.redis_url) as client:
                    client.flushall()
            return super().project(event)

    plane.start(projector=Losing())
    for _ in range(3):
        await plane.say_many("acme", 3)
        await plane.folded("acme", seconds=HEAL_SECONDS)

    await healed(plane)


@pytest.mark.parametrize("what", ["all", "stream", "group"])
async def test_while_others_messages_are_claimed(plane, monkeypatch, what):
    monkeypatch.setattr("projection._worker.CLAIM_POLL_MS", 5)
    monkeypatch.setattr("projection._worker.LEASE_MS", 1)
    plane.start()
    for _ in range(5):
        await plane.say_many("acme", 2)
        await lose(plane, what)

    await plane.say_many("acme", 1)
    await healed(plane)


async def test_at_any_moment_at_all(plane):
    chance = random.Random(7)  # noqa: S311 — repeatable, and guards nothing
    done = asyncio.Event()

    async def losing():
        while not done.is_set():
            await asyncio.sleep(chance.random() * chance.choice((0.01, 0.2, 0.8)))
            await lose(plane, chance.choice(("all", "stream", "group")))

    plane.start()
    task = asyncio.create_task(losing())
    for _ in range(12):
        await plane.say_many("acme", 2)
        await asyncio.sleep(chance.random() * 0.5)
    done.set()
    await task

    await healed(plane)


async def lose(plane, what):
    match what:
        case "all":
            await plane.redis.flushall()
        case "stream":
            await plane.redis.delete(STREAM)
        case "group":
            with contextlib.suppress(ResponseError):
                await plane.redis.xgroup_destroy(STREAM, GROUP)


async def test_a_consumer_that_died_of_anything_is_replaced(plane, monkeypatch):
    """Of a log that cannot be written, say: the library logs before it stops, and before it starts anew."""

    class Broken:
        def info(self, *_, **__):
            pass

        def log(self, *_, **__):
            raise ValueError("I/O operation on closed file")

    monkeypatch.setattr("projection._stream._log", Broken())
    # Its task ends with that error twice over, which the loop would report to us.
    monkeypatch.setattr(asyncio.get_running_loop(), "call_exception_handler", lambda _: None)
    plane.start()
    for _ in range(3):
        await plane.say_many("acme", 3)
        await plane.folded("acme", seconds=HEAL_SECONDS)
        await plane.redis.flushall()

    await plane.say_many("acme", 3)
    await healed(plane)


@pytest.mark.parametrize("of", ["a bug", "a cancellation"])
async def test_the_relay_does_not_go_on_alone_where_its_cancellation_is_lost(plane, monkeypatch, of):
    """As `asyncio.wait_for` can lose one that comes when the answer of Redis is there already."""
    asks, fails = asyncio.Event(), asyncio.Event()

    async def losing(_client):
        asks.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3_600)
        return False

    async def failing(_client):
        await fails.wait()
        raise LookupError("a bug")

    monkeypatch.setattr("projection._relay.ensure_group", losing)
    monkeypatch.setattr("projection._worker.ensure_group", failing)
    plane.start()
    await asks.wait()

    fails.set() if of == "a bug" else plane.task.cancel()
    async with asyncio.timeout(HEAL_SECONDS):
        await asyncio.wait([plane.task])

    if of == "a bug":
        # Asked for: said when it is collected, it would be said in the midst of another test.
        assert plane.task.exception().subgroup(LookupError)
    else:
        assert plane.task.cancelled()
    plane.task = None


@pytest.mark.parametrize("name", ["w1", "w1-claims"])
async def test_what_an_earlier_life_read_and_left_is_dealt_with_by_the_next(plane, running, name):
    await plane.say_many("acme", 3)
    await hint_of(plane, running)
    assert await plane.redis.xreadgroup(GROUP, name, {STREAM: ">"})

    running(run_worker, RuleProjector(), consumer="w1")

    await healed(plane)
    await plane.acknowledged()


async def test_a_stream_that_is_cut_for_its_length_is_not_taken_for_lost(plane, monkeypatch, running):
    monkeypatch.setattr("projection._relay.STREAM_MESSAGES_MAX", 100)
    await plane.say_many("acme", 3)
    fields = await hint_of(plane, running)
    for _ in range(500):
        await plane.redis.xadd(STREAM, fields, maxlen=100, approximate=False)
    last = (await plane.redis.xinfo_stream(STREAM))["last-generated-id"]

    await asyncio.sleep(1.5)

    assert (await plane.redis.xinfo_stream(STREAM))["last-generated-id"] == last
