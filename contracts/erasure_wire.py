"""Erasing and scrubbing as doors take and show them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from contracts import limits
from contracts._wire import Wire
from contracts.erasures import ErasureRequest
from contracts.names import Name

EventIds = Annotated[list[Name], Field(min_length=1, max_length=limits.ERASED_EVENTS_MAX)]


class ErasureBody(Wire):
    """What to erase: a subject, with all that it is one with, or events. Exactly one of them."""

    subject: Name | None = None
    events: EventIds | None = None

    def request(self) -> ErasureRequest:
        """
        Return the request.

        Raises:
            BadRequest: Neither or both are given.
        """
        return ErasureRequest(subject=self.subject, event_ids=tuple(self.events or ()))


class PlaceAnswer(Wire):
    """One place where erased bytes may lie, and whether they are gone or an operator has to see to it."""

    place: str
    state: Literal["done", "operator"]
    words: str


class ScrubAnswer(Wire):
    """
    Whether the bytes of what was erased are gone from the files, for everything erased so far.

    `pending`: an erasure waits for its scrub, and `failure` says why if one was tried; `done`: gone;
    `operator`: gone where the plane can reach, and `places` says where it cannot. `at` is when the last
    scrub ended.
    """

    state: Literal["done", "pending", "operator"]
    at: str | None
    failure: str | None
    places: list[PlaceAnswer]


class ErasureAnswer(Wire):
    """
    What one erasure took. No content.

    `erased` are the events it took, with those derived from them; `already_erased` those that an
    earlier one had taken. If it took none, nothing was appended and the first fields are null.
    """

    tenant: str
    event_id: str | None
    commit: int | None
    recorded_at: str | None
    erased: list[str]
    already_erased: list[str]
    tombstones_count: int
    contexts_count: int
    trails_count: int
    units_count: int
    scrub: ScrubAnswer
