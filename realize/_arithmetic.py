"""Numbers as they were said, and time by the calendar. Exact: 0.3 less 0.1 is 0.2. Pure."""

from __future__ import annotations

import json
import re
from datetime import datetime
from fractions import Fraction
from typing import Any, Final

from contracts.relations import RelationContract
from contracts.values import NotOfType, read_number

_DAYS_OF_WEEK = 7
_MONTHS_OF_YEAR = 12
_GROUPED: Final = re.compile(r"-?[1-9][0-9]{0,2}(?:,[0-9]{3}(?:,[0-9]{3})+(?:\.[0-9]+)?|,[0-9]{3}\.[0-9]+)")
"""Commas that can only part thousands. `3,500` is 3500 to some and 3.5 to others, and is none."""


def number_of(value: Any, contract: RelationContract) -> Fraction | None:  # noqa: ANN401 -- values are any JSON
    """
    Return a value as a number of the relation's unit.

    None where it is none, is in another unit, or where a comma in it may be meant in more than one way.
    """
    if isinstance(value, str) and "," in value:
        if _GROUPED.fullmatch(value) is None:
            return None
        value = value.replace(",", "")
    try:
        said = read_number(value)
    except NotOfType:
        return None
    return said.number if said.unit in {None, contract.unit} else None


def plain(number: Fraction) -> int | float:
    """Return a number as JSON holds it: the nearest there is."""
    return int(number) if number.denominator == 1 else float(number)


def same(one: Any, other: Any) -> bool:  # noqa: ANN401 -- values are any JSON
    """Say whether two values are one, be 1 written 1.0 or not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def elapsed(start: datetime, end: datetime, *, unit: str | None) -> int | dict[str, int]:
    """
    Return the whole days, weeks, months or years from one day of the calendar to another.

    Without a unit they are days, and named so. A month is over on the same day of the next one, or,
    where there is none, on the day after its last.
    """
    days = (end.date() - start.date()).days
    match unit:
        case "weeks":
            return days // _DAYS_OF_WEEK
        case "months":
            return months_between(start, end)
        case "years":
            return months_between(start, end) // _MONTHS_OF_YEAR
        case "days":
            return days
        case _:
            return {"days": days}


def months_between(start: datetime, end: datetime) -> int:
    """Return the whole months from one day to a later one; an age is these by twelve."""
    months = (end.year - start.year) * _MONTHS_OF_YEAR + end.month - start.month
    return months - (end.day < start.day)
