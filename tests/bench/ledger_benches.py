"""The log and the ledger: appends beside the same done plainly, and folds with what they keep."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta

from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
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


ROOMS = ("kitchen", "study", "garage", "balcony", "hallway")
FEW, MANY = 1, 50
"""Readings in one event: told one by one, or a batch of them at a time."""


def readings(size: int, *, an_event: int, say: Callable[[int], dict[str, str]]) -> Iterator[EventDraft]:
    """Yield events of so many readings each, a minute apart."""
    for first in range(0, size, an_event):
        yield EventDraft.model_validate({
            "stream": "run-1", "kind": "observation", "actor": {"id": "robot-1", "class": "sensor"},
            "observed_at": (START + timedelta(minutes=first)).isoformat(), "source_event_id": f"r-{first}",
            "claims": [say(number) for number in range(first, min(first + an_event, size))],
        })  # fmt: skip


async def folds(at: Grounds, *, large: bool) -> AsyncIterator[Row]:
    """Structured claims over a thousand keys, folded from nothing: how fast, and what is kept of them."""

    def say(_: int) -> dict[str, str]:
        entity, value = f"thing {at.chance.randrange(KEYS)}", at.chance.choice(ROOMS)
        return {"entity": entity, "relation": "located_in", "value": value}

    for an_event in (FEW, MANY):
        for size in (10_000, 100_000, *((1_000_000,) if large else ())):
            drafts = readings(size, an_event=an_event, say=say)
            async for row in _folded(at, f"fold 1,000 keys, {_each(an_event)}", size, an_event, drafts):
                yield row


async def equal_readings(at: Grounds, *, large: bool) -> AsyncIterator[Row]:
    """The same reading again and again: a run of support, one cell; and one other that comes late."""
    said = {"entity": "blue mug", "relation": "located_in", "value": "kitchen"}
    for an_event in (FEW, MANY):
        for size in (10_000, 100_000, *((1_000_000,) if large else ())):
            drafts = readings(size, an_event=an_event, say=lambda _: said)
            async for row in _folded(at, f"fold equal readings, {_each(an_event)}", size, an_event, drafts):
                yield row
            tenant = _tenant(f"fold equal readings, {_each(an_event)}", size)
            late = reading(size // 2, entity="blue mug", value="study")
            late = late.model_copy(update={"source_event_id": "late"})
            await append(at.plane.database, tenant, [late], grant=LOCAL_GRANT)
            seconds = await timed(lambda t=tenant: at.fold(t))
            cells = await _count(at, "SELECT count(*) FROM cell WHERE tenant = %s", tenant)
            yield latencies(
                bench=f"  a late other one, {_each(an_event)}", size=size, seconds=[seconds],
                note=f"splits the run: {cells} cells",
            )  # fmt: skip


def _each(an_event: int) -> str:
    return "one an event" if an_event == 1 else f"{an_event} an event"


def _tenant(bench: str, size: int) -> str:
    return f"{bench}-{size}".replace(" ", "-").replace(",", "")


async def _folded(
    at: Grounds, bench: str, size: int, an_event: int, drafts: Iterable[EventDraft]
) -> AsyncIterator[Row]:
    """Append, then fold, timing the fold; and what the claims take on disk with all their indexes."""
    tenant = await at.tenant(_tenant(bench, size), drafts, folded=False)
    before = await _sizes(at)
    seconds = await timed(lambda: at.fold(tenant))
    after = await _sizes(at)
    claims = await _count(at, "SELECT count(*) FROM claim WHERE tenant = %s", tenant)
    cells = await _count(at, "SELECT count(*) FROM cell WHERE tenant = %s", tenant)
    assert claims == size
    yield rate(bench=bench, size=size, events=size, seconds=[seconds], note=f"{size // an_event:,} events")
    grown = {table: (after[table] - before[table]) / size for table in after}
    yield Row(
        bench=f"  kept of a claim, {_each(an_event)}", size=size, n=1, unit="B", value=sum(grown.values()),
        note=" + ".join(f"{bytes_each:,.0f} {table}" for table, bytes_each in grown.items()),
    )  # fmt: skip
    yield Row(
        bench=f"  cells of a claim, {_each(an_event)}", size=size, n=1, unit="cells", value=cells / size
    )


async def _sizes(at: Grounds) -> dict[str, int]:
    cursor = await at.plain.execute(
        "SELECT t, pg_total_relation_size(t::regclass) FROM unnest(ARRAY['claim', 'line', 'cell', 'reach']) t"
    )
    return {str(table): int(size) for table, size in await cursor.fetchall()}


async def _count(at: Grounds, query: str, tenant: str) -> int:
    cursor = await at.plain.execute(query, [tenant])
    [count] = await cursor.fetchone() or [0]
    return int(count)
