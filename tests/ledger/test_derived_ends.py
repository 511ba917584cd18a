"""What is derived from an end, on a real ledger."""

from __future__ import annotations

import pytest

from contracts.resolutions import MissingReason
from tests.ledger.erasing import claim, opened, said, since


@pytest.fixture
async def ledger(db, database, clock):
    async with opened(db, database, clock) as made:
        yield made


@pytest.mark.parametrize("order", [("tea", "coffee"), ("coffee", "tea")])
async def test_what_follows_from_an_end_of_every_value_goes_when_any_value_comes_back(ledger, order):
    await ledger.register("likes")
    for value in order:
        await ledger.say(said(value, claim("ann", "likes", value, **since(1))))
    await ledger.say(said("end", {"entity": "ann", "relation": "likes", "stance": "end", **since(2)}))
    derived = claim("ann", "thirst", "none", **since(2), inputs=[{"source_event_id": "end"}])
    await ledger.say(said("d", derived, actor="w", actor_class="derived", kind="derivation"))
    await ledger.fold()
    assert (await ledger.ask("ann", "thirst")).value == "none"

    await ledger.say(said("again", claim("ann", "likes", "coffee", **since(3))))
    await ledger.fold()

    assert [member.value for member in (await ledger.ask("ann", "likes")).members] == ["coffee"]
    assert await ledger.reason("ann", "thirst") == MissingReason.NOT_VALID_THEN
    assert (await ledger.ask("ann", "thirst", at="2026-02-15T00:00:00Z")).value == "none"
