"""Indexes that follow the log: vectors made once, erased text gone, memory bounded, Redis a hint only."""

from __future__ import annotations

import asyncio
import threading

import pytest
import sqlalchemy as sa

from contracts.errors import ModelMismatch
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from discovery import _index, drop_index
from discovery._keeper import Keeper
from discovery._service import Service
from discovery._vectors import StoredVector, store_vectors, unit_cosines
from ledger import log
from tests.discovery.values import (
    WordEmbedder,
    embedded,
    emit,
    found,
    project,
    question,
    route,
    timeless,
    turn,
    view,
)

TALK = tuple(
    turn(f"The {thing} stands in the {place}.")
    for thing in ("lamp", "chair", "vase", "piano")
    for place in ("hall", "attic", "cellar")
)


async def until_embedded(keeper: Keeper, count: int) -> None:
    async with asyncio.timeout(60):
        while keeper.health().units < count or keeper.health().units_without_vector:
            await asyncio.sleep(0.01)


class Kept:
    """A keeper whose background work runs for as long as the block does."""

    def __init__(self, db, embedder, **options):
        self.keeper = Keeper(db, embedder=embedder, **options)
        # No test is about how fast the machine is.
        self.service = Service(db, self.keeper, catch_up_seconds=60, dense_seconds=60)

    async def __aenter__(self):
        self._task = asyncio.create_task(self.keeper.embed_in_background())
        return self

    async def __aexit__(self, *_):
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self.keeper.close()

    async def ask(self, text, cut, tenant="acme"):
        return await self.service.propose(tenant=tenant, question=question(text), view=view(cut))


async def vectors(db, tenant="acme"):
    async with db.tenant(tenant) as conn:
        return list(
            await conn.execute(sa.text("SELECT unit_id, model_digest FROM unit_vector ORDER BY 1, 2"))
        )


async def test_equal_texts_are_embedded_once_and_a_restart_embeds_nothing(db):
    await emit(db, *TALK, *TALK)
    cut = await project(db)
    first, second = WordEmbedder(), WordEmbedder()

    async with Kept(db, first) as kept:
        before = await kept.ask("lamp", cut)
        await until_embedded(kept.keeper, 24)
        before = await kept.ask("lamp", cut)
    async with Kept(db, second) as kept:
        after = await kept.ask("lamp", cut)

    assert len(await vectors(db)) == 24
    # Two batches may hold the same text only if they run at once, and they do not.
    assert len(first.embedded) - first.embedded.count("lamp") == len(TALK)
    assert second.embedded == ["lamp"]
    assert timeless(after) == timeless(before)


async def test_proposals_are_equal_after_the_index_is_dropped_and_rebuilt(db, start, embedder):
    await emit(db, *TALK)
    cut = await project(db)

    async with start(lambda: embedder) as client:
        await embedded(client, 12)
        before = await client.propose(tenant="acme", question=question("a chair up there"), view=view(cut))
        assert await client.drop_index("acme") == 12
        # Nobody has to ask for it to be made anew.
        await embedded(client, 12)
        after = await client.propose(tenant="acme", question=question("a chair up there"), view=view(cut))

    assert timeless(after) == timeless(before)
    assert len(await vectors(db)) == 12


async def test_dropping_one_tenants_index_leaves_the_others(db):
    for tenant in ("acme", "other"):
        await emit(db, *TALK[:2], tenant=tenant)
        async with Kept(db, WordEmbedder()) as kept:
            await kept.ask("lamp", 2, tenant)
            await until_embedded(kept.keeper, 2)

    assert await drop_index(db, "acme") == 2

    assert await vectors(db) == []
    assert len(await vectors(db, "other")) == 2


async def test_another_models_vectors_are_left_alone_and_not_used(db):
    await emit(db, *TALK[:3])
    for model in ("words:1", "words:2"):
        embedder = WordEmbedder(model_digest=model)
        async with Kept(db, embedder) as kept:
            await kept.ask("lamp", 3)
            await until_embedded(kept.keeper, 3)
        assert len(embedder.embedded) == 4

    assert [model for _, model in await vectors(db)] == ["words:1", "words:2"] * 3


async def test_a_swapped_model_is_indexed_beside_the_old_one_whatever_its_dimensions(db):
    """Incident O21: a model with as many dimensions and another space, then one with others."""
    ids = await emit(db, *TALK[:3])
    first = WordEmbedder(model_digest="a", dimensions=8)
    for model, dimensions in (("a", 8), ("b", 8), ("c", 16), ("a", 8)):
        embedder = WordEmbedder(model_digest=model, dimensions=dimensions)
        async with Kept(db, embedder) as kept:
            await kept.ask("vase", 3)
            await until_embedded(kept.keeper, 3)
            proposal = await kept.ask("The chair stands in the hall.", 3)
            if model == "a":
                first = embedder

        assert (route(proposal, "dense").state, route(proposal, "dense").count) == ("ok", 3)
        assert set(found(proposal)) == set(ids)

    # The first model's vectors were left in place: nothing was made anew for it.
    assert not any("stands" in text for text in first.embedded[:-1])
    assert [model for _, model in await vectors(db)] == ["a", "b", "c"] * 3


async def test_a_model_that_comes_while_the_log_is_read_brings_its_vectors_to_another_index(db, monkeypatch):
    """Discovery begins without its model, and ended where that came in the midst of a tenant."""
    await emit(db, *TALK[:3])
    embedder = WordEmbedder()
    async with Kept(db, embedder) as kept:
        await kept.ask("lamp", 3)
        await until_embedded(kept.keeper, 3)
    read_events = log.read_events

    async def reads(*of, **more):
        if kept.keeper.embedding.model_digest is None:
            kept.keeper.use(embedder)
        return await read_events(*of, **more)

    monkeypatch.setattr(log, "read_events", reads)
    async with Kept(db, None) as kept:
        await kept.ask("lamp", 3)
        assert route(await kept.ask("lamp", 3), "dense").state == "ok"


