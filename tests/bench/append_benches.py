"""Durable appends by eight clients: through HTTP and Python, beside raw inserts and another event store."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import statistics
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from socket import socket
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from echoplane._embedded import DATABASE
from echoplane._plane import child_environment
from echoplane._postgres import SUPERUSER
from ledger._drafts import draft_bytes
from ledger.log import append, create_tenant
from tests.bench.arms import Arm, arm
from tests.bench.grounds import Grounds
from tests.bench.ledger_benches import reading
from tests.bench.measure import Row, latencies, rate, timed
from tests.processor import spent

CLIENTS: Final = 8
RUNS: Final = 5
SHAPES: Final = ((1, 800), (100, 8_000))
"""Events of one append, and of one run."""
STREAM: Final = b"s" * 32
HEADER_BYTES, CIPHERTEXT_BYTES, DIGEST_BYTES, KEY_BYTES = 170, 420, 32, 32
"""As long as those of a reading; what ours writes looks random, so this does too."""
RUN: Final = 100
"""So many rows have ids and keys that lie together in the indexes, as ours do."""
TENANT: Final = "appends"
OTHERS: Final = ("eventsourcing 9.5", "eventsourcing 9.5 with its function in the server")
"""Its recorder as it comes, and as it is with a function of its own in the server."""
GROWN: Final = (10_000, 100_000)
LATENCIES: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class _Taken:
    """
    Seconds of one run by the clock, and of the processes that did the work.

    A load client that only sends requests, written beforehand, is not one of these.
    """

    seconds: float
    processor: float


class _Fresh:
    """Readings that were never sent before."""

    def __init__(self) -> None:
        self._number = 0

    def __call__(self, count: int) -> list[EventDraft]:
        self._number += count
        first = self._number - count
        return [reading(first + one, entity=f"cup {one}", value="kitchen") for one in range(count)]


async def appends(at: Grounds, *, large: bool) -> AsyncIterator[Row]:
    """Eight clients of one tenant, one event or a hundred at a time, every way in turn in each run."""
    _ = large
    fresh = _Fresh()
    await create_tenant(at.plane.database, TENANT)
    await at.plain.execute(
        "CREATE TABLE plain_event (LIKE event INCLUDING ALL); "
        "CREATE TABLE plain_key (LIKE event_key INCLUDING ALL)"
    )
    async with _served(at) as api, arm("eventsourcing_arm.py") as other, _raw_connections(at) as raw:
        if other is not None:
            await other.ask("open", _parts(at))
        for batch, events in SHAPES:
            taken: dict[str, list[_Taken]] = defaultdict(list)
            for run in range(-1, RUNS):
                found = {
                    "http": await _through_http(at, api, fresh(events), batch),
                    "python": await _through_python(at, fresh(events), batch),
                    "raw INSERT": await _raw_inserts(at, raw, batch, events),
                }
                if other is not None:
                    found |= await _other_store(at, other, batch, events)
                # The first warms up what each of them keeps.
                for name, one in found.items() if run >= 0 else ():
                    taken[name].append(one)
            for row in _rows(batch, events, taken):
                yield row


def _rows(batch: int, events: int, taken: dict[str, list[_Taken]]) -> list[Row]:
    """Return each way into the log beside each of the others' that was measured."""
    ways = {name: taken.pop(name) for name in ("http", "python")}
    rows = []
    for name, runs in ways.items():
        for other, others in taken.items():
            rows.append(rate(
                bench=f"append by {CLIENTS} through {name}", size=batch, events=events,
                seconds=[one.seconds for one in runs], note=f"beside {other}",
                beside=events / statistics.median(one.seconds for one in others),
            ))  # fmt: skip
            mine, theirs = (
                1e6 * statistics.median(one.processor for one in each) / events for each in (runs, others)
            )
            rows.append(Row(
                bench="processor time of an event", size=batch, n=len(runs), unit="us", value=mine,
                beside=theirs, note=f"{name} beside {other}",
            ))  # fmt: skip
    return rows


async def _by_clients(
    at: Grounds, process: int, send: Callable[[int, Sequence[int]], Awaitable[None]], batch: int, events: int
) -> _Taken:
    """Time the clients with their shares, each one append after the other; and a process, and the server."""
    shares = [range(first, events, CLIENTS * batch) for first in range(0, CLIENTS * batch, batch)]

    async def all_of_them() -> None:
        await asyncio.gather(*(send(client, share) for client, share in enumerate(shares)))

    before = spent([process, _server(at)])
    seconds = await timed(all_of_them)
    return _Taken(seconds=seconds, processor=spent([process, _server(at)]) - before)


async def _through_python(at: Grounds, drafts: list[EventDraft], batch: int) -> _Taken:
    async def send(_: int, firsts: Sequence[int]) -> None:
        for first in firsts:
            await append(at.plane.database, TENANT, drafts[first : first + batch], grant=LOCAL_GRANT)

    return await _by_clients(at, os.getpid(), send, batch, len(drafts))


