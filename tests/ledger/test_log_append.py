from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from contracts import limits
from contracts.errors import (
    AlreadyKnown,
    BadRequest,
    Forbidden,
    IdempotencyConflict,
    LimitExceeded,
    NotFound,
    VersionConflict,
)
from contracts.grants import LOCAL_GRANT, Grant, Right
from ledger import log
from ledger._append import append_commands_within, append_within
from ledger._decisions import skip_draft
from tests.ledger.log_drafts import append, as_owner, claim, draft, head_of, read_all

GRANT = Grant(
    tenant="acme",
    rights=frozenset({Right.EMIT}),
    actors=frozenset({"ann", "robot"}),
    classes=frozenset({"user", "sensor", "operator", "derived"}),
)


async def test_an_append_is_one_commit_with_gapless_positions(db):
    first = await append(db, draft("a"), draft("b"))
    second = await append(db, draft("c"))

    assert (first.commit, first.positions) == (1, (1, 2))
    assert (second.commit, second.positions) == (2, (3,))
    assert [event.draft.text for event in await read_all(db)] == ["a", "b", "c"]
    assert [event.commit for event in await read_all(db)] == [1, 1, 2]


async def test_a_receipt_proves_where_the_event_stands(db):
    receipt = await append(db, draft())

    end = await head_of(db)
    assert (receipt.commit, receipt.commit_hash) == (end.commit, end.hash.hex())
    assert receipt.recorded_at == end.recorded_at
    assert receipt.event_ids[0].startswith("ev_")
    assert not receipt.repeated


async def test_recorded_at_strictly_increases_whatever_the_clock_does(db, clock):
    first = await append(db, draft("a"))
    clock.now -= timedelta(days=400)
    second = await append(db, draft("b"))
    third = await append(db, draft("c"))
    clock.now += timedelta(days=800)
    fourth = await append(db, draft("d"))

    assert second.recorded_at - first.recorded_at == timedelta(microseconds=1)
    assert third.recorded_at - second.recorded_at == timedelta(microseconds=1)
    assert fourth.recorded_at == clock.now


async def test_a_clock_past_the_last_year_that_a_term_can_name_is_refused_and_writes_nothing(db, clock):
    """What is recorded begins at its clock, and from there on no bound of an interval would be left."""
    clock.now = datetime(9998, 12, 31, 23, 59, 59, 999_998, tzinfo=UTC)
    receipt = await append(db, draft("in time"))
    assert receipt.recorded_at == clock.now

    clock.now = datetime(9999, 1, 1, tzinfo=UTC)
    with pytest.raises(BadRequest, match="clock: an append is recorded by the year 9998"):
        await append(db, draft("too late"))
    assert [event.draft.text for event in await read_all(db)] == ["in time"]


async def test_the_plane_records_by_the_servers_clock_and_not_by_its_own(plane_db, clock):
    clock.now += timedelta(days=36_500)

    receipt = await append(plane_db, draft())

    assert receipt.recorded_at < clock.now


async def test_the_plane_is_refused_a_clock_of_its_own(plane_db):
    stating = replace(plane_db, states_clock=True)

    with pytest.raises(Forbidden):
        await append(stating, draft())

    assert await read_all(plane_db) == []


async def test_the_same_event_again_returns_the_same_receipt_and_writes_nothing(db):
    first = await append(db, draft(source_event_id="1"), draft("b", source_event_id="2"))

    again = await append(db, draft(source_event_id="1"), draft("b", source_event_id="2"))

    assert again == replace(first, repeated=True)
    assert (await head_of(db)).position == 2


async def test_part_of_an_append_again_returns_that_part_of_its_receipt(db):
    first = await append(db, draft(source_event_id="1"), draft("b", source_event_id="2"))

    again = await append(db, draft("b", source_event_id="2"))

    assert again.repeated
    assert (again.commit, again.event_ids) == (first.commit, first.event_ids[1:])


async def test_a_source_id_is_known_in_its_own_stream_only(db):
    await append(db, draft(source_event_id="1"))

    other = await append(db, draft(source_event_id="1", stream="chat-2"))

    assert other.commit == 2


async def test_a_key_of_its_own_wins_over_the_source_id(db):
    await append(db, draft(source_event_id="1", idempotency_key="a"))

    other = await append(db, draft(source_event_id="1", idempotency_key="b"))

    assert other.commit == 2


async def test_an_event_without_a_key_is_always_new(db):
    await append(db, draft())

    assert (await append(db, draft())).commit == 2


async def test_a_known_key_with_other_content_is_refused(db):
    await append(db, draft("a", idempotency_key="k"))

    with pytest.raises(IdempotencyConflict) as refused:
        await append(db, draft("new"), draft("b", idempotency_key="k"))

    assert refused.value.idempotency_key == "k"
    assert (await head_of(db)).position == 1


async def test_a_field_left_out_and_one_at_its_default_are_the_same_content(db):
    await append(db, draft(idempotency_key="k"))

    assert (await append(db, draft(idempotency_key="k", subjects=[], claims=[]))).repeated


