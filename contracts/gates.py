"""Gates: what is to be found out, written down before it is known; and the register that says so."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, StringConstraints

from contracts._wire import Wire
from contracts.artifacts import Formula, ModelDigest, Moment, Number, RunDescription, Sha256, Word

GATE_FORM: Final = "echoplane/gate/1"
FIRST: Final = "0" * 64
"""What the first entry of a register names as the one before it."""

Prose: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=1_000)]


class Bound(StrEnum):
    """Which number of a measure is held against a threshold."""

    VALUE = "value"
    LOW = "low"
    HIGH = "high"


class Condition(Wire):
    """A number that the rows must give; a bound that is None does not bind."""

    formula: Formula
    at_least: Number | None
    at_most: Number | None
    held: Annotated[Bound, Field(strict=False)] = Bound.VALUE


class Denominators(Wire):
    """How many questions there are, and how many of them have gold; another number is a drift, and fails."""

    questions: int
    with_gold: int


class StoppingRule(Wire):
    """
    What a failure brings about, for good: gates that are not run any more, sets that stay sealed.

    `reserved` are content digests, as `audit.content_digests` makes them.
    """

    skips: tuple[Word, ...]
    reserved: tuple[Sha256, ...]


class Calibration(Wire):
    """How a judge was held against people: how many labelled, what, and how far they agreed (kappa)."""

    people: int
    labels: int
    labels_sha256: Sha256
    agreement: float


class Power(Wire):
    """For which difference of shares, at which share of discordant pairs, the questions were counted out."""

    effect: float
    discordant: float
    power: float


class Comparison(Wire):
    """What a claim of superiority needs beside a gate that passed (the paper's appendix A)."""

    arm: Word
    baseline: Word
    answerer: ModelDigest | None
    judge: ModelDigest | None
    calibration: Calibration | None
    power: Power | None
    non_regression: tuple[Word, ...]


class Gate(Wire):
    """A gate as its file says it. `run.gate` is null here: it is the digest of this file."""

    form: Literal["echoplane/gate/1"]
    name: Word
    question: Prose
    runner: Word
    run: RunDescription
    denominators: Denominators
    conditions: Annotated[tuple[Condition, ...], Field(min_length=1)]
    stopping: StoppingRule
    comparison: Comparison | None


class EntryKind(StrEnum):
    """What happened to a gate, in the only order in which it can."""

    REGISTERED = "registered"
    BEGUN = "begun"
    SEALED = "sealed"
    OPENED = "opened"
    OUTCOME = "outcome"
    SKIPPED = "skipped"


class Entry(Wire):
    """
    One line of the register. `digest` is that of all its other fields, `previous` that of the line before.

    `sealed` is the digest of the predictions, `opened` of every file whose gold was read then, by
    content, `outcome` that of the outcome's file.
    """

    number: int
    previous: Sha256
    at: Moment
    kind: Annotated[EntryKind, Field(strict=False)]
    gate: Word
    gate_sha256: Sha256
    sealed: Sha256 | None = None
    opened: tuple[Sha256, ...] = ()
    outcome: Sha256 | None = None
    passed: bool | None = None
    digest: Sha256


class Found(Wire):
    """A condition and what came out of it."""

    condition: Condition
    value: Number | None
    low: float | None
    high: float | None
    n: int
    passed: bool


class Outcome(Wire):
    """How a gate ended. `bundle` is the name of the folder with every row."""

    gate: Word
    gate_sha256: Sha256
    bundle: Word
    denominators: Denominators
    denominators_hold: bool
    conditions: tuple[Found, ...]
    passed: bool
