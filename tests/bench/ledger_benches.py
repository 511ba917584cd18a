"""The ledger: folds with what they keep."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta

from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from ledger.log import append
from tests.bench.grounds import Grounds
from tests.bench.measure import Row, latencies, rate, timed

START = datetime(2024, 1, 1, tzinfo=UTC)
KEYS = 1_000


def reading(number: int, *, entity: str, value: str, relation: str = "located_in") -> EventDraft:
    """Return one structured reading, a minute after the one before."""
    return EventDraft.model_validate({
        "stream": "run-1", "kind": "observation", "actor": {"id": "robot-1", "class": "sensor"},
        "observed_at": (START + timedelta(minutes=number)).isoformat(), "source_event_id": f"r-{number}",
        "text": f"The {entity} is in the {value}.",
        "claims": [{"entity": entity, "relation": relation, "value": value}],
    })  # fmt: skip


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
