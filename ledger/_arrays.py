"""
Arrays as PostgreSQL reads them: a fold sends ten thousand rows as one parameter a column.

Written here in one pass; the driver's own way asks each element for its type and escapes it by a
regular expression, which takes longer than the server takes to store the row. All are literals, but
those of bytes: as a literal these are twice as long, and the server reads them digit by digit.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from datetime import datetime
from typing import Final

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

from ledger._intervals import NEVER, bound

_ARRAY: Final = struct.Struct(">iiIii")
"""Dimensions, whether any element may be null, type of the elements, their number, the first one's."""
_LENGTH: Final = struct.Struct(">i").pack
_NULL: Final = _LENGTH(-1)
_BYTEA: Final = psycopg.postgres.types["bytea"]


class Binaries(bytes):
    """An array of bytes, in the server's own form."""

    __slots__ = ()


class _BinariesDumper(Dumper):
    format = Format.BINARY
    oid = _BYTEA.array_oid

    def dump(self, obj: Binaries) -> bytes:
        return obj


psycopg.adapters.register_dumper(Binaries, _BinariesDumper)


def numbers(items: Iterable[int | None]) -> str:
    """Return an array of whole numbers."""
    return "{" + ",".join(["NULL" if item is None else str(item) for item in items]) + "}"


def truths(items: Iterable[bool]) -> str:
    """Return an array of booleans."""
    return "{" + ",".join(["t" if item else "f" for item in items]) + "}"


def binaries(items: Iterable[bytes | None]) -> Binaries:
    """Return an array of bytes."""
    parts = [_NULL if item is None else _LENGTH(len(item)) + item for item in items]
    return Binaries(_ARRAY.pack(1, 1, _BYTEA.oid, len(parts), 1) + b"".join(parts))


def binaries_text(items: Iterable[bytes | None]) -> str:
    """Return an array of bytes as a literal, which can stand in another."""
    return "{" + ",".join(["NULL" if item is None else f'"\\\\x{item.hex()}"' for item in items]) + "}"


def instants(items: Iterable[datetime | None]) -> str:
    """Return an array of instants with their zone."""
    return "{" + ",".join(["NULL" if item is None else f'"{item.isoformat()}"' for item in items]) + "}"


def texts(items: Iterable[str]) -> str:
    """Return an array of texts."""
    quoted = [item.replace("\\", "\\\\").replace('"', '\\"') for item in items]
    return '{"' + '","'.join(quoted) + '"}' if quoted else "{}"


def moments(items: Iterable[int]) -> str:
    """Return an array of instants from whole microseconds; what is open is infinite."""
    found = (("-infinity" if item <= NEVER else "infinity", bound(item)) for item in items)
    return "{" + ",".join([f'"{name if at is None else at.isoformat()}"' for name, at in found]) + "}"
