"""Time expressions: absolute, relative to the time asked for, and those without bounds."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from discovery._times import find_times

# A Wednesday.
NOW = datetime(2026, 3, 18, 15, 30, tzinfo=UTC)


def read(text, valid_at=NOW):
    (found,) = find_times(text, valid_at=valid_at)
    return tuple(bound and bound.date().isoformat() for bound in (found.start, found.end))


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("What happened on 2024-02-29?", ("2024-02-29", "2024-03-01")),
        ("What happened in 2024-12?", ("2024-12-01", "2025-01-01")),
        ("What happened on 8 May 2023?", ("2023-05-08", "2023-05-09")),
        ("What happened on May 8th, 2023?", ("2023-05-08", "2023-05-09")),
        ("Where was I on the 2nd of April?", ("2025-04-02", "2025-04-03")),
        ("Where was I in September 2021?", ("2021-09-01", "2021-10-01")),
        ("Where was I in February?", ("2026-02-01", "2026-03-01")),
        ("Where did I live in 2019?", ("2019-01-01", "2020-01-01")),
        ("Where did I live before 2019?", (None, "2019-01-01")),
        ("Where have I lived since 2019?", ("2019-01-01", None)),
        ("Where have I lived after 2019?", ("2020-01-01", None)),
        ("Where was I last summer?", ("2025-06-01", "2025-09-01")),
        ("Where was I in winter 2024?", ("2024-12-01", "2025-03-01")),
        ("What broke yesterday?", ("2026-03-17", "2026-03-18")),
        ("What broke last week?", ("2026-03-09", "2026-03-16")),
        ("What broke last Friday?", ("2026-03-13", "2026-03-14")),
        ("What broke last month?", ("2026-02-01", "2026-03-01")),
        ("What broke two months ago?", ("2026-01-01", "2026-02-01")),
        ("What broke 3 days ago?", ("2026-03-15", "2026-03-16")),
        ("What broke in the last two weeks?", ("2026-03-02", "2026-03-18")),
        ("Where did I work before the merger?", (None, None)),
        ("Where did I work before joining Brightly?", (None, None)),
        ("What happened on 31 June 2023?", (None, None)),
    ],
)
def test_bounds_of_an_expression(text, bounds):
    assert read(text) == bounds


def test_relative_ones_have_no_bounds_without_a_time_to_count_from():
    assert read("What broke last week?", None) == (None, None)


@pytest.mark.parametrize("text", ["May I ask?", "The march went on.", "Room 2113 please", "I have 300 books"])
def test_words_and_numbers_that_only_look_like_times(text):
    assert find_times(text, valid_at=NOW) == ()


def test_expressions_come_in_order_and_none_inside_another():
    found = find_times("Between 3 May 2021 and June 2022, or yesterday?", valid_at=NOW)

    assert [expression.wording for expression in found] == ["3 May 2021", "June 2022", "yesterday"]
