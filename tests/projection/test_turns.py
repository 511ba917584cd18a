"""How long a worker goes on with a tenant, and how it waits for one that another folds."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from contracts.errors import Unavailable
from ledger.write import CURSOR
from projection import RuleProjector, _worker
from projection._stream import GROUP, STREAM, ensure_group

FOLDS = 5


@pytest.fixture
async def worker(plane, monkeypatch):
    """A worker whose folds are what `folds` says in turn, each noted with how long it would wait."""
    made = _worker._Worker(plane.db, plane.redis_url, RuleProjector(), consumer="w1", stop=asyncio.Event())
    made.waits = []
    made.folds = [False] * FOLDS + [True]

    async def fold(_db, tenant, _projector, *, events_max, wait_seconds):
        made.waits.append(wait_seconds)
        await asyncio.sleep(0.21)
        is_at_head = made.folds.pop(0)
        if is_at_head is None:
            raise Unavailable(part=CURSOR, reason="another fold of the tenant goes on")
        return SimpleNamespace(
            epoch=1, after=0, commit=1, head=2, events=1, claims=1, unplaced=0, refused_contracts=0,
            skipped=0, read_whole=0, building=None, built=None, is_at_head=is_at_head,
        )  # fmt: skip

    monkeypatch.setattr(_worker, "fold", fold)
    monkeypatch.setattr(_worker, "TURN_SECONDS", 0.2)
    monkeypatch.setattr(_worker, "WAIT_SECONDS", 0.01)
    await ensure_group(plane.redis)
    await made.broker.connect()
    yield made
    await made.broker.stop()


async def wake_up(plane, tenant, *, read: bool):
    await plane.redis.xadd(STREAM, {"tenant": tenant})
    if read:
        await plane.redis.xreadgroup(GROUP, "w2", {STREAM: ">"})


@pytest.mark.parametrize(("read", "folds"), [(True, FOLDS + 1), (False, 1)], ids=["alone", "others wait"])
async def test_a_turn_goes_on_for_as_long_as_no_other_wake_up_waits(plane, worker, read, folds):
    await wake_up(plane, "beta", read=read)

    await worker.handle([{"tenant": "acme"}])

    assert len(worker.waits) == folds
    # The rest comes behind those that wait.
    assert await plane.redis.xlen(STREAM) == (1 if read else 2)


async def test_a_turn_ends_at_last(plane, worker, monkeypatch):
    monkeypatch.setattr(_worker, "TURN_SECONDS_MAX", 0.2)
    await wake_up(plane, "beta", read=True)

    await worker.handle([{"tenant": "acme"}])

    assert len(worker.waits) == 1


async def test_one_that_another_folds_is_waited_for_in_line_once_and_then_looked_at_now_and_then(
    plane, worker
):
    worker.folds = [None, None, None, False, True]
    await wake_up(plane, "beta", read=True)

    await worker.handle([{"tenant": "acme"}])

    assert worker.waits == [0.01, 0.0, 0.0, 0.0, 0.01]
