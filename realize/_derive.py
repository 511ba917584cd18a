"""
D: from resolved states to what a task asks for, with every claim that it stands on. Pure.

Complete inside: all values that a key had in known time, in order, or both ends of a difference.
What cannot be made complete (a part is not listed, was erased, is in dispute) is withheld with the
reason; nothing is guessed, and nothing is left out in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final, TypeAlias

from contracts.claims import Claim
from contracts.histories import KeyHistory, Rectangle
from contracts.relations import Cardinality
from contracts.resolutions import Conflict, KeyResolution, Missing, Resolved, ResolvedSet
from contracts.times import format_instant
from contracts.values import with_unit
from realize._arithmetic import elapsed, number_of, plain, same
from realize._task import Bounds, Form, Subject, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the ledger has of one subject: its answer at the view, and what was known of it when."""

    subject: Subject
    resolution: KeyResolution
    history: KeyHistory


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
class _Step:
    """One value, as long as it was believed without a break."""

    value: Any
    since: datetime
    is_last: bool
    claims: tuple[Claim, ...]


class _Cannot(Exception):
    def __init__(self, withheld: Withheld) -> None:
        super().__init__(withheld.reason)
        self.withheld = withheld


def _unclear(reason: str) -> _Cannot:
    return _Cannot(Withheld(reason=reason, is_missing=False, conflict=None, groups=()))


def _missing(reason: str, claims: Sequence[Claim] = ()) -> _Cannot:
    groups = tuple((claim,) for claim in claims)
    return _Cannot(Withheld(reason=reason, is_missing=True, conflict=None, groups=groups))


def derive(task: Task, found: Sequence[Found], *, at: datetime) -> Derivation:
    """
    Derive what a task asks for.

    Args:
        task: What is asked.
        found: What the ledger has of each of its subjects, in their order.
        at: The valid time of the view, which must be one that the question names, if it names any.
    """
    try:
        first = task.subjects[0].period
        if first is not None and not first.start <= at < first.end:
            raise _unclear("time_or_scope_not_resolved")
        for each in found:
            _check(task, each)
        return _RULES[task.form](task, found)
    except _Cannot as cannot:
        return cannot.withheld


def claims_of(derivation: Derivation) -> tuple[Claim, ...]:
    """Return all claims that a derivation stands on."""
    return tuple(claim for group in derivation.groups for claim in group)


# --- what is whole -------------------------------------------------------------------------------


def _check(task: Task, found: Found) -> None:
    """Refuse what is not all there, or not one thing at the times that are named."""
    history = found.history
    if found.resolution.contract.cardinality != Cardinality.ONE:
        raise _unclear("operation_not_typed")
    if not history.whole:
        raise _unclear("not_all_listed")
    for one in history.rectangles:
        if (one.valid_from, one.valid_to) != (history.start, history.end):
            # The value is not one all through the time that is named.
            raise _unclear("changes_within")
    times = [task.known, *(task.between or ())]
    if any(_changes_within(time, history.rectangles) for time in times if time is not None):
        raise _unclear("changes_within")


def _changes_within(time: Bounds, rectangles: Sequence[Rectangle]) -> bool:
    edges = {edge for one in rectangles for edge in (one.known_from_at, one.known_to_at) if edge is not None}
    return any(time.start < edge < time.end for edge in edges)


def _steps(found: Found) -> list[_Step]:
    """Return all values in the order in which they were believed; each begins where another ended."""
    steps: list[_Step] = []
    until: int | None = None
    ordered = sorted(found.history.rectangles, key=lambda one: one.known_from)
    if not ordered:
        raise _missing("never_known")
    for one in ordered:
        if one.state == "conflict":
            raise _unclear("history_disputed")
        if one.state == "erased":
            raise _missing("erased")
        if one.state != "value" or len(one.claims) != 1 or (steps and until != one.known_from):
            # In between it was withdrawn, or ended: how often it was revised cannot be said plainly.
            raise _unclear("history_interrupted")
        value, until = one.claims[0].value, one.known_to
        if steps and same(steps[-1].value, value):
            last = steps.pop()
            step = _Step(
                value=value, since=last.since, is_last=until is None, claims=(*last.claims, *one.claims)
            )
        else:
            step = _Step(value=value, since=one.known_from_at, is_last=until is None, claims=one.claims)
        steps.append(step)
    if until is not None:
        raise _unclear("history_interrupted")
    return steps


