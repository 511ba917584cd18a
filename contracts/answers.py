"""What a question is answered with."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class AnswerStatus(StrEnum):
    """Answered from resolved state; evidence only; nothing to answer from; or sources disagree."""

    ANSWERED = "answered"
    EVIDENCE = "evidence"
    INSUFFICIENT_EVIDENCE = "insufficient_evidence"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """
    The realized answer. `value` is JSON; None unless answered, a disclosed conflict, or a bound.

    `cites` are line ids of the context. `reason` says why not, in stable words, where the
    status is not `answered`.
    """

    status: AnswerStatus
    value: Any
    cites: tuple[str, ...]
    reason: str | None
