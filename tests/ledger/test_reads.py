"""Reads over both times: windows, timelines, and views by name."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
import sqlalchemy as sa

from contracts.errors import IntegrityFault
from contracts.views import Generation
from ledger import _alike, _found
from ledger import resolve as reads
from ledger._world import _BY_ID
from tests.ledger.telling import DAY, Told, day, shown, since, span


@pytest.fixture
def tell(db, clock):
    return Told(db, clock)


async def test_window_of_valid_time_cuts_off_what_lies_outside(tell):
    await tell(since("Lyon", day(1)))
    await tell(since("Oslo", day(10)))

    found = await tell.history("ann", valid_from=day(5), valid_to=day(12))

    assert shown(found) == [
        ("Lyon", day(5), day(10), 1, None),
        ("Lyon", day(10), day(12), 1, 2),
        ("Oslo", day(10), day(12), 2, None),
    ]
    assert not found.truncated


async def test_window_of_known_time_shows_whole_what_touches_it(tell):
    await tell(since("Lyon", day(1)))
    await tell(since("Oslo", day(10)))
    await tell(since("Bern", day(20)))

    assert shown(await tell.history("ann", known_from=1, known_to=2)) == [
        ("Lyon", day(1), day(10), 1, None),
        ("Lyon", day(10), None, 1, 2),
    ]
    # What was learned at commit 3 ends nothing that was known at 2 alone.
    assert ("Lyon", day(10), None, 1, 2) not in shown(await tell.history("ann", known_from=2))


async def test_known_window_in_instants_is_one_in_commits(tell):
    receipts = [await tell(since(city, day(number))) for number, city in enumerate(("a", "b", "c"), start=1)]
    first, second, third = (receipt.recorded_at for receipt in receipts)

    async def commits(start, end):
        return await tell.read(reads.known_commits, start, end)

    assert await commits(None, None) == (None, None)
    assert await commits(second, third) == (2, 3)
    assert await commits(second - timedelta(microseconds=1), third + timedelta(microseconds=1)) == (1, 4)
    assert await commits(first - DAY, first) == (0, 1)


async def test_one_instant_shows_how_what_is_known_about_it_changed(tell):
    await tell(since("Lyon", day(1)))
    await tell(since("Oslo", day(10)))
    await tell(span("Rome", day(4), day(6)))
    await tell({"entity": "ann", "stance": "retract", "targets": [{"entity": "ann", "relation": "home"}],
                "valid": {"from": day(4).isoformat(), "to": day(5).isoformat()}})  # fmt: skip

    window = reads.Window.at(day(4))
    found = await tell.history("ann", valid_from=window.valid_from, valid_to=window.valid_to)

    assert [(one.state, one.known_from, one.known_to) for one in found.rectangles] == [
        ("value", 1, 3), ("value", 3, 4), ("withdrawn", 4, None),
    ]  # fmt: skip


async def test_timeline_is_what_stands_at_the_cut_and_its_segments_are_whole(tell):
    await tell(since("Lyon", day(1)))
    await tell(since("Oslo", day(10)))
    await tell(span("Rome", day(4), day(6)))

    assert shown(await tell.timeline("ann", 1)) == [("Lyon", day(1), None, 1, None)]
    assert [row[:3] for row in shown(await tell.timeline("ann"))] == [
        ("Lyon", day(1), day(4)),
        ("Rome", day(4), day(6)),
        ("Lyon", day(6), day(10)),
        ("Oslo", day(10), None),
    ]
    touching = await tell.timeline("ann", valid_from=day(5), valid_to=day(6))
    assert [row[:3] for row in shown(touching)] == [("Rome", day(4), day(6))]
    assert shown(await tell.timeline("ann", 0)) == []


async def test_history_at_an_earlier_cut_does_not_know_what_ended_later(tell):
    await tell(since("Lyon", day(1)))
    await tell(since("Oslo", day(10)))

    assert shown(await tell.history("ann", cut=1)) == [("Lyon", day(1), None, 1, None)]


async def test_claims_are_looked_up_by_their_id_before_the_tables_were_ever_analysed(tell, db):
    """By another index the whole tenant would be read once for each claim that a history names."""
    await tell(since("Lyon", day(1)))
    values = {"tenant": "acme", "epoch": 1, "claim_ids": [bytes(16)]}
    async with db.snapshot("acme") as conn:
        plan = "\n".join((await conn.exec_driver_sql(f"EXPLAIN {_BY_ID}", values)).scalars())

    assert "claim_pkey" in plan


async def test_pinned_view_answers_the_same_whatever_came_after(tell, db):
    await tell(since("Lyon", day(1)))
    pinned = await reads.pin_view(db, "acme", "monday", await tell.view())
    before = await tell.read(reads.resolve, pinned.view, "ann", "home")
    await tell(since("Oslo", day(1)))
    await tell({"entity": "ann", "stance": "retract", "targets": [{"entity": "ann", "relation": "home"}]})

    found = await reads.pinned_view(db, "acme", "monday")
    view = await reads.pin(db, "acme", found.request, wait_ms=0)

    assert found == pinned
    assert view == pinned.view
    assert await tell.read(reads.resolve, view, "ann", "home") == before
    assert await tell.read(reads.resolve, await tell.view(), "ann", "home") != before


async def test_request_of_a_pinned_view_names_its_generation(tell, db):
    await tell(since("Lyon", day(1)))
    pinned = await reads.pin_view(db, "acme", "v", await tell.view())

    assert pinned.request.generation == Generation(epoch=1, commit=1)


async def test_a_changed_row_of_the_first_of_many_keys_is_refused_and_nothing_is_left_under_way(
    tell, owner_engine, monkeypatch
):
    monkeypatch.setattr(_found, "KEYS_FIRST", 1)
    monkeypatch.setattr(_alike, "KEYS_A_ROW", 1)
    await tell(since("Lyon", day(1)), since("Oslo", day(1), entity="bob"))
    view = await tell.view()
    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        await conn.execute(sa.text("UPDATE claim SET stance = 'end' WHERE entity = 'ann'"))

    async def read(conn, keys):
        before = asyncio.all_tasks()
        with pytest.raises(IntegrityFault):
            await reads.resolve_many(conn, keys, view, [("ann", "home"), ("bob", "home")])
        assert asyncio.all_tasks() == before
        return await reads.resolve_many(conn, keys, view, [("bob", "home")])

    [answer] = await tell.read(read)
    assert answer.resolution.value == "Oslo"


@pytest.mark.parametrize("listed", [1, 32])
async def test_a_claim_that_is_gone_is_missed_by_the_cell_that_names_it(
    tell, owner_engine, monkeypatch, listed
):
    monkeypatch.setattr(_found, "LISTED_CLAIMS_MAX", listed)
    await tell(since("Lyon", day(1)))
    await tell(since("Oslo", day(5)))
    await tell(since("Bern", day(9)))
    view = await tell.view(valid_at=day(10))
    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        assert (await conn.execute(sa.text("DELETE FROM claim WHERE position = 3"))).rowcount == 1

    with pytest.raises(IntegrityFault, match="names a claim that is not there"):
        await tell.read(reads.resolve, view, "ann", "home")
