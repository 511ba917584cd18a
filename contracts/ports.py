"""Ports: what one package needs from another that it may not import."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from contracts.claims import ProjectedClaim
from contracts.events import Event
from contracts.proposals import Proposal
from contracts.trails import Question, Rebuilt, Trail
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


class Digests(Protocol):
    """
    Digests that cannot be guessed without a key: HMAC-SHA256, as hex. Pure, once the keys are read.

    The wiring reads the data keys of all events named before it packs, so that packing does no
    I/O.
    """

    def of_event(self, event_id: str, data: bytes) -> str:
        """
        Return the digest keyed with the event's data key.

        Raises:
            IntegrityFault: The event's key is not at hand.
        """
        ...

    def of_tenant(self, data: bytes) -> str:
        """Return the digest keyed with the tenant's digest key: for names, questions, contracts."""
        ...


class QueryPath(Protocol):
    """The query path, seen from replay: everything after `propose`, from what a trail holds."""

    async def rebuild(self, *, tenant: str, trail: Trail) -> Rebuilt:
        """
        Resolve, close, pack and realize anew: stored question, view and proposal, today's ledger.

        The view is pinned as the trail says (same cut, same epoch) and the stored plan is taken
        as it is. Everything else is read again and checked; nothing is written.

        Raises:
            IntegrityFault: Something read does not match its digest, seal or chain; `what` says
                which part, in stable words.
            NotFound: An event that the trail names is gone.
            EpochDropped: The epoch that the trail names was dropped: nothing can be built or compared.
        """
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
