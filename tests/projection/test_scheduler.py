"""Order, repeats and losses of wake-ups, sizes of batches and the number of workers change nothing."""

from __future__ import annotations

import asyncio
import random

import pytest

from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from ledger import log
from projection import RuleProjector
from projection._stream import Left
from projection._worker import _Worker
from tests.acceptance.experience import experience

TENANTS = ("acme", "beta")
EVENTS_COUNT = 60
WORKERS_MAX = 4


class Deliveries:
    """
    What stands for Redis and the relay: a bag of wake-ups, of which a seed says what becomes of them.

    Workers are the product's own; what they send again comes back into the bag.
    """

    def __init__(self, plane, commits, chance):
        self.chance, self.redis = chance, plane.redis
        self.bag = [{"tenant": one, "commit": commit} for one in TENANTS for commit in range(1, commits[one])]
        self.workers = []
        for number in range(chance.randint(1, WORKERS_MAX)):
            worker = _Worker(
                plane.db, plane.redis_url, RuleProjector(), consumer=f"w{number}", stop=asyncio.Event()
            )
            worker.broker = self
            self.workers.append(worker)

    async def connect(self):
        return self.redis

    async def publish(self, message, **_):
        self.bag.append(message)

    async def work(self, worker):
        """Take wake-ups until there are none: some are lost, some are delivered twice, some come too late."""
        while self.bag:
            self.chance.shuffle(self.bag)
            count = self.chance.randint(1, len(self.bag))
            taken, self.bag = self.bag[:count], self.bag[count:]
            match self.chance.randrange(6):
                case 0 if self.bag:
                    # Lost. The relay sends what stays unfolded again, below.
                    continue
                case 1:
                    self.bag += self.chance.sample(taken, min(2, len(taken)))
            worker.events_max = self.chance.choice((1, 2, 3, 7, 20, 1_000))
            try:
                await worker.handle(taken)
            except Left:
                self.bag += taken
            await asyncio.sleep(0)


async def filled(plane, tenant, *, seed):
    """Append a log of every kind of event, in commits of any size; return how many there are."""
    chance = random.Random(seed)  # noqa: S311
    drafts = [EventDraft.model_validate(one) for one in experience(events_count=EVENTS_COUNT, seed=seed)]
    commits = 0
    while drafts:
        size = chance.randint(1, 5)
        await log.append(plane.db, tenant, drafts[:size], grant=LOCAL_GRANT)
        drafts = drafts[size:]
        commits += 1
    return commits


@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(4, 200), marks=pytest.mark.slow)])
@pytest.mark.timeout(1_800)
async def test_no_schedule_of_wake_ups_and_workers_changes_what_is_folded(plane, seeds):
    commits = {tenant: await filled(plane, tenant, seed=number) for number, tenant in enumerate(TENANTS)}
    quiet = {tenant: await plane.quiet_digest(tenant) for tenant in TENANTS}

    for seed in seeds:
        for tenant in TENANTS:
            await asyncio.to_thread(plane._unfold, tenant)
            assert await plane.digest(tenant) != quiet[tenant]
        deliveries = Deliveries(plane, commits, random.Random(seed))  # noqa: S311
        while deliveries.bag:
            await asyncio.gather(*(deliveries.work(worker) for worker in deliveries.workers))
            deliveries.bag = [
                {"tenant": tenant, "commit": commit} for tenant, commit in await unfolded(plane)
            ]
        assert {tenant: await plane.digest(tenant) for tenant in TENANTS} == quiet, f"seed {seed}"


async def unfolded(plane):
    return [(one.tenant, one.head) for one in await log.standings(plane.db) if one.cursor < one.head]
