"""Claims: what was read out of events, the ledger's append-only record."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from contracts.events import ClaimDraft, Stance
from contracts.records import record
from contracts.times import KnownAt

SELF: Final = "self"
OPERATOR: Final = "operator"
USER: Final = "user"
SENSOR: Final = "sensor"
ASSISTANT: Final = "assistant"
DERIVED: Final = "derived"


class ValidityKind(StrEnum):
    """How long a claim holds: until something later is known, a stated interval, or an occurrence."""

    SINCE = "since"
    SPAN = "span"
    AT = "at"


@record
class Validity:
    """
    When a claim holds. UTC, half-open, None is an open bound.

    `start` is where it covers and is ordered from. `earliest` is the first instant a coarse or
    timeless start might mean: between it and `start` the answer is undetermined. It equals
    `start` for an exact one, and is None where `start` is, or where any earlier time might be
    meant (`timeless`).
    """

    kind: ValidityKind
    start: datetime | None
    end: datetime | None
    earliest: datetime | None
    timeless: bool


@record
class Source:
    """Who says so: the original actor and the class it was granted."""

    actor_id: str
    actor_class: str


class Position(NamedTuple):
    """Total order of claims: the event's position in the log, then the claim's ordinal in it."""

    event: int
    ordinal: int


@record
class Span:
    """Characters `[start, end)` of the event's text, in code points."""

    start: int
    end: int


@record
class ProjectedClaim:
    """
    What a projector read out of one event: a draft as if it had been emitted, and where it stands.

    `ordinal` is unique in the event: structured claims take 0, 1, 2 … in order, extracted ones
    follow. `spans` is empty for structured claims.
    """

    ordinal: int
    draft: ClaimDraft
    stance: Stance
    spans: tuple[Span, ...]


@record
class TargetRef:
    """A target with its event resolved to an id of the log (None: the source's own on the key)."""

    event_id: str | None
    ordinal: int | None
    entity: str | None
    relation: str | None
    value: Any
    span: Span | None
    interval_start: datetime | None
    interval_end: datetime | None
    has_interval: bool


@record
class Claim:
    """
    One claim of one epoch, as stored.

    `claim_id` is a keyed digest of (tenant, event id, epoch) and the ordinal, as hex. `value` is JSON,
    None only where the stance needs none. `source` is who said it, before any correction lends
    it another's class.
    """

    claim_id: str
    epoch: int
    entity: str
    relation: str
    value: Any
    stance: Stance
    validity: Validity
    source: Source
    position: Position
    commit: int
    event_id: str
    recorded_at: KnownAt
    observed_at: datetime | None
    spans: tuple[Span, ...]
    occurrence_id: str | None
    targets: tuple[TargetRef, ...]
    winner: TargetRef | None
    inputs: tuple[TargetRef, ...]
