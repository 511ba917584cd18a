"""The JSON of reads: claims, what stands on a key, histories, differences, joins and pinned views."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from contracts._wire import Wire


class ViewAnswer(Wire):
    """The pinned view that an answer is a pure function of."""

    valid_at: str
    known_at: str
    cut: int
    epoch: int


class SourceAnswer(Wire):
    """Who says so, and in which class."""

    id: str
    class_: str = Field(alias="class")


class ValidityAnswer(Wire):
    """When a claim holds: half-open, null is an open bound."""

    kind: Literal["since", "span", "at"]
    start: str | None
    end: str | None
    earliest: str | None
    timeless: bool


class ClaimAnswer(Wire):
    """One claim of the ledger. `spans` are `[from, to)` in characters of the event's text."""

    id: str
    event: str
    ordinal: int
    entity: str
    relation: str
    value: Any
    stance: str
    valid: ValidityAnswer
    source: SourceAnswer
    commit: int
    recorded_at: str
    observed_at: str | None
    spans: list[tuple[int, int]]
    occurrence_id: str | None


class RivalAnswer(Wire):
    """One value in dispute and its latest claim; `ended` says that the rival holds nothing."""

    value: Any
    ended: bool
    claim: ClaimAnswer


class _Outcome(Wire):
    outcome: Literal["resolved", "missing", "conflict"]
    value: Any = None
    """The value of a one-valued key; absent where `values` is given."""
    values: list[Any] | None = None
    """The values of a many-valued key, or of each occurrence; absent for a one-valued key."""
    values_count: int | None = None
    """How many values stand on it, listed or not; absent for a one-valued key."""
    disputed: list[Any]
    """Values of a many-valued key that are in conflict."""
    disputed_count: int
    """How many are in conflict, listed or not."""
    reason: str | None
    """Why nothing stands, or why the contract cannot order the rivals."""
    conflict: list[RivalAnswer]
    claims: list[ClaimAnswer]
    superseded: list[ClaimAnswer]
    disputes: list[ClaimAnswer]
    """Open dispute claims on the key."""
    unplaced: list[ClaimAnswer]
    """Claims on the key that name what was not found: they take nothing back."""
    truncated: bool
    """Whether any of these lists may hold less than there is: of a key with a long history."""

    @model_serializer(mode="wrap")
    def _one_of_value_and_values(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        for name in ("values", "values_count") if self.values is None else ("value",):
            written.pop(name, None)
        return written


class UndeterminedAnswer(Wire):
    """
    Where a coarse start ("in 2023") leaves open what a key had: from when to when, around the view's instant.

    `claims` are what may have held there already, and what the key has after it; none where they were erased.
    """

    from_: str = Field(alias="from")
    to: str
    claims: list[ClaimAnswer]


class ResolveAnswer(_Outcome):
    """What stands on one key at a view."""

    undetermined: UndeterminedAnswer | None
    """What a coarse start leaves open there; null where nothing does. It changes no outcome."""
    view: ViewAnswer


class ResolutionAnswer(_Outcome):
    """One key that a question touched, at the question's view."""

    entity: str
    relation: str


class HistoryCell(Wire):
    """A rectangle of valid time × known commits, and what stands there. Null is an open bound."""

    valid_from: str | None
    valid_to: str | None
    known_from: int
    known_to: int | None
    known_from_at: str
    known_to_at: str | None
    relation: str
    part: str
    state: str
    values: list[Any]
    claims: list[str]


class WithdrawnAnswer(Wire):
    """A claim that was taken back, be it in part, and those that did; none where those were erased."""

    claim: str
    by: list[str]


class HistoryAnswer(Wire):
    """
    What was ever answered on an entity's keys, or a part of it, and the claims behind it.

    `rectangles` are each as long as they can be in known time; a `timeline` is what stands along valid
    time at the cut; `instant` is how what is known about one instant changed. `truncated` says that
    there is more than `HISTORY_CELLS_MAX` cells: narrow the window.
    """

    entity: str
    relation: str | None
    shape: Literal["rectangles", "timeline", "instant"]
    epoch: int
    cut: int
    truncated: bool
    cells: list[HistoryCell]
    claims: list[ClaimAnswer]
    unplaced: list[ClaimAnswer]
    """Claims on these keys that name what was not found: they take nothing back."""
    withdrawn: list[WithdrawnAnswer]
    """What was taken back on these keys, as known at the cut, and by which claims; whatever the window."""
    withdrawn_whole: bool
    """Whether that is all of it."""


class StandAnswer(Wire):
    """What stands on a line; `nothing` where no claim ever covered. `claims` has one for each value."""

    state: str
    values: list[Any]
    claims: list[str]


class ChangeAnswer(Wire):
    """
    Where in valid time a line differs between two views; null is an open bound.

    Where the views' own instants were compared, both bounds are null. `commits` are those at which it
    changed, `events` and `causes` what brought that about; empty where only valid time went by.
    """

    entity: str
    relation: str
    part: str
    valid_from: str | None
    valid_to: str | None
    before: StandAnswer
    after: StandAnswer
    commits: list[int]
    events: list[str]
    causes: list[str]


class DiffAnswer(Wire):
    """
    A page of what changed in what was known between two views, and the claims behind it.

    `next_line` asks for the next page; null at the end. `truncated` says that a line changed in more
    places than are looked at.
    """

    before: ViewAnswer
    after: ViewAnswer
    instants: bool
    changes: list[ChangeAnswer]
    next_line: int | None
    truncated: bool
    claims: list[ClaimAnswer]


class OccurrenceAnswer(Wire):
    """One occurrence: what it is of, when it was as the most exact of its claims tells it, and its claims."""

    value: Any
    valid: ValidityAnswer
    claims: list[str]


class OccurrencesAnswer(Wire):
    """
    How often something happened within a window of valid time, as known at a view; null is an open bound.

    `count` are all of which nothing is in dispute, `disputed_count` the others; `truncated` says that
    not each of them is listed. Listed are they in the order in which they began.
    """

    view: ViewAnswer
    entity: str
    relation: str
    valid_from: str | None
    valid_to: str | None
    count: int
    disputed_count: int
    occurrences: list[OccurrenceAnswer]
    disputed: list[list[RivalAnswer]]
    truncated: bool
    claims: list[ClaimAnswer]


class PairSideAnswer(Wire):
    """A value that takes part in a pair, and the claim that it stands on."""

    value: Any
    claim: str


class PairAnswer(Wire):
    """Two values that held at the same time, and where and in which commits both stood."""

    left: PairSideAnswer
    right: PairSideAnswer
    valid_from: str | None
    valid_to: str | None
    known_from: int
    known_to: int | None
    known_from_at: str
    known_to_at: str | None


class JoinAnswer(Wire):
    """Pairs by valid time; `truncated` says that there may be more."""

    view: ViewAnswer
    bitemporal: bool
    pairs: list[PairAnswer]
    truncated: bool
    claims: list[ClaimAnswer]


class PinRequest(Wire):
    """Which view to pin: what is left out is the newest. The body of `PUT …/views/{name}`."""

    valid_at: str | None = None
    known_at: str | None = None
    generation: str | None = None
    min_commit: int | None = Field(default=None, ge=0)


class PinnedViewAnswer(Wire):
    """A view under its name. It never moves."""

    tenant: str
    name: str
    view: ViewAnswer
    pinned_at: str
