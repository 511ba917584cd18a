"""What was asked is kept, numbered and sealed, and asking changes nothing that is answered."""

from __future__ import annotations

import asyncio

import pytest

from contracts.errors import IntegrityFault, NotFound
from ledger import log
from tests.ledger.log_drafts import append, as_owner, draft, head_of
from tests.ledger.recalls import pack_of, store, trail_of


async def test_a_trail_comes_back_as_it_was_stored(db):
    trail = await store(db)

    assert await log.read_trail(db, "acme", trail.trail_id) == trail
    assert await log.read_trail(db, "acme", trail.context_hash) == trail


async def test_a_context_comes_back_byte_by_byte(db):
    trail = await store(db, b'{"form":"bytes"}')

    context = await log.read_context(db, "acme", trail.context_hash)

    assert isinstance(context, log.StoredContext)
    assert (context.form, context.content_hash) == (b'{"form":"bytes"}', trail.content_hash)


async def test_the_same_context_is_kept_once_and_its_first_trail_answers_for_it(db):
    first = await store(db)
    second = await store(db)

    assert await log.read_trail(db, "acme", first.context_hash) == first
    assert await log.read_trail(db, "acme", second.trail_id) == second
    assert (await log.verify(db, "acme")).trails == 2


async def test_trails_are_numbered_without_gaps_even_when_stored_at_once(db):
    await asyncio.gather(*(store(db, b"%d" % (number % 3)) for number in range(12)))

    listed = await log.list_trails(db, "acme", after_number=0, limit=100)
    assert [trail.number for trail in listed] == list(range(1, 13))
    assert [trail.number for trail in await log.list_trails(db, "acme", after_number=4, limit=2)] == [5, 6]


async def test_asking_never_changes_the_log(db):
    await append(db, draft())
    before = await head_of(db)

    await store(db)

    assert await head_of(db) == before


async def test_a_question_does_not_wait_for_an_append_nor_an_append_for_a_question(db, owner_engine):
    async with owner_engine.connect() as appending, owner_engine.connect() as asking:
        await as_transaction(appending, "SELECT 1 FROM head FOR UPDATE")
        await asyncio.wait_for(store(db), 5)
        await appending.rollback()

        await as_transaction(asking, "SELECT 1 FROM trail_head FOR UPDATE")
        await asyncio.wait_for(append(db, draft()), 5)
        await asking.rollback()


async def as_transaction(conn, statement: str) -> None:
    from sqlalchemy import text  # noqa: PLC0415 - only here

    await conn.execute(text("SELECT set_config('echoplane.tenant', 'acme', true)"))
    await conn.execute(text(statement))


async def test_no_word_of_a_question_stands_in_the_clear(db, owner_engine):
    await store(db, b'{"plan":"SECRET"}')

    for table in ("trail", "context", "trail_key", "context_key"):
        for (row,) in await as_owner(owner_engine, f"SELECT t::text FROM {table} AS t"):
            assert b"SECRET".hex() not in row
            assert b"lives_in".hex() not in row


@pytest.mark.parametrize("column", ["body", "ciphertext", "seal"])
async def test_a_changed_byte_of_a_trail_is_a_fault(db, owner_engine, column):
    trail = await store(db)
    await as_owner(
        owner_engine, f"UPDATE trail SET {column} = set_byte({column}, 3, get_byte({column}, 3) # 1)"
    )

    with pytest.raises(IntegrityFault):
        await log.read_trail(db, "acme", trail.trail_id)


@pytest.mark.parametrize(
    "change", ["number = 7", "asked_at = asked_at + interval '1 second'", "trail_id = 'tr_x'"]
)
async def test_a_changed_column_of_a_trail_is_a_fault(db, owner_engine, change):
    trail = await store(db)
    await as_owner(owner_engine, "DELETE FROM trail_key")
    await as_owner(owner_engine, f"UPDATE trail SET {change}")

    with pytest.raises(IntegrityFault):
        await log.read_trail(db, "acme", trail.context_hash)


async def test_a_changed_context_is_a_fault(db, owner_engine):
    trail = await store(db)
    await as_owner(
        owner_engine, "UPDATE context SET ciphertext = set_byte(ciphertext, 20, get_byte(ciphertext, 20) # 1)"
    )

    with pytest.raises(IntegrityFault):
        await log.read_context(db, "acme", trail.context_hash)


async def test_losing_a_key_erases_a_trail_or_a_context_and_says_so_by_type(db, owner_engine):
    trail = await store(db)
    await as_owner(owner_engine, "DELETE FROM trail_key")
    await as_owner(owner_engine, "DELETE FROM context_key")

    erased = await log.read_trail(db, "acme", trail.trail_id)
    assert erased == log.ErasedTrail(
        trail_id=trail.trail_id, context_hash=trail.context_hash, erased_by=None, erased_event_ids=()
    )
    context = await log.read_context(db, "acme", trail.context_hash)
    assert context == log.ErasedContext(
        context_hash=trail.context_hash, content_hash=trail.content_hash, erased_by=None, erased_event_ids=()
    )
    found = {problem.check for problem in (await log.verify(db, "acme")).problems}
    assert found == {"trail.key", "context.key"}


async def test_a_trail_or_context_that_is_not_there_or_another_tenants_is_not_found(db):
    await log.create_tenant(db, "other")
    trail = await store(db)

    for reference in (trail.trail_id, trail.context_hash, "0" * 64):
        with pytest.raises(NotFound):
            await log.read_trail(db, "other", reference)
        with pytest.raises(NotFound):
            await log.read_context(db, "other", reference)


@pytest.mark.parametrize(
    "changes", [{"tenant": "other"}, {"context_hash": "0" * 64}, {"content_hash": "0" * 64}]
)
async def test_a_trail_that_is_not_of_its_context_is_refused(db, changes):
    pack = pack_of(b"form")

    with pytest.raises(IntegrityFault):
        await log.store_recall(db, "acme", trail_of(db, pack, **changes), pack)

    assert await log.list_trails(db, "acme", after_number=0, limit=10) == []
