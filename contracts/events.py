"""
Events: what a caller emits, what the log keeps, and the receipt for it.

`EventDraft` is the emit shape, validated at the border and stored as it is (encrypted). `Event`
is a draft with what the log added: id, position, commit and `recorded_at`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from contracts import limits
from contracts.errors import BadRequest
from contracts.identity import IDENTITY
from contracts.names import Name, Text, Word, is_name, storable
from contracts.records import record
from contracts.times import KnownAt, Precision, Term, instant_term, parse_interval, parse_term


class Kind(Word):
    """What an event is. The last three come through commands of their own, not through `emit`."""

    TURN = "turn"
    OBSERVATION = "observation"
    ACTION = "action"
    CLAIM = "claim"
    CORRECTION = "correction"
    RETRACTION = "retraction"
    SETTLEMENT = "settlement"
    DERIVATION = "derivation"
    RELATION = "relation"
    DECISION = "decision"
    ERASURE = "erasure"


COMMAND_KINDS = frozenset({Kind.RELATION, Kind.DECISION, Kind.ERASURE})
"""Kinds that `emit` refuses."""


class Stance(Word):
    """What a claim does to what was said before."""

    ASSERT = "assert"
    CORRECT = "correct"
    RETRACT = "retract"
    END = "end"
    SETTLE = "settle"
    DISPUTE = "dispute"


STANCES_OF_KIND = {
    Kind.CORRECTION: frozenset({Stance.CORRECT}),
    Kind.RETRACTION: frozenset({Stance.RETRACT}),
    Kind.SETTLEMENT: frozenset({Stance.SETTLE}),
    Kind.DERIVATION: frozenset({Stance.ASSERT, Stance.END}),
}
"""Kinds that carry only these stances; every other emitted kind carries any."""

AIMED = frozenset({Stance.CORRECT, Stance.RETRACT, Stance.SETTLE, Stance.DISPUTE})
"""Stances that bear on what was said before: a claim of one has its event's targets if it has none."""

_TIMES = frozenset({"since", "at", "from", "to"})
"""Fields of an event that are read as times."""

_MAKING = frozenset({Stance.ASSERT, Stance.CORRECT, Stance.END})

_DEFAULT_STANCE = {
    Kind.CORRECTION: Stance.CORRECT,
    Kind.RETRACTION: Stance.RETRACT,
    Kind.SETTLEMENT: Stance.SETTLE,
}


def _json_value(value: object) -> object:
    """Refuse what canonical JSON cannot carry: null, NaN, infinities, deep nesting, lone surrogates."""
    if value is None:
        raise ValueError("null is not a value; use stance end")
    _check_json(value, depth=0)
    return value


def _check_json(value: object, *, depth: int) -> None:
    match value:
        case None | bool() | int():
            return
        case float():
            if not math.isfinite(value):
                raise ValueError("not a finite number")
        case str():
            storable(value)
        case list() | dict() if depth == limits.VALUE_DEPTH_MAX:
            raise ValueError(f"nested deeper than {limits.VALUE_DEPTH_MAX}")
        case list():
            for item in value:
                _check_json(item, depth=depth + 1)
        case dict():
            for key, item in value.items():
                storable(key)
                _check_json(item, depth=depth + 1)
        case _:
            raise ValueError("not a JSON value")


Value = Annotated[Any, AfterValidator(_json_value)]
"""A JSON value other than null."""

_LISTED = BeforeValidator(lambda given: [] if given is None else given)
"""Before a list: null, which many writers state for none, is an empty one."""


WRONG = "wrong"
"""Type of an error whose context says where in the model it is (`path`), and why (`reason`)."""


def _wrong(path: str, reason: str) -> PydanticCustomError:
    return PydanticCustomError(WRONG, "{path}: {reason}", {"path": path, "reason": reason})


