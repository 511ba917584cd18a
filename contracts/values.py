"""
Values as sources say them, read into the type that a relation's contract names.

What is read makes equal values equal; what was said is what is kept and shown. No reason quotes a
value: it is content, and errors are logged.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from contracts.errors import BadRequest
from contracts.limits import NUMBER_CHARACTERS_MAX, NUMBER_EXPONENT_MAX
from contracts.names import is_name
from contracts.relations import RelationContract, ValueType
from contracts.times import format_instant, parse_instant, parse_interval, parse_term

PLACE_DECIMALS: Final = 6
"""Decimals of a degree to which two places are told apart: a tenth of a metre."""

_LATITUDE_MAX: Final = 90
_LONGITUDE_MAX: Final = 180
_QUANTITY: Final = re.compile(
    r"\s*(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE](?P<exponent>[+-]?[0-9]{1,3})(?![^\W_]))?)"
    r"\s*(?P<unit>\S.*)?",
    re.DOTALL,
)
_BEYOND: Final = 10**NUMBER_EXPONENT_MAX


class NotOfType(ValueError):
    """A value is none of its relation's type; says why, and never quotes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number, exactly as said, and the unit it was said in."""

    number: Fraction
    unit: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """`[start, end)`, UTC; None is open."""

    start: datetime | None
    end: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Degrees north and east, to `PLACE_DECIMALS`, each point of the globe in one way."""

    latitude: Decimal
    longitude: Decimal


def expected(contract: RelationContract) -> str:
    """Return in words what a relation takes."""
    match ValueType(contract.value_type):
        case ValueType.ANY:
            return "any JSON value"
        case ValueType.ENTITY:
            return "the name of an entity"
        case ValueType.TEXT:
            return "a text"
        case ValueType.NUMBER:
            return "a plain number" if contract.unit is None else f"a number in {contract.unit}"
        case ValueType.INSTANT:
            return "an instant with a time of day and an offset"
        case ValueType.DATE:
            return "a date, a month or a year"
        case ValueType.INTERVAL:
            return 'an interval {"from", "to"}, a date, a month or a year'
        case ValueType.BOOLEAN:
            return "true or false"
        case ValueType.PLACE:
            return 'the name of a place, or {"lat", "lon"}'
        case ValueType.JSON:
            return "JSON that follows the schema"


# --- reading -------------------------------------------------------------------------------------


def read_number(value: Any) -> Quantity:  # noqa: ANN401 — a value is any JSON
    """
    Read `5`, `"5 km"` or `{"value": 5, "unit": "km"}`; exact: 0.1 is one tenth. `{"value": 5}` is `5`.

    Raises:
        NotOfType: It is none of these, or too large or small.
    """
    match value:
        case bool():
            raise NotOfType("a boolean is no number")
        case int() | float():
            return Quantity(number=_exactly(value), unit=None)
        case str():
            return _said(value)
        case {"value": bool()}:
            raise NotOfType("a boolean is no number")
        case {"value": int() | float() as number, "unit": str() as unit} if len(value) == 2:  # noqa: PLR2004
            return Quantity(number=_exactly(number), unit=unit.strip() or None)
        case {"value": int() | float() as number} if len(value) == 1:
            return Quantity(number=_exactly(number), unit=None)
        case _:
            raise NotOfType('not a number, a number with its unit as text, or {"value", "unit"}')


def read_instant(value: object) -> datetime:
    """
    Read an instant with an offset. UTC.

    Raises:
        NotOfType: It is none.
    """
    try:
        return parse_instant(_text(value), field="value")
    except BadRequest as error:
        raise NotOfType(error.reason) from error


def read_date(value: object) -> str:
    """
    Read a date, a month or a year, and return it at the precision it was said at.

    Raises:
        NotOfType: It is none, or says an offset: a date is the same everywhere.
    """
    wording = _text(value).strip()
    try:
        term = parse_term(wording, field="value")
    except BadRequest as error:
        raise NotOfType(error.reason) from error
    if not term.is_coarse or term.offset_stated:
        raise NotOfType("a date has no time of day and no offset")
    return wording


def read_interval(value: Any) -> Interval:  # noqa: ANN401 — a value is any JSON
    """
    Read `{"from", "to"}`, half-open, each an instant, a calendar term or null; or one calendar term.

    A term without an offset is read in UTC.

    Raises:
        NotOfType: It is none, or is empty or inverted.
    """
    try:
        match value:
            case str():
                term = parse_term(value, field="value")
                if not term.is_coarse:
                    raise NotOfType("an instant is no interval")
                return Interval(start=term.first, end=term.after)
            case {"from": (str() | None) as start, "to": (str() | None) as end} if len(value) == 2:  # noqa: PLR2004
                first, after = parse_interval(start, end, field="value", offset_minutes=None)
                return Interval(start=first, end=after)
            case _:
                raise NotOfType('neither {"from", "to"} nor a calendar term')
    except BadRequest as error:
        raise NotOfType(error.reason) from error


def read_boolean(value: object) -> bool:
    """
    Read true or false.

    Raises:
        NotOfType: It is neither; nor is a word, nor a number.
    """
    if not isinstance(value, bool):
        raise NotOfType("neither true nor false")
    return value


def read_text(value: object) -> str:
    """
    Read a text.

    Raises:
        NotOfType: It is none.
    """
    return _text(value)


def read_entity(value: object) -> str:
    """
    Read the name of an entity.

    Raises:
        NotOfType: It cannot be one.
    """
    if not isinstance(value, str) or not is_name(value):
        raise NotOfType("no name: it is no text, is empty or is too long")
    return value


def read_place(value: Any) -> str | Point:  # noqa: ANN401 — a value is any JSON
    """
    Read the name of a place, or `{"lat", "lon"}` in degrees, with or without a `name` to show it by.

    Raises:
        NotOfType: It is neither, or lies outside the globe.
    """
    match value:
        case str():
            return read_entity(value)
        case {"lat": bool()} | {"lon": bool()}:
            raise NotOfType("lat and lon are numbers")
        case {"lat": int() | float() as latitude, "lon": int() | float() as longitude}:
            if not value.keys() <= {"name", "lat", "lon"}:
                raise NotOfType("a place has nothing but name, lat and lon")
            if "name" in value:
                read_entity(value["name"])
            return _point(latitude, longitude)
        case _:
            raise NotOfType('neither a name nor {"lat", "lon"}')


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise NotOfType("not a text")
    return value


def _said(text: str) -> Quantity:
    if len(text) > NUMBER_CHARACTERS_MAX:
        raise NotOfType(f"more than {NUMBER_CHARACTERS_MAX} characters")
    parts = _QUANTITY.fullmatch(text)
    if parts is None:
        raise NotOfType("no number stands at its beginning")
    if abs(int(parts["exponent"] or 0)) > NUMBER_EXPONENT_MAX:
        raise NotOfType("too large or too small")
    number, unit = Fraction(Decimal(parts["number"])), parts["unit"]
    if abs(number.numerator) > _BEYOND * number.denominator:
        raise NotOfType("too large or too small")
    return Quantity(number=number, unit=None if unit is None else unit.strip())


def _exactly(number: float) -> Fraction:
    if not -_BEYOND <= number <= _BEYOND:
        raise NotOfType("too large or too small")
    # A float is what its shortest form says: whoever writes 0.1 means a tenth, not the nearest binary.
    return Fraction(number) if isinstance(number, int) else Fraction(Decimal(repr(number)))


def _point(latitude: float, longitude: float) -> Point:
    if abs(latitude) > _LATITUDE_MAX or abs(longitude) > _LONGITUDE_MAX:
        raise NotOfType(f"lat lies within ±{_LATITUDE_MAX}, lon within ±{_LONGITUDE_MAX}")
    north, east = _rounded(latitude), _rounded(longitude)
    if abs(north) == _LATITUDE_MAX:
        # Every meridian meets there.
        east = Decimal(0)
    return Point(latitude=north, longitude=-east if east == _LONGITUDE_MAX else east)


def _rounded(degrees: float) -> Decimal:
    # Adding nothing makes minus zero zero.
    return round(Decimal(repr(degrees)), PLACE_DECIMALS) + Decimal(0)


# --- showing -------------------------------------------------------------------------------------


def shown(value: Any) -> str | None:  # noqa: ANN401 — a value is any JSON
    """
    Return a value as a person would write it, as it was said; None for what is plain JSON.

    A number with its unit, an interval and a place are told by their shape, whatever relation they
    are on: what a line of evidence says must not change when a contract does.
    """
    match value:
        case str():
            return value
        case {"value": int() | float() as number, "unit": str() as unit} if len(value) == 2:  # noqa: PLR2004
            return f"{json.dumps(number)} {unit}"
        case {"from": (str() | None) as start, "to": (str() | None) as end} if len(value) == 2:  # noqa: PLR2004
            return f"{start or 'ever'} to {end or 'open'}"
        case {"lat": int() | float() as latitude, "lon": int() | float() as longitude} if value.keys() <= {
            "name", "lat", "lon",
        }:  # fmt: skip
            at = f"{json.dumps(latitude)}, {json.dumps(longitude)}"
            return f"{value['name']} ({at})" if isinstance(value.get("name"), str) else at
        case _:
            return None


def with_unit(value: Any, contract: RelationContract) -> Any:  # noqa: ANN401 — a value is any JSON
    """Return a value with the unit that it has by its contract, where it was said without one."""
    number = value["value"] if isinstance(value, dict) and value.keys() == {"value"} else value
    plain = isinstance(number, int | float) and not isinstance(number, bool)
    return {"value": number, "unit": contract.unit} if contract.unit is not None and plain else value


def interval_form(interval: Interval) -> list[str | None]:
    """Return the bounds of an interval as instants in UTC."""
    bounds = (interval.start, interval.end)
    return [None if bound is None else format_instant(bound) for bound in bounds]
