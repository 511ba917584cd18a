"""What never counted, since its value is of another type, counts as little once something is erased."""

from __future__ import annotations

import pytest

from contracts.relations import ValueType
from contracts.resolutions import MissingReason
from tests.ledger.erasing import check, claim, day, opened, said

TO_SIZE = {"entity": "ann", "relation": "size"}


@pytest.fixture
async def ledger(db, database, clock):
    """Ann's home was Lyon, then Graz; and her size is a number, which it need not be when it was told."""
    async with opened(db, database, clock) as made:
        await made.say(said("s", claim("ann", "size", 5), observed_at=day(1)))
        await made.say(said("e1", claim("ann", "home", "Lyon"), observed_at=day(1)))
        await made.say(said("e2", claim("ann", "home", "Graz"), observed_at=day(2)))
        yield made


async def typed(ledger):
    await ledger.fold()
    await ledger.register_anew("size", ValueType.NUMBER)
    assert (await ledger.ask("ann", "home")).value == "Graz"
    assert (await ledger.ask("ann", "size")).value == 5


@pytest.mark.parametrize("erased", [["e2"], ["c", "e2"], ["e2", "c"], ["e2 c"]])
async def test_a_correction_that_found_no_value_of_the_type_does_not_find_one_where_it_is_erased(
    ledger, erased
):
    """It would take Graz with it to her size, and Lyon would be her home again."""
    target = [{"source_event_id": "e2"}]
    await ledger.say(said("c", TO_SIZE, kind="correction", targets=target, observed_at=day(3)))
    await typed(ledger)

    for names in erased:
        await ledger.erase(*names.split())

    assert await ledger.reason("ann", "home") == MissingReason.ERASED
    assert (await ledger.ask("ann", "size")).value == 5
    await ledger.intact()
    await check(ledger)


async def test_a_correction_that_took_a_value_along_has_taken_it_where_it_is_erased(ledger):
    await ledger.say(said("n", claim("ann", "home", "7"), observed_at=day(3)))
    target = [{"source_event_id": "n"}]
    await ledger.say(said("c", TO_SIZE, kind="correction", targets=target, observed_at=day(4)))
    await ledger.fold()
    await ledger.register_anew("size", ValueType.NUMBER)
    assert (await ledger.ask("ann", "size")).value == "7"

    await ledger.erase("n")

    assert await ledger.reason("ann", "size") == MissingReason.ERASED
    assert (await ledger.ask("ann", "home")).value == "Graz"
    await ledger.intact()
    await check(ledger)


@pytest.mark.parametrize("kind", ["claim", "moves", "corrects"])
async def test_what_was_none_of_the_type_counts_as_little_where_it_is_erased(ledger, kind):
    match kind:
        case "claim":
            wrong = said("w", claim("ann", "size", "big"), observed_at=day(3))
        case "moves":
            targets = [{"source_event_id": "e2"}]
            wrong = said("w", claim("ann", "size", "big"), kind="correction", targets=targets)
        case _:
            wrong = said("w", {"value": "big"}, kind="correction", targets=[{"source_event_id": "s"}])
    await ledger.say(wrong)
    await typed(ledger)

    await ledger.erase("w")

    assert (await ledger.ask("ann", "size")).value == 5
    assert (await ledger.ask("ann", "home")).value == "Graz"
    await ledger.intact()
    await check(ledger)
