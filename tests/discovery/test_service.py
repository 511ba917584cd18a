"""The service over its socket, on a real log: what it finds, what it says of itself, what it refuses."""

from __future__ import annotations

import asyncio
import json
import struct
import threading

import pytest

from contracts.errors import BadRequest, LimitExceeded, NotFound, Unavailable
from contracts.proposals import RouteState
from discovery import Client, serve
from discovery._keeper import Keeper
from discovery._service import Service
from discovery._shards import shard_of
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

TALK = (
    turn("I bought a telescope last week.", actor="Ann"),
    turn("What do you look at with it?", actor="Bob"),
    turn("Saturn, mostly, when the sky is clear.", actor="Ann"),
    turn("My sister plays the cello in an orchestra.", actor="Bob"),
)


async def test_a_question_finds_the_turn_and_each_route_says_what_it_did(db, start, embedder):
    ids = await emit(db, *TALK)
    cut = await project(db)

    async with start(lambda: embedder) as client:
        await embedded(client, 4)
        proposal = await client.propose(
            tenant="acme", question=question("Who bought a telescope?"), view=view(cut)
        )

    assert found(proposal)[0] == ids[0]
    assert not proposal.degraded
    assert {hit.route for hit in proposal.candidates[0].hits} >= {"lexical", "window", "dense"}
    assert {(report.state, report.generation) for report in proposal.routes} == {(RouteState.OK, "1:4")}
    assert route(proposal, "dense").count == 4
    assert [c.score_ppm for c in proposal.candidates] == sorted(
        (c.score_ppm for c in proposal.candidates), reverse=True
    )


async def test_what_is_written_is_found_by_the_next_question_without_any_wake_up(db, start, embedder):
    await emit(db, TALK[0])
    async with start(lambda: embedder, "redis://localhost:1/0") as client:
        await client.propose(tenant="acme", question=question("telescope"), view=view(1))

        (event_id,) = await emit(db, turn("The zeppelin landed."))
        proposal = await client.propose(
            tenant="acme", question=question("zeppelin"), view=view(await project(db))
        )

    assert found(proposal)[0] == event_id
    assert route(proposal, "lexical").generation == "1:2"


async def test_nothing_after_the_cut_is_proposed_and_later_commits_change_nothing(db, start, embedder):
    ids = await emit(db, *TALK[:2])
    await project(db)
    async with start(lambda: embedder) as client:
        await embedded(client, 2)
        before = await client.propose(tenant="acme", question=question("telescope sister"), view=view(2))

        await emit(db, *TALK[2:], turn("A telescope and a sister."))
        await project(db)
        await embedded(client, 5)
        after = await client.propose(tenant="acme", question=question("telescope sister"), view=view(2))

    assert set(found(after)) <= set(ids)
    assert timeless(after) == timeless(before)


async def test_tenants_do_not_see_each_other(db, start, embedder):
    await emit(db, *TALK, tenant="other")
    await emit(db, turn("Nothing to see."))
    cut = await project(db)

    async with start(lambda: embedder) as client:
        await embedded(client, 5)
        proposal = await client.propose(tenant="acme", question=question("telescope"), view=view(cut))

    assert len(proposal.candidates) <= 1
    assert "Bob" not in proposal.plan.entities


async def test_a_named_key_is_proposed_with_its_claims(db, start, embedder):
    ids = await emit(
        db,
        turn("Moved!", claims=[{"entity": "Ann", "relation": "lives_in", "value": "Lyon"}]),
        turn("Ann bought a bike.", actor="Bob"),
    )
    cut = await project(db)

    async with start(lambda: embedder) as client:
        proposal = await client.propose(
            tenant="acme", question=question("Where does Ann live?"), view=view(cut)
        )

    assert [(key.entity, key.relation, key.named) for key in proposal.keys] == [("Ann", "lives_in", True)]
    assert found(proposal)[0] == ids[0]


async def test_vectors_that_are_not_there_yet_are_reported_late_and_not_waited_for(db, start):
    await emit(db, *TALK)
    cut = await project(db)
    gate = threading.Event()

    class Slow(WordEmbedder):
        def embed(self, texts):
            if len(texts) > 1:
                gate.wait(60)
            return super().embed(texts)

    try:
        async with start(Slow) as client:
            while (await client.health()).model_digest is None:
                await asyncio.sleep(0.01)
            proposal = await client.propose(tenant="acme", question=question("telescope"), view=view(cut))
            gate.set()
    finally:
        gate.set()

    assert (route(proposal, "dense").state, route(proposal, "dense").count) == (RouteState.LATE, 0)
    assert route(proposal, "lexical").state == RouteState.OK
    assert proposal.candidates


