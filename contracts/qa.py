"""
Files of a measured question answering run: contexts that were frozen, what a reader said, judgements.

They hold questions and answers in words and stay where they were made. What may be published of a run
are its numbers and digests.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from contracts._wire import Wire
from contracts.artifacts import Sha256, Word
from contracts.models import ModelFailure, ReadingStatus

QA_FORM: Final = "echoplane/qa/1"

QuestionId = Annotated[str, Field(min_length=1, max_length=200)]


class QaCell(Wire):
    """One question of one arm under one budget, with the lines that the reader gets, and their tokens."""

    question: QuestionId
    arm: Word
    budget: Annotated[int, Field(ge=0)]
    text: str
    lines: list[str]
    tokens: Annotated[int, Field(ge=0)]

    @property
    def key(self) -> tuple[str, str, int]:
        """Equal for records of one cell, whichever file they stand in."""
        return self.question, self.arm, self.budget


class QaResponse(Wire):
    """
    What the reader made of a cell: `text` where it answered, else why not; `output` exactly as it came.

    `context_sha256` is over the lines that it was given, each with its line end.
    """

    question: QuestionId
    arm: Word
    budget: int
    context_sha256: Sha256
    tokens: int
    status: Annotated[ReadingStatus, Field(strict=False)]
    text: str | None
    grounded: bool
    failure: Annotated[ModelFailure, Field(strict=False)] | None
    output: str | None

    @property
    def key(self) -> tuple[str, str, int]:
        """Equal for records of one cell, whichever file they stand in."""
        return self.question, self.arm, self.budget


class QaSeal(Wire):
    """What was sealed before gold was opened: the files by their bytes, the reader by its digests."""

    form: Literal["echoplane/qa/1"]
    cells: int
    contexts_sha256: Sha256
    responses_sha256: Sha256
    reader: str
    reader_sha256: Sha256
    prompt_sha256: Sha256


class QaGold(Wire):
    """
    What is right for one question.

    `answer` is None where the right answer is that there is none. `stale` are values that were right
    once and are not now, `rivals` those that sources disagree about and nothing orders; none of them is
    an empty list, and None where the set does not say.
    """

    question: QuestionId
    answer: str | None
    stale: list[str] | None = None
    rivals: list[str] | None = None


class Verdict(StrEnum):
    """A binary judge's word, or that it failed."""

    CORRECT = "correct"
    INCORRECT = "incorrect"
    FAILED = "failed"


class Judgement(Wire):
    """One judgement of one distinct pair of question and response, whichever cells it came from."""

    question: QuestionId
    response_sha256: Sha256
    verdict: Annotated[Verdict, Field(strict=False)]
    failure: Annotated[ModelFailure, Field(strict=False)] | None
    output: str | None


class Weights(Wire):
    """What the terms of the objective weigh against correctness. None was published: they are stated."""

    stale: Annotated[float, Field(ge=0)]
    conflict: Annotated[float, Field(ge=0)]
    false_abstention: Annotated[float, Field(ge=0)]
    kilotokens: Annotated[float, Field(ge=0)]


class Objective(Wire):
    """
    The objective of one arm under one budget, over all of its rows, with its five terms.

    `ungrounded` counts answers that cite no line, or one that is not there. `accuracy` is the share
    judged correct, failures and abstentions that were wrong being zero; `stale`
    the share that gave a value of the past for the present, `conflict` the share that handled a conflict
    as if there were none, `false_abstentions` the share that abstained though there was an answer, and
    `kilotokens` the mean context in thousands of tokens. A term is None, not zero, where no question of
    the set says anything of it; then `value` is None too, unless that term weighs nothing.
    """

    arm: Word
    budget: int
    rows: int
    failures: int
    judge_failures: int
    correct: int
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    stale: float | None
    conflict: float | None
    false_abstentions: float
    kilotokens: float
    ungrounded: int
    weights: Weights
    value: float | None


class PacketItem(Wire):
    """One thing to label: nothing says which arm it came of, nor what the judge said."""

    item: Annotated[str, Field(pattern=r"^p[0-9]{1,6}$")]
    question: str
    reference: str
    response: str
    correct: bool | None


class PacketKey(Wire):
    """What an item stands for. It stays with the run and is not handed to who labels."""

    item: str
    question: QuestionId
    response_sha256: Sha256
    verdict: Annotated[Verdict, Field(strict=False)]
    cells: list[tuple[Word, int]]


class Agreement(Wire):
    """How two labellings agree: raw, and Cohen's kappa with a bootstrap interval over questions."""

    one: str
    other: str
    items: int
    questions: int
    raw: float | None
    kappa: float | None
    kappa_low: float | None
    kappa_high: float | None
