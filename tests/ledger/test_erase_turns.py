"""Erasures come one after the other, so that none starves the others, or whoever reads, of connections."""

from __future__ import annotations

import asyncio

import pytest

from contracts.errors import Busy
from contracts.limits import ERASURE_SECONDS_MAX
from ledger import _erasing
from ledger._turns import Turns
from tests.ledger.erasing import claim, opened, said


@pytest.fixture
async def ledger(db, database, clock):
    async with opened(db, database, clock) as made:
        yield made


def turns(*, places=2, wait_seconds=60.0):
    return Turns(part="erasures", places=asyncio.Semaphore(places), wait_seconds=wait_seconds)


async def most_at_once(some, tenants):
    """How many had a turn at the same time, each for a few rounds of the loop; and in which order."""
    now, most, order = 0, 0, []

    async def work(tenant):
        nonlocal now, most
        async with some.of(tenant):
            order.append(tenant)
            now += 1
            most = max(most, now)
            for _ in range(5):
                await asyncio.sleep(0)
            now -= 1

    await asyncio.gather(*map(work, tenants))
    return most, order


async def test_a_tenant_has_one_turn_at_a_time_and_all_of_them_have_so_many():
    assert (await most_at_once(turns(), ["a"] * 5))[0] == 1
    assert (await most_at_once(turns(), list("abcdef")))[0] == 2
    # Those of a tenant that wait for each other take no place from another.
    assert (await most_at_once(turns(), list("aaaab")))[1][:2] == ["a", "b"]


async def test_whoever_waits_too_long_is_turned_away_and_takes_no_turn_from_anybody():
    some = turns(places=1, wait_seconds=0)

    async with some.of("a"):
        for tenant in ("a", "b"):
            with pytest.raises(Busy) as refused:
                async with some.of(tenant):
                    pass
            assert refused.value.retry_after_seconds > 0

    for tenant in ("a", "b"):
        async with some.of(tenant):
            pass
    assert dict(some._tenants) == {}


async def test_as_many_erasures_at_once_as_like_are_all_done_and_leave_connections_to_others(
    ledger, monkeypatch
):
    names = [f"e{number}" for number in range(12)]
    await ledger.say(*[said(name, claim(f"box {name}", "place", "shelf")) for name in names])
    await ledger.fold()
    in_use = []
    real = _erasing._names

    async def watched(*arguments):
        in_use.append(ledger.db.plane.pool.checkedout())
        return await real(*arguments)

    monkeypatch.setattr(_erasing, "_names", watched)
    reports = await asyncio.gather(*[ledger.erase(name) for name in names])

    assert sorted(report.erased for report in reports) == sorted((ledger.ids[name],) for name in names)
    # Before each of them has the lock, and when it has.
    assert in_use == [1] * 2 * len(names)


async def test_an_erasure_that_works_something_out_for_long_is_not_taken_for_one_left_alone(
    ledger, monkeypatch
):
    await ledger.say(said("e1", claim("ann", "home", "Lyon")))
    seen = []
    fold_anew = _erasing.fold_anew

    async def watched(piece, erased_ids):
        found = await piece.reader.conn.exec_driver_sql(
            "SELECT current_setting('idle_in_transaction_session_timeout')::interval, "
            "current_setting('lock_timeout')::interval"
        )
        seen.extend(found.one())
        await fold_anew(piece, erased_ids)

    monkeypatch.setattr(_erasing, "fold_anew", watched)
    await ledger.erase("e1")

    idle, lock = (one.total_seconds() for one in seen)
    assert (idle, lock) == (ERASURE_SECONDS_MAX, 30)
