"""
Canonical JSON (RFC 8785) of the plane's values, and SHA-256 over it.

Source: DESIGN decision 7. Integers past 2^53-1 travel as strings; instants as ISO 8601 in UTC;
durations as whole microseconds. Nothing here depends on a locale, a time zone or a set's order.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Final, TypeAlias

import rfc8785

from contracts.times import format_instant

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
"""A JSON value."""

_INTEGER_MAX: Final = 2**53 - 1
_MICROSECOND: Final = timedelta(microseconds=1)


def canonical(value: object) -> bytes:
    """
    Return the canonical bytes of a JSON value, or of contracts' values nested in one.

    Raises:
        ValueError: A NaN, an infinity or a lone surrogate.
        TypeError: Not a JSON value and none of ours.
    """
    return rfc8785.dumps(plain(value))


def digest(data: bytes) -> str:
    """Return SHA-256 as lower-case hex."""
    return hashlib.sha256(data).hexdigest()


def plain(value: object) -> Json:
    """Return a value as JSON with nothing left that RFC 8785 cannot carry."""
    match value:
        # Before int and str: a bool is an int, and a StrEnum a str, to Python.
        case None | bool():
            return value
        case Enum():
            return plain(value.value)
        case int():
            return value if -_INTEGER_MAX <= value <= _INTEGER_MAX else str(value)
        case str() | float():
            return value
        case datetime():
            return format_instant(value)
        case timedelta():
            return plain(value // _MICROSECOND)
        case list() | tuple():
            return [plain(item) for item in value]
        case dict() if all(isinstance(key, str) for key in value):
            return {key: plain(item) for key, item in value.items()}
        case _:
            pass
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    raise TypeError(f"{type(value).__name__} is not a JSON value")
