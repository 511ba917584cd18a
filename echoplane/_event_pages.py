"""What a page of events may be asked by; every door reads it here."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from contracts.limits import PAGE_EVENTS_MAX
from contracts.names import Name

Number = Annotated[int, Field(ge=0, le=2**53 - 1)]


class EventsParameters(BaseModel):
    """Which events: those of a commit, or of a stream after a version, or of the log after a position."""

    model_config = ConfigDict(extra="forbid")

    commit: Number | None = None
    stream: Name | None = None
    after_version: Number | None = None
    correlation: Name | None = None
    after_position: Number | None = None
    limit: Annotated[int, Field(ge=1, le=PAGE_EVENTS_MAX)] = PAGE_EVENTS_MAX

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if sum(way is not None for way in (self.commit, self.stream, self.correlation)) > 1:
            raise ValueError("name a commit, a stream or a correlation")
        if self.after_position is not None and (self.commit is not None or self.stream is not None):
            raise ValueError("after_position goes with the log or a correlation")
        if self.after_version is not None and self.stream is None:
            raise ValueError("after_version goes with stream")
        return self
