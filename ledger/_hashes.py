"""
The hash chain, computed here a second time: the append function in SQL computes it first.

Two implementations must agree at each append, and a later check needs none of the first one's code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from contracts.times import MICROSECOND
from ledger._keys import framed

ZERO_HASH: Final = bytes(32)
"""The hash before the first commit."""

_EVENT: Final = framed(b"echoplane/event/1")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def event_hash(header: bytes, ciphertext: bytes) -> bytes:
    """Return the SHA-256 of one event: its canonical header in clear, and its payload encrypted."""
    return hashlib.sha256(_EVENT + framed(header, ciphertext)).digest()


def commit_hash(
    *,
    previous: bytes,
    tenant: str,
    commit: int,
    recorded_at: datetime,
    first_position: int,
    event_hashes: Sequence[bytes],
) -> bytes:
    """Return the SHA-256 of one commit, over the one before it and all its events, in order."""
    numbers = (commit, (recorded_at - _EPOCH) // MICROSECOND, first_position, len(event_hashes))
    return hashlib.sha256(
        framed(b"echoplane/commit/1", previous, tenant.encode())
        + b"".join(number.to_bytes(8, "big", signed=True) for number in numbers)
        + b"".join(event_hashes)
    ).digest()
