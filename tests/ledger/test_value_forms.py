"""Equal values have one normal form, whatever they were said in; what is none of the type has another."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from contracts.events import ClaimDraft
from contracts.limits import VALUE_DEPTH_MAX
from contracts.relations import ValueType, default_contract
from contracts.values import NotOfType
from ledger import _units
from ledger._canonical import canonical
from ledger._schemas import check_schema, follow
from ledger._units import UNITS_VERSION, check_unit, conversion
from ledger._values import Normals, is_wrong, normal_form, spelt_form, takes

TABLE_SHA256 = "267cc807f0f60459f42e3fad487d2954297125a5f2992ee35971fa5f01f659b0"


def of(kind: str, unit: str | None = None, **schema: object):
    text = json.dumps(schema, sort_keys=True) if schema else None
    return replace(default_contract("r"), value_type=ValueType(kind), unit=unit, schema=text)


def form(value: object, kind: str, unit: str | None = None) -> str:
    return normal_form(value, of(kind, unit))


# --- equal values --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "unit", "said"),
    [
        ("number", "km", [5, "5 km", "5000 m", {"value": 5.0, "unit": "km"}, "5e6 mm", "500000 cm"]),
        ("number", "km/h", ["36 km/h", "10 m/s", "10 m·s⁻¹", "10 m s-1", "10 m per s", 36]),
        ("number", "°C", ["20 °C", 20, "68 °F", "293.15 K", "293.15 kelvin", "20 degC"]),
        ("number", "m", ["1 mile", "1609.344 m", "5280 ft", "63360 in"]),
        ("number", "J/(kg K)", ["1 J/kg/K", "1 J/(kg*K)", "0.001 kJ/(kg °C)"]),
        ("number", "W/(m^2 K)", ["1 W/m²/K", "1 W/(m**2 K)", "1 W/(m^2·K)"]),
        ("number", "percent", ["50 %", 50, "50 percent", "500 ‰"]),
        ("number", "\u00b5m", ["1 \u00b5m", "1 \u03bcm", "1 um", "0.001 mm"]),
        ("number", "m^2", ["1 m²", "1 m2", "1 m**2", "10000 cm^2"]),
        ("number", "Hz", ["60 bpm", 1, "1 1/s"]),
        ("number", "s", ["1 h", 3600, "60 min"]),
        ("number", "year", ["1.5 years", "18 months"]),
        ("number", None, [1, 1.0, "1", "1.0", {"value": 1}]),
        ("number", None, [0, -0.0, "-0", "0e5"]),
        ("number", None, [0.1, "0.1", "1e-1"]),
        ("instant", None, ["2026-03-01T13:00+03:00", "2026-03-01T10:00Z", "2026-03-01T10:00:00.000Z"]),
        ("date", None, ["2026-03-01", " 2026-03-01 "]),
        ("interval", None, ["2026", {"from": "2026", "to": "2027"}, {"from": "2026-01-01", "to": "2027"}]),
        ("place", None, [{"lat": 1, "lon": 2}, {"lat": 1.0, "lon": 2.0, "name": "x"}]),
        ("place", None, [{"lat": 1, "lon": 2}, {"lon": 2.00000001, "lat": 0.99999999}]),
        ("place", None, ["Lyon", " Lyon "]),
        ("text", None, ["Lyon", "Lyon ", "Lyon"]),
        ("json", None, [{"a": 1, "b": [1.0]}, {"b": [1], "a": 1.0}]),
    ],
)  # fmt: skip
def test_what_means_the_same_has_one_form(kind, unit, said):
    assert len({form(value, kind, unit) for value in said}) == 1


@pytest.mark.parametrize(
    ("kind", "unit", "one", "other"),
    [
        ("number", "km", "5 km", "5.000000000000000000001 km"),
        ("number", "°C", "20 °C", "20 °F"),
        ("date", None, "2026", "2026-01"),
        ("date", None, "2026-01", "2026-01-01"),
        ("instant", None, "2026-03-01T10:00Z", "2026-03-01T10:00:00.000001Z"),
        ("interval", None, {"from": "2026", "to": None}, "2026"),
        ("place", None, "Lyon", {"name": "Lyon", "lat": 45.764, "lon": 4.8357}),
        ("place", None, {"lat": 1, "lon": 2}, {"lat": 1.000001, "lon": 2}),
        ("boolean", None, True, False),
        ("any", None, True, 1),
        ("any", None, "1", 1),
    ],
)
def test_what_means_something_else_has_another_form(kind, unit, one, other):
    assert form(one, kind, unit) != form(other, kind, unit)


def test_a_date_of_any_type_is_compared_as_before_where_nobody_registered_a_type():
    for value in ["Lyon ", 1.0, {"b": ["x "]}, [1, None], True]:
        assert normal_form(value, default_contract("r")) == spelt_form(value, "nfc_trim")


# --- units ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "unit",
    [
        "parsecs of", "km*", "/h", "m^99", "m^9^9", "10 m", "10^10^10", "m(s)", "__import__('os')", "km;h",
        "m\n/s\x00", "EUR", "EUR/USD", "bushel_of_apples", "x" * 65, "1/", "(m", "m/(s/(m))",
        "speed_of_light",
    ],
)  # fmt: skip
def test_what_is_no_unit_or_has_no_fixed_rate_is_refused(unit):
    with pytest.raises(NotOfType):
        check_unit(unit)
    with pytest.raises(NotOfType):
        conversion(unit, "m")


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("kg", "m"),
        ("EUR", "EUR/h"),
        ("rpm", "Hz"),
        ("month", "day"),
        ("°C", "m"),
        ("rad", "percent"),
        ("m", "m^2"),
        ("dB", "B"),
        ("dB", "dBm"),
        ("pH", "H"),
    ],
)
def test_a_unit_of_something_else_does_not_convert(said, wanted):
    with pytest.raises(NotOfType):
        conversion(said, wanted)


LENGTHS = ["m", "km", "mile", "inch", "ft", "nmi", "au", "um"]
TEMPERATURES = ["°C", "°F", "K", "degR"]
numbers = st.fractions(max_denominator=10**6).filter(lambda number: abs(number) < 10**9)


@given(numbers, st.sampled_from([LENGTHS, TEMPERATURES]), st.data())
def test_there_and_back_again_is_exact(number, units, data):
    one, other = data.draw(st.sampled_from(units)), data.draw(st.sampled_from(units))
    factor, shift = conversion(one, other)
    back, back_shift = conversion(other, one)

    assert back * (factor * number + shift) + back_shift == number


@given(
    st.integers(-(10**6), 10**6), st.sampled_from(LENGTHS), st.sampled_from(LENGTHS), st.sampled_from(LENGTHS)
)
def test_which_unit_a_contract_has_changes_not_what_is_equal(number, said, one, other):
    factor, shift = conversion("km", said)
    same = factor * number + shift
    assume(10**12 * same == int(10**12 * same))
    values = [
        f"{number} km",
        {"value": int(same), "unit": said} if same.denominator == 1 else f"{number}000 m",
    ]

    for unit in (one, other):
        assert form(values[0], "number", unit) == form(values[1], "number", unit)
    assert form(f"{number} km", "number", one) != form(f"{number + 1} km", "number", one)


def test_the_library_of_units_is_loaded_only_where_a_number_is_said_in_another_unit():
    code = (
        "import sys; from dataclasses import replace;"
        "from contracts.relations import ValueType, default_contract;"
        "from ledger._values import normal_form; from ledger import write, log;"
        "c = replace(default_contract('r'), value_type=ValueType.NUMBER, unit='km');"
        "normal_form(5, c); normal_form('5 km', c);"
        "print('pint' in sys.modules, 'jsonschema' in sys.modules);"
        "normal_form('5 m', c); print('pint' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", "False", "True"]


def test_the_table_of_units_is_of_the_version_that_contracts_name():
    """Whoever changes a line that stands changes what is equal: raise the version, then this digest."""
    table = Path(_units.__file__).with_name("_units.txt").read_bytes()

    assert (UNITS_VERSION, hashlib.sha256(table).hexdigest()) == (1, TABLE_SHA256)


@pytest.mark.parametrize(
    ("said", "wanted", "factor", "shift"),
    [
        ("mile", "km", "25146/15625", "0"),
        ("lb", "kg", "45359237/100000000", "0"),
        ("°F", "°C", "5/9", "-160/9"),
        ("°C", "K", "1", "5463/20"),
        ("kWh", "J", "3600000", "0"),
        ("GiB", "MB", "134217728/125000", "0"),
        ("eV", "J", "801088317/5000000000000000000000000000", "0"),
        ("gal", "l", "473176473/125000000", "0"),
        ("psi", "Pa", "8896443230521/1290320000", "0"),
        ("light_year", "m", "9460730472580800", "0"),
    ],
)
def test_factors_stay_what_they_are_whichever_release_of_the_library_works_them_out(
    said, wanted, factor, shift
):
    assert conversion(said, wanted) == (Fraction(factor), Fraction(shift))


# --- schemas -------------------------------------------------------------------------------------

ADDRESS = {
    "type": "object",
    "properties": {"street": {"type": "string", "maxLength": 20}, "zip": {"$ref": "#/$defs/zip"}},
    "required": ["street"],
    "additionalProperties": False,
    "$defs": {"zip": {"type": "integer", "minimum": 0}},
}


def test_json_follows_its_schema_and_the_reason_names_the_schema_and_not_the_value():
    contract = of("json", **ADDRESS)

    assert takes({"street": "Rue Mercière", "zip": 69002}, contract)
    assert not takes({"street": "Rue Mercière", "zip": -1}, contract)
    with pytest.raises(NotOfType) as refused:
        normal_form({"street": "Rue Mercière", "secret": 1}, contract)
    assert "additionalProperties" in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("written", ["0.10000000000000001", "1e-1", "0.1"])
def test_a_number_in_json_is_the_double_nearest_to_it_and_as_text_what_is_written(written):
    draft = ClaimDraft.model_validate_json(f'{{"entity": "a", "relation": "r", "value": {written}}}')

    assert canonical(draft.value) == b"0.1"
    assert (form(written, "number") == form(0.1, "number")) == (written != "0.10000000000000001")


@pytest.mark.parametrize("inner", [[], {}, 1])
def test_a_value_has_as_many_levels_of_lists_and_objects_as_the_limit_says(inner):
    def said(levels):
        value = inner
        for level in range(levels - isinstance(inner, list | dict)):
            value = [value] if level % 2 else {"a": value}
        return ClaimDraft.model_validate({"entity": "a", "relation": "r", "value": value})

    assert said(VALUE_DEPTH_MAX).value is not None
    with pytest.raises(ValidationError, match="nested deeper than 16"):
        said(VALUE_DEPTH_MAX + 1)


def nested(depth: int) -> dict[str, object]:
    return {"not": nested(depth - 1)} if depth else {}


def chain(doublings: int) -> dict[str, object]:
    """A schema that evaluates its last definition 2^doublings times."""
    last = f"d{doublings}"
    defs = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
        for n in range(doublings)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**defs, last: {"type": "string"}}}


@pytest.mark.parametrize(
    "schema",
    [
        [], "x", True, {"type": "strnig"}, {"minimum": "1"}, {"$id": "x"},
        {"$schema": "http://json-schema.org/draft-07/schema#"},
        {"$ref": "https://example.org/other.json"}, {"$ref": "#"}, {"$ref": "#/$defs/none"},
        {"$defs": {"a": {"properties": {"a": {"$ref": "#/$defs/a"}}}}, "$ref": "#/$defs/a"},
        {"$defs": {"a": {"$ref": "#/$defs/a"}}}, {"$defs": {"a/b": {}}, "$ref": "#/$defs/a/b"},
        {"pattern": "(a+)+$"}, {"properties": {"x": {"patternProperties": {"a": {}}}}},
        {"unevaluatedItems": False}, {"items": {"$dynamicRef": "#x"}}, chain(9),
        {"properties": {"x": {"$defs": {"y": {}}}}},
        {"enum": ["x" * 4_100]}, {"anyOf": [{"const": n} for n in range(300)]},
        nested(17),
    ],
)  # fmt: skip
def test_a_schema_that_is_none_or_could_take_for_ever_is_refused(schema):
    with pytest.raises(NotOfType):
        check_schema(json.dumps(schema))


@pytest.mark.parametrize(
    "schema", [{}, ADDRESS, chain(6), {"items": {"type": "integer"}, "uniqueItems": True}]
)
def test_a_bounded_schema_is_taken(schema):
    check_schema(json.dumps(schema))


def test_a_value_of_too_many_parts_is_refused_before_it_is_held_against_anything():
    with pytest.raises(NotOfType, match="512"):
        follow([{}] * 600, json.dumps({"uniqueItems": True}))


# --- what is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "unit", "wrong"),
    [
        ("number", "km", "5 kg"), ("number", "km", "5 EUR"), ("number", None, "5 km"),
        ("number", "km", "1,000 km"), ("number", "km", True), ("text", None, 5), ("entity", None, " "),
        ("instant", None, "2026-03-01T10:00"),
        ("date", None, "2026-03-01T10:00Z"), ("interval", None, {"from": "2027", "to": "2026"}),
        ("boolean", None, "true"), ("place", None, {"lat": 91, "lon": 0}),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_the_same_as_itself_alone(kind, unit, wrong):
    contract, normals = of(kind, unit), Normals({})

    assert not takes(wrong, contract)
    assert is_wrong(normals.of(wrong, contract))
    assert normals.of(wrong, contract) == normals.of(json.loads(json.dumps(wrong)), contract)


json_values = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
contracts = st.sampled_from(
    [
        *(of(kind.value) for kind in ValueType if kind is not ValueType.JSON),
        of("number", "km"),
        of("json", type="array"),
    ]
)


@given(json_values, contracts)
def test_every_value_has_one_form_and_a_wrong_one_is_never_that_of_a_right_one(value, contract):
    normals = Normals({})
    found = normals.of(value, contract)

    assert found == normals.of(json.loads(json.dumps(value)), contract)
    assert is_wrong(found) == (not takes(value, contract))


@given(st.lists(json_values, max_size=5), contracts, st.randoms())
def test_in_which_order_values_come_changes_no_form(values, contract, chance):
    forms = [Normals({}).of(value, contract) for value in values]
    shuffled = list(enumerate(values))
    chance.shuffle(shuffled)
    normals = Normals({})

    again = {index: normals.of(value, contract) for index, value in shuffled}

    assert [again[index] for index in range(len(values))] == forms


def test_members_whose_names_are_spelt_alike_are_all_kept_in_any_order():
    one, other = spelt_form({"a": 1, "a ": 2}, "nfc_trim"), spelt_form({"a ": 2, "a": 1}, "nfc_trim")

    assert one == other
    assert (
        len({one, *(spelt_form(value, "nfc_trim") for value in ({"a": 1}, {"a": 2}, {"a": 2, "a ": 1}))}) == 4
    )
    assert spelt_form({"b ": "x "}, "nfc_trim") == spelt_form({"b": "x"}, "nfc_trim")


def test_a_large_value_is_not_held_against_a_large_schema():
    many = json.dumps({"items": {"allOf": [{}] * 250}})
    follow([1] * 60, many)

    with pytest.raises(NotOfType, match="too many"):
        follow([1] * 100, many)
    # What is named counts too, if less.
    check_schema(json.dumps({"enum": list(range(700))}))
    with pytest.raises(NotOfType, match="too many"):
        follow([1] * 500, json.dumps({"items": {"enum": list(range(700))}}))


@pytest.mark.parametrize(("items", "is_unique"), [
    ([1, 2, True, "1", None, [1], {"a": 1}], True),
    ([1, 1.0], False),
    ([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}], False),
    ([False, 0], True),
])  # fmt: skip
def test_items_are_told_apart_in_one_pass_as_the_library_does(items, is_unique, monkeypatch):
    compared = []
    monkeypatch.setattr("jsonschema._keywords.uniq", compared.append)
    schema = json.dumps({"uniqueItems": True})

    if is_unique:
        follow(items, schema)
    else:
        with pytest.raises(NotOfType, match="uniqueItems"):
            follow(items, schema)

    assert compared == []
