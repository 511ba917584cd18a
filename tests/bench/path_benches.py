"""The way from an event to an answer: visible when, asked how fast, replayed how fast."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from contracts.trails import Question
from contracts.views import ViewRequest
from ledger.log import append, create_tenant
from ledger.resolve import pin
from projection import RuleProjector, run_projection
from tests.bench.grounds import Grounds
from tests.bench.ledger_benches import reading
from tests.bench.measure import Row, latencies, timed

START = datetime(2024, 1, 1, 9, tzinfo=UTC)
ASKED = 21
VISIBLE = 300
PEOPLE = ("Ann", "Bea", "Cyr", "Dov")
PLACES = ("Lyon", "Graz", "Oslo", "Turin", "Ghent", "Porto", "Genoa", "Malmö")
THINGS = ("garden", "boat", "piano", "bicycle", "kitchen", "lantern", "orchard", "loom", "kiln", "tent")
DEEDS = ("painted", "repaired", "sold", "borrowed", "photographed", "cleaned", "measured", "moved")
WHEN = ("before breakfast", "on a rainy afternoon", "with a neighbour", "after the concert", "for a week")
NO_VIEW = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=None)


def turns(at: Grounds, count: int) -> list[EventDraft]:
    """Return a conversation: small talk of about twenty words, and now and then a fact."""
    chance = at.chance
    said = []
    for number in range(count):
        text = (
            f"{chance.choice(PEOPLE)} {chance.choice(DEEDS)} the old {chance.choice(THINGS)} "
            f"{chance.choice(WHEN)}, and then we {chance.choice(DEEDS)} a {chance.choice(THINGS)} "
            f"near {chance.choice(PLACES)} {chance.choice(WHEN)}."
        )
        if number % 20 == 0:
            text += f" I live in {chance.choice(PLACES)}. I like the {chance.choice(THINGS)}."
        said.append(EventDraft.model_validate({
            "stream": f"chat-{number // 50}", "kind": "turn",
            "actor": {"id": chance.choice(PEOPLE), "class": "user"}, "source_event_id": f"t-{number}",
            "observed_at": (START + timedelta(hours=number)).isoformat(), "text": text,
        }))  # fmt: skip
    return said


def questions(at: Grounds, count: int) -> list[Question]:
    chance = at.chance
    forms = (
        lambda: f"Where does {chance.choice(PEOPLE)} live?",
        lambda: f"What does {chance.choice(PEOPLE)} like?",
        lambda: f"Who {chance.choice(DEEDS)} the {chance.choice(THINGS)} near {chance.choice(PLACES)}?",
        lambda: f"When was the {chance.choice(THINGS)} {chance.choice(DEEDS)}?",
    )
    return [
        Question(text=forms[number % len(forms)](), budget_tokens=2_048, disclose_conflicts=False)
        for number in range(count)
    ]


async def visible(at: Grounds, *, large: bool) -> AsyncIterator[Row]:
    """From the receipt of an append to the first view that holds it, through Redis and a worker."""
    _ = large
    database = at.plane.database
    await create_tenant(database, "visible")
    stop = asyncio.Event()
    task = asyncio.create_task(
        run_projection(database, at.servers.redis_url, RuleProjector(), consumer="bench", stop=stop)
    )
    seconds = []
    for number in range(VISIBLE):
        draft = reading(number, entity=f"cup {number % 9}", value="kitchen")
        receipt = await append(database, "visible", [draft], grant=LOCAL_GRANT)
        view = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=receipt.commit)
        seconds.append(await timed(lambda v=view: pin(database, "visible", v, wait_ms=30_000)))
    stop.set()
    await task
    # The first ones wait for the worker to connect.
    yield latencies(bench="append to visible", size=1, seconds=seconds[5:])


async def asks(at: Grounds, *, large: bool) -> AsyncIterator[Row]:
    """Ask with and without the embedding of the question, and replay what was asked."""
    sizes = (100, 1_000, *((10_000,) if large else ()))
    for size in sizes:
        await at.tenant(f"ask-{size}", turns(at, size), folded=True)
    rows: dict[str, list[Row]] = {"without": [], "with": [], "replay": []}
    for embedding in (False, True):
        async with at.discovery(embedding=embedding):
            for size in sizes:
                tenant, asked = f"ask-{size}", questions(at, ASKED + 1)
                # Loads the index; with the model, its vectors are made meanwhile.
                first = await at.plane.ask(tenant, asked[0], NO_VIEW)
                assert not first.degraded
                while embedding and await at.vectors(tenant) < size:
                    await asyncio.sleep(0.2)
                hashes = [first.context.hash]
                seconds = [
                    await timed(lambda q=one, t=tenant, h=hashes: _ask(at, t, q, h)) for one in asked[1:]
                ]
                name = "with" if embedding else "without"
                rows[name].append(latencies(bench=f"ask, {name} embedding", size=size, seconds=seconds))
                if embedding:
                    again = [await timed(lambda h=one, t=tenant: at.plane.replay(t, h)) for one in hashes]
                    rows["replay"].append(latencies(bench="replay", size=size, seconds=again))
    for kind in rows.values():
        for row in kind:
            yield row


async def _ask(at: Grounds, tenant: str, question: Question, hashes: list[str]) -> None:
    hashes.append((await at.plane.ask(tenant, question, NO_VIEW)).context.hash)
