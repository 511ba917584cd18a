"""Workers as real processes: kill -9, SIGSTOP past its lease, SIGTERM, and Redis emptied meanwhile."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from contracts.grants import LOCAL_GRANT
from ledger import log
from ledger.log import EpochState
from ledger.write import begin_epoch
from projection import RuleProjector
from projection._stream import STREAM
from tests.projection.conftest import PLACES, until

SCRIPT = Path(__file__).with_name("plane_process.py")
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def spawn(database, redis_url, tmp_path):
    """Start worker processes, and see to it that none is left."""
    started = []

    def start(consumer, *, lease_seconds=0, frozen_after=-1, before=""):
        with (tmp_path / f"{consumer}.log").open("ab") as log_file:
            process = subprocess.Popen(
                [sys.executable, str(SCRIPT), database.plane, database.relay, redis_url, consumer,
                 str(lease_seconds), str(frozen_after), before],
                cwd=ROOT, stdout=log_file, stderr=log_file,
            )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.wait(timeout=10)


async def claims_count(plane):
    async with plane.db.snapshot("acme") as conn:
        return (await conn.exec_driver_sql("SELECT count(*) FROM claim")).scalar()


@pytest.mark.parametrize("lives", [1, pytest.param(6, marks=pytest.mark.slow)])
async def test_kill_9_and_an_emptied_redis_in_the_middle_change_nothing(plane, spawn, lives):
    done = asyncio.Event()

    async def write():
        while not done.is_set():
            await plane.say_many("acme", 4)
            await asyncio.sleep(0.05)

    writing = asyncio.create_task(write())
    for _ in range(lives):
        worker = spawn("w")

        folded = await claims_count(plane)

        async def goes_on(folded=folded):
            return await claims_count(plane) > folded

        await until(goes_on)
        worker.kill()
        worker.wait(timeout=10)
        await plane.redis.flushall()
    done.set()
    await writing

    spawn("w")
    await plane.folded("acme")

    assert await plane.digest("acme") == await plane.quiet_digest("acme")


async def test_sigterm_ends_a_worker_with_0_and_nothing_pending(plane, spawn):
    worker = spawn("w")
    await plane.say_many("acme", 5)
    await plane.at_rest("acme")

    worker.send_signal(signal.SIGTERM)
    code = await asyncio.to_thread(worker.wait, 30)

    assert code == 0
    assert await plane.pending() == 0


@pytest.mark.slow
async def test_a_worker_that_stands_still_does_not_hold_up_another(plane, spawn):
    stopped = spawn("stopped")
    await plane.say("acme", "I live in Lyon.")
    await plane.folded("acme")
    stopped.send_signal(signal.SIGSTOP)
    await plane.say_many("acme", 5)

    spawn("other")
    await plane.folded("acme")
    stopped.send_signal(signal.SIGCONT)
    await plane.say_many("acme", 5)
    await plane.folded("acme")

    assert await plane.digest("acme") == await plane.quiet_digest("acme")


async def test_what_a_frozen_worker_holds_is_claimed_after_the_lease(plane, spawn):
    frozen = spawn("frozen")
    await plane.say("acme", "I live in Lyon.")
    await plane.at_rest("acme")

    async def reads():
        return (await plane.redis.info("clients"))["blocked_clients"] == 1

    await until(reads)
    frozen.send_signal(signal.SIGSTOP)
    # Its read stands open at the server, which hands it the next message.
    await plane.redis.xadd(STREAM, (await plane.redis.xrange(STREAM, count=1))[0][1])
    assert await plane.pending() == 1

    spawn("other", lease_seconds=1)

    await plane.acknowledged()


async def is_stopped(worker):
    return psutil.Process(worker.pid).status() == psutil.STATUS_STOPPED


async def test_a_worker_that_is_frozen_in_its_fold_is_cut_off_and_writes_nothing_when_it_wakes(
    plane, spawn, tmp_path
):
    await plane.say_together("acme", ["I live in Lyon.", "I like tea."], number=0)
    frozen = spawn("frozen", frozen_after=1)
    await until(lambda: is_stopped(frozen))
    assert await claims_count(plane) == 0

    spawn("other", lease_seconds=1)
    await plane.folded("acme")
    before = await plane.digest("acme")
    frozen.send_signal(signal.SIGCONT)

    async def has_noticed():
        return b"fold_unavailable" in (tmp_path / "frozen.log").read_bytes()

    await until(has_noticed)
    assert await plane.digest("acme") == before
    await plane.say("acme", "I moved to Graz.")
    await plane.folded("acme")
    assert await plane.digest("acme") == await plane.quiet_digest("acme")


async def test_folds_that_kill_9_cut_off_in_their_middle_leave_what_a_rebuild_makes(plane, spawn):
    async def say(turn):
        place, other = PLACES[turn % 4], PLACES[(turn + 1) % 4]
        texts = [f"I live in {place}.", "I like tea.", f"I moved to {other}.", f"I like {place}."]
        await plane.say_together("acme", texts, number=10 * turn)

    # While it reads events, before it writes what they come to, and before the COMMIT.
    middles = [(6, ""), (5, "write_folded"), (5, "forget_passed")]
    await say(0)
    for turn, (frozen_after, before) in enumerate(middles, start=1):
        # Its first fold is what the one before it was killed in, whole; it stands still in its second.
        worker = spawn("w", frozen_after=frozen_after, before=before)
        await plane.folded("acme")
        await say(turn)
        await until(lambda worker=worker: is_stopped(worker))
        worker.kill()
        worker.wait(timeout=10)
        assert await log.pending(plane.db), f"it was killed after its fold: {before}"
    spawn("other")
    await plane.folded("acme")

    version = RuleProjector().version
    begun = await begin_epoch(
        plane.db, "acme", projector_version=version, stream="c", actor_id="op", grant=LOCAL_GRANT
    )
    await plane.folded("acme")

    states = {epoch.number: epoch.state for epoch in await log.list_epochs(plane.db, "acme")}
    assert states == {1: EpochState.RETIRED, begun.epoch: EpochState.SERVING}
    # A cell has the commits between which it was known: what is equal is so at every cut.
    rebuilt = await plane.folded_rows("acme", epoch=begun.epoch)
    assert await plane.folded_rows("acme", epoch=1) == rebuilt
    claims, _, cells = rebuilt
    assert len({event_id for _, _, _, event_id, *_ in claims}) == 4 * (len(middles) + 1)
    assert cells


async def test_other_tenants_are_folded_while_one_is_held_by_a_frozen_worker(plane, spawn):
    await plane.say("acme", "I live in Lyon.")
    frozen = spawn("frozen", frozen_after=0)
    await until(lambda: is_stopped(frozen))

    await plane.say_many("beta", 5)
    spawn("other")
    await plane.folded("beta")

    assert await claims_count(plane) == 0
    frozen.send_signal(signal.SIGCONT)
    await plane.folded("acme")
    for tenant in ("acme", "beta"):
        assert await plane.digest(tenant) == await plane.quiet_digest(tenant)


async def test_three_workers_fold_four_tenants_each_in_order_though_one_is_killed(plane, spawn):
    tenants = ("acme", "beta", "gamma", "delta")
    for tenant in tenants[2:]:
        await log.create_tenant(plane.db, tenant)
    first, *_ = [spawn(f"w{number}") for number in range(3)]
    writing = asyncio.gather(*(plane.say_many(tenant, 15) for tenant in tenants))

    async def is_begun():
        return await claims_count(plane) > 0

    await until(is_begun)
    first.kill()
    first.wait(timeout=10)
    await writing

    for tenant in tenants:
        await plane.folded(tenant)
    for tenant in tenants:
        assert await plane.digest(tenant) == await plane.quiet_digest(tenant)


@pytest.mark.slow
async def test_an_idle_worker_uses_next_to_no_cpu(plane, spawn):
    worker = spawn("w")
    await plane.say("acme", "I live in Lyon.")
    await plane.folded("acme")
    await asyncio.sleep(1.0)
    process = psutil.Process(worker.pid)
    before = sum(process.cpu_times()[:2])

    await asyncio.sleep(3.0)

    assert sum(process.cpu_times()[:2]) - before < 0.05 * 3.0
