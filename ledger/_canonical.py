"""
Canonical JSON (RFC 8785): equal values, equal bytes, on any machine.

RFC 8785 knows no whole number past 2^53, but claims do: such a one travels as `{"$int": "…"}`,
and a key that starts with `$` gets one more, so that no value of a caller reads as a tag.
"""

from __future__ import annotations

import json
from typing import Any, Final, TypeAlias

import rfc8785

from contracts.errors import BadRequest, IntegrityFault

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_INTEGER_MAX: Final = 2**53 - 1
_TAG: Final = "$int"
_ENCODE: Final = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), check_circular=False
).encode
_DECODE: Final = json.JSONDecoder().decode
# A tag, an escaped key, or a number of which it must be asked whether it was a float's. Within
# text it may mean nothing: then the bytes are only read more slowly.
_TAGGING: Final = b"$"
_LONG_NUMBER: Final = b"0" * 16
_DIGITS_ALIKE: Final = bytes.maketrans(b"123456789", b"0" * 9)


def canonical(value: object) -> bytes:
    """
    Return the canonical bytes of a JSON value.

    Raises:
        BadRequest: Not JSON: NaN, an infinity, a lone surrogate, a key that is not a string, or a
            whole number with more digits than Python reads back.
    """
    try:
        if _is_simple(value):
            return _ENCODE(value).encode()
        return rfc8785.dumps(_tagged(value))
    except (rfc8785.CanonicalizationError, ValueError, RecursionError) as error:
        raise BadRequest(field="value", reason=f"not canonical JSON: {error}") from error


def parse(data: bytes) -> Any:  # noqa: ANN401 - the caller knows what it stored
    """
    Return the value that `canonical` made the bytes of; a line of a file may end with its line end.

    Raises:
        IntegrityFault: They are not such bytes.
    """
    try:
        # Read as text: from bytes, the library first asks which of five encodings they are in.
        text = data.decode()
        # Looked for in bytes: a regular expression takes longer than all of the reading.
        if _TAGGING in data or _LONG_NUMBER in data.translate(_DIGITS_ALIKE):
            return _untagged(json.loads(text, parse_int=_number))
        return _DECODE(text)
    except (ValueError, KeyError, RecursionError) as error:
        raise IntegrityFault(what="stored JSON cannot be read") from error


def _number(digits: str) -> int | float:
    # Whole numbers past the bound are tagged, so these digits were a float's: 1e20 is written as
    # a one and twenty zeros, and must not come back as a whole number.
    number = int(digits)
    return number if abs(number) <= _INTEGER_MAX else float(digits)


def _is_simple(value: object) -> bool:
    """
    Return whether the standard library writes a value as the RFC has it, and several times as fast.

    It differs in floats and in the order of keys beyond the basic plane; and here nothing is tagged.
    """
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return True
    if kind is int:
        return -_INTEGER_MAX <= value <= _INTEGER_MAX  # type: ignore[operator]
    if kind is list:
        return all(map(_is_simple, value))  # type: ignore[call-overload]
    if kind is dict:
        return all(
            type(key) is str and key.isascii() and not key.startswith("$") and _is_simple(item)
            for key, item in value.items()  # type: ignore[attr-defined]
        )
    return False


def _tagged(value: object) -> Json:
    match value:
        case bool() | None | str() | float():
            return value
        case int():
            return value if abs(value) <= _INTEGER_MAX else {_TAG: str(value)}
        case list() | tuple():
            return [_tagged(item) for item in value]
        case dict():
            return {_escaped(key): _tagged(item) for key, item in value.items()}
        case _:
            raise ValueError(f"{type(value).__name__} is not a JSON value")


def _escaped(key: object) -> str:
    if not isinstance(key, str):
        raise ValueError("a key is not a string")  # noqa: TRY004 - one kind of error leaves here
    return f"${key}" if key.startswith("$") else key


def _untagged(value: Json) -> Json:
    match value:
        case list():
            return [_untagged(item) for item in value]
        case dict() if value.keys() == {_TAG}:
            return int(str(value[_TAG]))
        case dict():
            return {key.removeprefix("$"): _untagged(item) for key, item in value.items()}
        case _:
            return value