def _standing(found: Found) -> Resolved:
    """Return what stands at the view, or say why nothing does."""
    match found.resolution.resolution:
        case Resolved() as resolved:
            return resolved
        case Missing(reason=reason, superseded=superseded, withdrawn=withdrawn):
            raise _missing(reason.value, (*superseded, *withdrawn))
        case Conflict(rivals=rivals) as conflict:
            groups = tuple((rival.claim,) for rival in rivals)
            raise _Cannot(Withheld(reason=conflict.why, is_missing=False, conflict=conflict, groups=groups))
        case ResolvedSet():
            raise _unclear("operation_not_typed")


def _groups(steps: Sequence[_Step]) -> tuple[tuple[Claim, ...], ...]:
    return tuple(step.claims for step in steps)


def _number(found: Found, value: Any) -> Fraction:  # noqa: ANN401 -- values are any JSON
    number = number_of(value, found.resolution.contract)
    if number is None:
        raise _unclear("not_a_number")
    return number


def _shown(found: Found, number: Fraction) -> Any:  # noqa: ANN401 -- values are any JSON
    return with_unit(plain(number), found.resolution.contract)


# --- what stands ---------------------------------------------------------------------------------


def _value(task: Task, found: Sequence[Found]) -> Derivation:
    (one,) = found
    standing = _standing(one)
    if task.number:
        _number(one, standing.value)
    value = with_unit(standing.value, one.resolution.contract)
    return Derived(value=value, groups=(tuple(standing.claims),))


def _yes_no(task: Task, found: Sequence[Found]) -> Derivation:
    (one,) = found
    standing = _standing(one)
    asked = number_of(task.value, one.resolution.contract)
    if asked is None:
        raise _unclear("not_a_number")
    return Derived(value=_number(one, standing.value) == asked, groups=(tuple(standing.claims),))


def _difference(_: Task, found: Sequence[Found]) -> Derivation:
    later, earlier = found
    ends = [_standing(later), _standing(earlier)]
    change = _number(later, ends[0].value) - _number(earlier, ends[1].value)
    return Derived(value=_shown(later, change), groups=tuple(tuple(end.claims) for end in ends))


def _who_said(_: Task, found: Sequence[Found]) -> Derivation:
    (one,) = found
    standing = _standing(one)
    ordered = sorted(standing.claims, key=lambda claim: claim.position)
    sources = list(dict.fromkeys(claim.source.actor_id for claim in ordered))
    own = {source: [claim for claim in ordered if claim.source.actor_id == source] for source in sources}
    # Of a long history not every claim that says the same once more is listed.
    value = {"among": sources} if one.resolution.truncated else sources
    return Derived(value=value, groups=tuple(tuple(claims) for claims in own.values()))


# --- what was known when -------------------------------------------------------------------------


def _first_known(_: Task, found: Sequence[Found]) -> Derivation:
    (one,) = found
    first = _steps(one)[0]
    return Derived(value=format_instant(first.since), groups=(first.claims,))


def _known_since(task: Task, found: Sequence[Found]) -> Derivation:
    (one,) = found
    steps = _steps(one)
    last = steps[-1]
    if task.value is not None and number_of(task.value, one.resolution.contract) != _number(one, last.value):
        raise _unclear("not_the_value")
    return Derived(value=format_instant(last.since), groups=_groups(steps[-2:]))


def _known_as(task: Task, found: Sequence[Found]) -> Derivation:
    (one,) = found
    asked = number_of(task.value, one.resolution.contract)
    if asked is None:
        raise _unclear("not_a_number")
    steps = [step for step in _steps(one) if _number(one, step.value) == asked]
    if not steps:
        raise _missing("never_known")
    if len(steps) > 1 and not task.first:
        raise _unclear("several_times")
    return Derived(value=format_instant(steps[0].since), groups=(steps[0].claims,))


def _times_revised(_: Task, found: Sequence[Found]) -> Derivation:
    (one,) = found
    steps = _steps(one)
    return Derived(value=len(steps) - 1, groups=_groups(steps))


