"""
What a measured run leaves behind: a bundle of ids, digests and numbers.

No field of a bundle can hold a sentence: ids are made from position (`h2q14`, `h2t17`, `h2s5`), words
are short and of a closed alphabet, everything else is a number, an instant or a digest. So neither a
benchmark's text nor a person's name can get in, whoever writes it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, StringConstraints

from contracts._wire import Wire

BUNDLE_FORM: Final = "echoplane/bundle/1"

PublicId: TypeAlias = Annotated[str, StringConstraints(pattern=r"^h\d{1,9}([qst]\d{1,9})?$")]
"""A history, or a question, session or turn of one, by its place from 0."""
Word: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.@+-]{0,63}$")]
"""A name that code gave: of an arm, a column, a kind of question, a failure."""
Sha256: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Moment: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z$")
]
DataPath: TypeAlias = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}(/[A-Za-z0-9][A-Za-z0-9_.-]{0,63}){0,7}$"),
]
"""A file's path below the folder of its set, never from a root."""
Number: TypeAlias = int | float
Values: TypeAlias = dict[Word, Number | None]
"""Columns of a row. None is "not observable", which is not zero."""


NOT_OBSERVABLE: Final = "not-observable"
"""The failure of a cell that its arm cannot show: it has no columns, and is no failure."""


class EvidenceLevel(StrEnum):
    """What a run can be evidence of. Only the last two can support a claim of superiority."""

    STAGE_RETRIEVAL = "stage retrieval"
    VISIBLE_DEVELOPMENT = "visible development"
    FROZEN_CANDIDATE = "frozen candidate"
    FRESH_CONFIRMATORY = "fresh confirmatory"


Level: TypeAlias = Annotated[EvidenceLevel, Field(strict=False)]


class Cell(Wire):
    """What is asked of whom: one question of one arm under one budget of tokens (None: no budget)."""

    question: PublicId
    history: PublicId
    arm: Word
    budget: int | None

    @property
    def key(self) -> tuple[str, str, int | None]:
        """Equal for rows of one cell, whichever file they stand in."""
        return (self.question, self.arm, self.budget)


class Prediction(Cell):
    """
    What an arm answered, before anything of the gold was read.

    No time is in it: the same run, the same bytes.
    `ranked` are turns, best first, `sessions` the session of each; `response` is the digest of an
    answer, as `audit.words_digest` makes it. Under a budget they are the turns that the context shows,
    in their order, each with score 1 where it is shown whole and 0 where a part of it is. A `failure` (a
    stable word) has neither and scores zero; `NOT_OBSERVABLE` alone is left out.
    """

    ranked: tuple[PublicId, ...]
    sessions: tuple[PublicId, ...]
    scores: tuple[Number, ...]
    response: Sha256 | None
    failure: Word | None


class ContextCell(Cell):
    """
    The context of one cell of a task matrix, as it was frozen: nothing is asked of a model over another one.

    `sources` are the turns shown, in their order; `found` and `packed` count candidates; `deferred` and
    `truncated` say what did not fit and what was cut. `trace_sha256` covers the packing's trace.
    `retrieval_us` is what finding it took when it was frozen, `provider` who found it.
    """

    context_sha256: Sha256 | None
    tokens: int
    context_bytes: int
    sources: tuple[PublicId, ...]
    found: int
    packed: int
    deferred: int
    truncated: bool
    trace_sha256: Sha256 | None
    retrieval_us: int | None
    provider: Word
    failure: Word | None


class Cost(Cell):
    """What a prediction took: milliseconds, bytes, tokens."""

    values: Values


class GoldLine(Wire):
    """
    What is gold for one question. `apart`: its set reports this kind apart from the main figure.

    `answer` is the digest of the set's answer, as `audit.words_digest` makes it, in a run of answers; None
    where nothing is to be answered.
    """

    question: PublicId
    kind: Word
    apart: bool
    turns: tuple[PublicId, ...]
    sessions: tuple[PublicId, ...]
    answer: Sha256 | None = None


