"""
English dates, read as the calendar terms that the ledger takes: a year, a month or a day.

A date is never made finer than what was said: "last week" is no calendar term, so it becomes the
month (or year) that holds it. A day or month without a year is the latest one not after the
source's own date; without that date it states nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from enum import Enum
from typing import Final

from contracts.times import Term, parse_term
from projection._english._words import word_set

_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sep sept",
            "october oct",
            "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}
_MONTHS_OF_YEAR: Final = 12
_WEEKDAYS: Final = {
    name: number
    for number, name in enumerate(
        ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
    )
}
_NUMBERS: Final = {
    word: number
    for number, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
            "twenty",
        ]
    )
} | {"a": 1, "an": 1}

_MONTH: Final = "(?:" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b(?: \.)?"
_DAY: Final = r"(?:3[01]|[12][0-9]|0?[1-9])(?:st|nd|rd|th)?\b"
_YEAR: Final = r"(?:1[89]|20)[0-9]{2}\b"
_COUNT: Final = "(?:[0-9]{1,2}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + r")\b"
_TERM: Final = (
    rf"(?:(?P<iso>{_YEAR[:-2]}-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12][0-9]|3[01]))?\b)"
    rf"|(?:the )?(?P<day>{_DAY}) (?:of )?(?P<month>{_MONTH})(?: ?,? (?P<year>{_YEAR}))?"
    rf"|(?P<month2>{_MONTH}) (?:the )?(?P<day2>{_DAY})(?: ?,? (?P<year2>{_YEAR}))?"
    rf"|(?P<month3>{_MONTH})(?: (?:of )?,? ?(?P<year3>{_YEAR}))?"
    rf"|(?:the (?:spring|summer|autumn|fall) of )?(?P<year4>{_YEAR})"
    r"|(?P<yesterday>yesterday(?: (?:morning|afternoon|evening))?|last night)\b"
    r"|(?P<before>the day before yesterday)\b"
    r"|(?P<today>today|this (?:morning|afternoon|evening)|tonight|just now)\b"
    r"|(?:earlier )?(?P<which>last|this) (?P<unit>year|month|week)\b"
    rf"|last (?P<lastmonth>{_MONTH})"
    rf"|(?:last |this )?(?P<weekday>{'|'.join(_WEEKDAYS)})\b"
    rf"|(?P<count>{_COUNT}) (?P<ago>year|month|week|day)s? ago\b)"
)


def _named(prefix: str) -> str:
    return re.sub(r"\(\?P<(\w+)>", rf"(?P<{prefix}\1>", _TERM)


_COUNTED: Final = (
    rf"for (?:the (?:last|past) |over |almost |about |nearly )?(?P<count>{_COUNT}) "
    r"(?P<unit>year|month|week|day)s?(?: now)?\b"
)
_UNCOUNTED: Final = (
    r"for (?:a (?:long|very long) time|years|ages|a while|many years|several years|decades|months)(?: now)?\b"
)
_FORMS: Final = tuple(
    (kind, re.compile(pattern + "(?= |$)"))
    for kind, pattern in (
        ("for", _COUNTED),
        ("for", _UNCOUNTED),
        ("span", rf"(?:from|between) {_named('a_')} (?:to|until|till|and|(?P<whole>through)) {_named('b_')}"),
        ("since", rf"(?:ever )?(?:since|as of|as from|starting) {_TERM}"),
        ("since", r"(?:ever )?since (?:then|that time|that day)"),
        ("until", rf"(?:until|till|up to|up until) {_TERM}"),
        ("point", rf"(?:(?:back |early |late )?(?:in|on|during) )?{_TERM}"),
    )
)
_STARTERS: Final = (
    word_set(
        "for from between ever since as starting until till up back early late in on during the yesterday "
        "today tonight this last just earlier"
    )
    | _MONTHS.keys()
    | _WEEKDAYS.keys()
    | _NUMBERS.keys()
)


class DateKind(Enum):
    """What an expression says about a state: a point, from then on, up to then, both ends, a length."""

    POINT = "point"
    SINCE = "since"
    UNTIL = "until"
    SPAN = "span"
    LENGTH = "for"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dated:
    """
    A date expression: `start` and `end` are calendar terms, or None where none can be stated.

    `words_count` says how many tokens it takes.
    """

    kind: DateKind
    start: str | None
    end: str | None
    words_count: int


def read_date(words: str, observed: Term | None) -> Dated | None:
    """
    Read a date expression at the start of `words` (lower-case tokens joined by single spaces).

    Returns None where none starts there. Source of relative dates: the source's own clock, in its
    own offset.
    """
    first = words.partition(" ")[0]
    if first not in _STARTERS and not first[:1].isdigit():
        return None
    for kind, pattern in _FORMS:
        match = pattern.match(words)
        if match is not None:
            return _dated(DateKind(kind), match, observed)
    return None


def _dated(kind: DateKind, match: re.Match[str], observed: Term | None) -> Dated | None:
    groups = match.groupdict()
    today = _local(observed)
    start: str | None = None
    end: str | None = None
    match kind:
        case DateKind.SPAN:
            end = _term({name[2:]: text for name, text in groups.items() if name.startswith("b_")}, today)
            start = _term({name[2:]: text for name, text in groups.items() if name.startswith("a_")}, today)
            start = _borrow_year(start, groups, today) if end is not None else start
            end = _past(end) if groups["whole"] else end
            if start is None or end is None or start >= end:
                return None
        case DateKind.LENGTH:
            start = _ago(groups, today, unit=groups.get("unit"))
        case DateKind.UNTIL:
            end = _term(groups, today)
        case DateKind.POINT | DateKind.SINCE:
            start = _term(groups, today)
    return Dated(kind=kind, start=start, end=end, words_count=len(match.group().split()))


def _past(end: str | None) -> str | None:
    """Return where a term is over: "through 2018" lasts as long as 2018 does, "to 2018" until it begins."""
    return None if end is None else parse_term(end, field="end").after.date().isoformat()


def _borrow_year(start: str | None, groups: dict[str, str | None], today: date | None) -> str | None:
    # "from March to May 2023": the year is said once, for both.
    year = next((groups[name] for name in ("b_year", "b_year2", "b_year3") if groups.get(name)), None)
    said = any(groups.get(f"a_{name}") for name in ("year", "year2", "year3", "year4", "iso"))
    month = next((groups[name] for name in ("a_month", "a_month2", "a_month3") if groups.get(name)), None)
    if said or year is None or month is None:
        return start
    own = {name[2:]: text for name, text in groups.items() if name.startswith("a_")}
    slot = {"month": "year", "month2": "year2", "month3": "year3"}
    for name, target in slot.items():
        if own.get(name):
            own[target] = year
    return _term(own, today)


def _local(observed: Term | None) -> date | None:
    if observed is None:
        return None
    local: datetime = observed.first.astimezone(timezone(timedelta(minutes=observed.offset_minutes)))
    return local.date()


def _term(groups: dict[str, str | None], today: date | None) -> str | None:
    if groups.get("iso"):
        return _checked(groups["iso"])
    for day, month, year in (
        ("day", "month", "year"),
        ("day2", "month2", "year2"),
        (None, "month3", "year3"),
    ):
        name = groups.get(month)
        if name is not None:
            number = _MONTHS[name.removesuffix(" .")]
            said = groups.get(day) if day is not None else None
            return _calendar(groups.get(year), number, said, today)
    if groups.get("year4"):
        return groups["year4"]
    return None if today is None else _relative(groups, today)


def _calendar(year: str | None, month: int, day: str | None, today: date | None) -> str | None:
    number = int(re.sub(r"[a-z]+", "", day)) if day is not None else None
    if year is None:
        if today is None:
            return None
        after = (month, number or 1) > (today.month, today.day if number is not None else 31)
        year = str(today.year - 1 if after else today.year)
    return _checked(f"{year}-{month:02d}" + (f"-{number:02d}" if number is not None else ""))


def _checked(term: str | None) -> str | None:
    if term is None or len(term) < len("2023-01-01"):
        return term
    try:
        date.fromisoformat(term)
    except ValueError:
        return None
    return term


def _relative(groups: dict[str, str | None], today: date) -> str | None:
    if groups.get("yesterday"):
        return _back(today, days=1)
    if groups.get("before"):
        return _back(today, days=2)
    if groups.get("today"):
        return today.isoformat()
    if groups.get("lastmonth"):
        month = _MONTHS[str(groups["lastmonth"]).removesuffix(" .")]
        return f"{today.year if month < today.month else today.year - 1:04d}-{month:02d}"
    if groups.get("weekday"):
        days = (today.weekday() - _WEEKDAYS[str(groups["weekday"])]) % 7
        return _back(today, days=days or 7)
    if groups.get("which"):
        return _period(str(groups["unit"]), back=1 if groups["which"] == "last" else 0, today=today)
    return _ago(groups, today, unit=groups.get("ago"))


def _ago(groups: dict[str, str | None], today: date | None, *, unit: str | None) -> str | None:
    counted = groups.get("count")
    if today is None or unit is None or counted is None:
        return None
    count = int(counted) if counted.isdigit() else _NUMBERS[counted]
    return _back(today, days=count) if unit == "day" else _period(unit, back=count, today=today)


def _period(unit: str, *, back: int, today: date) -> str | None:
    if unit == "year":
        return f"{today.year - back:04d}" if today.year > back else None
    if unit == "month":
        months = today.year * _MONTHS_OF_YEAR + today.month - 1 - back
        return (
            f"{months // _MONTHS_OF_YEAR:04d}-{months % _MONTHS_OF_YEAR + 1:02d}"
            if months >= _MONTHS_OF_YEAR
            else None
        )
    # A week is no calendar term: the month that holds all of it, else the year, else nothing.
    try:
        first = today - timedelta(days=today.weekday() + 7 * back)
    except OverflowError:
        return None
    last = first + timedelta(days=6)
    if (first.year, first.month) == (last.year, last.month):
        return f"{first.year:04d}-{first.month:02d}"
    return f"{first.year:04d}" if first.year == last.year else None


def _back(today: date, *, days: int) -> str | None:
    try:
        return (today - timedelta(days=days)).isoformat()
    except OverflowError:
        return None
