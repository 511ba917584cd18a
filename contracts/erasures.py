"""Erasing: what is asked to be forgotten, and what was."""

from __future__ import annotations

from dataclasses import dataclass

from contracts.errors import BadRequest
from contracts.limits import ERASED_EVENTS_MAX, NAME_CHARACTERS_MAX
from contracts.times import KnownAt


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureRequest:
    """
    Exactly one of an entity, with all it is one with, or the ids of events.

    Raises:
        BadRequest: Neither or both are given, or too many events, or a name that no entity has.
    """

    subject: str | None
    event_ids: tuple[str, ...]

    def __post_init__(self) -> None:
        if (self.subject is None) == (not self.event_ids):
            raise BadRequest(field="subject", reason="name either a subject or events")
        if self.subject is not None and not 0 < len(self.subject) <= NAME_CHARACTERS_MAX:
            raise BadRequest(field="subject", reason=f"1 to {NAME_CHARACTERS_MAX} characters")
        if len(self.event_ids) > ERASED_EVENTS_MAX:
            raise BadRequest(field="event_ids", reason=f"at most {ERASED_EVENTS_MAX} at once")


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureReport:
    """
    What one erasure took, and where it stands in the log. No content.

    `erased` are the events that it took, with those that were derived from them, in the order of
    the log; `already_erased` those asked for that an earlier one had taken. If it took none,
    nothing was appended, and `event_id`, `commit` and `recorded_at` are None. An erasure with more
    to keep than one event holds is several events of one commit; `event_id` is the first.
    `units_count` are units whose vectors went.
    """

    event_id: str | None
    commit: int | None
    recorded_at: KnownAt | None
    erased: tuple[str, ...]
    already_erased: tuple[str, ...]
    tombstones_count: int
    contexts_count: int
    trails_count: int
    units_count: int