class Row(Cell):
    """A prediction, scored. `values` has what was computed and what was measured, by column."""

    kind: Word
    apart: bool
    failure: Word | None
    values: Values


class Lost(Wire):
    """A line that could not be read when an interrupted run went on: kept, as evidence of the failure."""

    file: Word
    line: int
    raw_hex: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{2})*$")]


class FormulaKind(StrEnum):
    """How a number comes of rows."""

    COUNT = "count"
    SUM = "sum"
    SHARE = "share"
    MEAN = "mean"
    RATIO = "ratio"
    QUANTILE = "quantile"
    RECORDED = "recorded"
    MCNEMAR = "mcnemar"


class Unit(StrEnum):
    """What a bootstrap draws."""

    QUESTIONS = "questions"
    HISTORIES = "histories"


class Formula(Wire):
    """
    How one number comes of rows, so that a stranger can compute it again.

    It takes the rows of `arm` and `budget`, of one `kind` or of all, those set `apart`, those that are
    not, or both (None); rows whose column is None are left out. `count` counts them, `share` is of a
    column of zeros and ones (Wilson's interval), `ratio` divides the sum of `column` by that of `over`,
    `quantile` is the smallest number that so many are not above, `recorded` is the manifest's number of
    that name, which no row gives. With `against`, `share`, `mean` and
    `ratio` are the difference to that arm over the same questions (paired bootstrap over `unit`,
    `stratified` by kind), and `mcnemar` is the exact p.
    """

    name: Word
    of: Annotated[FormulaKind, Field(strict=False)]
    arm: Word
    budget: int | None = None
    column: Word | None = None
    over: Word | None = None
    quantile: float | None = None
    against: Word | None = None
    kind: Word | None = None
    apart: bool | None = False
    unit: Annotated[Unit, Field(strict=False)] = Unit.QUESTIONS
    stratified: bool = False
    seed: int = 0


class Measure(Wire):
    """A number with how it comes about; `value` None is not observable, bounds None not defined."""

    formula: Formula
    value: Number | None
    n: int
    low: float | None
    high: float | None


class FileDigest(Wire):
    """A file by its bytes."""

    path: DataPath
    sha256: Sha256
    bytes_count: int


class CodeDigest(Wire):
    """The source files of some packages, as one digest: see `audit.code_digest`."""

    packages: tuple[Word, ...]
    sha256: Sha256


class ModelDigest(Wire):
    """A model by the digest of its weights, and of the prompt where it is given one."""

    name: Word
    sha256: Sha256
    prompt_sha256: Sha256 | None


class Environment(Wire):
    """Where it ran, as far as numbers may depend on it; nothing that names a machine or a person."""

    python: Word
    system: Word
    machine: Word
    cpus: int
    libraries: dict[Word, Word]


class RunDescription(Wire):
    """Everything that has to be the same for an interrupted run to go on. `gate` is a gate's digest."""

    name: Word
    level: Level
    data_set: Word
    data: tuple[FileDigest, ...]
    code: CodeDigest
    models: tuple[ModelDigest, ...]
    configuration: dict[Word, Number | bool | Word | None]
    arms: tuple[Word, ...]
    budgets: tuple[int | None, ...]
    seed: int
    gate: Sha256 | None


class RunState(Wire):
    """How far a run is that is not finished."""

    started_at: Moment
    resumed_count: int
    sealed: Sha256 | None
    sealed_at: Moment | None
    gold_at: Moment | None
    recorded: Values


class Manifest(Wire):
    """
    A bundle's table of contents; the SHA-256 of its canonical form is the bundle's address.

    `sealed` is the digest of the predictions, written down at `sealed_at`, before `gold_at`.
    `recorded` are numbers that no row gives (the time to build an index, peak memory).
    """

    form: Literal["echoplane/bundle/1"]
    run: RunDescription
    environment: Environment
    started_at: Moment
    sealed_at: Moment
    gold_at: Moment
    ended_at: Moment
    resumed_count: int
    sealed: Sha256
    recorded: Values
    files: tuple[FileDigest, ...]
