"""Ports: what one package needs from another that it may not import."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from contracts.claims import ProjectedClaim
from contracts.events import Event
from contracts.proposals import Proposal
from contracts.trails import Question
from contracts.views import View


class Clock(Protocol):
    """The time of day, as an argument. UTC."""

    def __call__(self) -> datetime:
        """Return now."""
        ...


class Projector(Protocol):
    """
    Reads claims out of an event: a pure function, the same for the same event for ever.

    `version` names the logic; a change of what it returns is a change of version, and an epoch.
    """

    version: str

    def project(self, event: Event) -> Sequence[ProjectedClaim]:
        """Return the event's claims, at most `EXTRACTED_CLAIMS_MAX` beyond the structured ones."""
        ...


class TokenCounter(Protocol):
    """Estimates tokens of a text, by a name that goes into every context hash."""

    name: str

    def count(self, text: str) -> int:
        """Return the estimate, at least 1 for a text that is not empty."""
        ...


class Discovery(Protocol):
    """The discovery service, seen from the query path."""

    async def propose(self, *, tenant: str, question: Question, view: View) -> Proposal:
        """
        Return candidates for a question.

        Raises:
            Unavailable: It is down or did not answer in time; go on with typed state, degraded.
        """
        ...
