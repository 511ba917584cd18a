"""What discovery returns: a plan of the question, ids and scores. It proposes and never decides."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Operation(StrEnum):
    """What a question asks to be done with the evidence."""

    FACT = "fact"
    CURRENT_STATE = "current_state"
    COUNT = "count"
    LIST = "list"
    TEMPORAL_LOOKUP = "temporal_lookup"
    TEMPORAL_ARITHMETIC = "temporal_arithmetic"
    ORDER = "order"
    SUMMARY = "summary"
    PREFERENCE = "preference"
    YES_NO = "yes_no"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeExpression:
    """A time that the question names: `[start, end)` in UTC, and its words."""

    wording: str
    start: datetime | None
    end: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """
    How a question was read, from its public words and the tenant's own names alone.

    `confidence_ppm` is the planner's own (parts per million); `surface` names the form of answer
    asked for (`value`, `number`, `list`, `date`, `boolean`, `text`).
    """

    operation: Operation
    entities: tuple[str, ...]
    relations: tuple[str, ...]
    times: tuple[TimeExpression, ...]
    surface: str
    confidence_ppm: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteHit:
    """One route's word for a candidate. `rank` counts from 1; `score_ppm` is in parts per million."""

    route: str
    rank: int
    score_ppm: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """
    One unit to inspect. Ids and scores only: every text is read again from the ledger.

    `unit_id` is the event id for a whole turn. Scores are whole parts per million, so that no
    machine's floating point reaches a hash.
    """

    unit_id: str
    event_ids: tuple[str, ...]
    score_ppm: int
    hits: tuple[RouteHit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyProposal:
    """
    A key the question may be about.

    `named` says that the question itself names both its entity and its relation: only such keys
    may be answered from; the others only add evidence.
    """

    entity: str
    relation: str
    score_ppm: int
    named: bool


class RouteState(StrEnum):
    """Whether a route answered, was switched off, missed its deadline or failed."""

    OK = "ok"
    OFF = "off"
    LATE = "late"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteReport:
    """One route: the generation its index had (`epoch:commit`), what it found, how long it took."""

    route: str
    state: RouteState
    generation: str
    count: int
    duration_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Everything discovery says to one question. Candidates by descending score, ties by id."""

    plan: Plan
    candidates: tuple[Candidate, ...]
    keys: tuple[KeyProposal, ...]
    routes: tuple[RouteReport, ...]
    degraded: bool
