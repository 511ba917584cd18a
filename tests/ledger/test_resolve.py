"""The resolver: views pinned, answers from cells held against claims, nothing trusted."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
import sqlalchemy as sa

from contracts.errors import BadRequest, IntegrityFault, NotFound, NotYet, RelationInUse
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from contracts.relations import Cardinality
from contracts.resolutions import Conflict, Missing, MissingReason, Resolved, ResolvedSet
from contracts.views import Generation, ViewRequest
from ledger import _alike, _found, _occurred, log
from ledger._direct import _Held
from ledger._relations import unregistered
from ledger.resolve import history, occurrences, pin, resolve, resolve_many
from ledger.write import fold, register_contract
from tests.ledger.scenario_logs import PlainProjector

NOW = "upper_inf(valid) AND upper_inf(known)"
NEWEST = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=None)


@pytest.fixture
def say(db, clock):
    async def say(source, value=None, *, key=("ann", "home"), folded=True, **fields):
        clock.now += timedelta(days=1)
        claim = {"entity": key[0], "relation": key[1], **fields}
        if value is not None:
            claim["value"] = value
        form = {
            "stream": "s",
            "kind": "claim",
            "actor": {"id": source, "class": "user"},
            "observed_at": clock.now.isoformat(),
            "claims": [claim],
        }
        receipt = await log.append(db, "acme", [EventDraft.model_validate(form)], grant=LOCAL_GRANT)
        if folded:
            await fold(db, "acme", PlainProjector(), events_max=100)
        return receipt

    return say


async def ask(db, entity="ann", relation="home", *, request=NEWEST):
    view = await pin(db, "acme", request, wait_ms=0)
    async with db.snapshot("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
        return await resolve(conn, keys, view, entity, relation)


async def test_view_of_an_empty_log_is_cut_zero_and_knows_nothing(db):
    found = await ask(db)

    assert found.view.cut == 0
    assert found.resolution == Missing(reason=MissingReason.NEVER_KNOWN, superseded=(), withdrawn=())


async def test_known_at_before_the_first_commit_is_cut_zero(db, say, clock):
    early = clock.now
    await say("ann", "Lyon")

    view = await pin(db, "acme", replace(NEWEST, known_at=early), wait_ms=0)

    assert view.cut == 0


async def test_a_clock_that_stepped_back_does_not_hide_what_was_just_written(db, say, clock):
    await say("ann", "Lyon")
    clock.now -= timedelta(days=400)

    found = await ask(db)

    assert isinstance(found.resolution, Resolved)


async def test_own_write_is_waited_for_and_then_not_yet(db, say):
    receipt = await say("ann", "Lyon", folded=False)
    request = replace(NEWEST, min_commit=receipt.commit)

    with pytest.raises(NotYet):
        await pin(db, "acme", request, wait_ms=20)

    waiting = asyncio.create_task(pin(db, "acme", request, wait_ms=5_000))
    await fold(db, "acme", PlainProjector(), events_max=100)
    assert (await waiting).cut == receipt.commit


async def test_generation_that_is_not_there_is_an_error_never_a_best_effort(db, say):
    await say("ann", "Lyon")

    for generation in (Generation(epoch=1, commit=2), Generation(epoch=7, commit=0)):
        with pytest.raises(NotYet):
            await pin(db, "acme", replace(NEWEST, generation=generation), wait_ms=0)


async def test_unknown_tenant_is_not_found(db):
    with pytest.raises(NotFound):
        await pin(db, "nobody", NEWEST, wait_ms=0)


async def test_later_appends_never_change_an_older_cut(db, say):
    await say("ann", "Lyon")
    before = await ask(db, request=replace(NEWEST, generation=Generation(epoch=1, commit=1)))
    await say("ann", "Oslo", valid={"since": "2020-01-01T00:00:00Z"})
    await say("ann", stance="end")

    after = await ask(
        db,
        request=replace(NEWEST, generation=Generation(epoch=1, commit=1), valid_at=before.view.valid_at),
    )

    assert after.resolution == before.resolution


async def test_conflict_names_one_claim_for_each_value_and_why(db, say):
    await say("bob", "Lyon")
    await say("cy", "Oslo")

    resolution = (await ask(db)).resolution

    assert isinstance(resolution, Conflict)
    assert [rival.value for rival in resolution.rivals] == ["Lyon", "Oslo"]
    assert "same_source" in resolution.why


async def test_end_beside_another_persons_value_is_a_conflict_with_nothing(db, say):
    await say("bob", "Lyon")
    await say("cy", stance="end")

    resolution = (await ask(db)).resolution

    assert isinstance(resolution, Conflict)
    assert [(rival.value, rival.ended) for rival in resolution.rivals] == [("Lyon", False), (None, True)]


async def test_registered_contract_makes_a_relation_many_valued(db, say):
    contract = replace(unregistered("tags"), cardinality=Cardinality.MANY)
    await register_contract(db, "acme", contract, stream="c", actor_id="op", grant=LOCAL_GRANT)
    for value in ("red", "blue"):
        await say("ann", value, key=("box", "tags"))

    resolution = (await ask(db, "box", "tags")).resolution

    assert isinstance(resolution, ResolvedSet)
    assert sorted(member.value for member in resolution.members) == ["blue", "red"]


async def test_contract_for_a_relation_in_use_is_refused_and_one_that_slipped_in_is_passed_over(db, say):
    contract = replace(unregistered("tags"), cardinality=Cardinality.MANY)
    await say("ann", "red", key=("box", "tags"), folded=False)
    await register_contract(db, "acme", contract, stream="c", actor_id="op", grant=LOCAL_GRANT)

    report = await fold(db, "acme", PlainProjector(), events_max=100)

    assert report.refused_contracts == 1
    with pytest.raises(RelationInUse):
        await register_contract(db, "acme", contract, stream="c", actor_id="op", grant=LOCAL_GRANT)


async def test_bad_contract_is_refused_with_the_field(db):
    contract = replace(unregistered("tags"), normalizer="guess")

    with pytest.raises(BadRequest) as caught:
        await register_contract(db, "acme", contract, stream="c", actor_id="op", grant=LOCAL_GRANT)

    assert caught.value.field == "normalizer"


async def test_favorites_have_one_value(db, say):
    for value in ("jazz", "rock"):
        await say("ann", value, key=("ann", "favorite_music"))

    assert (await ask(db, "ann", "favorite_music")).resolution.value == "rock"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE claim SET body = convert_to(replace(convert_from(body, 'utf8'), 'Lyon', 'Oslo'), 'utf8')",
        "UPDATE claim SET stance = 'end'",
        "UPDATE claim SET entity = 'bob' WHERE entity = 'ann'",
        "UPDATE cell SET state = 'ended'",
        "DELETE FROM cell",
        "UPDATE cell SET claims = claims || claims",
    ],
)
async def test_changed_row_is_refused_never_answered_from(db, say, owner_engine, statement):
    await say("ann", "Lyon")
    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        await conn.execute(sa.text("ALTER TABLE cell DISABLE TRIGGER USER"))
        changed = await conn.execute(sa.text(statement))
        assert changed.rowcount > 0

    with pytest.raises(IntegrityFault):
        await ask(db)


async def test_history_shows_rectangles_of_valid_and_known_time(db, say):
    await say("ann", "Lyon")
    await say("ann", "Oslo")

    async with db.snapshot("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
        found = await history(conn, keys, "ann", None, epoch=1, cut=2)
        then = await history(conn, keys, "ann", "home", epoch=1, cut=1)

    shown = [(r.claims[0].value, r.known_from, r.known_to, r.valid_to is None) for r in found.rectangles]
    assert shown == [("Lyon", 1, None, False), ("Lyon", 1, 2, True), ("Oslo", 2, None, True)]
    assert [(r.claims[0].value, r.known_to) for r in then.rectangles] == [("Lyon", None)]


async def test_long_key_answers_as_a_short_one_does(db, clock):
    clock.now += timedelta(days=10)
    start = clock.now - timedelta(days=5)
    drafts = [
        EventDraft.model_validate(
            {
                "stream": "s",
                "kind": "observation",
                "actor": {"id": "r1", "class": "sensor"},
                "observed_at": (start + timedelta(minutes=number)).isoformat(),
                "claims": [{"entity": "box", "relation": "bay", "value": "3" if number < 700 else "5"}],
            }
        )
        for number in range(1_100)
    ]
    for first in range(0, len(drafts), 550):
        await log.append(db, "acme", drafts[first : first + 550], grant=LOCAL_GRANT)
    await fold(db, "acme", PlainProjector(), events_max=2_000)

    now = await ask(db, "box", "bay")
    then = await ask(
        db, "box", "bay", request=replace(NEWEST, valid_at=start + timedelta(minutes=300, seconds=1))
    )
    before = await ask(db, "box", "bay", request=replace(NEWEST, valid_at=start - timedelta(minutes=1)))

    assert now.resolution.value == "5"
    assert then.resolution.value == "3"
    assert before.resolution.reason == MissingReason.NOT_VALID_THEN
    first = now.resolution.claims[0]
    assert first.observed_at == start + timedelta(minutes=700)


async def test_answer_says_whether_its_lists_are_whole(db, say, monkeypatch):
    monkeypatch.setattr(_found, "LISTED_CLAIMS_MAX", 3)
    for value in ("Lyon", "Oslo", "Rome"):
        await say("ann", value)
    whole = await ask(db)
    await say("ann", "Bern")

    cut = await ask(db)

    assert (whole.resolution.value, whole.truncated) == ("Rome", False)
    assert (cut.resolution.value, cut.truncated) == ("Bern", True)
    assert [claim.value for claim in cut.resolution.superseded] == ["Lyon", "Oslo", "Rome"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE cell SET state = 'ended' WHERE upper_inf(known)",
        "UPDATE cell SET claims = (SELECT array_agg(claim_id) FROM claim)",
        f"UPDATE cell SET valid = tstzrange(lower(valid), '2099-01-01') WHERE {NOW}",
        f"UPDATE cell SET known = int8range(1, NULL) WHERE {NOW}",
        # That of another cell: the least of all would now and then be its own.
        f"UPDATE cell SET seal = (SELECT min(seal) FROM cell AS o WHERE o.seal <> cell.seal) WHERE {NOW}",
        "UPDATE line SET relation = 'home' WHERE relation = 'work'",
        "UPDATE line SET part = 'x'",
        "UPDATE claim SET commit = commit + 1 WHERE position = 8",
    ],
)
async def test_changed_cell_of_a_long_key_is_refused_too(db, say, owner_engine, monkeypatch, statement):
    monkeypatch.setattr(_found, "LISTED_CLAIMS_MAX", 2)
    for value in ("Lyon", "Oslo", "Rome", "Bern"):
        await say("ann", value, key=("ann", "work"))
    if "relation = 'home'" not in statement:
        for value in ("Lyon", "Oslo", "Rome", "Bern"):
            await say("ann", value)
    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        await conn.execute(sa.text("ALTER TABLE cell DISABLE TRIGGER USER"))
        assert (await conn.execute(sa.text(statement))).rowcount > 0

    with pytest.raises(IntegrityFault):
        await ask(db)


async def test_of_more_values_than_are_listed_all_are_counted(db, say, monkeypatch):
    monkeypatch.setattr(_found, "LISTED_CLAIMS_MAX", 2)
    monkeypatch.setattr(_found, "LISTED_VALUES_MAX", 3)
    contract = replace(unregistered("tags"), cardinality=Cardinality.MANY)
    await register_contract(db, "acme", contract, stream="c", actor_id="op", grant=LOCAL_GRANT)
    for number in range(6):
        await say("ann", f"tag {number}", key=("box", "tags"))
    await say("ann", "tag 0", key=("box", "tags"), stance="end")

    found = await ask(db, "box", "tags")

    assert [member.value for member in found.resolution.members] == ["tag 1", "tag 2", "tag 3"]
    assert (found.resolution.members_count, found.resolution.disputed_count) == (5, 0)
    assert found.truncated


async def test_of_more_occurrences_than_are_listed_the_last_are_listed_and_all_counted(db, say, monkeypatch):
    monkeypatch.setattr(_found, "LISTED_CLAIMS_MAX", 2)
    monkeypatch.setattr(_occurred, "LISTED_VALUES_MAX", 3)
    contract = replace(unregistered("trip"), cardinality=Cardinality.OCCURRENCE)
    await register_contract(db, "acme", contract, stream="c", actor_id="op", grant=LOCAL_GRANT)
    for number in range(1, 6):
        await say("ann", f"town {number}", key=("ann", "trip"), valid={"at": f"2024-0{number}-01"})
    view = await pin(db, "acme", NEWEST, wait_ms=0)

    async with db.snapshot("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
        every = await occurrences(conn, keys, view, "ann", "trip", start=None, end=None)
        some = await occurrences(
            conn, keys, view, "ann", "trip", start=None, end=datetime(2024, 2, 15, tzinfo=UTC)
        )

    assert sorted(member.value for member in every.members) == ["town 3", "town 4", "town 5"]
    assert every.members_count == 5
    assert sorted(member.value for member in some.members) == ["town 1", "town 2"]
    assert some.members_count == 2


async def test_what_is_kept_in_memory_goes_when_something_is_folded(db, say):
    await say("ann", "Lyon")
    assert (await ask(db, "box", "tags")).contract.cardinality == Cardinality.ONE
    contract = replace(unregistered("tags"), cardinality=Cardinality.MANY)
    await register_contract(db, "acme", contract, stream="c", actor_id="op", grant=LOCAL_GRANT)
    await say("op", "anna", key=("ann", "same_as"))

    assert (await ask(db, "box", "tags")).contract.cardinality == Cardinality.MANY
    assert (await ask(db, "anna")).resolution.value == "Lyon"
    before = await ask(db, "anna", request=replace(NEWEST, generation=Generation(epoch=1, commit=1)))
    assert before.resolution.reason == MissingReason.NEVER_KNOWN


async def test_a_key_is_one_call_however_many_claims_it_has(db, say, monkeypatch):
    monkeypatch.setattr(_found, "LISTED_CLAIMS_MAX", 3)
    sent = []
    execute, begin = psycopg.AsyncCursor.execute, _Held._sent

    async def counted(*args, **named):
        sent.append(1)
        return await execute(*args, **named)

    async def begun(held, statement, *args):
        # What an append wakes leaves when it likes, and is no part of a read.
        if "pg_notify" not in statement:
            sent.append(1)
        return await begin(held, statement, *args)

    monkeypatch.setattr(psycopg.AsyncCursor, "execute", counted)
    monkeypatch.setattr(_Held, "_sent", begun)

    async def calls() -> int:
        view = await pin(db, "acme", NEWEST, wait_ms=0)
        async with db.snapshot("acme") as conn:
            keys = await log.tenant_keys(db, "acme", conn)
            await resolve(conn, keys, view, "ann", "home")
            sent.clear()
            await resolve(conn, keys, view, "ann", "home")
            return len(sent)

    await say("ann", "Lyon")
    short = await calls()
    for value in ("Oslo", "Rome", "Bern"):
        await say("ann", value)

    assert (short, await calls()) == (1, 1)


@pytest.mark.parametrize(("first", "at_once"), [(1, 1), (1, 2), (2, 2), (4, 4)])
async def test_many_keys_are_answered_in_the_order_asked(db, say, monkeypatch, first, at_once):
    monkeypatch.setattr(_found, "KEYS_FIRST", first)
    monkeypatch.setattr(_found, "KEYS_AT_ONCE", at_once)
    monkeypatch.setattr(_alike, "KEYS_A_ROW", at_once)
    await say("ann", "Lyon")
    await say("ann", "Rex", key=("ann", "pet_name"))
    view = await pin(db, "acme", NEWEST, wait_ms=0)

    async with db.snapshot("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
        found = await resolve_many(
            conn, keys, view, [("ann", "pet_name"), ("ann", "home"), ("ann", "pet_name"), ("x", "y")]
        )

    assert [getattr(answer.resolution, "value", None) for answer in found] == ["Rex", "Lyon", "Rex", None]
