"""
Versions of events. Stored bytes never change: what an older build wrote is lifted when it is read.

A lift is pure and goes one version up; a golden file of each version (`tests/data`) shows that what was
written then is read now. Whoever changes what is written adds a version, a lift to it, and its file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from contracts.errors import IntegrityFault

EVENT_VERSION: Final = 3
"""What is written now."""

Payload = dict[str, Any]


def _say_when_it_was_sent(payload: Payload) -> Payload:
    """In version 1 nobody said when he sent an event."""
    return payload | {"sent_at": None}


def _as_it_is(payload: Payload) -> Payload:
    """Up to version 2 its data key was random and stored wrapped, where now it is made of a stored secret."""
    return payload


_LIFTS: Final[dict[int, Callable[[Payload], Payload]]] = {1: _say_when_it_was_sent, 2: _as_it_is}

assert set(_LIFTS) == set(range(1, EVENT_VERSION)), "from every version there is a way up"


def is_version(found: object) -> bool:
    """Return whether events of a version can be read: not those of a build to come."""
    return type(found) is int and 1 <= found <= EVENT_VERSION


def lifted(version: int, payload: Payload) -> Payload:
    """
    Return a payload as it would be written now.

    Raises:
        IntegrityFault: There is no such version, or none yet.
    """
    if not is_version(version):
        raise IntegrityFault(what=f"event version {version}: this build reads 1 to {EVENT_VERSION}")
    for step in range(version, EVENT_VERSION):
        payload = _LIFTS[step](payload)
    return payload