async def test_open_bounds_and_bounds_left_out_are_not_the_same_content(db):
    open_end = claim(valid={"from": "2023", "to": None})
    await append(db, draft(idempotency_key="k", claims=[open_end]))

    with pytest.raises(IdempotencyConflict):
        await append(db, draft(idempotency_key="k", claims=[claim(valid={"since": "2023"})]))

    assert (await read_all(db))[0].draft.claims[0].valid.model_fields_set == {"from_", "to"}


async def test_an_append_known_in_part_says_which_part(db):
    await append(db, draft("a", source_event_id="1"))

    with pytest.raises(AlreadyKnown) as refused:
        await append(db, draft("new", source_event_id="0"), draft("a", source_event_id="1"), draft("x"))

    assert refused.value.known == (1,)
    assert refused.value.unknown == (0, 2)
    assert (await head_of(db)).position == 1


async def test_an_append_known_by_several_appends_has_no_single_receipt(db):
    await append(db, draft("a", source_event_id="1"))
    await append(db, draft("b", source_event_id="2"))

    with pytest.raises(AlreadyKnown) as refused:
        await append(db, draft("a", source_event_id="1"), draft("b", source_event_id="2"))

    assert (refused.value.known, refused.value.unknown) == ((0, 1), ())


async def test_an_event_that_stands_twice_in_one_append_is_written_once(db):
    receipt = await append(db, draft("a", source_event_id="1"), draft("b"), draft("a", source_event_id="1"))

    assert receipt.positions == (1, 2, 1)
    assert (await head_of(db)).position == 2


async def test_two_contents_under_one_key_in_one_append_are_refused(db):
    with pytest.raises(IdempotencyConflict):
        await append(db, draft("a", source_event_id="1"), draft("b", source_event_id="1"))

    assert (await head_of(db)).position == 0


async def test_a_second_writer_with_the_same_expected_version_is_refused_and_writes_nothing(db):
    await append(db, draft("a"), draft("b"), expected_version=0)

    with pytest.raises(VersionConflict):
        await append(db, draft("c"), expected_version=0)

    assert (await append(db, draft("d"), expected_version=2)).positions == (3,)


async def test_versions_are_counted_for_each_stream(db):
    await append(db, draft("a"), draft("b", stream="chat-2"), draft("c"))

    assert (await append(db, draft("d", stream="chat-2"), expected_version=1)).commit == 2
    with pytest.raises(BadRequest):
        await append(db, draft("e"), draft("f", stream="chat-2"), expected_version=2)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"actor": {"id": "bob", "class": "user"}}, Forbidden),
        ({"actor": {"id": "ann", "class": "assistant"}}, Forbidden),
        ({"actor": {"id": "ann", "class": "operator"}}, Forbidden),
        ({"actor": {"id": "ann", "class": "derived"}}, BadRequest),
        ({"kind": "relation"}, BadRequest),
        ({"kind": "decision"}, BadRequest),
        ({"kind": "erasure"}, BadRequest),
    ],
)
async def test_what_was_not_granted_cannot_be_appended(db, fields, error):
    with pytest.raises(error):
        await append(db, draft("ok"), draft(**fields), grant=GRANT)

    assert (await head_of(db)).position == 0


async def test_a_grant_needs_the_right_and_its_own_tenant(db):
    await log.create_tenant(db, "other")

    with pytest.raises(Forbidden):
        await append(db, draft(), grant=replace(GRANT, rights=frozenset({Right.ASK})))
    with pytest.raises(NotFound):
        await append(db, draft(), grant=GRANT, tenant="other")
    assert (await append(db, draft(), grant=GRANT)).commit == 1


async def test_an_operator_speaks_with_the_right_of_one(db):
    operator = draft(actor={"id": "ann", "class": "operator"})

    receipt = await append(db, operator, grant=replace(GRANT, rights=frozenset({Right.EMIT, Right.OPERATOR})))

    assert receipt.commit == 1


@pytest.mark.parametrize(
    ("kind", "right"), [("relation", Right.ADMIN), ("decision", Right.OPERATOR), ("erasure", Right.ERASE)]
)
async def test_a_command_needs_the_right_of_its_own(db, kind, right):
    command = draft(kind=kind)

    with pytest.raises(Forbidden):
        await log.append_command(db, "acme", command, grant=GRANT)

    granted = replace(GRANT, rights=frozenset({right}))
    assert (await log.append_command(db, "acme", command, grant=granted)).commit == 1
    with pytest.raises(BadRequest):
        await log.append_command(db, "acme", draft(), grant=granted)


async def test_an_append_to_a_tenant_that_is_not_there_is_refused(db):
    with pytest.raises(NotFound):
        await append(db, draft(), tenant="nobody")


