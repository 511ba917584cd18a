"""What wakes discovery when a log grows."""

from __future__ import annotations

import asyncio

import pytest
import redis as redis_py

from contracts.errors import Unavailable
from discovery._wakeups import STREAM, group_of, listen, watch
from tests.discovery.values import emit, turn

SAID = turn("The lamp stands in the hall.")


async def woken(db, redis_url, act):
    """Return the tenants that are woken after `act`, by a watcher that looks by itself every hour only."""
    names: asyncio.Queue[str] = asyncio.Queue()
    hint = asyncio.Event()

    async def wake(tenant):
        await names.put(tenant)

    stop = asyncio.Event()
    tasks = [
        asyncio.create_task(watch(db, wake, hint=hint)),
        asyncio.create_task(listen(redis_url, hint=hint, stop=stop)),
    ]
    try:
        async with asyncio.timeout(60):
            # At the start every tenant is made ready.
            assert {await names.get(), await names.get()} == {"acme", "other"}
            await act()
            return await names.get()
    finally:
        stop.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
def looks_rarely(monkeypatch):
    monkeypatch.setattr("discovery._wakeups.LOOK_SECONDS", 3_600.0)


async def test_a_wake_up_leads_to_the_tenant_that_has_more(db, redis_url, looks_rarely):
    async def act():
        await emit(db, SAID)
        with redis_py.Redis.from_url(redis_url) as client:
            client.xadd(STREAM, {"anything": "at all"})

    assert await woken(db, redis_url, act) == "acme"


async def test_wake_ups_come_again_after_redis_has_lost_everything(db, redis_url, looks_rarely):
    async def act():
        with redis_py.Redis.from_url(redis_url) as client:
            async with asyncio.timeout(60):
                while not client.exists(STREAM):
                    await asyncio.sleep(0.05)
            client.flushall()
            async with asyncio.timeout(60):
                while not (client.exists(STREAM) and client.xinfo_groups(STREAM)):
                    await asyncio.sleep(0.05)
            assert [group["name"] for group in client.xinfo_groups(STREAM)] == [group_of(0).encode()]
            await emit(db, SAID)
            client.xadd(STREAM, {"a": "b"})

    assert await woken(db, redis_url, act) == "acme"


async def test_each_process_that_shares_the_tenants_hears_every_wake_up(redis_url):
    hints, stop = [asyncio.Event() for _ in range(2)], asyncio.Event()
    tasks = [
        asyncio.create_task(listen(redis_url, hint=hint, stop=stop, shard=shard))
        for shard, hint in enumerate(hints)
    ]
    with redis_py.Redis.from_url(redis_url) as client:
        client.xadd(STREAM, {"anything": "at all"})

    async with asyncio.timeout(60):
        await asyncio.gather(*(hint.wait() for hint in hints))
    # A cancellation alone can be lost, as `listen` says.
    stop.set()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_tenant_that_cannot_be_read_keeps_no_other_from_being_woken(db):
    woken_names: asyncio.Queue[str] = asyncio.Queue()

    async def wake(tenant):
        await woken_names.put(tenant)
        raise Unavailable(part="database", reason="busy")

    task = asyncio.create_task(watch(db, wake, hint=asyncio.Event()))
    async with asyncio.timeout(60):
        assert {await woken_names.get(), await woken_names.get()} == {"acme", "other"}
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_without_redis_the_heads_are_looked_at_all_the_same(db, monkeypatch):
    monkeypatch.setattr("discovery._wakeups.LOOK_SECONDS", 0.1)

    async def act():
        await emit(db, SAID)

    assert await woken(db, "redis://localhost:1/0", act) == "acme"
