"""The wall clock, as an argument: the only place that reads it."""

from __future__ import annotations

from datetime import UTC, datetime


def wall_clock() -> datetime:
    """Return now, in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - everything else is given the clock
