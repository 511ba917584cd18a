"""Many writers and readers at once: no gap, no double, no order that a reader could miss."""

from __future__ import annotations

import asyncio

import pytest

from contracts.errors import IdempotencyConflict, Unavailable, VersionConflict
from ledger import log
from ledger._combine import Combiner
from tests.ledger.conftest import MASTER_KEY
from tests.ledger.log_drafts import append, draft, head_of, read_all

WRITERS = 8


@pytest.fixture
async def writers(database, clock):
    """As many processes as there are writers would be: each with pools of its own."""
    made = [
        log.open_database(
            plane_url=database.plane, relay_url=database.relay, master_key=MASTER_KEY, clock=clock
        )
        for _ in range(WRITERS)
    ]
    await log.create_tenant(made[0], "acme")
    yield made
    for one in made:
        await one.close()


async def test_eight_writers_of_one_tenant_leave_no_gap_and_no_reader_sees_one(writers):
    seen: list[int] = []
    done = asyncio.Event()

    async def read() -> None:
        while True:
            # Asked before reading: what was written before this moment must be seen in this round.
            last_round = done.is_set()
            async with writers[0].snapshot("acme") as conn:
                keys = await log.tenant_keys(writers[0], "acme", conn)
                page = await log.read_events(conn, keys, after_position=len(seen), limit=1_000)
            seen.extend(event.position for event in page)
            if last_round:
                return
            await asyncio.sleep(0.001)

    async def write(writer: log.Database, name: int):
        return [
            await append(writer, *(draft(f"{name} {number} {part}") for part in range(1 + number % 3)))
            for number in range(15)
        ]

    reader = asyncio.create_task(read())
    written = await asyncio.gather(*map(write, writers, range(WRITERS)))
    receipts = [receipt for of_one in written for receipt in of_one]
    done.set()
    await reader

    total = sum(len(receipt.positions) for receipt in receipts)
    assert sorted(receipt.commit for receipt in receipts) == list(range(1, len(receipts) + 1))
    assert sorted(position for receipt in receipts for position in receipt.positions) == list(
        range(1, total + 1)
    )
    assert seen == list(range(1, total + 1))
    by_commit = sorted(receipts, key=lambda receipt: receipt.commit)
    clocks = [receipt.recorded_at for receipt in by_commit]
    assert clocks == sorted(set(clocks))
    report = await log.verify(writers[0], "acme")
    assert (report.problems, report.events) == ((), total)


async def test_appends_of_one_process_that_come_together_stay_commits_of_their_own(db):
    receipts = await asyncio.gather(*(append(db, draft(str(number))) for number in range(40)))

    assert sorted(receipt.commit for receipt in receipts) == list(range(1, 41))
    texts = {event.event_id: event.draft.text for event in await read_all(db)}
    assert [texts[receipt.event_ids[0]] for receipt in receipts] == [str(number) for number in range(40)]


async def test_one_refused_append_does_not_hold_up_those_that_came_with_it(db):
    await append(db, draft("old", idempotency_key="k"))

    results = await asyncio.gather(
        append(db, draft("a")),
        append(db, draft("new", idempotency_key="k")),
        append(db, draft("b", stream="s"), expected_version=3),
        append(db, draft("c")),
        append(db, draft("old", idempotency_key="k")),
        return_exceptions=True,
    )

    assert isinstance(results[1], IdempotencyConflict)
    assert isinstance(results[2], VersionConflict)
    assert results[4].repeated
    assert [event.draft.text for event in await read_all(db)] == ["old", "a", "c"]


async def test_of_many_clients_with_one_key_exactly_one_writes(writers):
    receipts = await asyncio.gather(
        *(append(writer, draft(idempotency_key="k")) for writer in writers for _ in range(3))
    )

    assert [receipt.repeated for receipt in receipts].count(False) == 1
    assert len({receipt.event_ids for receipt in receipts}) == 1
    assert (await head_of(writers[0])).position == 1


async def test_of_many_writers_that_expect_one_version_exactly_one_writes(writers):
    results = await asyncio.gather(
        *(append(writer, draft(), expected_version=0) for writer in writers), return_exceptions=True
    )

    assert sum(isinstance(result, VersionConflict) for result in results) == WRITERS - 1
    assert (await head_of(writers[0])).position == 1


async def test_a_tenant_made_by_many_at_once_is_made_once(writers):
    made = await asyncio.gather(*(log.create_tenant(writer, "new") for writer in writers))

    assert made.count(True) == 1


async def test_a_batch_is_bounded_and_in_order():
    batches: list[list[int]] = []
    combiner: Combiner[int, int] = Combiner(
        weight_max=3, bytes_max=100, waiting_max=100, waiting_bytes_max=10_000
    )

    async def run(items):
        batches.append(list(items))
        await asyncio.sleep(0)
        return [item * 10 for item in items]

    results = await asyncio.gather(
        *(
            combiner.submit("t", item, weight=weight, size_bytes=size, run=run)
            for item, (weight, size) in enumerate([(1, 1), (1, 1), (1, 60), (1, 60), (9, 900), (1, 1)])
        )
    )

    assert results == [0, 10, 20, 30, 40, 50]
    assert batches == [[0, 1, 2], [3], [4], [5]]


@pytest.mark.parametrize(
    ("waiting", "begun"),
    [
        # Half of a batch waits: it is written while whoever was answered makes ready what is next.
        (4, ["run 0 1", "run 2 3", "answered 0", "answered 1", "answered 2", "answered 3"]),
        # Less waits: those who have more to say are in the same batch.
        (3, ["run 0 1", "answered 0", "answered 1", "run 2", "answered 2"]),
    ],
)
async def test_a_batch_that_is_half_full_goes_before_those_who_were_just_answered(waiting, begun):
    told: list[str] = []
    combiner: Combiner[int, int] = Combiner(
        weight_max=4, bytes_max=100, waiting_max=100, waiting_bytes_max=10_000
    )

    async def run(items):
        told.append(" ".join(["run", *map(str, items)]))
        await asyncio.sleep(0)
        return items

    async def say(item: int) -> None:
        await combiner.submit("t", item, weight=2 if waiting == 4 or item < 2 else 1, size_bytes=1, run=run)
        told.append(f"answered {item}")

    await asyncio.gather(*map(say, range(waiting)))

    assert told == begun


async def test_a_failed_batch_fails_its_own_items_and_no_other():
    combiner: Combiner[int, int] = Combiner(
        weight_max=1, bytes_max=100, waiting_max=100, waiting_bytes_max=10_000
    )

    async def run(items):
        await asyncio.sleep(0)
        if items[0] == 1:
            raise Unavailable(part="database", reason="gone")
        return items

    results = await asyncio.gather(
        *(combiner.submit("t", item, weight=1, size_bytes=1, run=run) for item in range(3)),
        return_exceptions=True,
    )

    assert (results[0], results[2]) == (0, 2)
    assert isinstance(results[1], Unavailable)


async def test_an_item_whose_caller_left_before_its_batch_is_not_done():
    done: list[int] = []
    combiner: Combiner[int, int] = Combiner(
        weight_max=1, bytes_max=100, waiting_max=100, waiting_bytes_max=10_000
    )

    async def run(items):
        await asyncio.sleep(0)
        done.extend(items)
        return items

    tasks = [
        asyncio.create_task(combiner.submit("t", item, weight=1, size_bytes=1, run=run)) for item in range(3)
    ]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await combiner.close()

    assert done == [0, 2]