async def test_a_model_that_gives_other_vectors_than_it_says_is_a_mismatch_and_words_still_find(db):
    class Lying(WordEmbedder):
        def embed(self, texts):
            return super().embed(texts)[:, :5]

    ids = await emit(db, *TALK[:3])
    async with Kept(db, Lying()) as kept:
        with pytest.raises(ModelMismatch):
            await kept.keeper.embedding.questions(["lamp"])
        proposal = await kept.ask("lamp", 3)

    assert route(proposal, "dense").state == "failed"
    assert set(found(proposal)) == set(ids)


async def test_a_model_with_more_dimensions_than_can_be_stored_is_refused(db):
    with pytest.raises(ModelMismatch):
        Keeper(db, embedder=WordEmbedder(dimensions=16_001))


async def test_after_an_erasure_neither_words_nor_vectors_of_the_erased_are_left(db, owner_engine):
    ids = await emit(db, turn("The treasure lies under the oak."), turn("The weather is fine."))
    async with Kept(db, WordEmbedder()) as kept:
        assert found(await kept.ask("treasure", 2))[0] == ids[0]
        await until_embedded(kept.keeper, 2)

        async with owner_engine.begin() as conn:
            await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
            await conn.execute(sa.text("DELETE FROM event_key WHERE event_id = :id"), {"id": ids[0]})
        erasure = EventDraft.model_validate(
            {
                "stream": "operations",
                "kind": "erasure",
                "actor": {"id": "op", "class": "operator"},
                "targets": [{"event": ids[0]}],
            }
        )
        await log.append_command(db, "acme", erasure, grant=LOCAL_GRANT)
        proposal = await kept.ask("treasure oak", await project(db))
        await until_embedded(kept.keeper, 1)

    assert ids[0] not in found(proposal)
    assert route(proposal, "lexical").count == 0
    assert [unit for unit, _ in await vectors(db)] == [ids[1]]


async def test_the_tenant_asked_least_recently_leaves_memory_and_comes_back_on_demand(db):
    for tenant in ("acme", "other"):
        await emit(db, *TALK, tenant=tenant)
    async with Kept(db, None, memory_bytes_max=1) as kept:
        first = await kept.ask("lamp", 12, "acme")
        await kept.ask("lamp", 12, "other")
        assert kept.keeper.tenants == ("other",)

        again = await kept.ask("lamp", 12, "acme")

    assert kept.keeper.tenants == ("acme",)
    assert timeless(again) == timeless(first)


async def test_a_large_tenant_finds_the_same_and_scores_it_from_the_stored_vectors(db, monkeypatch):
    await emit(db, *TALK)
    embedder = WordEmbedder()
    async with Kept(db, embedder) as kept:
        await kept.ask("lamp", 12)
        await until_embedded(kept.keeper, 12)
        small = await kept.ask("an old piano in a cellar", 12)

    monkeypatch.setattr(_index, "WHOLE_UNITS_MAX", 5)
    async with Kept(db, embedder) as kept:
        large = await kept.ask("an old piano in a cellar", 12)
        older = await kept.ask("an old piano in a cellar", 3)

    def dense(proposal):
        return {c.unit_id: h.score_ppm for c in proposal.candidates for h in c.hits if h.route == "dense"}

    # The lowest, which scores are stretched from, is known to a byte's precision.
    assert {unit: dense(large)[unit] for unit in dense(small)} == pytest.approx(dense(small), abs=5_000)
    assert route(large, "dense").state == "ok"
    assert len(found(older)) <= 3


async def test_no_vector_is_stored_for_an_event_whose_key_is_gone_and_none_is_scored(db):
    ids = await emit(db, *TALK[:3])
    made = WordEmbedder().embed(["lamp", "lamp", "lamp", "lamp"])
    async with db.tenant("acme") as conn:
        await store_vectors(
            conn,
            tenant="acme",
            model="words:1",
            vectors=[
                StoredVector(unit_id=unit, position=position, text_digest=b"d", vector=vector)
                for position, (unit, vector) in enumerate(zip([*ids, "ev_gone"], made, strict=True), 1)
            ],
        )
        near = await unit_cosines(
            conn, tenant="acme", model="words:1", vector=made[0], units=[*ids[:2], "ev_gone"]
        )

    assert sorted(unit for unit, _ in await vectors(db)) == sorted(ids)
    assert sorted(near) == sorted(ids[:2])


async def test_a_log_longer_than_a_page_is_read_to_its_end(db):
    drafts = [turn(f"Note number {number}.") for number in range(1_000)]
    for _ in range(2):
        await log.append(db, "acme", drafts, grant=LOCAL_GRANT)
    await emit(db, turn("The zeppelin landed."))

    async with Kept(db, None) as kept:
        proposal = await kept.ask("zeppelin", 3)
        half = await kept.ask("note", 1)

    assert route(proposal, "lexical").generation == "1:3"
    assert route(half, "lexical").count == 1_000


async def test_the_end_does_not_wait_for_vectors_that_are_being_made(db):
    begun, gate, went_on = threading.Event(), threading.Event(), []

    class Hanging(WordEmbedder):
        def embed(self, texts):
            begun.set()
            went_on.append(gate.wait(5))
            return super().embed(texts)

    keeper = Keeper(db, embedder=Hanging())
    asked = asyncio.create_task(keeper.embedding.questions(["lamp"]))
    await asyncio.to_thread(begun.wait)
    keeper.close()
    gate.set()
    await asked

    assert went_on == [True]
