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

from contracts.times import format_instant

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
"""A JSON value."""

_INTEGER_MAX: Final = 2**53 - 1
_MICROSECOND: Final = timedelta(microseconds=1)
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
    found = plain(value)
    return _ENCODE(found).encode() if _is_simple(found) else rfc8785.dumps(found)


def digest(data: bytes) -> str:
    """Return SHA-256 as lower-case hex."""
    return hashlib.sha256(data).hexdigest()


def plain(value: object) -> Json:
    """Return a value as JSON with nothing left that RFC 8785 cannot carry."""
    # What there is most of comes first, by its very type: an enumeration's member is a str to Python, too.
    kind = type(value)
    if kind is str or kind is bool or kind is float or value is None:
        return value  # type: ignore[return-value]
    if kind is int:
        return value if -_INTEGER_MAX <= value <= _INTEGER_MAX else str(value)  # type: ignore[operator, return-value]
    if kind is list or kind is tuple:
        return [plain(item) for item in value]  # type: ignore[attr-defined]
    if kind is dict:
        if not all(isinstance(key, str) for key in value):  # type: ignore[attr-defined]
            raise TypeError("a key is not a string")
        return {key: plain(item) for key, item in value.items()}  # type: ignore[attr-defined]
    return _plain_of_ours(value)


def _plain_of_ours(value: object) -> Json:
    match value:
        # Before int and str: a bool is an int, and a StrEnum a str, to Python.
        case Enum():
            return plain(value.value)
        case int():
            return plain(int(value))
        case str():
            return str(value)
        case float():
            return float(value)
        case datetime():
            return format_instant(value)
        case timedelta():
            return plain(value // _MICROSECOND)
        case _:
            pass
    if names := _names(type(value)):  # type: ignore[arg-type]  # a class is hashable
        return {name: plain(getattr(value, name)) for name in names}
    match value:
        case list() | tuple():
            return plain(list(value))
        case dict():
            return plain(dict(value))
        case _:
            raise TypeError(f"{type(value).__name__} is not a JSON value")


@functools.cache
def _names(kind: type[object]) -> tuple[str, ...]:
    """Return the names of a record's fields: of a dataclass, or of a tuple that has names."""
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    names: tuple[str, ...] = getattr(kind, "_fields", ())
    return names


def _is_simple(value: Json) -> bool:
    """
    Return whether the standard library writes a value as the RFC has it, and several times as fast.

    It differs in floats and in the order of keys beyond the basic plane.
    """
    kind = type(value)
    if kind is list:
        return all(map(_is_simple, value))  # type: ignore[arg-type]
    if kind is dict:
        return all(key.isascii() and _is_simple(item) for key, item in value.items())  # type: ignore[union-attr]
    return kind is not float
