"""Shapes of what an answer stands on: its context, its candidates, and what a reader made of it."""

from __future__ import annotations

from typing import Literal

from contracts._wire import Wire


class LineAnswer(Wire):
    """One line of evidence. `id` is what an answer cites; `mark` is how the ledger stands to it."""

    id: str
    text: str
    event: str
    observed_at: str
    mark: Literal["active", "superseded", "withdrawn", "disputed", "plain"]


class DeferredAnswer(Wire):
    """A closure that did not fit the budget, whole, and what it would have cost."""

    closure: str
    cost_tokens: int
    cost_bytes: int
    required: bool


class ContextAnswer(Wire):
    """The hashed context: lines in source order, what was admitted, what was deferred."""

    hash: str
    content_hash: str
    tokens: int
    budget: int
    bytes: int
    budget_bytes: int | None
    lines: list[LineAnswer]
    admitted: list[str]
    deferred: list[DeferredAnswer]


class RouteAnswer(Wire):
    """One route of discovery and the generation its index had."""

    route: str
    state: str
    generation: str
    count: int
    duration_us: int


class HitAnswer(Wire):
    """One route's word for a candidate."""

    route: str
    rank: int
    score_ppm: int


class CandidateAnswer(Wire):
    """One unit that discovery proposed; scores in whole parts per million."""

    unit: str
    events: list[str]
    score_ppm: int
    hits: list[HitAnswer]


class ReadingAnswer(Wire):
    """
    What a reader made of the context: a language model, told nothing but context and question.

    `failure` says why there is nothing, where it failed. `grounded` is false where it cites no line, or
    one that is not in the context (`unknown_cites`). `output` is exactly what it said.
    """

    status: Literal["answered", "abstained", "failed"]
    text: str | None
    cites: list[str]
    unknown_cites: list[str]
    grounded: bool
    failure: str | None
    output: str | None
    model: str
    model_digest: str
    prompt_digest: str
    attempts: int
    prompt_tokens: int | None
    output_tokens: int | None
