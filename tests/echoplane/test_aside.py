"""Large answers are made beside the event loop: others have their turn meanwhile."""

from __future__ import annotations

import asyncio
import threading

import pytest

from echoplane import _following, _reads
from ledger import _aside, _cells, _history, _read, _reads_diff, _world
from ledger._aside import ASIDE_ITEMS_MIN, aside


async def test_the_loop_goes_on_while_a_large_piece_is_at_work():
    gone_on = threading.Event()

    working = asyncio.create_task(aside(lambda: gone_on.wait(5), items=ASIDE_ITEMS_MIN))
    await asyncio.sleep(0)
    gone_on.set()

    assert await working


async def test_a_small_piece_is_done_at_once():
    assert await aside(threading.get_ident, items=ASIDE_ITEMS_MIN - 1) == threading.get_ident()


async def test_what_a_piece_raises_comes_and_the_next_is_done():
    with pytest.raises(ZeroDivisionError):
        await aside(lambda: 1 // 0, items=ASIDE_ITEMS_MIN)

    assert await aside(lambda: 1, items=ASIDE_ITEMS_MIN) == 1


async def test_who_waits_for_another_piece_leaves_at_once_and_his_is_not_begun():
    let_go, begun = threading.Event(), []
    first = asyncio.create_task(aside(lambda: let_go.wait(60), items=ASIDE_ITEMS_MIN))
    second = asyncio.create_task(aside(lambda: begun.append(1), items=ASIDE_ITEMS_MIN))
    await asyncio.sleep(0)

    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    let_go.set()

    assert await first
    await aside(lambda: None, items=ASIDE_ITEMS_MIN)
    assert begun == []


READS = {
    "/v1/home/diff": [
        (_cells, "cell_of"), (_reads_diff, "areas_of"), (_world, "claims_of"), (_reads_diff, "_stand"),
        (_reads.present, "diff_answer"),
    ],
    "/v1/home/history?entity=Ann": [
        (_cells, "cell_of"), (_history, "areas_of"), (_world, "claims_of"), (_history, "_rectangle"),
        (_reads.present, "history_answer"),
    ],
    "/v1/home/join?entity=Ann&relation=lives_in&other_entity=Ann&other_relation=lives_in": [
        (_cells, "cell_of"), (_history, "_rectangle"), (_reads.present, "join_answer"),
    ],
    "/v1/home/events": [(_read, "open_event"), (_following, "event_answer")],
    "/v1/home/events?stream=s1": [(_read, "open_event"), (_following, "event_answer")],
    "/v1/home/events?commit=1": [(_read, "open_event"), (_following, "event_answer")],
}  # fmt: skip


@pytest.mark.parametrize("path", READS)
async def test_of_a_long_read_each_step_that_grows_with_it_is_beside(client, home, monkeypatch, path):
    monkeypatch.setattr(_aside, "ASIDE_ITEMS_MIN", 1)
    threads: dict[str, set[str]] = {}
    for module, name in READS[path]:
        step = getattr(module, name)

        def recorded(*of, step=step, name=name, **more):
            # Of the view alone what stands is read too, and that is little.
            threads.setdefault(name, set()).add(threading.current_thread().name.split("_")[0])
            return step(*of, **more)

        monkeypatch.setattr(module, name, recorded)

    answer = await client.get(path)

    assert answer.status_code == 200, answer.text
    assert {name: "aside" in where for name, where in threads.items()} == dict.fromkeys(
        (name for _, name in READS[path]), True
    )
