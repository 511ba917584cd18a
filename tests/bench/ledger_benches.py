"""The log and the ledger: appends, folds and one-key reads, beside the same done plainly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from contracts.times import KnownAt, ValidAt
from contracts.views import ViewRequest
from ledger.log import append, create_tenant
from tests.bench.grounds import Grounds
from tests.bench.measure import Row, latencies, rate, timed

START = datetime(2024, 1, 1, tzinfo=UTC)
RUNS = 5
KEYS = 1_000
WRITERS = 16


def reading(number: int, *, entity: str, value: str, relation: str = "located_in") -> EventDraft:
    """Return one structured reading, a minute after the one before."""
    return EventDraft.model_validate({
        "stream": "run-1", "kind": "observation", "actor": {"id": "robot-1", "class": "sensor"},
        "observed_at": (START + timedelta(minutes=number)).isoformat(), "source_event_id": f"r-{number}",
        "text": f"The {entity} is in the {value}.",
        "claims": [{"entity": entity, "relation": relation, "value": value}],
    })  # fmt: skip


async def appends(at: Grounds, *, large: bool) -> AsyncIterator[Row]:
    """Durable appends one by one, in batches, and by many writers, beside raw inserts of the same shape."""
    _ = large
    await at.plain.execute(
        "CREATE TABLE plain_event (LIKE event INCLUDING ALL); "
        "CREATE TABLE plain_key (LIKE event_key INCLUDING ALL)"
    )
    database, number = at.plane.database, 0
    await create_tenant(database, "appends")

    def fresh(count: int) -> list[EventDraft]:
        nonlocal number
        number += count
        return [reading(number - count + one, entity=f"cup {one}", value="kitchen") for one in range(count)]

    async def ours(drafts: list[EventDraft], batch: int) -> None:
        for start in range(0, len(drafts), batch):
            await append(database, "appends", drafts[start : start + batch], grant=LOCAL_GRANT)

    async def by_many(drafts: list[EventDraft]) -> None:
        await asyncio.gather(*(ours(drafts[writer::WRITERS], 1) for writer in range(WRITERS)))

    await ours(fresh(20), 1)
    for name, batch, count in (("append one by one", 1, 100), ("append in batches of 100", 100, 1_000)):
        seconds, raw = [], []
        for run in range(RUNS):
            drafts = fresh(count)
            seconds.append(await timed(lambda d=drafts, b=batch: ours(d, b)))
            raw.append(
                await timed(
                    lambda r=run, b=batch, c=count: _raw_inserts(
                        at, f"{b}-{r}", c, b, first=10_000 * (r + RUNS * b)
                    )
                )
            )
        beside = rate(bench="", size=batch, events=count, seconds=raw).value
        yield rate(
            bench=name, size=batch, events=count, seconds=seconds, beside=beside, note="beside raw INSERT"
        )
    many = [fresh(160) for _ in range(RUNS)]
    seconds = [await timed(lambda d=drafts: by_many(d)) for drafts in many]
    yield rate(bench=f"append by {WRITERS} writers", size=1, events=160, seconds=seconds)


async def _raw_inserts(at: Grounds, name: str, count: int, batch: int, *, first: int) -> None:
    """Insert rows as wide as an event's with its key, one transaction a batch."""
    header, ciphertext, digest = b"h" * 330, b"c" * 420, b"d" * 32
    async with at.plain.cursor() as cursor:
        for start in range(0, count, batch):
            rows = [
                ("plain", first + one, 1, f"{name}-{one}", "observation", digest, first + one, digest,
                 f"{name}-{one}".encode(), digest, header, ciphertext, digest)
                for one in range(start, start + batch)
            ]  # fmt: skip
            async with at.plain.transaction():
                await cursor.executemany(f"INSERT INTO plain_event VALUES ({', '.join(['%s'] * 13)})", rows)
                await cursor.executemany(
                    "INSERT INTO plain_key VALUES (%s, %s, %s)", [(row[0], row[3], b"k" * 60) for row in rows]
                )


