"""What all shapes that doors send have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Wire(BaseModel):
    """Immutable, strict, closed."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True)
