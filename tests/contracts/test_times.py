"""Time as stated: what is read, what is refused, and where a calendar term ends."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import BadRequest
from contracts.times import Precision, format_instant, instant_form, parse_instant, parse_term


@pytest.mark.parametrize(
    ("wording", "first", "after"),
    [
        ("2023", "2023-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("2023-12", "2023-12-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("2024-02-29", "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z"),
        ("2026-08-13+08:00", "2026-08-12T16:00:00Z", "2026-08-13T16:00:00Z"),
        ("2026-01-01T13:00:00+03:00", "2026-01-01T10:00:00Z", "2026-01-01T10:00:01Z"),
        ("2026-01-01T13:00+03:00", "2026-01-01T10:00:00Z", "2026-01-01T10:01:00Z"),
        ("2026-01-01T00:00:00.25Z", "2026-01-01T00:00:00.250000Z", "2026-01-01T00:00:00.251000Z"),
    ],
)
def test_a_term_is_the_interval_that_its_precision_says(wording, first, after):
    term = parse_term(wording, field="since")

    assert format_instant(term.first) == first
    assert format_instant(term.after) == after


def test_a_calendar_term_without_an_offset_is_read_in_the_offset_of_its_source():
    term = parse_term("2026-08-13", field="since", offset_minutes=480)

    assert format_instant(term.first) == "2026-08-12T16:00:00Z"
    assert not term.offset_stated


@pytest.mark.parametrize(
    "wording",
    [
        "2026-01-01T10:00:00",
        "yesterday",
        "",
        "2023-13",
        "2023-02-30",
        "2023-1",
        "٢٠٢٣",
        "0000",
        "9999",
        "2026-01-01T10:00:00+15:00",
        "2026-01-01T24:00:00Z",
        "2026-01-01T10:00:60Z",
        "infinity",
        "2023\n2024",
    ],
)
def test_what_is_no_time_or_has_no_offset_is_refused_with_the_field(wording):
    with pytest.raises(BadRequest) as refused:
        parse_term(wording, field="claims[0].valid.since")

    assert refused.value.field == "claims[0].valid.since"


def test_a_calendar_term_is_no_instant():
    with pytest.raises(BadRequest):
        parse_instant("2026-01-01", field="valid_at")


EARLIEST = datetime(1, 1, 3, tzinfo=UTC)


@given(st.integers(0, 9_996 * 365 * 86_400 * 10**6), st.integers(-840, 840))
def test_an_instant_written_in_any_offset_reads_back_as_itself(microseconds, offset_minutes):
    instant = EARLIEST + timedelta(microseconds=microseconds)

    assert parse_instant(format_instant(instant, offset_minutes=offset_minutes), field="x") == instant


@given(
    st.integers(0, 9_996 * 365 * 86_400 * 10**6),
    st.sampled_from(["seconds", "milliseconds", "microseconds", "minutes"]),
    st.sampled_from(["Z", "z", "+00:00", "-00:00", "+0000", "+02:00", "-09:30"]),
    st.sampled_from(["T", "t", " "]),
)
def test_an_instant_has_one_form_however_it_was_written(microseconds, digits, offset, between):
    at = EARLIEST + timedelta(microseconds=microseconds)
    wording = at.isoformat(timespec=digits, sep=between).removesuffix("+00:00") + offset
    term = parse_term(wording, field="observed_at")

    form = instant_form(wording, field="observed_at")

    assert form == (format_instant(term.first, offset_minutes=term.offset_minutes), term.precision)


@given(st.dates(min_value=date(1, 1, 3), max_value=date(9997, 1, 1)), st.sampled_from(Precision))
def test_every_precision_ends_after_it_begins(day, precision):
    term = parse_term(day.isoformat(), field="at").with_precision(precision)

    assert term.first < term.after


@given(st.text())
def test_no_text_breaks_the_reader(text):
    try:
        term = parse_term(text, field="x")
    except BadRequest:
        return

    assert term.first < term.after