@pytest.mark.parametrize(
    ("drafts", "limit"),
    [
        ([draft()] * (limits.APPEND_EVENTS_MAX + 1), "APPEND_EVENTS_MAX"),
        ([draft(claims=[claim("x" * limits.VALUE_BYTES_MAX)])], "VALUE_BYTES_MAX"),
        ([draft(claims=[claim("é" * 8_000)] * 140)], "EVENT_BYTES_MAX"),
        ([draft(claims=[claim("é" * 8_000)] * 60)] * 18, "APPEND_BYTES_MAX"),
    ],
)
async def test_an_append_past_a_bound_is_refused_and_writes_nothing(db, drafts, limit):
    with pytest.raises(LimitExceeded) as refused:
        await append(db, *drafts)

    assert refused.value.limit == limit
    assert (await head_of(db)).position == 0


async def test_an_append_up_to_its_bounds_is_written_and_can_be_read_whole(db):
    largest = draft(claims=[claim("é" * 8_000)] * 60)
    receipt = await append(db, *([largest] * 17))
    await append(db, *([draft("x")] * limits.APPEND_EVENTS_MAX))

    events = await read_all(db)

    assert len(receipt.positions) == 17
    assert [event.position for event in events][:17] == list(receipt.positions)


async def test_an_append_of_nothing_is_refused(db):
    with pytest.raises(BadRequest):
        await append(db)


async def test_making_a_tenant_twice_changes_nothing(db):
    await append(db, draft())

    assert await log.create_tenant(db, "acme") is False
    assert (await head_of(db)).commit == 1
    assert await log.tenant_exists(db, "acme")
    assert not await log.tenant_exists(db, "other")


async def test_a_tenants_name_is_plain(db):
    for name in ["", ".hidden", "a b", "a/b", "é", "x" * 64, "a\n", "a\x00"]:
        with pytest.raises(BadRequest):
            await log.create_tenant(db, name)


async def test_a_new_tenant_stands_before_its_first_commit_and_serves_an_epoch(db):
    end = await head_of(db)

    assert (end.commit, end.position, end.hash) == (0, 0, bytes(32))
    async with db.snapshot("acme") as conn:
        assert str(await log.serving(conn)) == "1:0"


async def test_an_append_stands_in_the_outbox_until_it_is_folded(db):
    await log.create_tenant(db, "idle")
    await append(db, draft())
    await append(db, draft())

    assert await log.pending(db) == [("acme", 2)]
    assert await log.list_tenants(db) == ["acme", "idle"]


def test_the_local_grant_may_do_everything():
    assert LOCAL_GRANT.rights == frozenset(Right)


async def test_an_append_scans_no_table_however_short_the_log_was_when_it_was_planned(db):
    scanned = sa.text(
        "SELECT coalesce(sum(seq_scan), 0) FROM pg_stat_xact_user_tables WHERE relname IN ('event', 'commit')"
    )
    async with db.tenant("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
        # A plan is kept once it was made anew a few times.
        for number in range(8):
            decision = skip_draft(f"ev_{number}", epoch=1, reason="why", actor_id="op")
            await append_within(conn, db, keys, decision, grant=LOCAL_GRANT)
        assert await conn.scalar(scanned) == 0


async def test_an_append_reads_few_rows_however_little_is_known_of_a_long_log(db):
    for batch in range(3):
        await append(db, *(draft("x", idempotency_key=f"{batch}-{number}") for number in range(1_000)))
    read = sa.text(
        "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'event'"
    )
    # Those too that turn out to be of rows which nobody sees yet, as all rows of the statement itself.
    entries = sa.text(
        "SELECT sum(pg_stat_get_xact_tuples_returned(indexrelid)) FROM pg_index "
        "WHERE indrelid = 'event'::regclass"
    )
    async with db.tenant("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
        fresh = [draft("x", idempotency_key=f"new-{number}") for number in range(500)]
        await append_commands_within(conn, db, keys, fresh)

        # None of its own, and none of those before but the newest.
        assert await conn.scalar(read) <= 2
        assert await conn.scalar(entries) <= 2


async def test_a_key_is_of_an_event_and_an_event_with_a_key_stays(db, owner_engine):
    receipt = await append(db, draft())
    for statement in (
        "INSERT INTO event_key (tenant, event_id, wrapped_key) VALUES ('acme', 'ev_none', 'k')",
        "UPDATE event_key SET event_id = 'ev_none'",
        "UPDATE event SET event_id = 'ev_none'",
        "DELETE FROM event",
    ):
        with pytest.raises(sa.exc.IntegrityError, match="key"):
            await as_owner(owner_engine, statement)
    async with db.tenant("acme") as conn:
        # An append, which need not ask, leaves nothing behind by which others were not asked either.
        await append_commands_within(conn, db, await log.tenant_keys(db, "acme", conn), [draft()])
        assert await conn.scalar(sa.text("SELECT current_setting('echoplane.appending')")) == "off"
        await conn.rollback()

    assert [event.event_id for event in await read_all(db)] == list(receipt.event_ids)