# --- HTTP ---------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def _served(at: Grounds) -> AsyncIterator[tuple[int, int]]:
    """Run the API as the plane runs it, in a process of its own; yield that and its port."""
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    environment = child_environment(at.settings) | {"ECHOPLANE_HTTP_PORT": str(port)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "echoplane", "role", "api", "1", env=environment,
        # Open until we end: a role ends with whoever started it.
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with asyncio.timeout(60):
            while not await _answers(port):
                assert process.returncode is None, "the API ended"
                await asyncio.sleep(0.05)
        yield process.pid, port
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


async def _through_http(at: Grounds, api: tuple[int, int], drafts: list[EventDraft], batch: int) -> _Taken:
    """Send what was written beforehand, over a connection that each client keeps."""
    process, port = api
    requests = {
        first: _request(at, port, drafts[first : first + batch]) for first in range(0, len(drafts), batch)
    }
    connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CLIENTS)]

    async def send(client: int, firsts: Sequence[int]) -> None:
        reader, writer = connections[client]
        for first in firsts:
            writer.write(requests[first])
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            assert head.startswith(b"http/1.1 201"), head
            await reader.readexactly(int(head.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0]))

    try:
        return await _by_clients(at, process, send, batch, len(drafts))
    finally:
        for _, writer in connections:
            writer.close()


def _request(at: Grounds, port: int, drafts: Sequence[EventDraft]) -> bytes:
    body = b'{"events":[' + b",".join([draft_bytes(draft) for draft in drafts]) + b"]}"
    head = (
        f"POST /v1/{TENANT}/events HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
        f"authorization: Bearer {at.plane.local_token}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


# --- beside -------------------------------------------------------------------------------------


def _server(at: Grounds) -> int:
    assert at.servers.postgres is not None
    return at.servers.postgres.pid


def _conninfo(at: Grounds) -> str:
    assert at.servers.postgres is not None
    return at.servers.postgres.conninfo(role=SUPERUSER, database=DATABASE)


def _parts(at: Grounds) -> list[str]:
    parts = conninfo_to_dict(_conninfo(at))
    return [str(parts[name]) for name in ("host", "port", "user", "dbname")]


@contextlib.asynccontextmanager
async def _raw_connections(at: Grounds) -> AsyncIterator[list[psycopg.AsyncConnection]]:
    async with contextlib.AsyncExitStack() as held:
        yield [
            await held.enter_async_context(
                await psycopg.AsyncConnection.connect(_conninfo(at), autocommit=True)
            )
            for _ in range(CLIENTS)
        ]


async def _raw_inserts(
    at: Grounds, connections: list[psycopg.AsyncConnection], batch: int, events: int
) -> _Taken:
    """Insert rows as wide as an event's with its key, one transaction a batch, each client on its own."""
    next_number = await _next_number(connections[0])
    rows = [_plain_row(number) for number in range(next_number, next_number + events)]

    async def send(client: int, firsts: Sequence[int]) -> None:
        for first in firsts:
            own = rows[first : first + batch]
            async with connections[client].transaction(), connections[client].cursor() as cursor:
                await cursor.executemany(
                    "INSERT INTO plain_event (tenant, position, commit, event_id, kind, stream_digest, "
                    "stream_version, source_digest, idempotency_digest, content_digest, header, ciphertext, "
                    f"hash) VALUES ({', '.join(['%s'] * 13)})",
                    [row for row, _ in own],
                )
                await cursor.executemany("INSERT INTO plain_key VALUES (%s, %s, %s)", [key for _, key in own])

    return await _by_clients(at, os.getpid(), send, batch, events)


def _plain_row(number: int) -> tuple[Sequence[object], Sequence[object]]:
    run = hashlib.sha256(f"run {number // RUN}".encode()).digest()
    key, content, own = (
        run[:8] + os.urandom(DIGEST_BYTES - 8),
        os.urandom(DIGEST_BYTES),
        os.urandom(DIGEST_BYTES),
    )
    event_id = f"ev_{run.hex()[:24]}{number % RUN:02}"
    return (
        ("plain", number, 1, event_id, "observation", STREAM, number, key, key, content,
         os.urandom(HEADER_BYTES), os.urandom(CIPHERTEXT_BYTES), own),
        ("plain", event_id, os.urandom(KEY_BYTES)),
    )  # fmt: skip


async def _next_number(connection: psycopg.AsyncConnection) -> int:
    cursor = await connection.execute("SELECT coalesce(max(position), 0) + 1 FROM plain_event")
    [number] = await cursor.fetchone() or [1]
    return int(number)


async def _other_store(at: Grounds, other: Arm, batch: int, events: int) -> dict[str, _Taken]:
    found = {}
    for functions, name in enumerate(OTHERS):
        before = spent([_server(at)])
        seconds, own = await other.ask("append", [functions, CLIENTS, batch, events, CIPHERTEXT_BYTES])
        found[name] = _Taken(seconds=seconds, processor=own + spent([_server(at)]) - before)
    return found


# --- a log that grows -----------------------------------------------------------------------------


async def grown(at: Grounds, *, large: bool) -> AsyncIterator[Row]:
    """Single appends to logs of several sizes, filled in batches beforehand; one to each in turn."""
    fresh = _Fresh()
    sizes = (*GROWN, *((1_000_000,) if large else ()))
    for size in sizes:
        await at.tenant(f"grown-{size}", (fresh(1)[0] for _ in range(size)), folded=False)
    await at.plain.execute("CHECKPOINT")

    async def one(size: int, draft: EventDraft) -> None:
        await append(at.plane.database, f"grown-{size}", [draft], grant=LOCAL_GRANT)

    seconds: dict[int, list[float]] = defaultdict(list)
    for draft in fresh(LATENCIES):
        for size in sizes:
            seconds[size].append(await timed(partial(one, size, draft)))
    for size in sizes:
        yield latencies(bench="append one to a log of", size=size, seconds=seconds[size])
