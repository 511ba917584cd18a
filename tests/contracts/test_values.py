"""Values are read as they were said, or refused with a reason that does not quote them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.relations import ValueType, default_contract
from contracts.values import (
    NotOfType,
    Point,
    Quantity,
    expected,
    read_boolean,
    read_date,
    read_entity,
    read_instant,
    read_interval,
    read_number,
    read_place,
    read_text,
    shown,
    with_unit,
)


@pytest.mark.parametrize(
    ("said", "number", "unit"),
    [
        (5, "5", None),
        (5.0, "5", None),
        (-0.0, "0", None),
        (0.1, "1/10", None),
        (1e300, str(10**300), None),
        ("5 km", "5", "km"),
        ("5km", "5", "km"),
        (" -3.20 m/s ", "-16/5", "m/s"),
        ("+1e-3 kg", "1/1000", "kg"),
        (".5 l", "1/2", "l"),
        ("5e km", "5", "e km"),
        ("7", "7", None),
        ({"value": 5, "unit": "km"}, "5", "km"),
        ({"value": 2.5}, "5/2", None),
    ],
)
def test_a_number_is_exactly_what_was_said_and_so_is_its_unit(said, number, unit):
    assert read_number(said) == Quantity(number=Fraction(number), unit=unit)


@pytest.mark.parametrize(
    "wrong",
    [
        True, "km", "", "five", "NaN", ",000 km", None, [5], {"value": True}, {"value": "5", "unit": "km"},
        {"value": 5, "unit": "km", "per": "h"}, {"unit": "km"}, "1e309", "1e-309 m", 10**309, -(10**400),
        "9" * 129, 2**5_000,
    ],
)  # fmt: skip
def test_what_is_no_number_or_too_large_is_refused(wrong):
    with pytest.raises(NotOfType):
        read_number(wrong)


def test_an_instant_needs_an_offset_and_is_the_same_in_all_of_them():
    at = datetime(2026, 3, 1, 10, tzinfo=UTC)

    assert read_instant("2026-03-01T13:00+03:00") == read_instant("2026-03-01T10:00:00.000Z") == at


@pytest.mark.parametrize("wrong", ["2026-03-01T13:00", "2026-03-01", "noon", 1_772_000_000, None, ""])
def test_a_naive_instant_and_what_is_none_are_refused(wrong):
    with pytest.raises(NotOfType):
        read_instant(wrong)


@pytest.mark.parametrize("date", ["2026-03-01", "2026-03", "2026"])
def test_a_date_keeps_its_precision(date):
    assert read_date(f" {date} ") == date


@pytest.mark.parametrize(
    "wrong", ["2026-02-30", "2026-03-01+02:00", "2026-03-01T00:00Z", "today", 2026, None]
)
def test_what_is_no_date_is_refused(wrong):
    with pytest.raises(NotOfType):
        read_date(wrong)


def test_a_calendar_term_is_the_interval_that_it_covers():
    assert read_interval("2026") == read_interval({"from": "2026-01-01", "to": "2027"})
    assert read_interval({"from": None, "to": "2026"}).start is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"from": "2026", "to": "2026"}, {"from": "2027", "to": "2026"}, {"from": "2026"}, ["2026", "2027"],
        {"from": "2026", "to": None, "in": "Oslo"}, "2026-03-01T00:00Z", {"from": 2026, "to": 2027}, 2026,
    ],
)  # fmt: skip
def test_an_empty_inverted_or_half_said_interval_is_refused(wrong):
    with pytest.raises(NotOfType):
        read_interval(wrong)


@pytest.mark.parametrize("wrong", ["true", 1, 0, None, "yes"])
def test_only_true_and_false_are_booleans(wrong):
    assert read_boolean(value=True) is True
    with pytest.raises(NotOfType):
        read_boolean(wrong)


@pytest.mark.parametrize("read", [read_text, read_entity])
@pytest.mark.parametrize("wrong", [5, True, ["x"], {"name": "x"}])
def test_what_is_no_text_is_neither_text_nor_name(read, wrong):
    with pytest.raises(NotOfType):
        read(wrong)


@pytest.mark.parametrize("wrong", ["", "  ", "x" * 513])
def test_a_name_is_not_empty_and_not_endless(wrong):
    with pytest.raises(NotOfType):
        read_entity(wrong)


def test_a_point_of_the_globe_is_read_in_one_way():
    assert read_place("Lyon") == "Lyon"
    assert read_place({"lat": 45.7640431, "lon": 4.8356594, "name": "Lyon"}) == Point(
        latitude=Decimal("45.764043"), longitude=Decimal("4.835659")
    )
    assert read_place({"lat": 0, "lon": 180}) == read_place({"lat": -0.0, "lon": -180.0})
    assert read_place({"lat": 90, "lon": 17}) == read_place({"lat": 90, "lon": -101.5})
    assert read_place({"lat": 1, "lon": -0.0000001}) == read_place({"lat": 1.0, "lon": 0})


@pytest.mark.parametrize(
    "wrong",
    [
        {"lat": 90.1, "lon": 0}, {"lat": 0, "lon": -180.5}, {"lat": True, "lon": 0}, {"lat": "45", "lon": 4},
        {"lat": 45}, {"lat": 45, "lon": 4, "alt": 200}, {"lat": 45, "lon": 4, "name": ""}, "", 5, [45, 4],
    ],
)  # fmt: skip
def test_a_place_off_the_globe_or_with_more_than_a_name_is_refused(wrong):
    with pytest.raises(NotOfType):
        read_place(wrong)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("5 km", "5 km"),
        ({"value": 5, "unit": "km"}, "5 km"),
        ({"value": 0.1, "unit": "km"}, "0.1 km"),
        ({"from": "2026-03-01", "to": None}, "2026-03-01 to open"),
        ({"from": None, "to": "2026"}, "ever to 2026"),
        ({"lat": 45.76, "lon": 4.84, "name": "Lyon"}, "Lyon (45.76, 4.84)"),
        ({"lat": 45.76, "lon": 4.84}, "45.76, 4.84"),
        (5, None),
        (True, None),
        ({"b": 1, "a": "é"}, None),
        ({"value": 5, "unit": "km", "more": 1}, None),
    ],
)
def test_a_value_is_shown_as_it_was_said(value, text):
    assert shown(value) == text


def test_a_plain_number_has_the_unit_of_its_contract_and_a_said_one_keeps_its_own():
    length = replace(default_contract("length"), value_type=ValueType.NUMBER, unit="km")

    assert with_unit(5, length) == {"value": 5, "unit": "km"}
    assert with_unit("5000 m", length) == "5000 m"
    assert with_unit(5, default_contract("length")) == 5


def test_every_type_says_what_it_expects():
    contracts = [replace(default_contract("r"), value_type=kind, unit=None) for kind in ValueType]

    assert len({expected(contract) for contract in contracts}) == len(ValueType)
    assert expected(replace(contracts[0], value_type=ValueType.NUMBER, unit="km/h")) == "a number in km/h"


texts = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
readers = st.sampled_from(
    [read_number, read_instant, read_date, read_interval, read_boolean, read_text, read_entity, read_place]
)


@given(readers, texts)
def test_any_json_is_read_or_refused_without_being_quoted(read, value):
    reason = ""
    try:
        read(value)
    except NotOfType as error:
        reason = str(error)

    # Content must not be in what is logged.
    assert not isinstance(value, str) or len(value.strip()) <= 8 or value not in reason


@given(texts)
def test_any_json_can_be_shown_and_is_always_shown_alike(value):
    assert isinstance(shown(value), str | None)
    assert shown(json.loads(json.dumps(value))) == shown(value)
