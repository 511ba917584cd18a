"""What is only told to have begun some time in a span makes what was there before uncertain within it."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest

from contracts.resolutions import Missing, MissingReason
from contracts.times import ValidAt, parse_instant
from contracts.views import ViewRequest
from ledger import _coarse, _found, log
from ledger.resolve import as_certain, pin, resolve
from tests.ledger.erasing import claim, opened, said

NOW = "2026-05-01T00:00:00Z"


@pytest.fixture
async def ledger(db, database, clock):
    async with opened(db, database, clock) as made:
        await made.say(said("e1", claim("ann", "home", "Lyon", valid={"since": "2020-01-01T00:00:00Z"})))
        yield made


async def certain(ledger, at, *, days=0, relation="home", entity="ann"):
    """What a key has for certain through some days, or why that cannot be told."""
    await ledger.fold()
    request = ViewRequest(
        valid_at=ValidAt(parse_instant(at, field="at")), known_at=None, generation=None, min_commit=None
    )
    view = await pin(ledger.db, "acme", request, wait_ms=0)
    until = view.valid_at + (timedelta(days=days) or timedelta(microseconds=1))
    async with ledger.db.snapshot("acme") as conn:
        keys = await log.tenant_keys(ledger.db, "acme", conn)
        answer = await resolve(conn, keys, view, entity, relation)
        found = await as_certain(conn, keys, answer, until=until)
    match found.resolution:
        case Missing(reason=reason, superseded=superseded):
            assert found == dataclasses.replace(answer, resolution=found.resolution)
            return reason, [one.value for one in superseded]
        case _:
            assert found == answer
            return getattr(answer.resolution, "value", None)


MOVED = {"valid": {"since": "2023"}}
UNDETERMINED = (MissingReason.UNDETERMINED, ["Lyon", "Paris"])


async def test_who_moved_in_2023_may_have_lived_in_either_place_in_that_year_and_in_no_other(ledger):
    await ledger.say(said("e2", claim("ann", "home", "Paris", **MOVED)))

    assert await certain(ledger, "2022-12-31T23:59:59Z") == "Lyon"
    assert await certain(ledger, "2023-01-01T00:00:00Z") == UNDETERMINED
    assert await certain(ledger, "2023-12-31T23:59:59Z") == UNDETERMINED
    assert await certain(ledger, "2024-01-01T00:00:00Z") == "Paris"
    # Of the whole year as of its first day, and of the days up to it.
    assert await certain(ledger, "2023-01-01T00:00:00Z", days=365) == UNDETERMINED
    assert await certain(ledger, "2022-12-01T00:00:00Z", days=31) == "Lyon"
    assert await certain(ledger, "2022-12-01T00:00:00Z", days=32) == UNDETERMINED
    assert await certain(ledger, NOW) == "Paris"


@pytest.mark.parametrize(
    "later",
    [
        {"value": "Lyon"},
        {"value": "Paris", "actor": "bot", "actor_class": "assistant"},
        {"value": "Paris", "retracted": True},
    ],
)
async def test_what_would_change_nothing_where_it_begins_makes_nothing_uncertain(ledger, later):
    actor = {name: later[name] for name in ("actor", "actor_class") if name in later}
    await ledger.say(said("e2", claim("ann", "home", later["value"], **MOVED), **actor))
    if "retracted" in later:
        await ledger.say(said("e3", kind="retraction", targets=[{"source_event_id": "e2"}]))

    assert await certain(ledger, "2023-06-01T00:00:00Z") == "Lyon"


async def test_an_end_a_correction_and_what_was_erased_are_as_uncertain(ledger):
    await ledger.say(said("e2", claim("ann", "home", "Oslo", valid={"since": "2024-02-01T00:00:00Z"})))
    assert await certain(ledger, "2023-06-01T00:00:00Z") == "Lyon"
    target = [{"source_event_id": "e2"}]
    await ledger.say(said("e3", {"value": "Paris", **MOVED}, kind="correction", targets=target))
    assert await certain(ledger, "2023-06-01T00:00:00Z") == UNDETERMINED
    await ledger.erase("e2", "e3")
    assert await certain(ledger, "2023-06-01T00:00:00Z") == (MissingReason.UNDETERMINED, ["Lyon"])

    await ledger.say(said("e4", claim("bob", "home", "Graz", valid={"since": "2020-01-01T00:00:00Z"})))
    await ledger.say(said("e5", {"stance": "end", "entity": "bob", "relation": "home", **MOVED}))
    reason, _ = await certain(ledger, "2023-06-01T00:00:00Z", entity="bob")
    assert reason == MissingReason.UNDETERMINED


async def test_one_of_many_values_that_may_have_been_there_makes_the_set_uncertain(ledger):
    await ledger.register("likes")
    await ledger.say(said("e2", claim("ann", "likes", "tea", valid={"since": "2020-01-01T00:00:00Z"})))
    await ledger.say(said("e3", claim("ann", "likes", "chess", **MOVED)))

    found = await certain(ledger, "2023-06-01T00:00:00Z", relation="likes")
    assert found == (MissingReason.UNDETERMINED, ["tea", "chess"])


async def test_however_many_are_said_later_the_next_ones_are_looked_at(ledger, monkeypatch):
    for module in (_coarse, _found):
        monkeypatch.setattr(module, "LISTED_CLAIMS_MAX", 3)
    await ledger.say(said("e2", claim("ann", "home", "Paris", **MOVED)))
    later = [claim("ann", "home", "Rome", valid={"since": f"2025-{month:02d}-01"}) for month in range(1, 9)]
    await ledger.say(*(said(f"r{number}", one) for number, one in enumerate(later)))

    assert await certain(ledger, "2023-06-01T00:00:00Z") == UNDETERMINED
