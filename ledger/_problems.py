"""What a verification found that does not add up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

PROBLEMS_LISTED_MAX: Final = 100
"""Problems that a report lists; the rest is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that does not add up: a stable word for what was checked, and where."""

    check: str
    place: str

    def __str__(self) -> str:
        """Return `place: check`."""
        return f"{self.place}: {self.check}"


@dataclass(slots=True, kw_only=True)
class Problems:
    """Collects problems; the first are kept."""

    listed: list[Problem] = field(default_factory=list)
    count: int = 0

    def add(self, check: str, place: str) -> None:
        """Note one."""
        self.count += 1
        if len(self.listed) < PROBLEMS_LISTED_MAX:
            self.listed.append(Problem(check=check, place=place))