async def folds(at: Grounds, *, large: bool) -> AsyncIterator[Row]:
    """Structured claims over a thousand keys, folded from nothing."""
    rooms = ("kitchen", "study", "garage", "balcony", "hallway")
    for size in (1_000, 10_000, *((100_000,) if large else ())):
        runs = 3 if size == 1_000 else 1
        seconds = []
        for run in range(runs):
            drafts = [
                reading(one, entity=f"thing {at.chance.randrange(KEYS)}", value=at.chance.choice(rooms))
                for one in range(size)
            ]
            tenant = await at.tenant(f"fold-{size}-{run}", drafts, folded=False)
            seconds.append(await timed(lambda t=tenant: at.fold(t)))
        yield rate(bench="fold, 1,000 keys", size=size, events=size, seconds=seconds)


async def equal_readings(at: Grounds, *, large: bool) -> AsyncIterator[Row]:
    """The same reading again and again: a run of support, one cell."""
    for size in (1_000, 10_000, *((100_000,) if large else ())):
        drafts = [reading(one, entity="blue mug", value="kitchen") for one in range(size)]
        tenant = await at.tenant(f"equal-{size}", drafts, folded=False)
        seconds = await timed(lambda t=tenant: at.fold(t))
        cursor = await at.plain.execute("SELECT count(*) FROM cell WHERE tenant = %s", [tenant])
        [cells] = await cursor.fetchone() or [0]
        yield rate(
            bench="fold equal readings", size=size, events=size, seconds=[seconds], note=f"{cells} cells"
        )
        request = _request(START + timedelta(minutes=size))
        await at.plane.resolve(tenant, "blue mug", "located_in", request)
        asked = [
            await timed(lambda t=tenant, r=request: at.plane.resolve(t, "blue mug", "located_in", r))
            for _ in range(15)
        ]
        yield latencies(bench="resolve equal readings", size=size, seconds=asked)


def _request(at: datetime) -> ViewRequest:
    return ViewRequest(valid_at=ValidAt(at), known_at=None, generation=None, min_commit=None)


async def resolves(at: Grounds, *, large: bool) -> AsyncIterator[Row]:
    """One key with a long history, at random times, beside a plain table and a window query."""
    await at.plain.execute(
        "CREATE TABLE plain_state (entity text, relation text, value text, since timestamptz, "
        "recorded_at timestamptz, number bigint); "
        "CREATE INDEX ON plain_state (entity, relation, since DESC, number DESC)"
    )
    for size in (100, 1_000, 10_000, *((100_000,) if large else ())):
        entity = f"mug {size}"
        drafts = [reading(one, entity=entity, value=f"place {one % 7}") for one in range(size)]
        tenant = await at.tenant(f"resolve-{size}", drafts, folded=True)
        async with at.plain.cursor() as cursor, cursor.copy("COPY plain_state FROM STDIN") as copy:
            for one in range(size):
                since = START + timedelta(minutes=one)
                row = (entity, "located_in", f"place {one % 7}", since, since, one)
                await copy.write_row(row)
        await at.plain.execute("ANALYZE plain_state")
        times = [START + timedelta(minutes=at.chance.random() * size) for _ in range(31)]
        ours = [
            await timed(lambda w=when, t=tenant, e=entity: at.plane.resolve(t, e, "located_in", _request(w)))
            for when in times
        ]
        plain = [await timed(lambda w=when, e=entity: _window(at, e, w)) for when in times]
        beside = latencies(bench="", size=size, seconds=plain[1:]).value
        yield latencies(
            bench="resolve, one key's history", size=size, seconds=ours[1:], beside=beside,
            note="beside a window query",
        )  # fmt: skip


async def _window(at: Grounds, entity: str, when: datetime) -> None:
    cursor = await at.plain.execute(
        "SELECT value FROM (SELECT value, row_number() OVER (ORDER BY since DESC, number DESC) AS place "
        "FROM plain_state WHERE entity = %s AND relation = 'located_in' AND since <= %s AND recorded_at <= %s"
        ") AS ranked WHERE place = 1",
        [entity, when, KnownAt(when)],
    )
    assert await cursor.fetchone() is not None
