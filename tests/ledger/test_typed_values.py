"""Values of relations with a type, through the real log, fold and resolver."""

from __future__ import annotations

from datetime import timedelta

import pytest

from contracts.errors import BadRequest
from contracts.relations import Cardinality
from contracts.resolutions import Missing, Resolved, ResolvedSet
from contracts.values import with_unit
from tests.ledger.typed import Reads, append, ask, claim, event, fold_all, head, open_cells, refused, typed

# --- equal values --------------------------------------------------------------------------------


async def test_readings_that_are_equal_in_other_units_corroborate_each_other(db):
    await typed(db, "range", "number", unit="km")
    since = {"valid": {"since": "2026-01-01T00:00Z"}}
    await append(db, event(claim("5 km", **since)))
    await append(db, event(claim({"value": 5000, "unit": "m"}, **since), source="r2"))
    await append(db, event(claim(5, **since), source="r3"))

    await fold_all(db)

    resolution = (await ask(db)).resolution
    assert isinstance(resolution, Resolved)
    # As it was said last, carried by all three.
    assert resolution.value == 5
    assert len(resolution.claims) == 3
    assert await open_cells(db) == 1


async def test_a_late_equal_reading_is_one_cell_with_those_around_it(db, clock):
    await typed(db, "range", "number", unit="km")
    days = [(1, "5 km"), (3, "5000 m"), (2, {"value": 5.0, "unit": "km"})]

    for day, value in days:
        await append(db, event(claim(value, valid={"since": f"2026-01-0{day}T00:00Z"})))
        await fold_all(db)

    assert await open_cells(db) == 1
    clock.now += timedelta(days=30)
    assert isinstance((await ask(db)).resolution, Resolved)

    await append(db, event(claim("5001 m", valid={"since": "2026-01-02T12:00Z"})))
    await fold_all(db)

    # The late different one splits the run: 5 km, 5.001 km, 5 km.
    assert await open_cells(db) == 3


async def test_one_instant_of_two_offsets_and_one_place_of_two_spellings_are_one_value(db):
    await typed(db, "due", "instant", cardinality=Cardinality.MANY)
    await typed(db, "seen_at", "place", cardinality=Cardinality.MANY)
    for instant, longitude in [("2026-03-01T13:00+03:00", 180), ("2026-03-01T10:00Z", -180.0)]:
        await append(
            db, event(claim(instant, "due"), claim({"lat": 1, "lon": longitude}, "seen_at", stance="assert"))
        )

    await fold_all(db)

    for relation in ("due", "seen_at"):
        resolution = (await ask(db, relation)).resolution
        assert isinstance(resolution, ResolvedSet)
        assert [len(member.claims) for member in resolution.members] == [2], relation


async def test_a_value_is_taken_back_ended_and_corrected_in_another_unit(db):
    await typed(db, "range", "number", unit="km", cardinality=Cardinality.MANY)
    await append(db, event(claim("5 km"), claim("7 km"), claim("9 km")))
    await append(db, event(claim("5000 m", stance="retract"), claim("7000 m", stance="end")))

    report = await fold_all(db)

    resolution = (await ask(db)).resolution
    assert report.unplaced == 0
    assert isinstance(resolution, ResolvedSet)
    assert [member.value for member in resolution.members] == ["9 km"]


async def test_an_untyped_relation_takes_any_value_and_compares_it_as_before(db):
    await typed(db, "range", "number", unit="km")
    for value in ("5 km", "5000 m", 5, {"any": ["thing"]}, True):
        await append(db, event(claim(value, "note")))

    report = await fold_all(db)

    assert report.unplaced == 0
    assert (await ask(db, "note")).resolution.value is True


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "unit", "wrong", "wanted"),
    [
        ("number", "km", "5 kg", "a number in km"),
        ("number", "km", "5 EUR", "a number in km"),
        ("number", None, "5 km", "a plain number"),
        ("text", None, 5, "a text"),
        ("entity", None, ["x"], "the name of an entity"),
        ("instant", None, "2026-03-01T10:00", "an instant with a time of day and an offset"),
        ("date", None, "2026-03-01T10:00Z", "a date, a month or a year"),
        ("interval", None, {"from": "9", "to": "8"}, 'an interval {"from", "to"}, a date, a month or a year'),
        ("boolean", None, "true", "true or false"),
        ("place", None, {"lat": 100, "lon": 0}, 'the name of a place, or {"lat", "lon"}'),
        ("json", None, {"a": 1}, "JSON that follows the schema"),
    ],
)  # fmt: skip
async def test_a_wrong_value_is_refused_with_its_place_what_is_expected_and_why(
    db, kind, unit, wrong, wanted
):
    await typed(db, "range", kind, unit=unit, schema='{"maxProperties":0}' if kind == "json" else None)

    error = await refused(db, event(claim("fine", "note")), event(claim("fine", "note"), claim(wrong)))

    assert error.code == "incorrect.wrong_value"
    assert error.field == "events[1].claims[1].value"
    assert error.expected == wanted
    assert error.reason.startswith(f"{wanted} is expected: ")


@pytest.mark.parametrize("stance", ["assert", "end", "retract", "dispute"])
async def test_a_wrong_value_is_refused_whatever_the_stance(db, stance):
    await typed(db, "range", "number", unit="km")

    error = await refused(db, event(claim("5 kg", stance=stance)))

    assert error.field == "events[0].claims[0].value"


