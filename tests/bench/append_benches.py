"""Durable appends by eight clients: through HTTP and Python, beside raw inserts and another event store."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
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

CLIENTS: Final = 8
RUNS: Final = 5
SHAPES: Final = ((1, 800), (100, 8_000))
"""Events of one append, and of one run."""
HEADER, CIPHERTEXT = b"h" * 170, b"c" * 420
"""As long as those of a reading."""
TENANT: Final = "appends"
GROWN: Final = (10_000, 100_000)
LATENCIES: Final = 300


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
    fresh = _Fresh()
    await create_tenant(at.plane.database, TENANT)
    await at.plain.execute(
        "CREATE TABLE plain_event (LIKE event INCLUDING ALL); "
        "CREATE TABLE plain_key (LIKE event_key INCLUDING ALL)"
    )
    async with _served(at) as port, arm("eventsourcing_arm.py") as other, _raw_connections(at) as raw:
        if other is not None:
            await other.ask("open", _parts(at))
        for batch, events in SHAPES:
            seconds: dict[str, list[float]] = defaultdict(list)
            for run in range(-1, RUNS):
                found = {
                    "http": await _through_http(at, port, fresh(events), batch),
                    "python": await _through_python(at, fresh(events), batch),
                    "raw INSERT": await _raw_inserts(raw, batch, events),
                }
                if other is not None:
                    found |= await _other_store(other, batch, events)
                # The first warms up what each of them keeps.
                for name, one in found.items() if run >= 0 else ():
                    seconds[name].append(one)
            for row in _rows(batch, events, seconds):
                yield row
    for size in (*GROWN, *((1_000_000,) if large else ())):
        yield await _grown(at, size)


def _rows(batch: int, events: int, seconds: dict[str, list[float]]) -> list[Row]:
    """Return each way into the log beside each of the others' that was measured."""
    ways = {name: seconds.pop(name) for name in ("http", "python")}
    return [
        rate(
            bench=f"append by {CLIENTS} through {name}", size=batch, events=events, seconds=taken,
            beside=events / statistics.median(others), note=f"beside {other}",
        )
        for name, taken in ways.items() for other, others in seconds.items()
    ]  # fmt: skip


async def _by_clients(
    send: Callable[[int, Sequence[int]], Awaitable[None]], batch: int, events: int
) -> float:
    """Return how long the clients take for their shares, each one append after the other."""
    shares = [range(first, events, CLIENTS * batch) for first in range(0, CLIENTS * batch, batch)]

    async def all_of_them() -> None:
        await asyncio.gather(*(send(client, share) for client, share in enumerate(shares)))

    return await timed(all_of_them)


async def _through_python(at: Grounds, drafts: list[EventDraft], batch: int) -> float:
    async def send(_: int, firsts: Sequence[int]) -> None:
        for first in firsts:
            await append(at.plane.database, TENANT, drafts[first : first + batch], grant=LOCAL_GRANT)

    return await _by_clients(send, batch, len(drafts))


# --- HTTP ---------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def _served(at: Grounds) -> AsyncIterator[int]:
    """Run the API as the plane runs it, in a process of its own."""
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
        yield port
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


async def _through_http(at: Grounds, port: int, drafts: list[EventDraft], batch: int) -> float:
    """Send what was written beforehand, over a connection that each client keeps."""
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
        return await _by_clients(send, batch, len(drafts))
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


async def _raw_inserts(connections: list[psycopg.AsyncConnection], batch: int, events: int) -> float:
    """Insert rows as wide as an event's with its key, one transaction a batch, each client on its own."""
    at = await _next_number(connections[0])
    digest = b"d" * 32

    async def send(client: int, firsts: Sequence[int]) -> None:
        for first in firsts:
            numbers = range(at + first, at + first + batch)
            rows = [
                ("plain", one, 1, f"ev_{one:026}", "observation", digest, one, one.to_bytes(32, "big"),
                 one.to_bytes(32, "big"), digest, HEADER, CIPHERTEXT, digest)
                for one in numbers
            ]  # fmt: skip
            keys = [("plain", row[3], b"k" * 60) for row in rows]
            async with connections[client].transaction(), connections[client].cursor() as cursor:
                await cursor.executemany(
                    "INSERT INTO plain_event (tenant, position, commit, event_id, kind, stream_digest, "
                    "stream_version, source_digest, idempotency_digest, content_digest, header, ciphertext, "
                    f"hash) VALUES ({', '.join(['%s'] * 13)})",
                    rows,
                )
                await cursor.executemany("INSERT INTO plain_key VALUES (%s, %s, %s)", keys)

    return await _by_clients(send, batch, events)


async def _next_number(connection: psycopg.AsyncConnection) -> int:
    cursor = await connection.execute("SELECT coalesce(max(position), 0) + 1 FROM plain_event")
    [number] = await cursor.fetchone() or [1]
    return int(number)


async def _other_store(other: Arm, batch: int, events: int) -> dict[str, float]:
    """Its recorder as it comes, and as it is with a function of its own in the server."""
    plain, function = await other.ask("append", [CLIENTS, batch, events, len(CIPHERTEXT)])
    return {"eventsourcing 9.5": plain, "eventsourcing 9.5 with its function in the server": function}


# --- a log that grows -----------------------------------------------------------------------------


async def _grown(at: Grounds, size: int) -> Row:
    """Single appends to a log of a size."""
    fresh = _Fresh()
    tenant = await at.tenant(f"grown-{size}", (fresh(1)[0] for _ in range(size)), folded=False)

    async def one(draft: EventDraft) -> None:
        await append(at.plane.database, tenant, [draft], grant=LOCAL_GRANT)

    seconds = [await timed(partial(one, draft)) for draft in fresh(LATENCIES)]
    return latencies(bench="append one to a log of", size=size, seconds=seconds)
