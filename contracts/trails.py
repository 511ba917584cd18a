"""Recall trails: what is kept of every question, enough to replay it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from contracts.contexts import ContextPack
from contracts.proposals import Proposal
from contracts.views import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question with its options: with a pinned view and a proposal it determines the answer."""

    text: str
    budget_tokens: int
    disclose_conflicts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """One recall, as stored: question and proposal encrypted, the rest in clear."""

    trail_id: str
    tenant: str
    question: Question
    view: View
    proposal: Proposal
    configuration_hash: str
    context_hash: str
    content_hash: str
    answer_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """
    What a stored trail gives today: its context, and the digest of its answer, built anew.

    `erased_event_ids` are events that the candidates or the keys named and that have been erased
    since, so that a difference may be due to them alone.
    """

    pack: ContextPack
    answer_digest: str
    erased_event_ids: tuple[str, ...]


class Verdict(StrEnum):
    """How a replay ended. `mismatch` is an incident."""

    IDENTICAL = "identical"
    REDACTED = "redacted"
    MISMATCH = "mismatch"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    """The verdict, and where the replay first differed (stable words, no content)."""

    verdict: Verdict
    context_hash: str
    replayed_hash: str | None
    differences: tuple[str, ...]
    erased_event_ids: tuple[str, ...]
