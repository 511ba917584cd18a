"""The live stream over HTTP: resumed where it was left, alive, bounded, and for nobody without the right."""

from __future__ import annotations

import asyncio
import json
from typing import Self

import pytest

from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT, Grant, Right
from contracts.wire import EventsAnswer, FollowedAnswer
from echoplane import _http_stream
from echoplane._http import make_app
from ledger import _follow, _news
from ledger.log import list_tokens, revoke_token
from tests.echoplane.test_http import code_of


class Reader:
    """A client that reads a stream as it comes; the transport of tests would wait for its end."""

    def __init__(self, app, path: str, token: str, **headers: str) -> None:
        path, _, query = path.partition("?")
        given = {"host": "127.0.0.1", "authorization": f"Bearer {token}"} | headers
        self.scope = {
            "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "root_path": "",
            "query_string": query.encode(), "scheme": "http", "http_version": "1.1",
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()],
        }  # fmt: skip
        self.app = app
        self.sent: asyncio.Queue[dict] = asyncio.Queue()
        self.left = asyncio.Event()
        self.reads = asyncio.Event()
        self.reads.set()

    async def __aenter__(self) -> Self:
        self.task = asyncio.create_task(self.app(self.scope, self._receive, self._send))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.left.set()
        async with asyncio.timeout(60):
            await self.task

    async def _receive(self) -> dict:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict) -> None:
        await self.reads.wait()
        await self.sent.put(message)

    async def next(self) -> dict[str, str]:
        """The next message of the stream: its fields; none for a sign of life."""
        async with asyncio.timeout(60):
            while (message := await self.sent.get())["type"] == "http.response.start":
                assert message["status"] == 200
                assert dict(message["headers"])[b"content-type"].startswith(b"text/event-stream")
        if not message.get("more_body"):
            return {"end": ""}
        lines = message["body"].decode().rstrip("\n").split("\n")
        return dict(line.split(": ", 1) for line in lines if not line.startswith(":"))

    async def commits(self, count: int) -> list[FollowedAnswer]:
        found = []
        while len(found) < count:
            fields = await self.next()
            if fields.get("event") == "commit":
                found.append(FollowedAnswer.model_validate_json(fields["data"]))
                assert fields["id"] == str(found[-1].commit)
        return found


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(_follow, "POLL_SECONDS", 0.02)


@pytest.fixture
def app(plane):
    return make_app(plane)


async def append(plane, turn, *texts):
    events = [EventDraft.model_validate(turn(text)) for text in texts]
    await plane.append("home", events, grant=LOCAL_GRANT, expected_version=None)


async def test_commits_come_as_they_are_and_as_they_are_appended(app, plane, home, turn):
    async with Reader(app, "/v1/home/live", plane.local_token) as reader:
        past = await reader.commits(2)
        await append(plane, turn, "Hello.", "Again.")
        (new,) = await reader.commits(1)

    assert [one.events[0].event.text for one in past] == ["I live in Lyon.", "I moved to Ghent."]
    assert (new.commit, [one.position for one in new.events]) == (3, [3, 4])
    assert plane.database.news.followers_count == 0


@pytest.mark.parametrize(
    ("path", "headers"),
    [("/v1/home/live", {"last_event_id": "1"}), ("/v1/home/live?after_commit=1", {}),
     ("/v1/home/live?after_commit=2", {"last_event_id": "1"})],
)  # fmt: skip
async def test_who_comes_again_goes_on_where_it_was(app, plane, home, path, headers):
    async with Reader(app, path, plane.local_token, **headers) as reader:
        assert [one.commit for one in await reader.commits(1)] == [2]


async def test_it_ends_after_as_many_as_were_asked_for(client, home):
    answer = await client.get("/v1/home/live?limit=1")

    assert answer.text.startswith("retry: 1000\n\nid: 1\nevent: commit\ndata: {")
    assert answer.text.count("\n\n") == 2


async def test_between_commits_there_is_a_sign_of_life(app, plane, home, monkeypatch):
    monkeypatch.setattr(_http_stream, "HEARTBEAT_SECONDS", 0.01)

    async with Reader(app, "/v1/home/live?after_commit=2", plane.local_token) as reader:
        assert [await reader.next() for _ in range(3)] == [{"retry": "1000"}, {}, {}]


