"""
Canonical JSON (RFC 8785) of the plane's values, and SHA-256 over it.

Source: DESIGN decision 7. Integers past 2^53-1 travel as strings; instants as ISO 8601 in UTC;
durations as whole microseconds. Nothing here depends on a locale, a time zone or a set's order.
"""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Final, TypeAlias

import rfc8785

from contracts.times import MICROSECOND, format_instant

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
"""A JSON value."""

_INTEGER_MAX: Final = 2**53 - 1
_ENCODE: Final = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), check_circular=False
).encode


def canonical(value: object) -> bytes:
    """
    Return the canonical bytes of a JSON value, or of contracts' values nested in one.

    Raises:
        ValueError: A NaN, an infinity or a lone surrogate.
        TypeError: Not a JSON value and none of ours.
    """
    odd: list[object] = []
    found = _plain(value, odd)
    # Where nothing is odd, the standard library writes what the RFC has, and several times as fast.
    return rfc8785.dumps(found) if odd else _ENCODE(found).encode()


def digest(data: bytes) -> str:
    """Return SHA-256 as lower-case hex."""
    return hashlib.sha256(data).hexdigest()


def plain(value: object) -> Json:
    """Return a value as JSON with nothing left that RFC 8785 cannot carry."""
    return _plain(value, [])


def _plain(value: object, odd: list[object]) -> Json:
    """As `plain`; `odd` takes what the standard library writes otherwise than the RFC: floats, and keys."""
    # What there is most of comes first, by its very type: an enumeration's member is a str to Python, too.
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value  # type: ignore[return-value]
    if kind is int:
        return value if -_INTEGER_MAX <= value <= _INTEGER_MAX else str(value)  # type: ignore[operator, return-value]
    if kind is list or kind is tuple:
        return [_plain(item, odd) for item in value]  # type: ignore[attr-defined]
    if kind is dict:
        form: dict[str, Json] = {}
        for key, item in value.items():  # type: ignore[attr-defined]
            if not isinstance(key, str):
                raise TypeError("a key is not a string")
            if not key.isascii():
                # Beyond the basic plane their order is another one.
                odd.append(key)
            form[key] = _plain(item, odd)
        return form
    return _plain_of_ours(value, odd)


def _plain_of_ours(value: object, odd: list[object]) -> Json:
    match value:
        # Before int and str: a bool is an int, and a StrEnum a str, to Python.
        case Enum():
            return _plain(value.value, odd)
        case int():
            return _plain(int(value), odd)
        case str():
            return str(value)
        case float():
            odd.append(value)
            return float(value)
        case datetime():
            return format_instant(value)
        case timedelta():
            return _plain(value // MICROSECOND, odd)
        case _:
            pass
    if names := _names(type(value)):  # type: ignore[arg-type]  # a class is hashable
        return {name: _plain(getattr(value, name), odd) for name in names}
    match value:
        case list() | tuple():
            return _plain(list(value), odd)
        case dict():
            return _plain(dict(value), odd)
        case _:
            raise TypeError(f"{type(value).__name__} is not a JSON value")


@functools.cache
def _names(kind: type[object]) -> tuple[str, ...]:
    """Return the names of a record's fields: of a dataclass, or of a tuple that has names."""
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    names: tuple[str, ...] = getattr(kind, "_fields", ())
    return names
