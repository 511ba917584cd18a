"""What holds of a tenant by an operator's decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from contracts.errors import BadRequest
from contracts.limits import QUOTA_MAX, RATE_EVENTS_MAX, RETENTION_DAYS_MAX


def _check(field: str, value: int | None, least: int, most: int) -> None:
    if value is not None and not least <= value <= most:
        raise BadRequest(field=field, reason=f"{least} to {most}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """
    What a tenant may do; None is unbounded.

    `events_max` and `bytes_max` bound its whole log, erased events included: their rows stay. The rate is
    held on average over a minute. Events older than `retention_days` are erased.

    Raises:
        BadRequest: A bound that no policy has.
    """

    NONE: ClassVar[Self]

    suspended: bool
    events_max: int | None
    bytes_max: int | None
    events_per_minute: int | None
    retention_days: int | None

    def __post_init__(self) -> None:
        _check("events_max", self.events_max, 0, QUOTA_MAX)
        _check("bytes_max", self.bytes_max, 0, QUOTA_MAX)
        _check("events_per_minute", self.events_per_minute, 1, RATE_EVENTS_MAX)
        _check("retention_days", self.retention_days, 1, RETENTION_DAYS_MAX)


Policy.NONE = Policy(
    suspended=False, events_max=None, bytes_max=None, events_per_minute=None, retention_days=None
)
