"""
Arrays as literals of PostgreSQL: a fold sends ten thousand rows as one parameter a column.

Written here in one pass; the driver's own way asks each element for its type and escapes it by a
regular expression, which takes longer than the server takes to store the row.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from ledger._intervals import NEVER, bound


def numbers(items: Iterable[int | None]) -> str:
    """Return an array of whole numbers."""
    return "{" + ",".join(["NULL" if item is None else str(item) for item in items]) + "}"


def truths(items: Iterable[bool]) -> str:
    """Return an array of booleans."""
    return "{" + ",".join(["t" if item else "f" for item in items]) + "}"


def binaries(items: Iterable[bytes | None]) -> str:
    """Return an array of bytes."""
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