async def test_without_an_embedder_words_still_find_and_the_route_says_failed(db, start):
    ids = await emit(db, *TALK)
    cut = await project(db)

    def fail():
        raise Unavailable(part="embedder", reason="no weights")

    async with start(fail) as client:
        await asyncio.sleep(0.1)
        proposal = await client.propose(tenant="acme", question=question("telescope"), view=view(cut))

    assert route(proposal, "dense").state == RouteState.FAILED
    assert found(proposal)[0] == ids[0]


async def test_any_question_gets_a_proposal(db, start, embedder):
    await emit(db, *TALK)
    cut = await project(db)

    async with start(lambda: embedder) as client:
        for text in ("", "the of and", "???", "zzzqqq", "猫", "x" * 4_000):
            proposal = await client.propose(tenant="acme", question=question(text), view=view(cut))

            assert route(proposal, "lexical").state == RouteState.OK


async def test_several_questions_in_one_request_get_what_each_gets_alone(db, start, embedder):
    await emit(db, *TALK)
    cut = await project(db)
    asked = [question(text) for text in ("Who bought a telescope?", "cello", "Saturn")]

    async with start(lambda: embedder) as client:
        await embedded(client, 4)
        together = await client.propose_many(tenant="acme", questions=asked, view=view(cut))
        alone = [await client.propose(tenant="acme", question=one, view=view(cut)) for one in asked]
        with pytest.raises(BadRequest, match="questions"):
            await client.propose_many(tenant="acme", questions=asked * 6, view=view(cut))

    assert [timeless(proposal) for proposal in together] == [timeless(proposal) for proposal in alone]


async def test_a_dense_route_that_misses_its_deadline_is_late_and_the_others_answer(db):
    ids = await emit(db, *TALK)
    gate = threading.Event()

    class Hanging(WordEmbedder):
        def embed(self, texts):
            gate.wait(60)
            return super().embed(texts)

    keeper = Keeper(db, embedder=Hanging())
    try:
        service = Service(db, keeper, catch_up_seconds=60, dense_seconds=0.05)
        proposal = await service.propose(tenant="acme", question=question("telescope"), view=view(4))
    finally:
        gate.set()
        keeper.close()

    assert (route(proposal, "dense").state, route(proposal, "dense").count) == (RouteState.LATE, 0)
    assert found(proposal)[0] == ids[0]


async def test_several_processes_share_tenants_and_each_is_asked_for_its_own(db, embedder, tmp_path, patient):
    tmp_path.chmod(0o700)
    sockets = [tmp_path / f"{number}.sock" for number in range(2)]
    await log.create_tenant(db, "third")
    for tenant in ("acme", "other", "third"):
        await emit(db, *TALK[:2], tenant=tenant)
    stop = asyncio.Event()
    running = [
        asyncio.create_task(
            serve(
                db, path, redis_url=None, embedder_factory=lambda: embedder, stop=stop, shard=shard, shards=2
            )
        )
        for shard, path in enumerate(sockets)
    ]
    try:
        async with asyncio.timeout(60):
            while not all(path.exists() for path in sockets):
                await asyncio.sleep(0.01)
        client = Client(sockets)
        await embedded(client, 6)
        for tenant in ("acme", "other", "third"):
            proposal = await client.propose(tenant=tenant, question=question("telescope"), view=view(2))
            assert route(proposal, "lexical").count >= 1
        held = [(await Client(path).health()).tenants for path in sockets]
    finally:
        stop.set()
        await asyncio.gather(*running)

    assert held == [[shard_of(name, 2) for name in ("acme", "other", "third")].count(n) for n in (0, 1)]
    # The same in every release: a tenant that moved would be loaded twice.
    assert [shard_of(name, 4) for name in ("acme", "other", "third")] == [0, 0, 1]


