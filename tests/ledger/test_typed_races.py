"""No registration lets a wrong value in, and one that a later contract makes wrong poisons nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from contracts.errors import WrongValue
from contracts.relations import Cardinality
from contracts.resolutions import Resolved
from contracts.times import ValidAt
from ledger import _append, log
from ledger.resolve import verify_cells
from ledger.write import fold, ledger_digest
from tests.ledger.conftest import MASTER_KEY
from tests.ledger.scenario_logs import PlainProjector
from tests.ledger.typed import NEWEST, append, ask, claim, event, fold_all, refused, typed

NOON = ValidAt(datetime(2026, 1, 1, 12, tzinfo=UTC))


@pytest.fixture
async def elsewhere(database, clock):
    """Another process of the plane, with a memory of its own."""
    made = log.open_database(
        plane_url=database.backfill,
        relay_url=database.relay,
        master_key=MASTER_KEY,
        clock=clock,
        states_clock=True,
    )
    yield made
    await made.close()


async def test_a_contract_registered_elsewhere_holds_for_the_very_next_append(db, elsewhere):
    await append(db, event(claim("anything", "note")))
    await typed(elsewhere, "range", "number", unit="km")

    # Not folded, and unknown to this process: the database says so under the lock.
    await refused(db, event(claim("5 kg")))
    await append(db, event(claim("5 km")))
    await fold_all(elsewhere)
    await typed(elsewhere, "weight", "number", unit="kg")

    await refused(db, event(claim("5 km", "weight")))
    await append(db, event(claim("5 kg", "weight")))


async def test_a_contract_registered_between_the_check_and_the_append_is_held_to(db, elsewhere, monkeypatch):
    submitted = 0
    submit = _append._submit

    async def late(*given, **more):
        nonlocal submitted
        submitted += 1
        if submitted == 1:
            await typed(elsewhere, "range", "number", unit="km")
        return await submit(*given, **more)

    monkeypatch.setattr(_append, "_submit", late)

    with pytest.raises(WrongValue):
        await append(db, event(claim("5 kg")))

    report = await fold_all(db)
    # The contract alone was written.
    assert (report.commit, report.refused_contracts, submitted) == (1, 0, 1)


async def test_an_epoch_that_takes_over_brings_its_contracts_without_another_event(db):
    await append(db, event(claim("a long way")))
    await fold_all(db)
    await typed(db, "range", "number", unit="km", new_epoch=True)
    # Folded by the epoch that serves, and not yet by the one that is being built.
    report = await fold(db, "acme", PlainProjector(), events_max=1)
    assert (report.epoch, report.building) == (1, 2)
    await append(db, event(claim("a longer way")))

    await fold_all(db)

    await refused(db, event(claim("the longest way")))


async def test_a_value_that_came_before_the_contract_makes_it_late_and_is_no_wrong_one(db, elsewhere):
    await append(db, event(claim("5 kg")))
    await typed(elsewhere, "range", "number", unit="km")

    report = await fold_all(db)

    assert (report.unplaced, report.refused_contracts) == (0, 1)
    await append(db, event(claim("any other")))


async def test_a_change_of_type_folds_what_was_said_before_and_reports_what_it_is_not(db):
    for value in ("5 km", "a long way", "5000 m"):
        await append(db, event(claim(value)))
    await fold_all(db)
    assert (await ask(db)).resolution.value == "5000 m"

    await typed(db, "range", "number", unit="km", new_epoch=True)
    await fold_all(db, events_max=1)

    found = await ask(db)
    assert found.view.epoch == 2
    assert isinstance(found.resolution, Resolved)
    assert len(found.resolution.claims) == 2
    assert [unplaced.value for unplaced in found.unplaced] == ["a long way"]
    await refused(db, event(claim("a long way")))


async def test_a_correction_without_a_key_is_reported_on_the_key_of_what_it_could_not_correct(db):
    await append(db, event(claim("5 km"), source_event_id="e1"))
    # By event alone: only the fold sees whose value it is.
    wrong = {"stance": "correct", "targets": [{"source_event_id": "e1"}]}
    await append(db, event(wrong | {"value": "far"}))
    await fold_all(db)
    await typed(db, "range", "number", unit="km", new_epoch=True)
    await fold_all(db)

    found = await ask(db)

    assert (found.view.epoch, found.resolution.value) == (2, "5 km")
    assert [unplaced.value for unplaced in found.unplaced] == ["far"]
    assert (await ask(db, "speed")).unplaced == ()


async def test_occurrences_of_one_value_in_other_units_are_told_by_one_form(db):
    await typed(db, "range", "number", unit="km", cardinality=Cardinality.OCCURRENCE)
    day = {"valid": {"at": "2026-01-01"}}
    await append(
        db, event(claim("5 km", occurrence_id="a", **day), claim("5000 m", occurrence_id="b", **day))
    )
    await append(db, event(claim("5 km", **day), claim("5000 m", **day), source="r2"))
    await fold_all(db)

    members = (await ask(db, request=replace(NEWEST, valid_at=NOON))).resolution.members

    # Told by its source as two; without an id it is the same day, and the same value, told again.
    assert [member.count_identity is None for member in members] == [False, False]
    assert {member.form for member in members} == {'["number","5"]'}
    assert [len(member.claims) for member in members] == [3, 3]


async def test_what_is_wrong_is_passed_over_alike_in_any_batches(db, elsewhere):
    values = ["a long way", "5 km", "far", "5000 m", "7 km"]
    for value in values:
        await append(db, event(claim(value), claim(value, "hops")))
    await fold_all(db)
    digests = []
    for unit, events_max in (("km", 1), ("m", 2), ("km", 100)):
        # Each is another contract, and so another epoch of the same log.
        await typed(db, "range", "number", unit=unit, new_epoch=True)
        await typed(db, "hops", "number", unit=unit, new_epoch=True, cardinality=Cardinality.MANY)
        await fold_all(db, events_max=events_max)
        found = await ask(db)
        async with db.snapshot("acme") as conn:
            cells = await conn.execute(
                sa.text(
                    "SELECT l.relation, lower(c.known), c.state, cardinality(c.claims) "
                    "FROM cell c JOIN line l ON l.line = c.line WHERE l.epoch = :e ORDER BY 1, 2, 3, 4"
                ),
                {"e": found.view.epoch},
            )
            digests.append(([tuple(row) for row in cells], len(found.unplaced), found.resolution.value))
            assert await ledger_digest(conn, found.view.epoch)

    assert (await verify_cells(db, "acme")).problems == ()
    assert digests[0] == digests[1] == digests[2]
    assert digests[0][1:] == (2, "7 km")


async def test_a_correction_with_a_wrong_value_withdraws_nothing_and_is_reported(db):
    said = (await append(db, event(claim("5 km")))).event_ids[0]
    await append(db, event({"value": "far", "targets": [{"event": said}]}, kind="correction"))
    await fold_all(db)
    await typed(db, "range", "number", unit="km", new_epoch=True)

    report = await fold_all(db)

    assert (await ask(db)).resolution.value == "5 km"
    assert report.unplaced == 1


async def test_a_repeat_of_what_was_accepted_before_is_no_wrong_value(db):
    before = event(claim("a long way"), idempotency_key="k")
    receipt = await append(db, before)
    await fold_all(db)
    await typed(db, "range", "number", unit="km", new_epoch=True)
    await fold_all(db)

    again = await append(db, before)

    assert (again.repeated, again.commit) == (True, receipt.commit)
    await refused(db, event(claim("a long way"), idempotency_key="another"))


async def test_a_relation_that_takes_words_again_takes_them_at_once(db, elsewhere):
    await typed(db, "range", "number", unit="km")
    await append(db, event(claim("5 km")))
    await fold_all(db)
    await append(db, event(claim("6 km")))
    await typed(elsewhere, "range", "text", new_epoch=True)
    await fold_all(elsewhere)

    # What this process remembers refuses it; what is in force does not.
    await append(db, event(claim("a long way")))
    await fold_all(db)

    assert (await ask(db)).resolution.value == "a long way"
