import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from contracts.contexts import Mark
from packing import canonical

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text()
    | st.floats(-(2**53) + 1, 2**53 - 1),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(json_values)
def test_canonical_bytes_read_back_as_the_same_value_and_write_the_same_bytes(value):
    written = canonical(value)

    assert json.loads(written) == value
    assert canonical(json.loads(written)) == written
    # By two ways, one of them quick: what is written is what the standard's own library writes.
    assert written == rfc8785.dumps(value)


def test_integers_past_two_to_the_53rd_travel_as_strings():
    assert canonical([2**53 - 1, 2**53, -(2**53), 10**30]) == (
        b'[9007199254740991,"9007199254740992","-9007199254740992","1000000000000000000000000000000"]'
    )


def test_keys_are_ordered_by_utf16_as_rfc_8785_says():
    assert canonical({"\U0001f600": 1, "\ufb33": 2, "a": 3}) == '{"a":3,"😀":1,"\ufb33":2}'.encode()


def test_our_values_are_written_without_locale_or_zone():
    then = datetime(2024, 1, 1, 13, tzinfo=timezone(timedelta(hours=2)))

    assert canonical([then, then.astimezone(UTC), Mark.ACTIVE, timedelta(seconds=1), (1, True)]) == (
        b'["2024-01-01T11:00:00Z","2024-01-01T11:00:00Z","active",1000000,[1,true]]'
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800"])
def test_what_json_cannot_carry_is_refused(value):
    with pytest.raises(ValueError):  # noqa: PT011 -- the message is the library's
        canonical([value])


@pytest.mark.parametrize("value", [{1: 2}, {1}, b"x", object()])
def test_what_is_not_a_json_value_is_refused(value):
    with pytest.raises(TypeError):
        canonical([value])
