"""
Time as sources state it and as the ledger orders it.

An instant is UTC with microseconds. A `Term` is what a source said: an exact instant, or a
calendar term such as `2023` or `2023-04-05`, with the offset and wording it was said in.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from typing import Final, NewType

from contracts.errors import BadRequest
from contracts.records import record

ValidAt = NewType("ValidAt", datetime)
"""When something held in the world. UTC."""
KnownAt = NewType("KnownAt", datetime)
"""An instant of the ledger's own clock: a view's `known_at`, or a `recorded_at`. UTC."""


class Precision(StrEnum):
    """What the source really said, coarse to fine. A day or coarser is "coarse"."""

    YEAR = "year"
    MONTH = "month"
    DAY = "day"
    HOUR = "hour"
    MINUTE = "minute"
    SECOND = "second"
    MILLISECOND = "millisecond"
    MICROSECOND = "microsecond"

    @property
    def is_coarse(self) -> bool:
        """A day or coarser; a time of day is exact."""
        return self in {Precision.YEAR, Precision.MONTH, Precision.DAY}


MICROSECOND: Final = timedelta(microseconds=1)
"""The shortest time that is told apart."""
YEAR_MAX: Final = 9998
"""The last year that a term can name, in the source's own offset: what comes after it has an open end."""

_MILLISECOND_DIGITS: Final = 3
_OFFSET_HOURS_MAX: Final = 14
_MINUTES_MAX: Final = 59

_STEPS: Final = {
    Precision.DAY: timedelta(days=1),
    Precision.HOUR: timedelta(hours=1),
    Precision.MINUTE: timedelta(minutes=1),
    Precision.SECOND: timedelta(seconds=1),
    Precision.MILLISECOND: timedelta(milliseconds=1),
    Precision.MICROSECOND: MICROSECOND,
}

# As most clocks say it: written already as `format_instant` writes it, but for the name of its offset.
_PLAIN: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2})(?:Z|\+00:00)"
)
_TERM: Final = re.compile(
    r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2})"
    r"(?:[Tt ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,9}))?)?)?)?)?"
    r"(?P<offset>[Zz]|[+-][0-9]{2}:?[0-9]{2})?"
)


@record
class Term:
    """
    A point in time as a source stated it.

    `first` is the first instant it can mean (UTC), `after` the first instant past it: "2023" is
    `[2023-01-01, 2024-01-01)`. `offset_minutes` is the offset it was read in, and
    `offset_stated` whether the source gave one.
    """

    first: datetime
    after: datetime
    precision: Precision
    offset_minutes: int
    offset_stated: bool
    wording: str

    @property
    def is_coarse(self) -> bool:
        """A day or coarser."""
        return self.precision.is_coarse

    def with_precision(self, precision: Precision) -> Term:
        """Return the same first instant, said at another precision."""
        zone = timezone(timedelta(minutes=self.offset_minutes))
        return Term(
            first=self.first,
            after=_after(self.first.astimezone(zone), precision, field="precision"),
            precision=precision,
            offset_minutes=self.offset_minutes,
            offset_stated=self.offset_stated,
            wording=self.wording,
        )


def parse_term(wording: str, *, field: str, offset_minutes: int | None = None) -> Term:
    """
    Read a calendar term or an instant.

    Args:
        wording: `2023`, `2023-04`, `2023-04-05` (each with an optional offset), or an instant
            with an offset.
        field: What to call it in an error.
        offset_minutes: The source's own offset, used where a calendar term states none;
            UTC if that is None too.

    Raises:
        BadRequest: Not a time, an instant without an offset, or outside years 1 to 9998.
    """
    plain = _plain_term(wording)
    if plain is not None:
        return plain
    match = _TERM.fullmatch(wording.strip())
    if match is None:
        raise BadRequest(field=field, reason="not an ISO 8601 instant or calendar term")
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    if hour is not None and offset is None:
        raise BadRequest(field=field, reason="an instant needs an offset, such as Z or +02:00")
    minutes = (offset_minutes or 0) if offset is None else _offset_minutes(offset, field=field)
    precision = _precision(month=month, day=day, minute=minute, second=second, fraction=fraction)
    try:
        local = datetime(
            int(year),
            int(month or 1),
            int(day or 1),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            0 if fraction is None else int(fraction.ljust(6, "0")[:6]),
            tzinfo=timezone(timedelta(minutes=minutes)) if minutes else UTC,
        )
        first = local.astimezone(UTC) if minutes else local
    except (ValueError, OverflowError) as error:
        raise BadRequest(field=field, reason=f"no such time: {error}") from error
    return Term(
        first=first,
        after=_after(local, precision, field=field),
        precision=precision,
        offset_minutes=minutes,
        offset_stated=offset is not None,
        wording=wording,
    )