async def test_languages_without_spaces_are_found_as_they_were_said(db, start):
    """Incident O19, with words alone: one turn shares a character with the question, one stands beside it."""
    said = ("我住在杭州。", "我上个月搬到了成都。", "أَسْكُنُ فِي دِمَشْق", "Das Café heißt «Größe».", "🎂 at noon")
    ids = await emit(
        db, *[turn(text) for text in said], *[turn("Nothing.", stream=f"s{n}") for n in range(9)]
    )
    cut = await project(db)

    def fail():
        raise Unavailable(part="embedder", reason="no weights")

    async with start(fail) as client:
        asked = ("他现在住哪", "دمشق", "cafe", "🎂")
        first = [
            found(await client.propose(tenant="acme", question=question(text), view=view(cut)))
            for text in asked
        ]

    assert set(first[0][:2]) == set(ids[:2])
    assert [one[0] for one in first[1:]] == ids[2:5]
    async with db.snapshot("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
        stored = await log.read_events_by_id(conn, keys, ids[:5])
    assert [stored[one].draft.text for one in ids[:5]] == list(said)


async def test_a_tenant_that_is_cold_is_unavailable_and_not_answered_from_a_part_of_it(db):
    await emit(db, *TALK)
    keeper = Keeper(db, embedder=None)
    try:
        with pytest.raises(Unavailable, match="reading"):
            await Service(db, keeper, catch_up_seconds=0).propose(
                tenant="acme", question=question("telescope"), view=view(4)
            )
        # It goes on being read, and the next question finds it.
        proposal = await Service(db, keeper, catch_up_seconds=60).propose(
            tenant="acme", question=question("telescope"), view=view(4)
        )
    finally:
        keeper.close()

    assert proposal.candidates


async def test_an_empty_log_gives_an_empty_proposal(db, start, embedder):
    async with start(lambda: embedder) as client:
        proposal = await client.propose(tenant="acme", question=question("Where is it?"), view=view(0))

    assert (proposal.candidates, proposal.keys) == ((), ())


async def test_a_tenant_that_does_not_exist_is_not_found(start, embedder):
    async with start(lambda: embedder) as client:
        with pytest.raises(NotFound):
            await client.propose(tenant="nobody", question=question("?"), view=view(0))


async def test_a_service_that_is_down_is_unavailable(socket_path):
    with pytest.raises(Unavailable):
        await Client(socket_path).propose(tenant="acme", question=question("?"), view=view(0))


async def test_a_service_that_does_not_answer_in_time_is_unavailable(socket_path):
    async def hang(reader, writer):
        await reader.read()
        writer.close()

    async with await asyncio.start_unix_server(hang, path=socket_path):
        with pytest.raises(Unavailable, match="in time"):
            await Client(socket_path, answer_seconds=0.1).health()


async def exchange(socket_path, frame: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(socket_path)
    writer.write(frame)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer[4:]


def framed(value: object) -> bytes:
    data = json.dumps(value).encode()
    return struct.pack(">I", len(data)) + data


REFUSED = [
    (framed({"operation": "health", "extra": 1}), BadRequest.code),
    (framed({"operation": "delete_everything"}), BadRequest.code),
    (framed([]), BadRequest.code),
    (struct.pack(">I", 3) + b"{{{", BadRequest.code),
    (struct.pack(">I", 2**31), LimitExceeded.code),
]


async def test_what_is_no_request_is_refused_with_a_typed_error(start, embedder, socket_path):
    async with start(lambda: embedder) as client:
        answers = [json.loads(await exchange(socket_path, frame)) for frame, _ in REFUSED]
        assert await client.health()

    assert [answer["error"] for answer in answers] == [code for _, code in REFUSED]


async def test_a_caller_who_goes_away_in_the_middle_does_no_harm(start, embedder, socket_path):
    async with start(lambda: embedder) as client:
        assert await exchange(socket_path, struct.pack(">I", 100) + b"{") == b""

        assert await client.health()


async def test_out_of_bounds_is_refused_by_name(start, embedder):
    async with start(lambda: embedder) as client:
        with pytest.raises(BadRequest, match=r"questions\.0\.text"):
            await client.propose(tenant="acme", question=question("x" * 4_001), view=view(0))


async def test_a_socket_folder_open_to_others_is_refused(db, embedder, tmp_path):
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o755)

    with pytest.raises(Unavailable, match="this user's alone"):
        await serve(
            db, folder / "d.sock", redis_url=None, embedder_factory=lambda: embedder, stop=asyncio.Event()
        )


async def test_a_client_says_nothing_on_a_socket_whose_folder_is_open_to_others(tmp_path):
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    heard = []

    async def hear(reader, writer):
        heard.append(await reader.read(1))
        writer.close()

    async with await asyncio.start_unix_server(hear, path=folder / "d.sock"):
        with pytest.raises(Unavailable):
            await Client(folder / "d.sock").health()

    assert heard == []


async def test_a_second_service_on_the_same_socket_is_refused(db, start, embedder, socket_path):
    async with start(lambda: embedder) as client:
        with pytest.raises(Unavailable, match="another one"):
            await serve(
                db, socket_path, redis_url=None, embedder_factory=lambda: embedder, stop=asyncio.Event()
            )
        assert await client.health()


async def test_a_socket_left_by_a_killed_process_is_taken_over(start, embedder, socket_path):
    socket_path.touch()

    async with start(lambda: embedder):
        pass

    assert not socket_path.exists()