async def test_who_does_not_read_is_let_go(app, plane, home, monkeypatch):
    monkeypatch.setattr(_http_stream, "FOLLOW_SECONDS_MAX", 0.05)
    monkeypatch.setattr(_http_stream, "HEARTBEAT_SECONDS", 0.01)
    async with Reader(app, "/v1/home/live", plane.local_token) as reader:
        await reader.commits(1)
        reader.reads.clear()

        # He neither reads nor leaves; still it ends.
        async with asyncio.timeout(30):
            await asyncio.shield(reader.task)
    assert plane.database.news.followers_count == 0


async def test_a_revoked_token_ends_the_stream(app, plane, home, monkeypatch):
    monkeypatch.setattr(_http_stream, "HEARTBEAT_SECONDS", 0.01)
    grant = Grant(tenant="home", rights=frozenset({Right.ASK}), actors=frozenset(), classes=frozenset())
    token = (await plane.make_token("home", grant, label="reader")).token
    async with Reader(app, "/v1/home/live", token) as reader:
        await reader.commits(2)
        (known,) = await list_tokens(plane.database, "home")
        await revoke_token(plane.database, "home", known.token_id)

        while (fields := await reader.next()).get("event") != "error":
            assert "end" not in fields
        assert json.loads(fields["data"])["error"]["code"] == "incorrect.unauthenticated"
        assert await reader.next() == {"end": ""}


async def test_a_process_that_ends_ends_its_streams(app, plane, home):
    async with Reader(app, "/v1/home/live", plane.local_token) as reader:
        await reader.commits(2)

        app.state.streams.closing.set()

        while "end" not in await reader.next():
            pass


async def test_what_cannot_be_followed_is_refused_as_anything_else(client, plane, home, monkeypatch):
    asked = ["live?after_commit=9", "live?limit=0", "live?after_commit=x", "live?x=1"]
    refused = [await client.get(f"/v1/home/{one}") for one in asked]
    refused.append(await client.get("/v1/home/live", headers={"last-event-id": "one"}))
    monkeypatch.setattr(_news, "FOLLOWERS_MAX", 0)
    busy = await client.get("/v1/home/live")

    assert [await code_of(one) for one in refused] == [(422, "incorrect.bad_request")] * 5
    assert await code_of(busy) == (503, "unavailable.busy")
    assert int(busy.headers["retry-after"]) >= busy.json()["error"]["details"]["retry_after_seconds"] > 0
    token = await plane.make_token(
        "home",
        Grant(tenant="home", rights=frozenset({Right.EMIT}), actors=frozenset({"a"}), classes=frozenset()),
        label="writer",
    )
    for path in ("live", "events"):
        answer = await client.get(f"/v1/home/{path}", headers={"authorization": f"Bearer {token.token}"})
        assert await code_of(answer) == (403, "incorrect.forbidden")


async def test_events_are_read_by_position_stream_and_commit(client, plane, home, turn):
    await append(plane, turn, "Hello.", "Again.")

    async def read(query: str) -> list[str]:
        answer = EventsAnswer.model_validate_json((await client.get(f"/v1/home/events{query}")).content)
        return [one.event.text for one in answer.events]

    everything = ["I live in Lyon.", "I moved to Ghent.", "Hello.", "Again."]
    assert await read("") == everything
    assert await read("?after_position=1&limit=2") == everything[1:3]
    assert await read("?stream=s1&after_version=3") == everything[3:]
    assert await read("?stream=other") == []
    assert await read("?commit=3") == everything[2:]
    refused = [
        await client.get(f"/v1/home/events{query}")
        for query in ("?commit=1&stream=s1", "?after_version=1", "?limit=0", "?after_position=-1", "?x=1")
    ]
    assert [await code_of(one) for one in refused] == [(422, "incorrect.bad_request")] * 5
    assert await code_of(await client.get("/v1/home/events?commit=9")) == (404, "incorrect.not_found")
