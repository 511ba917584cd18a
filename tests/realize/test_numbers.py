"""What is read as a number, asked or told, and what may be meant in more than one way."""

from dataclasses import replace

import pytest

from contracts.relations import ValueType
from realize import Derived
from tests.realize.test_derive import derived, found, rectangles


@pytest.mark.parametrize(
    ("said", "asked", "value"),
    [
        (0.2, "0,2", None),
        (35, "3,5", None),
        ("3,5", "35", None),
        # 3500 to some, and 3.5 to others.
        ("3,500", "3500", None),
        (3.5, "3,500", None),
        (12, "1,2,", None),
        (500, "0,500", None),
        (1230, "12,30", None),
        (1234567, "1,234,567", True),
        ("-1,234,567.5", "-1234567.5", True),
        (3500, "3,500.0", True),
        (35001, "3,500.1", False),
    ],
)
def test_a_comma_is_left_out_of_a_number_only_where_it_can_mean_nothing_but_thousands(said, asked, value):
    told = found(rectangles([said]))

    for form in ("yes_no", "known_as", "known_since"):
        z = derived(form, told, value=asked)

        if value is None:
            assert z.reason == "not_a_number"
        elif form == "yes_no":
            assert z.value is value
        else:
            assert isinstance(z, Derived) is value


def test_a_number_with_its_unit_repeats_the_one_without():
    each = found(rectangles([7, "7 kg", {"value": 8, "unit": "kg"}, 8, 7.0]))
    contract = replace(each.resolution.contract, value_type=ValueType.NUMBER, unit="kg")
    each = replace(each, resolution=replace(each.resolution, contract=contract))

    assert derived("times_revised", each).value == 2
    assert derived("values_count", each).value == 2
    assert derived("yes_no", each, value="7").value is True


@pytest.mark.parametrize(
    ("value", "words", "reason"),
    [("A-", "a", "not_the_value"), ("dog bites man", "man bites dog", "not_the_value"), ("A", "a", None)],
)
def test_a_value_is_its_words_in_their_order_and_its_signs(value, words, reason):
    z = derived("yes_no", found(rectangles([value])), words=words)

    assert getattr(z, "reason", None) == reason