class _Border(BaseModel):
    """Unknown fields are errors; nothing is coerced; values are immutable."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ActorDraft(_Border):
    """Who says it: an id, and a class that the caller must be granted. `self` is computed, never stated."""

    id: Name
    class_: Name = Field(alias="class")

    @model_validator(mode="after")
    def _class_is_statable(self) -> Self:
        if self.class_ == "self":
            raise _wrong("class", "`self` is computed by the ledger and cannot be stated")
        return self


class ValidDraft(_Border):
    """
    One of `{"since"}`, `{"from","to"}` or `{"at","precision"}`; each an instant or calendar term.

    Null is an open bound where the interval is given, and says nothing anywhere else.
    """

    since: str | None = None
    from_: str | None = Field(default=None, alias="from")
    to: str | None = None
    at: str | None = None
    precision: str | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        given = self.__pydantic_fields_set__
        if len(given) > 1:
            # Who reads an event sees every field; emitted again, it is the same content.
            is_interval = self.since is None and self.at is None
            # In place: what was given is what is written, and what a digest is of.
            given &= {"from_", "to"} if is_interval else {name for name, value in self if value is not None}
        span = given & {"from_", "to"}
        forms = [bool(span), self.since is not None, self.at is not None]
        if sum(forms) != 1 or (span and span != {"from_", "to"}):
            raise ValueError('give exactly one of {"since"}, {"from","to"}, {"at","precision"}')
        if self.precision is not None and self.at is None:
            raise _wrong("precision", "goes with at")
        if self.precision is not None and self.precision not in set(Precision):
            raise _wrong("precision", f"is one of {', '.join(Precision)}")
        return self

    def term(self, *, offset_minutes: int | None) -> Term | None:
        """
        Return when a `since` begins or an `at` happened, at its precision; None for an interval.

        Raises:
            BadRequest: It is no time in this offset, the source's own.
        """
        if self.since is not None:
            return parse_term(self.since, field="since", offset_minutes=offset_minutes)
        if self.at is None:
            return None
        term = parse_term(self.at, field="at", offset_minutes=offset_minutes)
        return term if self.precision is None else term.with_precision(Precision(self.precision))

    def bounds(self, *, offset_minutes: int | None) -> tuple[datetime | None, datetime | None]:
        """
        Return the bounds of an interval, None where open, UTC.

        Raises:
            BadRequest: A bound is no time in this offset, or the interval is empty or inverted.
        """
        return parse_interval(self.from_, self.to, field="valid", offset_minutes=offset_minutes)


class IntervalDraft(_Border):
    """A half-open interval; null is an open bound."""

    from_: str | None = Field(alias="from")
    to: str | None

    def bounds(self, *, offset_minutes: int | None) -> tuple[datetime | None, datetime | None]:
        """Return its bounds; raises `BadRequest` where `ValidDraft.bounds` does."""
        return parse_interval(self.from_, self.to, field="interval", offset_minutes=offset_minutes)


class TargetDraft(_Border):
    """An earlier event of the log, and what in it is meant; an event alone means all its claims."""

    event: Name | None = None
    source_event_id: Name | None = None
    ordinal: int | None = Field(default=None, ge=0, lt=limits.CLAIMS_MAX)
    entity: Name | None = None
    relation: Name | None = None
    value: Value | None = None
    span: tuple[int, int] | None = Field(default=None, strict=False)
    interval: IntervalDraft | None = None

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if self.event is not None and self.source_event_id is not None:
            raise ValueError("name the event by event or by source_event_id, not both")
        by_event = self.event is not None or self.source_event_id is not None
        if not by_event and (self.entity is None or self.relation is None):
            raise ValueError("name an event, or an entity and a relation")
        if (self.entity is None) != (self.relation is None):
            raise ValueError("entity and relation go together")
        if self.span is not None and not 0 <= self.span[0] < self.span[1]:
            raise ValueError("span is [from, to) in characters, with from below to")
        return self


class ClaimDraft(_Border):
    """One structured claim of an event."""

    entity: Name | None = None
    relation: Name | None = None
    value: Value | None = None
    valid: ValidDraft | None = None
    stance: Stance | None = Field(default=None, strict=False)
    inputs: Annotated[list[TargetDraft], _LISTED] = Field(default_factory=list, max_length=limits.TARGETS_MAX)
    occurrence_id: Name | None = None
    targets: list[TargetDraft] | None = Field(default=None, max_length=limits.TARGETS_MAX)
    winner: TargetDraft | None = None


class EventDraft(_Border):
    """A line of `echoplane emit`: stream, kind, actor and one of text, claims or targets are needed."""

    stream: Name
    kind: Kind = Field(strict=False)
    actor: ActorDraft
    subjects: Annotated[list[Name], _LISTED] = Field(default_factory=list, max_length=limits.SUBJECTS_MAX)
    observed_at: str | None = None
    source_event_id: Name | None = None
    idempotency_key: Name | None = None
    causation: Name | None = None
    correlation: Name | None = None
    text: Text | None = None
    occurrence_id: Name | None = None
    claims: Annotated[list[ClaimDraft], _LISTED] = Field(default_factory=list, max_length=limits.CLAIMS_MAX)
    targets: Annotated[list[TargetDraft], _LISTED] = Field(
        default_factory=list, max_length=limits.TARGETS_MAX
    )
    winner: TargetDraft | None = None

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if self.text is None and not self.claims and not self.targets:
            raise ValueError("one of text, claims or targets is needed")
        offset_minutes = self._offset_minutes()
        allowed = STANCES_OF_KIND.get(self.kind)
        for ordinal, claim in enumerate(self.claims):
            stance = self.stance_of(claim)
            if allowed is not None and stance not in allowed:
                raise _wrong(f"claims[{ordinal}].stance", f"kind {self.kind} cannot carry {stance}")
            self._check_claim(claim, stance, where=f"claims[{ordinal}]")
        if self.targets and self.kind == Kind.SETTLEMENT and self.winner is None and not self.claims:
            raise _wrong("winner", "a settlement names its winner")
        self._check_times(offset_minutes)
        return self

    def _offset_minutes(self) -> int | None:
        """Return the source's offset, if it says when it saw this."""
        if self.observed_at is None:
            return None
        try:
            return instant_term(self.observed_at, field="observed_at").offset_minutes
        except BadRequest as error:
            raise _wrong(error.field, error.reason) from error

    def _check_times(self, offset_minutes: int | None) -> None:
        # By the very functions that the fold reads them with, in the source's offset: what is
        # accepted here must never stop a tenant there.
        for where, stated in self._times():
            try:
                if isinstance(stated, ValidDraft):
                    stated.term(offset_minutes=offset_minutes)
                stated.bounds(offset_minutes=offset_minutes)
            except BadRequest as error:
                part = f".{error.field}" if error.field in _TIMES else ""
                raise _wrong(f"{where}{part}", error.reason) from error

    def _times(self) -> Iterator[tuple[str, IntervalDraft | ValidDraft]]:
        """Yield everything in the event that states a time, with its path."""
        named = [("winner", self.winner), *_numbered("targets", self.targets)]
        for ordinal, claim in enumerate(self.claims):
            path = f"claims[{ordinal}]"
            if claim.valid is not None:
                yield f"{path}.valid", claim.valid
            named.append((f"{path}.winner", claim.winner))
            named += _numbered(f"{path}.targets", claim.targets or ())
            named += _numbered(f"{path}.inputs", claim.inputs)
        for path, target in named:
            if target is not None and target.interval is not None:
                yield f"{path}.interval", target.interval

    def _check_claim(self, claim: ClaimDraft, stance: Stance, *, where: str) -> None:
        targets = claim.targets if claim.targets is not None else self.targets
        if (claim.entity is None) != (claim.relation is None):
            raise _wrong(where, "entity and relation go together")
        if claim.entity is None and not (targets and stance in AIMED):
            raise _wrong(where, "entity and relation are needed")
        if stance == Stance.ASSERT and claim.value is None:
            raise _wrong(f"{where}.value", "an assert needs a value")
        if claim.relation in IDENTITY and stance in _MAKING and not is_name(claim.value):
            raise _wrong(f"{where}.value", f"{claim.relation} takes the name of an entity")
        if stance == Stance.SETTLE and claim.winner is None and self.winner is None:
            raise _wrong(f"{where}.winner", "a settle names its winner")
        if claim.inputs and self.kind != Kind.DERIVATION:
            raise _wrong(f"{where}.inputs", "only a derivation has inputs")
        if self.kind == Kind.DERIVATION and not claim.inputs:
            raise _wrong(f"{where}.inputs", "a derivation names its inputs")

    def stance_of(self, claim: ClaimDraft) -> Stance:
        """Return the claim's stance, or the one its event's kind implies."""
        return claim.stance or _DEFAULT_STANCE.get(self.kind, Stance.ASSERT)


