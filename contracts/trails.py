"""Recall trails: what is kept of every question, enough to replay it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from contracts.answers import Answer, AnswerStatus
from contracts.contexts import ContextPack
from contracts.models import Reading
from contracts.proposals import Proposal
from contracts.resolutions import KeyResolution
from contracts.views import View

PACKER_UNSAID: Final = 2
"""Packed contexts when a trail did not say by which version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """
    A question with its options: with a pinned view and a proposal it determines the answer.

    `budget_bytes` bounds the rendered context beside its tokens; None where only tokens count, as in
    every question that was stored before bytes could be bounded.
    """

    text: str
    budget_tokens: int
    disclose_conflicts: bool
    budget_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """
    One recall, as stored: question and proposal encrypted, the rest in clear.

    `packer` is the version by which the context was packed: those that are older than the field were
    packed by `PACKER_UNSAID`.

    `status` is None for those that were stored before it was kept. `reading` is what a reader made of
    the context, with exactly what it said, None where none was asked: it goes where the question goes.
    """

    trail_id: str
    tenant: str
    question: Question
    view: View
    proposal: Proposal
    configuration_hash: str
    context_hash: str
    content_hash: str
    answer_digest: str
    status: AnswerStatus | None
    reading: Reading | None = None
    packer: int = PACKER_UNSAID


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailsWanted:
    """
    Which recalls are looked for: all that fit everything that is given.

    `event_id` is one that the context shows or that decided it; `entity` a name that the question was
    about, or a key of which was looked at. Asked in `[asked_from, asked_to)`.
    """

    context_hash: str | None = None
    event_id: str | None = None
    entity: str | None = None
    status: AnswerStatus | None = None
    asked_from: datetime | None = None
    asked_to: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """
    What a stored trail gives today: its context and its answer, with its digest, built anew.

    `erased_event_ids` are events that the candidates or the keys named and that have been erased
    since, so that a difference may be due to them alone.
    """

    pack: ContextPack
    answer: Answer
    answer_digest: str
    resolutions: tuple[KeyResolution, ...]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TodayReport:
    """
    What today's logic says to a stored question, from what was known then.

    `then` is None where the epoch of then was dropped; `is_same` compares with the stored digest all the
    same. `differences` are sentences for a person. Of a question that was erased there are the ids of the
    events that went with it, and `epoch_then`, `then`, `now` and `is_same` are None.
    """

    context_hash: str
    epoch_then: int | None
    epoch_now: int
    then: str | None
    now: str | None
    is_same: bool | None
    differences: tuple[str, ...]
    erased: bool
    erased_event_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerChange:
    """One answer that used an event, with and without it; `changes` None where it cannot be answered now."""

    trail_id: str
    context_hash: str
    changes: bool | None
    before: str
    after: str
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retraction:
    """
    What the retraction of an event would change: keys first, then answers that used it.

    `erased` says that the event is: then there is nothing that its retraction could change. `erased_count`
    answers used it and are erased; `next_number` begins the next page of answers.
    """

    event_id: str
    erased: bool
    keys: tuple[str, ...]
    answers: tuple[AnswerChange, ...]
    erased_count: int
    next_number: int | None