def _largest_revision(_: Task, found: Sequence[Found]) -> Derivation:
    (one,) = found
    steps = _steps(one)
    if len(steps) == 1:
        raise _missing("never_revised", steps[0].claims)
    revisions = [
        (_number(one, after.value) - _number(one, before.value), before, after)
        for before, after in pairwise(steps)
    ]
    # Of several as large, the first.
    change, before, after = max(revisions, key=lambda revision: abs(revision[0]))
    value = {
        "change": _shown(one, change),
        "from": with_unit(before.value, one.resolution.contract),
        "to": with_unit(after.value, one.resolution.contract),
        "known_at": format_instant(after.since),
    }
    return Derived(value=value, groups=_groups(steps))


def _total_revision(_: Task, found: Sequence[Found]) -> Derivation:
    (one,) = found
    steps = _steps(one)
    change = _number(one, steps[-1].value) - _number(one, steps[0].value)
    return Derived(value=_shown(one, change), groups=_groups([steps[0], steps[-1]]))


def _elapsed(task: Task, found: Sequence[Found]) -> Derivation:
    (one,) = found
    steps = _steps(one)
    value = elapsed(steps[0].since, steps[-1].since, unit=task.unit)
    return Derived(value=value, groups=_groups([steps[0], steps[-1]]))


def _values(_: Task, found: Sequence[Found]) -> Derivation:
    (one,) = found
    steps = _steps(one)
    once: list[Any] = []
    for step in steps:
        if not any(same(value, step.value) for value in once):
            once.append(step.value)
    value = [with_unit(each, one.resolution.contract) for each in once]
    return Derived(value=value, groups=_groups(steps))


def _values_count(task: Task, found: Sequence[Found]) -> Derivation:
    match _values(task, found):
        case Derived(value=value, groups=groups):
            return Derived(value=len(value), groups=groups)
        case Withheld() as withheld:
            return withheld


def _changes(task: Task, found: Sequence[Found]) -> Derivation:
    (one,) = found
    steps = _steps(one)
    if task.between is None:
        raise _unclear("time_or_scope_not_resolved")
    start, end = (time.start for time in task.between)
    if end < start:
        raise _unclear("time_or_scope_not_resolved")
    value, used = [], []
    for before, after in pairwise([None, *steps]):
        if after is not None and start < after.since <= end:
            value.append(_change(one, before, after))
            used += [step for step in (before, after) if step is not None]
    if not value:
        # Nothing changed: what stood all the time shows it, where anything did.
        used = [step for step in steps if step.since <= start][-1:]
        if not used:
            raise _missing("never_known")
    unique = list({id(step): step for step in used}.values())
    return Derived(value=value, groups=_groups(unique))


def _change(found: Found, before: _Step | None, after: _Step) -> dict[str, Any]:
    contract = found.resolution.contract
    return {
        "known_at": format_instant(after.since),
        "from": None if before is None else with_unit(before.value, contract),
        "to": with_unit(after.value, contract),
    }


def _order(_: Task, found: Sequence[Found]) -> Derivation:
    firsts = [(_steps(one)[0], one.subject) for one in found]
    ordered = sorted(firsts, key=lambda first: first[0].since)
    value = [
        {
            "entity": subject.entity,
            "period": None if subject.period is None else subject.period.wording,
            "known_at": format_instant(step.since),
        }
        for step, subject in ordered
    ]
    return Derived(value=value, groups=_groups([step for step, _ in ordered]))


def _before(_: Task, found: Sequence[Found]) -> Derivation:
    first, second = (_steps(one)[0] for one in found)
    return Derived(value=first.since < second.since, groups=_groups([first, second]))


_Rule: TypeAlias = Callable[[Task, Sequence[Found]], Derivation]
_RULES: Final[Mapping[Form, _Rule]] = {
    Form.VALUE: _value,
    Form.YES_NO: _yes_no,
    Form.DIFFERENCE: _difference,
    Form.WHO_SAID: _who_said,
    Form.FIRST_KNOWN: _first_known,
    Form.KNOWN_SINCE: _known_since,
    Form.KNOWN_AS: _known_as,
    Form.TIMES_REVISED: _times_revised,
    Form.LARGEST_REVISION: _largest_revision,
    Form.TOTAL_REVISION: _total_revision,
    Form.ELAPSED: _elapsed,
    Form.VALUES: _values,
    Form.VALUES_COUNT: _values_count,
    Form.CHANGES: _changes,
    Form.ORDER: _order,
    Form.BEFORE: _before,
}