def _numbered(path: str, targets: Iterable[TargetDraft]) -> list[tuple[str, TargetDraft | None]]:
    return [(f"{path}[{number}]", target) for number, target in enumerate(targets)]


@record
class Event:
    """
    An event of the log: its draft, and what the log added. `position` is 1-based and gapless.

    `backfilled` says that `recorded_at` was stated by whoever brought it in from elsewhere. `sent_at` is
    what the clock of the sender said, if he told: how far it was off is recorded, and nothing follows.
    """

    event_id: str
    position: int
    commit: int
    recorded_at: KnownAt
    observed: Term | None
    backfilled: bool
    sent_at: datetime | None
    draft: EventDraft


@record
class ErasedEvent:
    """
    An event whose payload was erased: where it stands in the log, and nothing of what it said.

    `erased_by` is the event that erased it; None where its key was lost and no erasure says so.
    """

    event_id: str
    position: int
    commit: int
    recorded_at: KnownAt
    observed: Term | None
    kind: Kind
    backfilled: bool
    erased_by: str | None


@record
class Receipt:
    """
    Proof of one accepted append.

    `event_ids`, `positions` and `event_hashes` run parallel to the events given; hashes are
    SHA-256 as hex. `repeated` says that the idempotency keys were known and nothing was written.
    """

    tenant: str
    commit: int
    recorded_at: KnownAt
    event_ids: tuple[str, ...]
    positions: tuple[int, ...]
    event_hashes: tuple[str, ...]
    commit_hash: str
    repeated: bool
