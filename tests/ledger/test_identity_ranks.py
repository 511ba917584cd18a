"""Whose word about himself ranks as such where entities were made one, on a real ledger."""

from __future__ import annotations

import pytest

from contracts.resolutions import Conflict
from tests.ledger.erasing import claim, opened, said, since

OPERATOR = {"actor": "op", "actor_class": "operator"}
ASSISTANT = {"actor": "bot", "actor_class": "assistant"}


@pytest.fixture
async def ledger(db, database, clock):
    async with opened(db, database, clock) as made:
        yield made


async def values(ledger, entity="ann"):
    await ledger.fold()
    answer = await ledger.ask(entity, "home")
    if isinstance(answer, Conflict):
        return {rival.value for rival in answer.rivals}
    return answer.value


async def homes(ledger, **actor):
    """An operator says where Ann lives, then somebody else does."""
    await ledger.say(said("o", claim("ann", "home", "Boston", **since(1)), **OPERATOR))
    await ledger.say(said("a", claim("ann", "home", "Lyon", **since(2)), **actor))


async def test_who_makes_himself_one_with_another_takes_her_word_about_herself_from_nobody(ledger):
    await homes(ledger, actor="ann")
    await ledger.say(said("m", claim("mallory", "same_as", "ann"), actor="mallory"))

    assert await values(ledger) == "Lyon"
    assert await values(ledger, "mallory") == "Lyon"


async def test_a_name_that_an_assistant_joins_takes_nobody_his_word_about_himself(ledger):
    await homes(ledger, actor="ann")
    await ledger.say(said("n", claim("ann", "same_as", "annie"), **ASSISTANT))

    assert await values(ledger) == "Lyon"


async def test_who_makes_himself_one_with_another_does_not_outrank_others_about_her(ledger):
    await homes(ledger, actor="eve")
    await ledger.say(said("g", claim("mallory", "home", "Gotham", **since(3)), actor="mallory"))
    await ledger.say(said("m", claim("mallory", "same_as", "ann"), actor="mallory"))

    assert await values(ledger) == "Boston"


async def test_nor_does_he_by_another_name_of_his(ledger):
    await homes(ledger, actor="eve")
    await ledger.say(said("t", claim("mallory", "same_as", "mal"), **OPERATOR))
    await ledger.say(said("g", claim("mallory", "home", "Gotham", **since(3)), actor="mallory"))
    await ledger.say(said("m", claim("mallory", "same_as", "ann"), actor="mal"))

    assert await values(ledger) == "Boston"


async def test_two_whom_a_third_made_one_both_speak_for_themselves(ledger):
    await homes(ledger, actor="ann")
    await ledger.say(said("z", claim("zoe", "home", "Graz", **since(3)), actor="zoe"))
    await ledger.say(said("n", claim("ann", "same_as", "zoe"), **ASSISTANT))

    assert await values(ledger) == {"Lyon", "Graz"}


async def test_who_is_one_by_an_operators_word_speaks_under_either_name(ledger):
    await homes(ledger, actor="annie")
    await ledger.say(said("n", claim("ann", "same_as", "annie"), **OPERATOR))

    assert await values(ledger) == "Lyon"


@pytest.mark.parametrize("actor", [OPERATOR, {"actor": "ann"}])
async def test_nobody_is_one_with_another_by_what_somebody_derived(ledger, actor):
    await homes(ledger, actor="ann")
    await ledger.say(said("g", claim("mallory", "home", "Gotham", **since(3)), actor="mallory"))
    pair = claim("mallory", "same_as", "ann", inputs=[{"source_event_id": "g"}])
    await ledger.say(said("m", pair, kind="derivation", **actor))
    # Had it been stated, Mallory would now be heard about Ann as herself.
    await ledger.say(said("h", claim("ann", "home", "Hell", **since(4)), actor="mallory"))
    if actor != OPERATOR:
        await ledger.say(said("n", claim("mallory", "same_as", "ann"), actor="mallory"))

    assert await values(ledger) == ({"Lyon", "Gotham"} if actor == OPERATOR else "Boston")
