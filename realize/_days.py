"""Days as people write them: "3 May 1990", "May 3rd, 1990", "1990-05-03", "May 1990", "1990". Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

from contracts.errors import BadRequest
from contracts.times import parse_term

_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTH: Final = rf"(?P<month>{'|'.join(f'{name[:3]}(?:{name[3:]})?' for name in _MONTHS)}|sept)\.?"
_DAY: Final = r"(?:the )?(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_WRITTEN: Final = tuple(
    re.compile(form)
    for form in (
        rf"{_DAY}(?: of)? {_MONTH},? (?P<year>\d{{4}})",
        rf"{_MONTH} {_DAY},? (?P<year>\d{{4}})",
        rf"(?P<day>){_MONTH},? (?P<year>\d{{4}})",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """The first and the last day that a time can mean: one day, or all of a month or year."""

    first: date
    last: date


def days_of(value: Any) -> Days | None:  # noqa: ANN401 -- values are any JSON
    """Return the days that a value names; None where it names none, or not the year."""
    if not isinstance(value, str):
        return None
    written = " ".join(value.casefold().split())
    for form in _WRITTEN:
        match = form.fullmatch(written)
        if match is not None:
            month = next(place for place, name in enumerate(_MONTHS, 1) if name[:3] == match["month"][:3])
            written = "-".join(
                [match["year"], f"{month:02}", *([match["day"].zfill(2)] * bool(match["day"]))]
            )
    try:
        term = parse_term(written, field="value")
    except BadRequest:
        return None
    # A calendar term is days of the source's own calendar, wherever that is.
    offset = timedelta(minutes=term.offset_minutes)
    last = term.after + offset - timedelta(microseconds=1)
    return Days(first=(term.first + offset).date(), last=last.date())
