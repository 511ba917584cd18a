"""Appends that share a transaction: each is judged and numbered by itself, and none pays for another."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import psycopg
import pytest
import sqlalchemy as sa

from contracts.errors import (
    AlreadyKnown,
    BadRequest,
    Busy,
    IdempotencyConflict,
    Unavailable,
    VersionConflict,
    WrongValue,
)
from contracts.events import Receipt
from contracts.grants import LOCAL_GRANT
from contracts.limits import APPENDS_WAITING_MAX
from contracts.relations import ValueType
from echoplane._postgres import SUPERUSER
from ledger import _append, log
from ledger._combine import Combiner
from ledger._registrations import Registration, registration_draft
from ledger._relations import unregistered
from tests.ledger.log_drafts import append, as_owner, claim, draft, head_of, read_all


@pytest.fixture
def groups(db, monkeypatch):
    """How many appends each transaction had, in order."""
    found: list[int] = []
    write = _append._write

    async def counted(database, tenant, batch):
        found.append(len(batch))
        return await write(database, tenant, batch)

    monkeypatch.setattr(_append, "_write", counted)
    return found


async def together(*appends):
    return await asyncio.gather(*appends, return_exceptions=True)


@asynccontextmanager
async def locked_head(engine):
    """Hold the lock that every append of the tenant needs."""
    async with engine.begin() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        await conn.execute(sa.text("SELECT FROM head FOR UPDATE"))
        yield conn


async def test_a_group_is_one_transaction_and_each_append_its_own_commit_receipt_and_leaf(
    db, owner_engine, groups
):
    await append(db, draft("before"))

    receipts = await together(*(append(db, draft(f"{n}"), draft(f"{n}'")) for n in range(20)))

    assert groups == [1, 20]
    assert [one.commit for one in receipts] == list(range(2, 22))
    assert [one.positions for one in receipts] == [(2 * n, 2 * n + 1) for n in range(1, 21)]
    assert len({one.commit_hash for one in receipts}) == 20
    assert sorted(one.recorded_at for one in receipts) == [one.recorded_at for one in receipts]
    written = await as_owner(owner_engine, "SELECT DISTINCT xmin::text FROM commit WHERE commit > 1")
    assert len(written) == 1
    # Chain, tree, positions and versions of streams, computed anew.
    report = await log.verify(db, "acme")
    assert (report.problems, report.commits, report.events) == ((), 21, 41)


async def test_what_is_refused_in_a_group_leaves_no_trace_and_holds_up_nobody(db, groups):
    await append(db, draft("old", idempotency_key="k"))

    found = await together(
        append(db, draft("a")),
        append(db, draft("other", idempotency_key="k")),
        append(db, draft("b", stream="s"), expected_version=3),
        append(db, draft(None, kind="retraction", targets=[{"event": "ev_none"}])),
        append(db, draft("old", idempotency_key="k"), draft("new", idempotency_key="k2")),
        append(db, draft("c"), draft("d")),
        append(db, draft("old", idempotency_key="k")),
    )

    assert [type(one) for one in found] == [
        Receipt, IdempotencyConflict, VersionConflict, BadRequest, AlreadyKnown, Receipt, Receipt,
    ]  # fmt: skip
    assert (found[0].commit, found[5].commit, found[5].positions, found[6].repeated) == (2, 3, (3, 4), True)
    assert [event.draft.text for event in await read_all(db)] == ["old", "a", "c", "d"]
    assert groups == [1, 6]
    assert (await log.verify(db, "acme")).problems == ()


async def test_of_two_in_a_group_that_expect_one_version_the_first_wins_and_the_next_may_follow_it(db):
    await append(db, draft("1"))

    found = await together(
        append(db, draft("2"), expected_version=1),
        append(db, draft("2, too"), expected_version=1),
        append(db, draft("elsewhere", stream="other"), expected_version=0),
        append(db, draft("3"), draft("4"), expected_version=2),
        append(db, draft("5"), expected_version=4),
        append(db, draft("5, too"), expected_version=3),
    )

    assert [isinstance(one, VersionConflict) for one in found] == [False, True, False, False, False, True]
    texts = [event.draft.text for event in await read_all(db)]
    assert texts == ["1", "2", "elsewhere", "3", "4", "5"]
    assert (await log.verify(db, "acme")).problems == ()


async def test_one_key_many_times_in_a_group_is_stored_once_and_all_get_one_receipt(db, groups):
    await append(db, draft("before"))

    found = await together(
        *(append(db, draft("a", idempotency_key="k")) for _ in range(5)),
        append(db, draft("b", idempotency_key="k")),
        append(db, draft("refused", idempotency_key="k2"), expected_version=7),
        append(db, draft("refused", idempotency_key="k2")),
    )

    assert groups == [1, 8]
    assert [one.repeated for one in found[:5]] == [False, True, True, True, True]
    assert len({replace(one, repeated=False) for one in found[:5]}) == 1
    assert isinstance(found[5], IdempotencyConflict)
    # A key is known only by what was written: the append before it was refused.
    assert isinstance(found[6], VersionConflict)
    assert not found[7].repeated
    assert [event.draft.text for event in await read_all(db)] == ["before", "a", "refused"]


async def test_a_key_that_is_known_behind_a_new_one_is_found_out_and_holds_up_nobody(
    db, owner_engine, groups
):
    """Only of the first event of each append it is asked beforehand."""
    old = draft("old", idempotency_key="k")
    await append(db, draft("before"), old)

    found = await together(
        append(db, draft("a", idempotency_key="a"), draft("a'")),
        append(db, draft("new", idempotency_key="n"), old),
        append(db, draft("other"), draft("other", idempotency_key="k")),
        append(db, draft("b"), draft("b'", idempotency_key="b")),
        append(db, draft("c"), draft("a", idempotency_key="a")),
    )

    assert groups == [1, 5]
    assert [type(one) for one in found] == [
        Receipt, AlreadyKnown, IdempotencyConflict, Receipt, AlreadyKnown,
    ]  # fmt: skip
    assert (found[1].known, found[1].unknown) == ((1,), (0,))
    assert (found[0].commit, found[3].commit, found[3].positions) == (2, 3, (5, 6))
    # Nor is whoever was there already told that his stream has moved.
    with pytest.raises(AlreadyKnown):
        await append(db, draft("new", idempotency_key="n"), old, expected_version=7)
    assert [event.draft.text for event in await read_all(db)] == ["before", "old", "a", "a'", "b", "b'"]
    # What was written in vain is gone, and the head is what this very transaction wrote.
    ((same,),) = await as_owner(
        owner_engine, "SELECT count(*) FROM head WHERE (commit, position, bytes) = (3, 6, "
        "(SELECT sum(octet_length(header) + octet_length(ciphertext)) FROM event))",
    )  # fmt: skip
    assert same == 1
    assert (await log.verify(db, "acme")).problems == ()


async def test_a_contract_that_stands_earlier_in_the_group_is_held_to(db, groups):
    await append(db, draft("before"))
    contract = replace(unregistered("range"), value_type=ValueType("number"), unit="km")
    registration = registration_draft(Registration(contract=contract, epoch=None), stream="c", actor_id="op")

    found = await together(
        append(db, draft("good", claims=[claim("5 km", relation="range")])),
        log.append_command(db, "acme", registration, grant=LOCAL_GRANT),
        append(db, draft("bad", claims=[claim("5 kg", relation="range")])),
        append(db, draft("without a value")),
    )

    # Held again against what was registered, and only what has values.
    assert groups[:2] == [1, 4]
    assert isinstance(found[2], WrongValue)
    assert [one.commit for one in (found[0], found[1], found[3])] == [2, 3, 4]


async def test_whoever_leaves_the_queue_takes_his_append_along_and_no_other(db, owner_engine):
    await append(db, draft("before"))
    async with locked_head(owner_engine) as conn:
        first = asyncio.create_task(append(db, draft("under way")))
        await _waits_for_lock(conn)
        queued = [asyncio.create_task(append(db, draft(text))) for text in ("a", "left", "b")]
        await asyncio.sleep(0)
        queued[1].cancel()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await queued[1]

    assert [(await queued[0]).commit, (await queued[2]).commit] == [3, 4]
    # What was under way is written, though nobody waits for its receipt any more.
    texts = [event.draft.text for event in await read_all(db)]
    assert texts == ["before", "under way", "a", "b"]


async def test_a_server_that_dies_within_a_group_leaves_nothing_of_it(db, owner_engine, postgres):
    await append(db, draft("before"))
    before = await head_of(db)
    async with owner_engine.begin() as conn:
        # The outbox comes after commits and events: by then they are written and not yet committed.
        await conn.execute(sa.text(
            "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NEW; END'"
        ))  # fmt: skip
        await conn.execute(sa.text(
            "CREATE TRIGGER wait BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION wait()"
        ))  # fmt: skip
    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("SELECT pg_advisory_xact_lock(7)"))
        group = asyncio.create_task(
            together(*(append(db, draft(f"{n}", idempotency_key=f"k{n}")) for n in range(5)))
        )
        pid = await _waits_for_lock(conn)
        conninfo = postgres.conninfo(role=SUPERUSER, database="postgres")
        async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as server:
            await server.execute("SELECT pg_terminate_backend(%s)", [pid])
        failed = await group

    assert [type(one) for one in failed] == [Unavailable] * 5
    assert await head_of(db) == before
    assert len(await read_all(db)) == 1

    again = await together(*(append(db, draft(f"{n}", idempotency_key=f"k{n}")) for n in range(5)))
    assert [(one.commit, one.repeated) for one in again] == [(n, False) for n in range(2, 7)]
    assert (await log.verify(db, "acme")).problems == ()


async def test_a_group_whose_acknowledgement_is_lost_is_found_by_its_keys(db, monkeypatch):
    await append(db, draft("before"))
    write = _append._write

    async def cut_off(*given):
        await write(*given)
        raise Unavailable(part="database", reason="connection lost")

    monkeypatch.setattr(_append, "_write", cut_off)
    lost = await together(*(append(db, draft(f"{n}", idempotency_key=f"k{n}")) for n in range(5)))
    monkeypatch.setattr(_append, "_write", write)
    again = await together(*(append(db, draft(f"{n}", idempotency_key=f"k{n}")) for n in range(5)))

    assert [type(one) for one in lost] == [Unavailable] * 5
    assert [(one.commit, one.repeated) for one in again] == [(n, True) for n in range(2, 7)]
    assert (await head_of(db)).commit == 6


@pytest.mark.parametrize(("waiting_max", "bytes_max"), [(3, 10**6), (100, 5_000)])
async def test_more_than_may_wait_is_turned_away_and_says_when_to_come_again(
    db, owner_engine, waiting_max, bytes_max
):
    await append(db, draft("before"))
    narrow = replace(
        db,
        appends=Combiner(
            weight_max=1_000, bytes_max=10**6, waiting_max=waiting_max, waiting_bytes_max=bytes_max
        ),
    )
    async with locked_head(owner_engine) as conn:
        taken = [asyncio.create_task(append(narrow, draft(f"{n}" + 600 * "."))) for n in range(3)]
        await _waits_for_lock(conn)
        with pytest.raises(Busy) as refused:
            await append(narrow, draft("too many" + 600 * "."))

    assert (refused.value.code, refused.value.retry_after_seconds) == ("unavailable.busy", 1)
    await asyncio.gather(*taken)
    # What was answered, or was given up, no longer counts.
    await append(narrow, draft("once more"))
    assert len(await read_all(db)) == 5


async def test_one_tenant_that_is_slow_leaves_room_to_others(db, owner_engine):
    assert db.appends.waiting_max == APPENDS_WAITING_MAX
    await log.create_tenant(db, "other")
    await append(db, draft("before"))
    narrow = replace(
        db, appends=Combiner(weight_max=1_000, bytes_max=10**6, waiting_max=1, waiting_bytes_max=10**6)
    )
    async with locked_head(owner_engine) as conn:
        slow = asyncio.create_task(append(narrow, draft("slow")))
        await _waits_for_lock(conn)

        assert (await append(narrow, draft("quick"), tenant="other")).commit == 1

    assert (await slow).commit == 2


async def test_of_the_bytes_that_may_wait_one_key_takes_half():
    combiner: Combiner[int, int] = Combiner(
        weight_max=1, bytes_max=100, waiting_max=100, waiting_bytes_max=100
    )
    may_end = asyncio.Event()

    async def run(items):
        await may_end.wait()
        return items

    def submit(key, size_bytes):
        return asyncio.create_task(combiner.submit(key, 1, weight=1, size_bytes=size_bytes, run=run))

    slow = [submit("slow", 25), submit("slow", 25)]
    too_much, other, both = submit("slow", 1), submit("other", 50), submit("third", 1)
    await asyncio.sleep(0)
    # Whoever is turned away is so at once.
    assert [one.done() for one in (*slow, other)] == [False, False, False]
    assert [type(one.exception()) for one in (too_much, both)] == [Busy, Busy]

    may_end.set()
    assert await asyncio.gather(*slow, other) == [1, 1, 1]
    assert await submit("slow", 50) == 1


async def _waits_for_lock(conn):
    """Return who waits for a lock, as soon as somebody does."""
    waiting = sa.text(
        "SELECT pid FROM pg_locks JOIN pg_stat_activity USING (pid) "
        "WHERE NOT granted AND datname = current_database() LIMIT 1"
    )
    async with asyncio.timeout(10):
        while (pid := await conn.scalar(waiting)) is None:
            await asyncio.sleep(0.01)
    return pid