def _plain_term(wording: str) -> Term | None:
    """Return a second in UTC, as most clocks say it and soon read; None for all else."""
    if _PLAIN.fullmatch(wording) is None:
        return None
    try:
        first = datetime.fromisoformat(wording)
    except ValueError:
        return None
    if first.year > YEAR_MAX:
        return None
    return Term(
        first=first,
        after=first + _STEPS[Precision.SECOND],
        precision=Precision.SECOND,
        offset_minutes=0,
        offset_stated=True,
        wording=wording,
    )


def parse_instant(wording: str, *, field: str) -> datetime:
    """
    Read an exact instant and return it in UTC.

    Raises:
        BadRequest: Not an instant, a calendar term, or no offset.
    """
    return instant_term(wording, field=field).first


def instant_term(wording: str, *, field: str) -> Term:
    """Return an instant as it was stated; raises what `parse_instant` does."""
    term = parse_term(wording, field=field)
    if term.is_coarse:
        raise BadRequest(field=field, reason="an instant with a time of day and an offset is needed")
    return term


def instant_form(wording: str, *, field: str) -> tuple[str, Precision]:
    """
    Return an instant that `parse_instant` takes in the one form of it, and its precision.

    Its offset is the one that it was said in; only digits that the source did not say are added.
    """
    plain = _PLAIN.fullmatch(wording)
    if plain is not None:
        return f"{plain[1]}Z", Precision.SECOND
    term = parse_term(wording, field=field)
    return format_instant(term.first, offset_minutes=term.offset_minutes), term.precision


def parse_interval(
    from_: str | None, to: str | None, *, field: str, offset_minutes: int | None
) -> tuple[datetime | None, datetime | None]:
    """
    Read a half-open interval: each bound is the first instant of its term, None is open. UTC.

    Raises:
        BadRequest: A bound is no term, or the interval is empty or inverted.
    """
    start = None if from_ is None else parse_term(from_, field="from", offset_minutes=offset_minutes).first
    end = None if to is None else parse_term(to, field="to", offset_minutes=offset_minutes).first
    if start is not None and end is not None and start >= end:
        raise BadRequest(field=field, reason="the interval is empty or inverted")
    return start, end


def format_instant(instant: datetime, *, offset_minutes: int = 0) -> str:
    """Write an instant as ISO 8601 with microseconds only where there are any, never without a zone."""
    local = instant.astimezone(timezone(timedelta(minutes=offset_minutes)) if offset_minutes else UTC)
    text = local.isoformat()
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text


def _precision(
    *, month: str | None, day: str | None, minute: str | None, second: str | None, fraction: str | None
) -> Precision:
    if fraction is not None:
        return Precision.MILLISECOND if len(fraction) <= _MILLISECOND_DIGITS else Precision.MICROSECOND
    if second is not None:
        return Precision.SECOND
    if minute is not None:
        return Precision.MINUTE
    if day is not None:
        return Precision.DAY
    return Precision.YEAR if month is None else Precision.MONTH


def _offset_minutes(text: str, *, field: str) -> int:
    if text in {"Z", "z"}:
        return 0
    hours, minutes = int(text[1:3]), int(text[-2:])
    if hours > _OFFSET_HOURS_MAX or minutes > _MINUTES_MAX:
        raise BadRequest(field=field, reason="no such offset")
    total = hours * 60 + minutes
    return -total if text[0] == "-" else total


def _after(local: datetime, precision: Precision, *, field: str) -> datetime:
    # Years and months are counted in the source's own offset: a month there is a month of its
    # calendar, not thirty days.
    try:
        match precision:
            case Precision.YEAR:
                after = _add_months(local, 12)
            case Precision.MONTH:
                after = _add_months(local, 1)
            case _:
                after = local + _STEPS[precision]
        if after.year > YEAR_MAX and after > datetime(YEAR_MAX + 1, 1, 1, tzinfo=local.tzinfo):
            raise BadRequest(field=field, reason=f"reaches past the year {YEAR_MAX}")
        return after if after.tzinfo is UTC else after.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise BadRequest(field=field, reason=f"out of range: {error}") from error


def _add_months(local: datetime, months: int) -> datetime:
    # The last day of a shorter month stands for a day that it does not have.
    years, month = divmod(local.month - 1 + months, 12)
    year = local.year + years
    day = min(local.day, monthrange(year, month + 1)[1])
    return local.replace(year=year, month=month + 1, day=day)
