"""Canonical JSON: equal values, equal bytes; every JSON value comes back as it went in."""

from __future__ import annotations

import json

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import BadRequest, IntegrityFault
from ledger._canonical import _is_simple, _tagged, canonical, parse

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = (
    st.integers()
    | st.integers(min_value=2**52, max_value=2**54)
    | st.floats(allow_nan=False, allow_infinity=False)
)
KEYS = TEXTS | st.sampled_from(["$", "$int", "$$int", "$$"])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_every_json_value_comes_back_equal(value):
    assert parse(canonical(value)) == value


@given(VALUES)
def test_what_comes_back_has_the_same_bytes(value):
    assert canonical(parse(canonical(value))) == canonical(value)


@given(VALUES, VALUES)
def test_different_values_have_different_bytes(one, other):
    assert (canonical(one) == canonical(other)) == (_plain(one) == _plain(other))


@given(VALUES)
def test_what_the_standard_library_may_write_is_written_as_the_rfc_has_it(value):
    if _is_simple(value):
        assert canonical(value) == rfc8785.dumps(_tagged(value))


@pytest.mark.parametrize(
    "value", ['\x00\x1f\x7f"\\/\b\f\n\r\t\u2028\uffff😀', {"b": [True, None, -1], "a": {}}, "é"]
)
def test_so_is_every_kind_of_character(value):
    assert _is_simple(value)
    assert canonical(value) == rfc8785.dumps(value)


@pytest.mark.parametrize("value", [1.0, 2**53, {"$int": 1}, {"é": 1}, [[{"a": 0.5}]], {1: 2}])
def test_what_it_may_not_write_goes_the_long_way(value):
    assert not _is_simple(value)


@given(st.integers(min_value=2**53))
def test_whole_numbers_past_the_bound_of_doubles_stay_whole(number):
    for value in (number, -number):
        back = parse(canonical(value))

        assert back == value
        assert isinstance(back, int)


def test_a_value_that_looks_like_a_tag_is_no_tag():
    assert parse(canonical({"$int": "5"})) == {"$int": "5"}
    assert canonical({"$int": "5"}) != canonical({"$int": 5})
    assert canonical(2**60) == b'{"$int":"1152921504606846976"}'


def test_keys_are_sorted_by_utf16_units_and_numbers_written_as_the_standard_says():
    # The last two change places in UTF-8 order.
    assert canonical({"b": 1.0, "a": 1e21, "\U00010000": -0.0, "\uff61": 1e-7}) == (
        '{"a":1e+21,"b":1,"\U00010000":0,"\uff61":1e-7}'.encode()
    )


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        "\ud800",
        {"\udfff": 1},
        ["\udc00"],
        {1: 2},
        b"bytes",
        {"a": {1, 2}},
        10**5_000,
    ],
    ids=[
        "nan",
        "infinity",
        "surrogate",
        "surrogate key",
        "nested surrogate",
        "number key",
        "bytes",
        "set",
        "digits",
    ],
)
def test_what_is_not_json_is_refused(value):
    with pytest.raises(BadRequest):
        canonical(value)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b'{"$int":"x"}'])
def test_bytes_that_we_did_not_write_are_a_fault(data):
    with pytest.raises(IntegrityFault):
        parse(data)


def _plain(value: object) -> object:
    # Python holds True equal to 1 and 1.0 to 1; JSON holds the first apart and the second together.
    match value:
        case bool() | None | str():
            return json.dumps(value)
        case list():
            return [_plain(item) for item in value]
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case _:
            return value
