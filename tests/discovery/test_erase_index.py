"""Erased events leave the index when the erasure is read, and no vector of theirs is stored after it."""

from __future__ import annotations

import asyncio
import threading

import pytest
import sqlalchemy as sa

from contracts.errors import NotFound
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from discovery._vectors import StoredVector, store_vectors
from ledger import log
from tests.discovery.test_keeper import Kept, until_embedded, vectors
from tests.discovery.values import WordEmbedder, emit, found, project, question, turn, view

SECRET = "Quixlorandia"


class Erasing:
    """An erasure as far as discovery sees one, cut in two: the key goes, and then it is committed."""

    def __init__(self, owner_engine, event_id):
        self._engine, self._event_id = owner_engine, event_id

    async def __aenter__(self):
        self._connection = await self._engine.connect()
        await self._connection.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        await self._connection.execute(
            sa.text("DELETE FROM event_key WHERE event_id = :id"), {"id": self._event_id}
        )
        return self

    async def __aexit__(self, *_):
        await self._connection.commit()
        await self._connection.close()


async def say_erased(db, event_id):
    erasure = EventDraft.model_validate(
        {
            "stream": "operations",
            "kind": "erasure",
            "actor": {"id": "op", "class": "operator"},
            "targets": [{"event": event_id}],
        }
    )
    await log.append_command(db, "acme", erasure, grant=LOCAL_GRANT)


async def store(db, event_id):
    (made,) = WordEmbedder().embed(["lamp"])
    async with db.tenant("acme") as conn:
        await store_vectors(
            conn,
            tenant="acme",
            model="words:1",
            vectors=[StoredVector(unit_id=event_id, position=1, text_digest=b"d", vector=made)],
        )


async def waits_for_lock(owner_engine):
    """Wait until some statement waits for another transaction."""
    async with owner_engine.connect() as conn:
        while not (await conn.execute(sa.text("SELECT FROM pg_locks WHERE NOT granted"))).all():
            await asyncio.sleep(0.02)


async def test_a_vector_that_is_stored_while_its_event_is_erased_is_refused(db, owner_engine):
    (event_id,) = await emit(db, turn("The lamp stands in the hall."))
    async with asyncio.timeout(60):
        async with Erasing(owner_engine, event_id):
            storing = asyncio.create_task(store(db, event_id))
            # Its statement still sees the key, and would write the vector behind the erasure's back.
            await waits_for_lock(owner_engine)

        with pytest.raises(NotFound):
            await storing
    assert await vectors(db) == []


async def test_a_vector_that_was_stored_first_goes_with_the_key(db, owner_engine):
    (event_id,) = await emit(db, turn("The lamp stands in the hall."))
    await store(db, event_id)
    assert len(await vectors(db)) == 1

    async with Erasing(owner_engine, event_id):
        pass

    assert await vectors(db) == []


class Held(WordEmbedder):
    """An embedder that stops in the middle of its first batch of units until it is told to go on."""

    def __init__(self):
        super().__init__()
        self.begun, self.go_on = threading.Event(), threading.Event()

    def embed(self, texts):
        if any("hall" in text for text in texts):
            self.begun.set()
            assert self.go_on.wait(60)
        return super().embed(texts)


async def test_an_upkeep_that_an_erasure_overtakes_stores_the_others_alone(db, owner_engine):
    ids = await emit(
        db, turn(f"{SECRET} stands in the hall."), turn("The chair is old."), turn("The vase is blue.")
    )
    embedder = Held()
    async with Kept(db, embedder) as kept, asyncio.timeout(60):
        await kept.keeper.wake("acme")
        # The text of the first was read, and its vector is being made.
        await asyncio.to_thread(embedder.begun.wait)
        async with Erasing(owner_engine, ids[0]):
            pass
        await say_erased(db, ids[0])
        embedder.go_on.set()
        await kept.keeper.wake("acme")
        await kept.ask("chair", 3)
        await until_embedded(kept.keeper, 2)

    assert [unit for unit, _ in await vectors(db)] == sorted(ids[1:])


async def test_the_index_in_memory_is_dropped_when_the_erasure_is_seen_without_a_question(db, owner_engine):
    (event_id, _) = await emit(db, turn(f"{SECRET} sleeps."), turn("The vase is blue."))
    async with Kept(db, None) as kept:
        await kept.keeper.wake("acme")
        index = kept.keeper._held["acme"].index
        async with Erasing(owner_engine, event_id):
            pass
        await say_erased(db, event_id)

        await kept.keeper.wake("acme")

        assert index.is_dropped
        assert kept.keeper.tenants == ()


async def test_a_question_under_way_is_not_answered_from_an_index_that_was_dropped(db, owner_engine):
    (event_id, other) = await emit(
        db, turn(f"{SECRET} sleeps in the hall.", subjects=[SECRET]), turn("A cat sleeps too.")
    )
    await project(db)
    embedder = Held()
    embedder.go_on.set()
    async with Kept(db, embedder) as kept, asyncio.timeout(60):
        await kept.ask("who sleeps", 2)
        await until_embedded(kept.keeper, 2)
        embedder.begun.clear()
        embedder.go_on.clear()
        asking = asyncio.create_task(
            kept.service.propose(
                tenant="acme", question=question(f"Does {SECRET} sleep in the hall?"), view=view(2)
            )
        )
        await asyncio.to_thread(embedder.begun.wait)
        async with Erasing(owner_engine, event_id):
            pass
        await say_erased(db, event_id)
        await kept.keeper.wake("acme")
        embedder.go_on.set()
        proposal = await asking

    assert found(proposal) == [other]
    assert SECRET not in proposal.plan.entities


async def test_names_that_only_an_erased_event_said_are_no_names_any_more(db, owner_engine):
    (event_id, _) = await emit(
        db, turn("She sleeps.", subjects=[SECRET]), turn("He sleeps.", subjects=["Bo"])
    )
    async with Kept(db, None) as kept:
        cut = await project(db)
        before = await kept.ask(f"Where do {SECRET} and Bo sleep?", cut)
        async with Erasing(owner_engine, event_id):
            pass
        await say_erased(db, event_id)
        after = await kept.ask(f"Where do {SECRET} and Bo sleep?", await project(db))

    assert before.plan.entities == (SECRET, "Bo")
    assert after.plan.entities == ("Bo",)
