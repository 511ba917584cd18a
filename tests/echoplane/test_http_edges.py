"""The edges of the HTTP door, on real sockets: who leaves, who is slow, who is one too many, and the end."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from contracts import limits
from contracts.errors import Busy
from echoplane import _http_attending, _http_reads, _http_server
from echoplane._http import make_app
from echoplane._http_attending import POSTED_READS, AttendedRoute
from echoplane._http_server import serving
from echoplane._http_stream import Streams
from echoplane._wiring import Plane
from ledger._database import POOL_CONNECTIONS

WRITES = {
    ("POST", "/v1/{tenant}/events"),
    ("POST", "/v1/{tenant}/suspend"),
    ("POST", "/v1/{tenant}/resume"),
    ("POST", "/v1/{tenant}/epochs"),
    ("POST", "/v1/{tenant}/dead/{position}/retry"),
    ("POST", "/v1/{tenant}/dead/{position}/skip"),
    ("POST", "/v1/{tenant}/reindex"),
    ("POST", "/v1/{tenant}/erasures"),
    ("POST", "/v1/{tenant}/relations"),
}
EVENT = {"stream": "s1", "kind": "turn", "actor": {"id": "Ann", "class": "user"}, "text": "I live in Lyon."}


class Door:
    """A server of this test alone, and callers that say exactly these bytes."""

    def __init__(self, app, token: str, streams: Streams) -> None:
        self.token, self.stop = token, asyncio.Event()
        self.writers: list[asyncio.StreamWriter] = []
        self.server = serving(app, host="127.0.0.1", port=0, streams=streams, stop=self.stop)

    async def say(self, *words: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        port = self.server.servers[0].sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        self.writers.append(writer)
        writer.write(b"".join(words))
        await writer.drain()
        return reader, writer

    def head(self, line: str, *, length: int | None = None) -> bytes:
        lines = [f"{line} HTTP/1.1", "host: 127.0.0.1", f"authorization: Bearer {self.token}"]
        lines += [] if length is None else [f"content-length: {length}"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def append(self, *, rest: int = 0) -> bytes:
        body = json.dumps({"events": [EVENT]}).encode()
        return self.head("POST /v1/home/events", length=len(body) + rest) + body


@asynccontextmanager
async def served(app, token: str = "", streams: Streams | None = None):
    door = Door(app, token, streams or Streams())
    serve = asyncio.create_task(door.server.serve())
    async with asyncio.timeout(60):
        while not door.server.started:
            await asyncio.sleep(0.005)
        yield door
        door.stop.set()
        await serve
        # Whoever still held on was cut off.
        await asyncio.sleep(0)
        assert not door.server.server_state.connections
    for writer in door.writers:
        writer.close()


@pytest.fixture
async def door(plane, home):
    app = make_app(plane)
    async with served(app, plane.local_token, app.state.streams) as made:
        yield made


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], dict]:
    """The status, the headers and the body of an answer after which the connection is closed."""
    head, _, body = (await asyncio.wait_for(reader.read(), 30)).partition(b"\r\n\r\n")
    line, *headers = head.decode().split("\r\n")
    found = dict(header.split(": ", 1) for header in headers)
    return int(line.split(" ")[1]), found, json.loads(body)


async def until(condition) -> None:
    async with asyncio.timeout(30):
        while not await condition():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("first", [b"GARBAGE\r\n\r\n", b"\x16\x03\x01\x00\xa5\x01\x00\r\n\r\n"])
async def test_what_is_no_http_is_refused_and_no_fault_of_ours(door, first, caplog):
    reader, _ = await door.say(first)

    assert (await asyncio.wait_for(reader.read(), 30)).startswith(b"HTTP/1.1 400 ")
    assert not [record for record in caplog.records if record.exc_info]


@pytest.fixture
def lasting(plane, monkeypatch):
    """A read that the database is at for ten minutes, and whether it is at one."""

    async def lasts(*_, **__):
        async with plane.database.snapshot("home") as conn:
            await conn.exec_driver_sql("SELECT pg_sleep(600)")

    async def is_read() -> bool:
        rows = await plane.database.rows("SELECT query FROM pg_stat_activity WHERE state = 'active'", {})
        return ("SELECT pg_sleep(600)",) in rows

    async def is_not_read() -> bool:
        return not await is_read()

    monkeypatch.setattr(_http_reads, "diff", lasts)
    monkeypatch.setattr(Plane, "replay", lasts)
    monkeypatch.setattr(Plane, "ask", lasts)
    return is_read, is_not_read


@pytest.mark.parametrize(
    ("line", "body"),
    [
        ("GET /v1/home/diff", b""),
        ("POST /v1/home/contexts/00/replay", b""),
        ("POST /v1/home/ask", b'{"question": "Where does Ann live?"}'),
    ],
)
async def test_a_read_whose_caller_left_is_given_up_with_its_statement(door, lasting, line, body, caplog):
    is_read, is_not_read = lasting
    _, writer = await door.say(door.head(line, length=len(body) or None), body)
    await until(is_read)

    writer.close()

    await until(is_not_read)
    assert not [one for one in caplog.records if one.levelname == "ERROR"]


async def test_an_append_whose_caller_left_is_written(door, plane, monkeypatch):
    begun, may_go_on, appended = asyncio.Event(), asyncio.Event(), Plane.append

    async def held(*of, **more):
        begun.set()
        await may_go_on.wait()
        receipt = await appended(*of, **more)
        done.set_result(receipt.event_ids[0])
        return receipt

    done = asyncio.get_running_loop().create_future()
    monkeypatch.setattr(Plane, "append", held)
    _, writer = await door.say(door.append())
    await begun.wait()
    writer.close()
    await until(_is_empty(door))
    may_go_on.set()

    assert (await plane.event("home", await asyncio.wait_for(done, 30))).event is not None


def test_every_route_is_read_only_or_is_not(plane):
    posted = {
        (method, route.path)
        for route in _routes(make_app(plane))
        for method in route.methods
        if method == "POST"
    }

    assert posted == WRITES | {("POST", path) for path in POSTED_READS}


def _routes(app) -> list[AttendedRoute]:
    found, left = [], list(app.router.routes)
    while left:
        one = left.pop()
        inner = getattr(one, "original_router", None) or getattr(one, "router", None)
        left += list(inner.routes) if inner is not None else []
        found += [one] if getattr(one, "path", "").startswith("/v1") else []
    assert found
    assert all(isinstance(one, AttendedRoute) for one in found)
    return found


def _is_empty(door):
    async def is_empty() -> bool:
        return not door.server.server_state.connections

    return is_empty


@pytest.mark.parametrize("said", [b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx: ", b"G"])
async def test_a_head_that_does_not_end_is_answered_and_closed(door, monkeypatch, said):
    monkeypatch.setattr(limits, "HEAD_SECONDS_MAX", 0.05)

    reader, _ = await door.say(said)

    status, headers, body = await answer_of(reader)
    assert (status, headers["connection"], body["error"]["code"]) == (408, "close", "unavailable.too_slow")


async def test_who_says_nothing_and_who_says_little_at_a_time_are_let_go(door, monkeypatch):
    monkeypatch.setattr(limits, "HEAD_SECONDS_MAX", 0.05)
    silent, _ = await door.say()
    # Behind a whole request, too.
    reader, writer = await door.say(door.head("GET /healthz"))
    await reader.readuntil(b'"ok"}')

    async def drip() -> None:
        while True:
            writer.write(b"G")
            await asyncio.sleep(0.01)

    dripping = asyncio.create_task(drip())
    async with asyncio.timeout(30):
        rest = await reader.read()
        assert await silent.read() == b""
    dripping.cancel()
    assert b" 408 " in rest


async def test_a_body_that_does_not_end_is_answered_and_nothing_is_written(door, plane, monkeypatch):
    monkeypatch.setattr(limits, "BODY_SECONDS_MAX", 0.05)
    before = (await plane.standing())[0].head

    reader, _ = await door.say(door.append(rest=1))

    status, headers, body = await answer_of(reader)
    assert (status, headers["connection"], body["error"]["code"]) == (408, "close", "unavailable.too_slow")
    assert (await plane.standing())[0].head == before


async def test_a_body_that_goes_on_behind_its_answer_is_cut_off(door, monkeypatch):
    monkeypatch.setattr(_http_server, "REST_SECONDS", 0.05)

    reader, writer = await door.say(
        b"POST /v1/home/events HTTP/1.1\r\nhost: other\r\ncontent-length: 9999\r\n\r\n"
    )
    assert b" 422 " in await reader.readline()

    async def go_on() -> None:
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.01)

    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        await asyncio.wait_for(go_on(), 30)


async def tell_much(_scope, _receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(64):
        await send({"type": "http.response.body", "body": bytes(1_000_000), "more_body": True})


async def test_who_does_not_listen_is_let_go(monkeypatch):
    monkeypatch.setattr(limits, "ANSWER_SECONDS_MAX", 0.05)
    async with served(tell_much) as door:
        await door.say(door.head("GET /"))

        await until(_is_empty(door))


async def test_one_connection_too_many_is_told_to_come_again(door, monkeypatch):
    monkeypatch.setattr(limits, "CONNECTIONS_MAX", 1)
    _, first = await door.say()

    reader, _ = await door.say(door.head("GET /healthz"))

    status, headers, body = await answer_of(reader)
    assert (status, headers["retry-after"], body["error"]["code"]) == (503, "1", "unavailable.busy")
    first.close()


async def test_long_reads_take_turns_and_leave_room(plane, monkeypatch):
    turns = plane.long_reads
    async with turns.of("a"), turns.of("a"):
        object.__setattr__(turns, "wait_seconds", 0.01)
        with pytest.raises(Busy):
            async with turns.of("a"):
                pass
        async with turns.of("b"):
            with pytest.raises(Busy) as refused:
                async with turns.of("c"):
                    pass
    assert (refused.value.part, refused.value.retry_after_seconds) == ("reads", 5)
    assert limits.LONG_READS_AT_ONCE + 2 * limits.ERASURES_AT_ONCE < POOL_CONNECTIONS


# --- the end -----------------------------------------------------------------------------------------------


async def test_the_end_waits_for_nobody_who_keeps_it_waiting(plane, home, monkeypatch):
    monkeypatch.setattr(_http_server, "STOP_SECONDS", 600)
    app = make_app(plane)
    async with served(app, plane.local_token, app.state.streams) as door:
        half, _ = await door.say(door.append(rest=1))
        stream, _ = await door.say(door.head("GET /v1/home/live"))
        await stream.readuntil(b"event: commit")
        await door.say()
        await door.say(b"GET /healthz HT")

    status, _, body = await answer_of(half)
    assert (status, body["error"]["code"]) == (503, "unavailable")
    assert (await stream.read()).endswith(b"\r\n0\r\n\r\n")


async def test_the_end_does_not_wait_for_deaf_ears(monkeypatch):
    monkeypatch.setattr(_http_server, "STOP_SECONDS", 0.05)
    monkeypatch.setattr(_http_server, "LAST_WORDS_SECONDS", 0.05)
    async with served(tell_much) as door:
        reader, _ = await door.say(door.head("GET /"))
        await reader.readline()


async def test_the_end_lets_an_append_end(plane, home, monkeypatch):
    monkeypatch.setattr(_http_server, "STOP_SECONDS", 600)
    begun, may_go_on, appended = asyncio.Event(), asyncio.Event(), Plane.append

    async def held(*of, **more):
        begun.set()
        await may_go_on.wait()
        return await appended(*of, **more)

    monkeypatch.setattr(Plane, "append", held)
    app = make_app(plane)
    async with served(app, plane.local_token, app.state.streams) as door:
        reader, _ = await door.say(door.append())
        await begun.wait()
        door.stop.set()
        await asyncio.sleep(0.05)
        may_go_on.set()
        status, _, body = await answer_of(reader)

    assert status == 201
    assert (await plane.event("home", body["event_ids"][0])).event is not None


async def test_the_end_lets_a_read_end_within_its_second(plane, home, monkeypatch):
    monkeypatch.setattr(_http_attending, "READ_STOP_SECONDS", 600)
    begun, may_go_on, diff = asyncio.Event(), asyncio.Event(), _http_reads.diff

    async def held(*of, **more):
        begun.set()
        await may_go_on.wait()
        return await diff(*of, **more)

    monkeypatch.setattr(_http_reads, "diff", held)
    app = make_app(plane)
    async with served(app, plane.local_token, app.state.streams) as door:
        reader, _ = await door.say(door.head("GET /v1/home/diff"))
        await begun.wait()
        door.stop.set()
        await asyncio.sleep(0.05)
        may_go_on.set()

        assert (await answer_of(reader))[0] == 200


async def test_the_end_waits_for_a_read_no_longer_than_its_second(plane, home, lasting, monkeypatch):
    monkeypatch.setattr(_http_server, "STOP_SECONDS", 600)
    monkeypatch.setattr(_http_attending, "READ_STOP_SECONDS", 0.05)
    is_read, is_not_read = lasting
    app = make_app(plane)
    async with asyncio.timeout(60), served(app, plane.local_token, app.state.streams) as door:
        reader, _ = await door.say(door.head("GET /v1/home/diff"))
        await until(is_read)

    status, _, body = await answer_of(reader)
    assert (status, body["error"]["code"]) == (503, "unavailable")
    await until(is_not_read)


async def test_the_end_gives_up_what_does_not_end(plane, home, lasting, monkeypatch):
    monkeypatch.setattr(_http_server, "STOP_SECONDS", 0.05)
    is_read, is_not_read = lasting
    app = make_app(plane)
    async with served(app, plane.local_token, app.state.streams) as door:
        reader, _ = await door.say(door.head("GET /v1/home/diff"))
        await until(is_read)

    status, _, body = await answer_of(reader)
    assert (status, body["error"]["code"]) == (503, "unavailable")
    await until(is_not_read)
