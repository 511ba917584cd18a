"""What is read as a number, asked or told, and what may be meant in more than one way."""

import pytest

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