@pytest.mark.parametrize(
    ("holder", "path"),
    [
        ({"targets": [{"event": "?", "entity": "box", "relation": "range", "value": "5 kg"}]}, "targets[0]"),
        ({"targets": [{"event": "?", "value": "5 kg"}]}, "targets[0]"),
        ({"winner": {"event": "?", "value": "5 kg"}, "targets": [{"event": "?"}]}, "winner"),
    ],
)
async def test_a_wrong_value_by_which_something_is_named_is_refused(db, holder, path):
    await typed(db, "range", "number", unit="km")
    said = (await append(db, event(claim("5 km")))).event_ids[0]
    holder = {
        name: [each | {"event": said} for each in value] if name == "targets" else value | {"event": said}
        for name, value in holder.items()
    }
    kind = "settlement" if "winner" in holder else "retraction"

    error = await refused(db, event(kind=kind, text="No.", **holder))

    assert error.field == f"events[0].{path}.value"


async def test_a_wrong_value_of_an_input_is_refused(db):
    await typed(db, "range", "number", unit="km")
    said = (await append(db, event(claim("5 km")))).event_ids[0]
    derived = claim("far", "note", inputs=[{"event": said, "value": "5 kg"}])

    error = await refused(db, event(derived, kind="derivation", source_class="derived"))

    assert error.field == "events[0].claims[0].inputs[0].value"


@pytest.mark.parametrize("folded", [True, False])
async def test_a_correction_without_a_key_is_held_against_what_its_target_is_on(db, folded):
    await typed(db, "range", "number", unit="km")
    said = (await append(db, event(claim("5 km")))).event_ids[0]
    again = (
        await append(db, event({"value": "6 km", "targets": [{"event": said}]}, kind="correction"))
    ).event_ids[0]
    if folded:
        await fold_all(db)

    for target in (said, again):
        error = await refused(db, event({"value": "7 kg", "targets": [{"event": target}]}, kind="correction"))
        assert error.field == "events[0].claims[0].value"
    await append(db, event({"value": "7000 m", "targets": [{"event": again}]}, kind="correction"))
    await fold_all(db)

    assert (await ask(db)).resolution.value == "7000 m"


async def test_a_correction_in_the_same_append_is_held_against_it_too(db):
    await typed(db, "range", "number", unit="km")
    first = event(claim("5 km"), source_event_id="a")
    wrong = event({"value": "7 kg", "targets": [{"source_event_id": "a"}]}, kind="correction")

    error = await refused(db, first, wrong)

    assert error.field == "events[1].claims[0].value"


async def test_a_correction_of_the_key_alone_takes_no_wrong_value_along(db):
    await typed(db, "range", "number", unit="km")
    said = (await append(db, event(claim("far away", "note")))).event_ids[0]

    error = await refused(db, event(claim(targets=[{"event": said}]), kind="correction"))

    assert error.field == "events[0].claims[0].value"


async def test_what_was_read_out_of_a_text_is_held_against_its_relation(db):
    await typed(db, "range", "number", unit="km")
    said = event(text="The range is 5 km.")
    event_id = (await append(db, said)).event_ids[0]
    await fold_all(db, Reads("5 km"))

    error = await refused(db, event({"value": "7 kg", "targets": [{"event": event_id}]}, kind="correction"))

    assert error.field == "events[0].claims[0].value"


async def test_words_that_are_no_value_of_their_relation_are_no_claim(db):
    await typed(db, "range", "number", unit="km")
    await append(db, event(text="The range is a joke."))

    report = await fold_all(db, Reads("a joke"))

    assert (report.claims, report.unplaced) == (0, 0)
    assert isinstance((await ask(db)).resolution, Missing)


# --- plain numbers and a contract's unit ----------------------------------------------------------


async def test_a_number_alone_in_an_object_is_plain_and_shown_with_the_contracts_unit(db):
    await typed(db, "range", "number", unit="km")
    await append(db, event(claim({"value": 5})))
    await append(db, event(claim("5000 m"), source="r2"))
    await fold_all(db)

    found = await ask(db)

    assert len(found.resolution.claims) == 2
    assert with_unit({"value": 5}, found.contract) == {"value": 5, "unit": "km"}


@pytest.mark.parametrize("value", [5, -0.5, 1e300, "5", " 5.5e3 ", {"value": 5}])
@pytest.mark.parametrize("folded", [True, False])
async def test_a_number_that_was_said_in_the_contracts_unit_is_never_read_in_another(db, value, folded):
    await typed(db, "range", "number", unit="km")
    await append(db, event(claim("7 km")))
    await fold_all(db)
    said = await append(db, event(claim(value)))
    if folded:
        await fold_all(db)

    for unit in ("m", None):
        with pytest.raises(BadRequest) as refused_change:
            await typed(db, "range", "number", unit=unit, new_epoch=True)
        assert refused_change.value.field == "unit"

    await fold_all(db)
    assert (await ask(db)).view.epoch == 1
    assert (await head(db)).commit == said.commit


async def test_a_unit_may_change_where_every_number_says_its_own(db):
    await append(db, event(claim("5 km"), claim(7, "hops")))
    said = (await append(db, event(claim("50 hours a day", "note")))).event_ids[0]
    await fold_all(db)

    await typed(db, "range", "number", unit="m", new_epoch=True)
    await fold_all(db)
    assert (await ask(db)).resolution.value == "5 km"

    # Without a key of its own, by what it bears on.
    await append(db, event({"stance": "correct", "value": 5, "targets": [{"event": said}]}))
    await fold_all(db)
    with pytest.raises(BadRequest):
        await typed(db, "note", "number", unit="m", new_epoch=True)
