"""Ends of single occurrences, on a real ledger."""

from __future__ import annotations

import pytest

from contracts.resolutions import MissingReason
from tests.ledger.erasing import claim, opened, said, since


@pytest.fixture
async def ledger(db, database, clock):
    async with opened(db, database, clock) as made:
        await made.register("session", like="visit")
        for name in ("x", "y"):
            await made.say(said(name, claim("srv", "session", "login", occurrence_id=name, **since(1))))
        yield made


def ended(**fields):
    return {"entity": "srv", "relation": "session", "stance": "end", **since(2), **fields}


@pytest.mark.parametrize("named", [{}, {"value": "login"}])
@pytest.mark.parametrize("is_folded", [True, False])
async def test_an_end_with_a_sources_id_ends_that_occurrence_alone(ledger, named, is_folded):
    if is_folded:
        await ledger.fold()
    await ledger.say(said("end", ended(occurrence_id="x", **named)))
    await ledger.fold()

    answer = await ledger.ask("srv", "session")

    assert [member.claims[0].occurrence_id for member in answer.members] == ["y"]
    await ledger.intact()


async def test_an_end_without_an_id_ends_them_all(ledger):
    await ledger.say(said("end", ended()))
    await ledger.fold()

    assert await ledger.reason("srv", "session") == MissingReason.ENDED


async def test_an_end_with_an_id_of_another_source_ends_nothing_of_this_one(ledger):
    await ledger.say(said("end", ended(occurrence_id="x"), actor="eve"))
    await ledger.fold()

    assert len((await ledger.ask("srv", "session")).members) == 2
