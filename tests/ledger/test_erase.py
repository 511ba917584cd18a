"""What an erasure takes and what it leaves: each rule of SEMANTICS, "Erasure", on a real ledger."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from unittest.mock import AsyncMock

import pytest

from contracts.limits import LISTED_CLAIMS_MAX
from contracts.resolutions import Conflict, Missing, MissingReason
from ledger import log
from tests.ledger.erasing import check, claim, day, opened, said, since


@pytest.fixture
async def ledger(db, database, clock):
    async with opened(db, database, clock) as made:
        yield made


async def test_an_older_value_never_becomes_current_because_a_newer_one_was_erased(ledger):
    await ledger.say(said("e1", claim("ann", "home", "Lyon"), observed_at=day(1)))
    await ledger.say(said("e2", claim("ann", "home", "Graz"), observed_at=day(2)))
    await ledger.fold()
    assert (await ledger.ask("ann", "home")).value == "Graz"

    report = await ledger.erase("e2")

    assert report.erased == (ledger.ids["e2"],)
    assert (report.commit, report.tombstones_count) == (3, 1)
    for cut in (None, 2, 3):
        assert await ledger.reason("ann", "home", cut=cut) == MissingReason.ERASED
    assert (await ledger.ask("ann", "home", at="2026-01-15T00:00:00Z")).value == "Lyon"
    assert (await ledger.ask("ann", "home", cut=1)).value == "Lyon"
    assert "Graz" not in await ledger.words()
    await ledger.intact()
    await check(ledger)


async def test_a_value_stays_for_as_long_as_anything_that_is_left_says_it(ledger):
    for number, name in enumerate(("e1", "e2", "e3"), start=1):
        await ledger.say(said(name, claim("pump", "bay", "3"), observed_at=day(number)))
    await ledger.erase("e3")

    first = await ledger.ask("pump", "bay")
    await ledger.erase("e1")
    second = await ledger.ask("pump", "bay")
    await ledger.erase("e2")

    assert (first.value, [one.event_id for one in first.claims]) == (
        "3",
        [ledger.ids["e1"], ledger.ids["e2"]],
    )
    assert (second.value, [one.event_id for one in second.claims]) == ("3", [ledger.ids["e2"]])
    for cut in (1, 2, 3, None):
        assert await ledger.reason("pump", "bay", cut=cut) == MissingReason.ERASED
    await ledger.intact()
    await check(ledger)


async def test_what_is_said_after_an_erasure_shares_nothing_with_it(ledger):
    await ledger.say(said("e1", claim("pump", "bay", "3", **since(3))))
    await ledger.erase("e1")
    await ledger.say(said("e2", claim("pump", "bay", "3", **since(2))))
    await ledger.fold()

    assert (await ledger.ask("pump", "bay", at="2026-02-15T00:00:00Z")).value == "3"
    assert await ledger.reason("pump", "bay") == MissingReason.ERASED

    await ledger.say(said("e3", claim("pump", "bay", "3", **since(4))))
    await ledger.fold()
    assert (await ledger.ask("pump", "bay")).value == "3"
    await ledger.intact()
    await check(ledger)


async def test_a_key_of_which_everything_is_erased_has_its_names_in_no_row(ledger):
    await ledger.say(
        said("e1", claim("zuzana", "shoe_size", "thirty-eight"), actor="zuzana", occurrence_id="occ-9")
    )
    await ledger.say(said("e2", claim("box", "place", "shelf")))
    await ledger.erase("e1")

    words = await ledger.words()
    assert not [word for word in ("zuzana", "shoe_size", "thirty-eight", "occ-9") if word in words]
    assert await ledger.reason("zuzana", "shoe_size") == MissingReason.ERASED
    assert await ledger.reason("zuzana", "hat_size") == MissingReason.NEVER_KNOWN

    # Whoever says the name again is answered as if it had always been there.
    await ledger.say(said("e3", claim("zuzana", "shoe_size", "39"), actor="zuzana"))
    await ledger.fold()
    assert (await ledger.ask("zuzana", "shoe_size")).value == "39"
    assert await ledger.reason("zuzana", "shoe_size", cut=3) == MissingReason.ERASED
    await ledger.intact()
    await check(ledger)


async def test_a_value_that_repeats_an_erased_one_stands_from_its_own_start_on(ledger):
    for number, value in enumerate(("shelf", "floor", "shelf", "shelf"), start=1):
        await ledger.say(said(f"e{number}", claim("box", "place", value), observed_at=day(number)))
    await ledger.fold()

    await ledger.erase("e3")

    assert await ledger.reason("box", "place", at="2026-03-15T00:00:00Z") == MissingReason.ERASED
    answer = await ledger.ask("box", "place", at="2026-04-15T00:00:00Z")
    assert (answer.value, [one.event_id for one in answer.claims]) == ("shelf", [ledger.ids["e4"]])
    await ledger.intact()
    await check(ledger)


async def test_a_conflict_with_what_was_erased_is_none_any_more(ledger):
    await ledger.say(said("e1", claim("box", "place", "shelf"), actor="ann", observed_at=day(1)))
    await ledger.say(said("e2", claim("box", "place", "floor"), actor="bob", observed_at=day(2)))
    await ledger.fold()
    assert isinstance(await ledger.ask("box", "place"), Conflict)

    await ledger.erase("e2")

    assert (await ledger.ask("box", "place")).value == "shelf"
    await check(ledger)


# --- what goes with it ---------------------------------------------------------------------------


async def test_what_was_derived_from_it_goes_with_it_however_often(ledger):
    await ledger.say(said("e1", claim("ines", "locker_code", "kq4417z")))
    await ledger.say(said("e2", claim("ines", "wing", "east")))
    worker = {"actor": "worker", "actor_class": "derived", "kind": "derivation"}
    both = [{"source_event_id": "e1"}, {"source_event_id": "e2"}]
    await ledger.say(said("d1", claim("ines", "summary", "kq4417z, east wing", inputs=both), **worker))
    inputs = [{"source_event_id": "d1"}]
    await ledger.say(said("d2", claim("ines", "digest", "code kq4417z", inputs=inputs), **worker))

    report = await ledger.erase("e1")

    assert report.erased == tuple(ledger.ids[name] for name in ("e1", "d1", "d2"))
    assert "kq4417z" not in await ledger.words()
    for relation in ("locker_code", "summary", "digest"):
        assert await ledger.reason("ines", relation) == MissingReason.ERASED
        assert await ledger.reason("ines", relation, cut=4) == MissingReason.ERASED
    assert (await ledger.ask("ines", "wing")).value == "east"
    await ledger.intact()
    await check(ledger)


async def test_what_quotes_an_input_without_any_claim_goes_too(ledger):
    await ledger.say(said("e1", claim("ines", "wing", "east")))
    inputs = [{"source_event_id": "e1", "ordinal": 9}]
    await ledger.say(
        said("d1", claim("ines", "summary", "east wing", inputs=inputs), kind="derivation", actor="worker",
             actor_class="derived")
    )  # fmt: skip

    assert (await ledger.erase("e1")).erased == (ledger.ids["e1"], ledger.ids["d1"])
    await check(ledger)


async def test_a_correction_that_has_its_value_from_what_is_erased_goes_with_it_and_its_event_stays(ledger):
    await ledger.say(said("e1", claim("ann", "home", "Lyon"), observed_at=day(1)))
    await ledger.say(said("e2", claim("ann", "home", "Graz"), observed_at=day(2)))
    target = [{"source_event_id": "e2"}]
    await ledger.say(said("c1", {"stance": "correct", "targets": target, **since(3)}))
    await ledger.fold()
    assert (await ledger.ask("ann", "home")).value == "Graz"

    report = await ledger.erase("e2")

    assert report.erased == (ledger.ids["e2"],)
    assert await ledger.reason("ann", "home") == MissingReason.ERASED
    assert (await ledger.ask("ann", "home", at="2026-02-15T00:00:00Z")).value == "Lyon"
    assert (await log.read_event(ledger.db, "acme", ledger.ids["c1"])).draft.claims
    await ledger.intact()
    await check(ledger)


async def test_a_correction_that_says_its_own_value_keeps_the_place_of_what_is_erased(ledger):
    await ledger.say(said("e1", claim("ann", "home", "Lyon"), observed_at=day(1)))
    await ledger.say(
        said("c1", {"stance": "correct", "value": "Graz", "targets": [{"source_event_id": "e1"}]})
    )
    await ledger.say(said("e2", claim("ann", "home", "Oslo"), observed_at=day(2)))

    await ledger.erase("e1")

    assert (await ledger.ask("ann", "home")).value == "Oslo"
    assert (await ledger.ask("ann", "home", at="2026-01-15T00:00:00Z")).value == "Graz"
    assert await ledger.reason("ann", "home", cut=1) == MissingReason.ERASED
    await ledger.intact()
    await check(ledger)


async def test_a_correction_is_all_that_is_left_of_a_key_and_does_not_say_its_name(ledger):
    await ledger.say(said("e1", claim("zuzana", "shoe_size", "38"), actor="ann", observed_at=day(1)))
    correct = {"stance": "correct", "value": "39", "targets": [{"source_event_id": "e1"}]}
    await ledger.say(said("c1", correct, actor="ann"))
    await ledger.say(
        said("e2", claim("zuzana", "hat_size", "7"), claim("ann", "shoe_size", "40"), actor="ann")
    )

    await ledger.erase("e1")

    assert (await ledger.ask("zuzana", "shoe_size")).value == "39"
    assert await ledger.reason("zuzana", "shoe_size", cut=1) == MissingReason.ERASED
    assert not [line for line in await ledger.lines() if line[:2] == ("zuzana", "shoe_size")]
    await ledger.intact()
    await check(ledger)


# --- what stays in force -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "acting",
    [
        {"stance": "retract", "targets": [{"source_event_id": "e2"}]},
        {"stance": "retract", "entity": "ann", "relation": "home", "value": "Graz"},
        {"stance": "correct", "value": "Rome", "targets": [{"source_event_id": "e2"}]},
    ],
    ids=["retraction", "retraction of a value", "correction"],
)
async def test_what_an_erased_event_withdrew_stays_withdrawn(ledger, acting):
    await ledger.say(said("e1", claim("ann", "home", "Lyon"), observed_at=day(1)))
    await ledger.say(said("e2", claim("ann", "home", "Graz"), observed_at=day(2)))
    await ledger.say(said("x", acting))
    await ledger.fold()
    before = await ledger.ask("ann", "home")

    await ledger.erase("x")

    after = await ledger.ask("ann", "home")
    if acting["stance"] == "correct":
        assert (before.value, after.reason) == ("Rome", MissingReason.ERASED)
    else:
        assert (before.value, after.value) == ("Lyon", "Lyon")
    assert (await ledger.ask("ann", "home", cut=2)).value == "Graz"
    await ledger.intact()
    await check(ledger)


@pytest.mark.parametrize(
    "target",
    [
        {},
        {"ordinal": 1},
        {"entity": "ann", "relation": "home"},
        {"value": "Graz"},
        {"entity": "ann", "relation": "home", "value": "Graz"},
    ],
    ids=str,
)
async def test_what_acted_on_an_erased_claim_keeps_acting_however_it_named_it(ledger, target):
    await ledger.say(said("e1", claim("ann", "home", "Lyon"), observed_at=day(1)))
    await ledger.say(
        said("e2", claim("box", "place", "shelf"), claim("ann", "home", "Graz"), observed_at=day(2))
    )
    await ledger.say(said("x", {"stance": "retract", "targets": [{"source_event_id": "e2", **target}]}))
    await ledger.fold()
    assert (await ledger.ask("ann", "home")).value == "Lyon"

    await ledger.erase("e2")

    assert (await ledger.ask("ann", "home")).value == "Lyon"
    assert await ledger.reason("ann", "home", cut=2) == MissingReason.ERASED
    place = MissingReason.ERASED if target else MissingReason.WITHDRAWN
    assert await ledger.reason("box", "place") == place
    await ledger.intact()
    await check(ledger)


async def test_an_erased_settlement_keeps_what_it_settled(ledger):
    await ledger.say(said("e1", claim("box", "place", "shelf"), actor="ann", observed_at=day(1)))
    await ledger.say(said("e2", claim("box", "place", "floor"), actor="bob", observed_at=day(2)))
    winner = {"source_event_id": "e1"}
    settle = {"stance": "settle", "entity": "box", "relation": "place", "winner": winner}
    await ledger.say(said("x", settle, actor="op", actor_class="operator", kind="settlement"))

    await ledger.erase("x")

    assert (await ledger.ask("box", "place")).value == "shelf"
    assert isinstance(await ledger.ask("box", "place", cut=2), Conflict)
    await ledger.intact()
    await check(ledger)


async def test_a_retraction_made_after_the_erasure_still_finds_what_it_names(ledger):
    await ledger.say(said("e1", claim("ann", "home", "Lyon"), observed_at=day(1)))
    await ledger.say(said("e2", claim("ann", "home", "Graz"), observed_at=day(2)))
    await ledger.erase("e2")
    await ledger.say(said("x", {"stance": "retract", "targets": [{"source_event_id": "e2"}]}))
    await ledger.fold()

    assert (await ledger.ask("ann", "home")).value == "Lyon"
    assert await ledger.reason("ann", "home", cut=3) == MissingReason.ERASED
    await check(ledger)


async def test_a_long_key_with_something_erased_is_answered_from_its_cells_as_from_its_claims(
    ledger, monkeypatch
):
    start, count = datetime(2026, 1, 1, tzinfo=UTC), LISTED_CLAIMS_MAX + 200
    # Three readings in a row say the same: some of these groups go whole, some in part.
    middle = 3 * (count // 6)

    def at(minute):
        return (start + timedelta(minutes=minute)).isoformat()

    for first in range(0, count, 400):
        numbers = range(first, min(count, first + 400))
        await ledger.say(
            *[
                said(f"e{number}", claim("box", "heat", number // 3), actor="r1", observed_at=at(number))
                for number in numbers
            ]
        )
    await ledger.erase(*[f"e{number}" for number in (count - 1, *range(middle - 2, middle + 4))])
    minutes = (-5, 5, *range(middle - 4, middle + 6), count - 2, count - 1, count)

    async def answers():
        found = [await ledger.ask("box", "heat", at=at(minute)) for minute in minutes]
        return [one.reason if isinstance(one, Missing) else one.value for one in found]

    from_cells = await answers()
    monkeypatch.setattr("ledger._deciding._is_plainly_buried", AsyncMock(return_value=False))

    assert from_cells == await answers()
    assert from_cells.count(MissingReason.ERASED) > 2


async def test_of_a_long_key_on_which_something_erased_acted_nothing_is_listed_that_it_took_back(ledger):
    start, count = datetime(2026, 1, 1, tzinfo=UTC), LISTED_CLAIMS_MAX + 10
    said_then = [
        said(
            f"e{number}",
            claim("box", "heat", "warm"),
            actor="r1",
            observed_at=(start + timedelta(minutes=number)).isoformat(),
        )
        for number in range(count)
    ]
    await ledger.say(*said_then)
    taken_back = f"e{count - 3}"
    retract = {"stance": "retract", "targets": [{"source_event_id": taken_back}]}
    await ledger.say(said("x", retract, actor="r1"))

    await ledger.erase("x")

    answer = await ledger.ask("box", "heat")
    assert answer.value == "warm"
    listed = {one.event_id for one in answer.claims}
    assert ledger.ids[f"e{count - 1}"] in listed
    assert ledger.ids[taken_back] not in listed
    await ledger.intact()
