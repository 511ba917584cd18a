"""A language model as a port, what comes of asking one, and what a reader made of a context."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from contracts.errors import Unavailable


class ModelFailure(StrEnum):
    """Why a model gave nothing that can be used. None of them is an empty answer."""

    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    OVERLOADED = "overloaded"
    """It was busy or broken each time it was asked."""
    REJECTED = "rejected"
    """It wants no such request: a wrong key, an unknown model, a prompt that is too long."""
    MALFORMED = "malformed"
    TOO_LONG = "too_long"
    EMPTY = "empty"
    CUT_OFF = "cut_off"
    """It stopped at its limit of tokens, in the middle."""
    REFUSAL = "refusal"
    OTHER_MODEL = "other_model"
    """Another model answered than the one that was asked for."""
    UNREADABLE = "unreadable"
    """It answered, and not in the form that it was told to."""


class ModelFailed(Unavailable):
    """A language model gave nothing that can be used; `failure` says why, in stable words."""

    code = "unavailable.model"

    def __init__(self, *, failure: ModelFailure, attempts: int, output: str | None = None) -> None:
        super().__init__(part="model", reason=failure.value)
        self.failure, self.attempts = failure.value, attempts
        # What it said stays out of errors that are shown: it may hold content of a memory.
        self._output = output

    @property
    def output(self) -> str | None:
        """What the model said, as it came; None where it said nothing."""
        return self._output


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What a model is asked: instructions of ours, and data that are none."""

    system: str
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOutput:
    """
    What a model said, as it came.

    `model` is the name that the endpoint gave, None where it gives none; tokens are its own count.
    """

    text: str
    model: str | None
    attempts: int
    prompt_tokens: int | None
    output_tokens: int | None


class LanguageModel(Protocol):
    """
    A model, pinned by name. The same prompt is asked with no chance in it, as far as it can be.

    `digest` is over everything that decides its output besides the prompt.
    """

    name: str
    digest: str

    async def complete(self, prompt: Prompt) -> ModelOutput:
        """
        Return what it says to a prompt.

        Raises:
            ModelFailed: Nothing that can be used came, after every attempt that is worth one.
        """
        ...


class ReadingStatus(StrEnum):
    """A reader answered, said that the context does not hold an answer, or failed."""

    ANSWERED = "answered"
    ABSTAINED = "abstained"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """
    What a reader made of a context. It is no answer of the plane, which decides from resolved state.

    `text` is None unless answered. `cites` are lines of the context, `unknown_cites` lines that are
    not in it: an answer that has one, or no line at all, is not `grounded`. `output` is exactly what
    the model said. `model` and the digests pin what was asked of whom.
    """

    status: ReadingStatus
    text: str | None
    cites: tuple[str, ...]
    unknown_cites: tuple[str, ...]
    grounded: bool
    failure: ModelFailure | None
    output: str | None
    model: str
    model_digest: str
    prompt_digest: str
    attempts: int
    prompt_tokens: int | None
    output_tokens: int | None
