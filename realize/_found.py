"""
What a derivation starts from, and when that is not enough.

All values that a key had in known time, in order, or what stands at the view. What cannot be made
complete (a part is not listed, was erased, is in dispute) is withheld with the reason: nothing is
guessed, and nothing is left out in silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any, Final, TypeAlias

from contracts.claims import Claim
from contracts.histories import KeyHistory, Rectangle
from contracts.relations import Cardinality, ValueType
from contracts.resolutions import Conflict, KeyResolution, Missing, Resolved, ResolvedSet
from contracts.values import with_unit
from realize._arithmetic import number_of, plain, same
from realize._scope import has_signs, words_in, words_of
from realize._task import OCCURRED, THROUGH_TIME, Bounds, Form, Subject, Task

_LITTLE: Final = frozenset({"a", "an", "and", "at", "in", "of", "on", "the", "to"})
"""Words that two values may share and have nothing in common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """
    What the ledger has of one subject: its answer at the view, and what was known of it when.

    `erased_from` is the first commit in which something was said of it that was erased since.
    """

    subject: Subject
    resolution: KeyResolution
    history: KeyHistory
    erased_from: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """
    What was derived, whole: the value, and the claims that it stands on.

    Each group of claims needs a line of its own in the context.
    """

    value: Any
    groups: tuple[tuple[Claim, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """
    Nothing can be derived, and why, in stable words.

    `is_missing` tells that nothing stands from that it cannot be told. `conflict` is what disagrees.
    """

    reason: str
    is_missing: bool
    conflict: Conflict | None
    groups: tuple[tuple[Claim, ...], ...]


Derivation: TypeAlias = Derived | Withheld


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One value, as long as it was believed without a break."""

    value: Any
    since: datetime
    is_last: bool
    claims: tuple[Claim, ...]


class Cannot(Exception):
    def __init__(self, withheld: Withheld) -> None:
        super().__init__(withheld.reason)
        self.withheld = withheld


def unclear(reason: str) -> Cannot:
    return Cannot(Withheld(reason=reason, is_missing=False, conflict=None, groups=()))


def missing(reason: str, claims: Sequence[Claim] = ()) -> Cannot:
    groups = tuple((claim,) for claim in claims)
    return Cannot(Withheld(reason=reason, is_missing=True, conflict=None, groups=groups))


def check(task: Task, found: Found) -> None:
    """Refuse what is not all there, or not one thing at the times that are named."""
    history = found.history
    # What is named is one of many values; else of many at once nothing is said here.
    is_one = found.resolution.contract.cardinality == Cardinality.ONE
    if not is_one and task.words is None and task.form not in OCCURRED | {Form.HELD_VALUES}:
        raise unclear("operation_not_typed")
    if not history.whole:
        raise unclear("not_all_listed")
    if task.form in THROUGH_TIME | OCCURRED:
        return
    for one in history.rectangles:
        if (one.valid_from, one.valid_to) != (history.start, history.end):
            # The value is not one all through the time that is named.
            raise unclear("changes_within")
    times = [task.known, *(task.between or ())]
    if any(_changes_within(time, history.rectangles) for time in times if time is not None):
        raise unclear("changes_within")


def _changes_within(time: Bounds, rectangles: Sequence[Rectangle]) -> bool:
    edges = {edge for one in rectangles for edge in (one.known_from_at, one.known_to_at) if edge is not None}
    return any(time.start < edge < time.end for edge in edges)


def steps_of(found: Found) -> list[Step]:
    """Return all values in the order in which they were believed; each begins where another ended."""
    steps: list[Step] = []
    until: int | None = None
    ordered = sorted(found.history.rectangles, key=lambda one: one.known_from)
    if not ordered:
        raise missing("never_known")
    for one in ordered:
        if one.state == "conflict":
            raise unclear("history_disputed")
        if one.state == "erased":
            raise missing("erased")
        if one.state != "value" or len(one.claims) != 1 or (steps and until != one.known_from):
            # In between it was withdrawn, or ended: how often it was revised cannot be said plainly.
            raise unclear("history_interrupted")
        value, until = one.claims[0].value, one.known_to
        if steps and alike(found, steps[-1].value, value):
            last = steps.pop()
            step = Step(
                value=value, since=last.since, is_last=until is None, claims=(*last.claims, *one.claims)
            )
        else:
            step = Step(value=value, since=one.known_from_at, is_last=until is None, claims=one.claims)
        steps.append(step)
    if until is not None:
        raise unclear("history_interrupted")
    return steps


def alike(found: Found, one: Any, other: Any) -> bool:  # noqa: ANN401 -- values are any JSON
    """Say whether two values of a key are one: of numbers, be one told with its unit or not."""
    contract = found.resolution.contract
    if contract.value_type == ValueType.NUMBER:
        numbers = number_of(one, contract), number_of(other, contract)
        if None not in numbers:
            return numbers[0] == numbers[1]
    return same(one, other)


def says(value: object, asked: Sequence[str]) -> bool:
    """Say whether a value is these words, in this order, and nothing more: "A-" is not "A"."""
    if not isinstance(value, str) or has_signs(value):
        return False
    # "The kitchen" may be told as "kitchen"; what is called "The Hague" keeps its article.
    return words_in(value) in ([*asked], [*asked[asked[:1] in (["the"], ["a"], ["an"]) :]])


def may_mean(value: object, asked: Sequence[str]) -> bool:
    """Say whether a value is these words, or shares one with them: "Rome" may be meant by "Rome, Italy"."""
    return says(value, asked) or bool(words_of(value).intersection(asked).difference(_LITTLE))


def standing_of(found: Found) -> Resolved:
    """Return what stands at the view, or say why nothing does."""
    match found.resolution.resolution:
        case Resolved() as resolved:
            return resolved
        case Missing(reason=reason, superseded=superseded, withdrawn=withdrawn):
            raise missing(reason.value, (*superseded, *withdrawn))
        case Conflict(rivals=rivals) as conflict:
            groups = tuple((rival.claim,) for rival in rivals)
            raise Cannot(Withheld(reason=conflict.why, is_missing=False, conflict=conflict, groups=groups))
        case ResolvedSet():
            raise unclear("operation_not_typed")


def groups_of(steps: Sequence[Step]) -> tuple[tuple[Claim, ...], ...]:
    return tuple(step.claims for step in steps)


def number_in(found: Found, value: Any) -> Fraction:  # noqa: ANN401 -- values are any JSON
    number = number_of(value, found.resolution.contract)
    if number is None:
        raise unclear("not_a_number")
    return number


def shown_as(found: Found, number: Fraction) -> Any:  # noqa: ANN401 -- values are any JSON
    return with_unit(plain(number), found.resolution.contract)
