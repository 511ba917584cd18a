"""Two epochs through relay and worker: the next one is built, takes over, and survives whatever happens."""

import asyncio
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.grants import LOCAL_GRANT
from contracts.relations import Cardinality, default_contract
from ledger import log
from ledger.log import EpochState, list_epochs
from ledger.write import begin_epoch, register_contract
from projection import RuleProjector
from tests.projection.choking import Choking
from tests.projection.conftest import PLACES, until

SCRIPT = Path(__file__).with_name("plane_process.py")
ROOT = Path(__file__).parent.parent.parent
LIVES_MANY = replace(default_contract("lives_in"), cardinality=Cardinality.MANY)


async def change(plane, contract):
    return await register_contract(
        plane.db, "acme", contract, stream="c", actor_id="op", grant=LOCAL_GRANT, new_epoch=True
    )


async def rebuild(plane, version):
    return await begin_epoch(
        plane.db, "acme", projector_version=version, stream="c", actor_id="op", grant=LOCAL_GRANT
    )


async def epochs(plane):
    return {epoch.number: epoch for epoch in await list_epochs(plane.db, "acme")}


def serves(plane, number):
    async def condition():
        return (await epochs(plane))[number].state is EpochState.SERVING

    return condition


async def folded_anew(plane, epoch):
    """The digest of an epoch, and the one of the same log folded in one go, by nobody else."""
    before = await plane.digest("acme", epoch=epoch)
    await plane.finish()
    return before, await plane.quiet_digest("acme", epoch=epoch)


async def test_a_change_in_use_is_built_and_takes_over_while_appends_go_on(plane):
    plane.start()
    await plane.say_many("acme", 40)
    await plane.folded("acme")

    begun = await change(plane, LIVES_MANY)
    writing = asyncio.create_task(plane.say_many("acme", 40))
    await until(serves(plane, begun.epoch))
    await writing
    await plane.folded("acme")

    found = await epochs(plane)
    assert found[1].state is EpochState.RETIRED
    assert found[2].commit == found[2].head == 81
    assert await log.pending(plane.db) == []
    before, anew = await folded_anew(plane, 2)
    assert before == anew


async def test_an_epoch_takes_over_although_the_log_never_stands_still(plane):
    plane.start()
    await plane.say_many("acme", 60)
    await plane.folded("acme")
    done = asyncio.Event()

    async def write():
        while not done.is_set():
            await asyncio.gather(*(plane.say("acme", f"I live in {place}.") for place in PLACES))

    writing = asyncio.create_task(write())
    await change(plane, LIVES_MANY)
    await until(serves(plane, 2))
    done.set()
    await writing
    await plane.folded("acme")

    before, anew = await folded_anew(plane, 2)
    assert before == anew


@pytest.fixture
def spawn(database, redis_url, tmp_path):
    started = []

    def start(consumer):
        with (tmp_path / f"{consumer}.log").open("ab") as log_file:
            process = subprocess.Popen(
                [sys.executable, str(SCRIPT), database.plane, database.relay, redis_url, consumer],
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


async def test_kill_9_while_the_next_epoch_is_built_changes_nothing(plane, spawn):
    for number in range(0, 900, 100):
        await plane.say_together(
            "acme", [f"I live in {PLACES[n % 4]}. I like tea." for n in range(100)], number=number
        )
    worker = spawn("w")
    await plane.folded("acme")
    await change(plane, LIVES_MANY)

    async def goes_on():
        return (await epochs(plane))[2].commit > 0

    await until(goes_on)
    worker.kill()
    worker.wait(timeout=10)
    await plane.redis.flushall()
    found = await epochs(plane)
    await plane.say("acme", "I live in Turin.")
    spawn("w")
    await until(serves(plane, 2))
    await plane.folded("acme")

    # Whether the kill came in the middle or just after the end: both are in the log of a good run.
    assert found[1].state in {EpochState.SERVING, EpochState.RETIRED}
    before, anew = await folded_anew(plane, 2)
    assert before == anew


async def test_two_workers_build_one_epoch(plane):
    plane.start(consumer="w1")
    await plane.say_many("acme", 30)
    await plane.folded("acme")
    first = plane.task
    plane.start(consumer="w2")
    await asyncio.gather(change(plane, LIVES_MANY), plane.say_many("acme", 30))

    await until(serves(plane, 2))
    await plane.folded("acme")

    first.cancel()
    await asyncio.wait([first])
    before, anew = await folded_anew(plane, 2)
    assert before == anew


class Newer(RuleProjector):
    def __init__(self):
        super().__init__()
        self.version += "+newer"


async def test_a_tenant_that_another_projector_stopped_goes_on_after_a_rebuild(plane):
    plane.start()
    await plane.say_many("acme", 5)
    await plane.folded("acme")
    await plane.finish()
    plane.start(projector=Newer())
    await plane.say("acme", "I live in Oslo.")
    await asyncio.sleep(0.5)
    assert (await epochs(plane))[1].commit == 5

    await rebuild(plane, Newer().version)

    await until(serves(plane, 2))
    assert (await epochs(plane))[2].projector_version == Newer().version
    await plane.folded("acme")


async def standing(plane):
    return next(one for one in await log.standings(plane.db) if one.tenant == "acme")


async def test_poison_in_the_next_epoch_is_seen_in_health_and_reads_stay_fresh(plane):
    plane.start()
    await plane.say("acme", "I live in Lyon.")
    await plane.say("acme", "poison")
    await plane.folded("acme")
    await plane.finish()
    plane.start(projector=Choking())
    await change(plane, LIVES_MANY)

    async def is_stopped():
        return (await standing(plane)).building_dead_letters

    await until(is_stopped)
    receipt = await plane.say("acme", "I live in Graz.")

    async def is_fresh():
        return (await epochs(plane))[1].commit >= receipt.commit

    await until(is_fresh)
    state = await standing(plane)
    assert (state.dead_letters, state.building_dead_letters, state.building) == (0, 1, 2)
    assert (await epochs(plane))[2].stopped_at == 2
