"""A process that ends before or after anything that it says to PostgreSQL or Redis leaves nothing amiss."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections import Counter
from dataclasses import replace

import pytest

from ledger import log
from tests.projection.conftest import MASTER_KEY, until
from tests.torture.crashing import BATCHES, CRASHED, Job, Point, append_all, run

SAMPLED = {"echoplane_append(": "after", "XADD": "after", "XACK": "before", "COMMIT": "before"}
"""What a few points are taken of where there is no time for all."""


@pytest.fixture(scope="session")
def forks():
    """Start processes that have everything imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.torture.crashing", "projection._worker", "projection._relay"])
    return context


async def lived(plane, forks, job) -> int:
    """Run a job in a process until it has crashed, or all is folded and acknowledged; its exit code."""
    await log.create_tenant(plane.db, job.tenant)
    await plane.redis.flushall()
    process = forks.Process(target=run, args=(job,))
    process.start()

    async def is_over():
        if not process.is_alive():
            return True
        async with plane.db.snapshot(job.tenant) as conn:
            if (await log.head(conn)).position < sum(map(len, BATCHES)):
                return False
        return not await log.pending(plane.db) and await is_acknowledged(plane)

    await until(is_over)
    process.terminate()
    await asyncio.to_thread(process.join, 60)
    return process.exitcode


async def is_acknowledged(plane):
    groups = await plane.redis.xinfo_groups("echoplane:commits")
    return bool(groups) and (groups[0]["pending"], groups[0]["lag"]) == (0, 0)


def points_of(notes) -> list[Point]:
    """Return every point of a run: of what it said again and again, the first two times."""
    said = Counter(notes.read_text(encoding="utf-8").splitlines())
    return [
        Point(side=side, what=what, turn=turn)
        for what, count in said.items()
        for turn in range(1, min(count, 2) + 1)
        for side in ("before", "after")
    ]


@pytest.mark.parametrize("is_whole", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.timeout(3_600)
async def test_wherever_a_process_ends_the_next_one_goes_on_as_if_it_had_not(
    plane, forks, database, tmp_path, is_whole
):
    job = Job(
        plane_url=database.plane, relay_url=database.relay, redis_url=plane.redis_url,
        master_key=MASTER_KEY, tenant="quiet", notes=tmp_path / "notes", point=None,
    )  # fmt: skip
    assert await lived(plane, forks, job) == 0
    points = points_of(job.notes)
    for kind in SAMPLED:
        assert any(kind in point.what for point in points), f"{kind} is said by nobody"
    if not is_whole:
        points = [
            next(one for one in points if kind in one.what and one.side == side)
            for kind, side in SAMPLED.items()
        ]

    reached = 0
    for number, point in enumerate(points):
        tenant = f"t{number}"
        code = await lived(plane, forks, replace(job, tenant=tenant, point=point))
        assert code in {CRASHED, 0}, f"{point}: exit {code}"
        reached += code == CRASHED
        await append_all(plane.db, tenant)
        plane.start(consumer="crashing")
        await plane.folded(tenant)
        await plane.acknowledged()
        await plane.finish()

        async with plane.db.snapshot(tenant) as conn:
            keys = await log.tenant_keys(plane.db, tenant, conn)
            events = await log.read_events(conn, keys, after_position=0, limit=100)
        assert [one.draft.text for one in events] == [text for batch in BATCHES for text in batch], point
        assert (await log.verify(plane.db, tenant)).problems == (), point
        assert await plane.digest(tenant) == await plane.quiet_digest(tenant), point
    # A read that polls may not come twice before all is done.
    assert reached >= 0.8 * len(points), f"{reached} of {len(points)} points were come to"
