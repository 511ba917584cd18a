"""Time expressions of a question or a turn: absolute ones, and those relative to when it was said."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from contracts.proposals import TimeExpression

TIMES_MAX: Final = 8
"""Time expressions read from one text."""

_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTH_WORD: Final = "may|sept(?:ember)?|" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS)
_NUMBERS: Final = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6,
    "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "few": 3, "couple of": 2,
}  # fmt: skip
_NUMBER_WORD: Final = "|".join(
    ("[0-9]{1,3}", *(f"(?:a )?{word}" if word in {"few", "couple of"} else word for word in _NUMBERS))
)
_SEASONS: Final = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_QUARTERS: Final = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "last": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4,
    "1": 1, "2": 2, "3": 3, "4": 4,
}  # fmt: skip

Bounds = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class _Rule:
    """A pattern, and how to turn a match into bounds; `read` gets the time asked for."""

    pattern: re.Pattern[str]
    read: Callable[[re.Match[str], datetime | None], Bounds | None]


def find_times(text: str, *, valid_at: datetime | None) -> tuple[TimeExpression, ...]:
    """
    Return the time expressions of a text, in order, none inside another.

    Args:
        text: A question as it was put, or what was said.
        valid_at: What "now" is for relative ones (UTC); None leaves their bounds open.

    An expression whose bounds cannot be told ("before the trip") keeps its words, with both None.
    """
    found: list[tuple[int, int, TimeExpression]] = []
    for rule in _RULES:
        for match in rule.pattern.finditer(text):
            if all(match.end() <= start or match.start() >= end for start, end, _ in found):
                bounds = _safely(rule, match, valid_at)
                found.append((match.start(), match.end(), _expression(text, match, bounds)))
    return tuple(expression for _, _, expression in sorted(found, key=lambda item: item[0])[:TIMES_MAX])


def _safely(rule: _Rule, match: re.Match[str], valid_at: datetime | None) -> Bounds | None:
    try:
        return rule.read(match, valid_at)
    except (ValueError, OverflowError):
        # 31 June, or a year before the first: words that look like a time and are none.
        return None


def _expression(text: str, match: re.Match[str], bounds: Bounds | None) -> TimeExpression:
    start, end = bounds if bounds is not None else (None, None)
    before = text[: match.start()].lower().split()[-1:]
    # "before May" ends where May starts; "after May" and "since May" start at its end and its start.
    if bounds is not None and before and before[0] in {"before", "until"}:
        start, end = None, bounds[0]
    elif bounds is not None and before and before[0] in {"after", "since"}:
        start, end = (bounds[1] if before[0] == "after" else bounds[0]), None
    return TimeExpression(wording=match.group().strip(), start=start, end=end)


def _month(word: str) -> int:
    return next(number for number, name in enumerate(_MONTHS, 1) if name.startswith(word[:3].lower()))


def _day(year: int, month: int, day: int) -> Bounds:
    start = datetime(year, month, day, tzinfo=UTC)
    return start, start + timedelta(days=1)


def _months(year: int, month: int, *, count: int) -> Bounds:
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    last_year, last_month = year + (month - 1 + count) // 12, (month - 1 + count) % 12 + 1
    return datetime(year, month, 1, tzinfo=UTC), datetime(last_year, last_month, 1, tzinfo=UTC)


def _latest_year(valid_at: datetime | None, month: int, day: int = 1) -> int | None:
    """Return the year of the latest such date not after the time asked for."""
    if valid_at is None:
        return None
    return valid_at.year - ((month, day) > (valid_at.month, valid_at.day))


def _iso(match: re.Match[str], _: datetime | None) -> Bounds | None:
    year, month, day = int(match["year"]), int(match["month"]), match["day"]
    return _months(year, month, count=1) if day is None else _day(year, month, int(day))


def _written_day(match: re.Match[str], valid_at: datetime | None) -> Bounds | None:
    month, day = _month(match["month"]), int(match["day"])
    year = int(match["year"]) if match["year"] else _latest_year(valid_at, month, day)
    return None if year is None else _day(year, month, day)


def _written_month(match: re.Match[str], valid_at: datetime | None) -> Bounds | None:
    month, stated = _month(match["month"]), match.groupdict().get("year")
    year = int(stated) if stated else _latest_year(valid_at, month)
    return None if year is None else _months(year, month, count=1)


def _season(match: re.Match[str], valid_at: datetime | None) -> Bounds | None:
    month = _SEASONS[match["season"].lower()]
    year = int(match["year"]) if match["year"] else _latest_year(valid_at, month)
    if year is not None and (match["which"] or "").lower() == "last" and valid_at is not None:
        # In July "last summer" is the year before's; in December it is this year's.
        _, end = _months(year, month, count=3)
        year -= end > valid_at
    return None if year is None else _months(year, month, count=3)


def _quarter(match: re.Match[str], _: datetime | None) -> Bounds | None:
    return _months(int(match["year"]), 3 * _QUARTERS[match["quarter"].lower()] - 2, count=3)


def _year(match: re.Match[str], _: datetime | None) -> Bounds | None:
    return _months(int(match["year"]), 1, count=12)


def _near_day(match: re.Match[str], valid_at: datetime | None) -> Bounds | None:
    if valid_at is None:
        return None
    shift = {"yesterday": -1, "last night": -1, "today": 0, "tonight": 0, "this morning": 0, "tomorrow": 1}
    day = valid_at + timedelta(days=shift[" ".join(match.group().lower().split())])
    return _day(day.year, day.month, day.day)


def _weekday(match: re.Match[str], valid_at: datetime | None) -> Bounds | None:
    if valid_at is None:
        return None
    wanted = _DAYS.index(match["weekday"].lower())
    back = (valid_at.weekday() - wanted) % 7 or 7
    day = (
        valid_at - timedelta(days=back)
        if match["which"].lower() != "next"
        else valid_at + timedelta(days=7 - back or 7)
    )
    return _day(day.year, day.month, day.day)


def _unit_at(moment: datetime, unit: str, *, shift: int) -> Bounds:
    match unit:
        case "day":
            day = moment + timedelta(days=shift)
            return _day(day.year, day.month, day.day)
        case "week":
            monday = moment - timedelta(days=moment.weekday() - 7 * shift)
            start, _ = _day(monday.year, monday.month, monday.day)
            return start, start + timedelta(days=7)
        case "weekend":
            start, _ = _unit_at(moment, "week", shift=shift)
            return start + timedelta(days=5), start + timedelta(days=7)
        case "month":
            return _months(moment.year, moment.month + shift, count=1)
        case _:
            return _months(moment.year + shift, 1, count=12)


def _calendar_unit(match: re.Match[str], valid_at: datetime | None) -> Bounds | None:
    if valid_at is None:
        return None
    shift = {"last": -1, "past": -1, "previous": -1, "this": 0, "next": 1}[match["which"].lower()]
    return _unit_at(valid_at, match["unit"].lower(), shift=shift)


def _count(word: str) -> int:
    word = word.lower().removeprefix("a ")
    return int(word) if word.isdecimal() else _NUMBERS[word]


def _ago(match: re.Match[str], valid_at: datetime | None) -> Bounds | None:
    if valid_at is None:
        return None
    return _unit_at(valid_at, match["unit"].lower().rstrip("s"), shift=-_count(match["count"]))


def _last_units(match: re.Match[str], valid_at: datetime | None) -> Bounds | None:
    if valid_at is None:
        return None
    start, _ = _unit_at(valid_at, match["unit"].lower().rstrip("s"), shift=-_count(match["count"]))
    return start, valid_at + timedelta(microseconds=1)


def _unknown(_: re.Match[str], __: datetime | None) -> Bounds | None:
    return None


def _after(*before: str) -> str:
    return "(?:" + "|".join(f"(?<={word} )" for word in before) + ")"


def _rules() -> Iterator[_Rule]:
    def rule(pattern: str, read: Callable[[re.Match[str], datetime | None], Bounds | None]) -> _Rule:
        return _Rule(re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE), read)

    year, day = r"(?P<year>[12][0-9]{3})", r"(?P<day>[0-3]?[0-9])(?:st|nd|rd|th)?"
    month = rf"(?P<month>{_MONTH_WORD})\.?"
    units = r"(?P<unit>days?|weeks?|months?|years?)"
    ordinals = "|".join(word for word in _QUARTERS if not word.isdecimal())
    yield rule(rf"{year}[ -]?q(?P<quarter>[1-4])", _quarter)
    yield rule(rf"q(?P<quarter>[1-4])(?: of|,)?[ -]?{year}", _quarter)
    yield rule(rf"(?:the )?(?P<quarter>{ordinals}) quarter(?: of|,)? {year}", _quarter)
    yield rule(rf"{year}-(?P<month>[01][0-9])(?:-(?P<day>[0-3][0-9]))?", _iso)
    yield rule(rf"(?:the )?{day}(?: of)? {month}(?:,? {year})?", _written_day)
    yield rule(rf"{month} (?:the )?{day}(?:,? {year})?", _written_day)
    yield rule(rf"{month}(?: of)?,? {year}", _written_month)
    # Without a year a month needs a preposition: "may" and "march" are verbs too.
    yield rule(
        rf"{_after('in', 'since', 'during', 'before', 'after', 'until', 'last', 'this')}{month}",
        _written_month,
    )
    yield rule(
        rf"(?:(?P<which>last|this|next|in|the) )?(?P<season>{'|'.join(_SEASONS)})(?:(?: of)? {year})?",
        _season,
    )
    yield rule(r"yesterday|today|tonight|tomorrow|last night|this morning", _near_day)
    yield rule(rf"(?P<which>last|on|this|next) (?P<weekday>{'|'.join(_DAYS)})", _weekday)
    yield rule(r"(?P<which>last|past|previous|this|next) (?P<unit>week|weekend|month|year)", _calendar_unit)
    yield rule(rf"(?P<count>{_NUMBER_WORD}) {units} ago", _ago)
    yield rule(rf"(?:in|over|during|within) the (?:last|past) (?P<count>{_NUMBER_WORD}) {units}", _last_units)
    yield rule(r"(?P<year>(?:19|20)[0-9]{2})", _year)
    # An event that the question names: its time is for the ledger to know.
    event = r"(?:the|my|his|her|our|their) \w+|\w+ing(?: \w+){0,3}|(?-i:[A-Z])\w*(?: (?-i:[A-Z])\w*)*"
    yield rule(rf"(?:before|after|during|since|until) (?:{event})", _unknown)


_RULES: Final = tuple(_rules())
