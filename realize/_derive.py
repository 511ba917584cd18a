"""D: from resolved states to what a task asks for, with every claim that it stands on. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final, TypeAlias

from contracts.claims import Claim
from contracts.errors import BadRequest
from contracts.times import format_instant, parse_term
from contracts.values import with_unit
from realize._arithmetic import elapsed, number_of
from realize._found import (
    Cannot,
    Derivation,
    Derived,
    Found,
    Step,
    Withheld,
    alike,
    check,
    groups_of,
    missing,
    number_in,
    shown_as,
    standing_of,
    steps_of,
    unclear,
)
from realize._held import age, apart, first_told, held_for, held_since, who_said
from realize._occurred import first_of_times, occurred_beside, occurred_what, occurred_when
from realize._stays import held_beside, held_ever, held_total, held_until, held_values
from realize._task import Form, Task
from realize._yes_no import is_so, yes_no


def derive(task: Task, found: Sequence[Found], *, at: datetime, known_at: datetime) -> Derivation:
    """
    Derive what a task asks for.

    Args:
        task: What is asked.
        found: What the ledger has of each of its subjects, in their order.
        at: The valid time of the view, which must be one that the question names, if it names any.
        known_at: The known time of the view: what will be known later, nobody can say.
    """
    try:
        first = task.subjects[0].period
        if first is not None and not first.start <= at < first.end:
            raise unclear("time_or_scope_not_resolved")
        if any(time.start > known_at for time in (task.known, *(task.between or ())) if time is not None):
            raise unclear("time_or_scope_not_resolved")
        for each in found:
            check(task, each)
        return _RULES[task.form](task, found)
    except Cannot as cannot:
        return cannot.withheld


def claims_of(derivation: Derivation) -> tuple[Claim, ...]:
    """Return all claims that a derivation stands on."""
    return tuple(claim for group in derivation.groups for claim in group)


# --- what stands ---------------------------------------------------------------------------------


def _value(task: Task, found: Sequence[Found]) -> Derivation:
    (one,) = found
    standing = standing_of(one)
    if task.number:
        number_in(one, standing.value)
    value = with_unit(standing.value, one.resolution.contract)
    return Derived(value=value, groups=(tuple(standing.claims),))


def _is_when(_: Task, found: Sequence[Found]) -> Derivation:
    """Return a value that is itself a time."""
    (one,) = found
    standing = standing_of(one)
    try:
        if not isinstance(standing.value, str):
            raise unclear("not_a_time")
        parse_term(standing.value, field="value")
    except BadRequest:
        raise unclear("not_a_time") from None
    return Derived(value=standing.value, groups=(tuple(standing.claims),))


def _difference(_: Task, found: Sequence[Found]) -> Derivation:
    later, earlier = found
    ends = [standing_of(later), standing_of(earlier)]
    change = number_in(later, ends[0].value) - number_in(earlier, ends[1].value)
    return Derived(value=shown_as(later, change), groups=tuple(tuple(end.claims) for end in ends))


# --- what was known when -------------------------------------------------------------------------


def _first_known(_: Task, found: Sequence[Found]) -> Derivation:
    (one,) = found
    first = steps_of(one)[0]
    return Derived(value=format_instant(first.since), groups=(first.claims,))


def _known_since(task: Task, found: Sequence[Found]) -> Derivation:
    (one,) = found
    steps = _steps_asked(task, one)
    last = steps[-1]
    if task.value is not None and _number_asked(task, one) != number_in(one, last.value):
        raise unclear("not_the_value")
    return Derived(value=format_instant(last.since), groups=groups_of(steps[-2:]))


def _steps_asked(task: Task, found: Found) -> list[Step]:
    """Return all values; of what was never revised there is no last revision to be asked about."""
    steps = steps_of(found)
    if task.revised and len(steps) == 1:
        raise missing("never_revised", steps[0].claims)
    return steps


def _number_asked(task: Task, found: Found) -> Fraction:
    asked = number_of(task.value, found.resolution.contract)
    if asked is None:
        raise unclear("not_a_number")
    return asked


def _known_as(task: Task, found: Sequence[Found]) -> Derivation:
    (one,) = found
    asked = _number_asked(task, one)
    steps = [step for step in steps_of(one) if number_in(one, step.value) == asked]
    if not steps:
        raise missing("never_known")
    if len(steps) > 1 and not task.first:
        raise unclear("several_times")
    return Derived(value=format_instant(steps[0].since), groups=(steps[0].claims,))


def _times_revised(_: Task, found: Sequence[Found]) -> Derivation:
    (one,) = found
    steps = steps_of(one)
    return Derived(value=len(steps) - 1, groups=groups_of(steps))


def _largest_revision(_: Task, found: Sequence[Found]) -> Derivation:
    (one,) = found
    steps = steps_of(one)
    if len(steps) == 1:
        raise missing("never_revised", steps[0].claims)
    revisions = [
        (number_in(one, after.value) - number_in(one, before.value), before, after)
        for before, after in pairwise(steps)
    ]
    size = max(abs(change) for change, _, _ in revisions)
    largest = [
        {"change": shown_as(one, change), **_change(one, before, after)}
        for change, before, after in revisions
        if abs(change) == size
    ]
    # None of several as large is the largest: all are.
    return Derived(value=largest[0] if len(largest) == 1 else largest, groups=groups_of(steps))


def _total_revision(_: Task, found: Sequence[Found]) -> Derivation:
    (one,) = found
    steps = steps_of(one)
    change = number_in(one, steps[-1].value) - number_in(one, steps[0].value)
    return Derived(value=shown_as(one, change), groups=groups_of([steps[0], steps[-1]]))


def _elapsed(task: Task, found: Sequence[Found]) -> Derivation:
    (one,) = found
    steps = _steps_asked(task, one)
    value = elapsed(steps[0].since, steps[-1].since, unit=task.unit)
    return Derived(value=value, groups=groups_of([steps[0], steps[-1]]))


def _values(_: Task, found: Sequence[Found]) -> Derivation:
    (one,) = found
    steps = steps_of(one)
    once: list[Any] = []
    for step in steps:
        if not any(alike(one, value, step.value) for value in once):
            once.append(step.value)
    value = [with_unit(each, one.resolution.contract) for each in once]
    return Derived(value=value, groups=groups_of(steps))


def _values_count(task: Task, found: Sequence[Found]) -> Derivation:
    match _values(task, found):
        case Derived(value=value, groups=groups):
            return Derived(value=len(value), groups=groups)
        case Withheld() as withheld:
            return withheld


def _changes(task: Task, found: Sequence[Found]) -> Derivation:
    (one,) = found
    steps = steps_of(one)
    if task.between is None:
        raise unclear("time_or_scope_not_resolved")
    start, end = (time.start for time in task.between)
    if end < start:
        raise unclear("time_or_scope_not_resolved")
    value, used = [], []
    for before, after in pairwise([None, *steps]):
        if after is not None and start < after.since <= end:
            value.append(_change(one, before, after))
            used += [step for step in (before, after) if step is not None]
    if not value:
        # Nothing changed: what stood all the time shows it, where anything did.
        used = [step for step in steps if step.since <= start][-1:]
        if not used:
            raise missing("never_known")
    unique = list({id(step): step for step in used}.values())
    return Derived(value=value, groups=groups_of(unique))


def _change(found: Found, before: Step | None, after: Step) -> dict[str, Any]:
    contract = found.resolution.contract
    return {
        "known_at": format_instant(after.since),
        "from": None if before is None else with_unit(before.value, contract),
        "to": with_unit(after.value, contract),
    }


def _order(_: Task, found: Sequence[Found]) -> Derivation:
    firsts = [(steps_of(one)[0], one.subject) for one in found]
    ordered = sorted(firsts, key=lambda first: first[0].since)
    if any(one.since == other.since for (one, _), (other, _) in pairwise(ordered)):
        # Neither was first.
        raise unclear("several_times")
    value = [
        {
            "entity": subject.entity,
            "period": None if subject.period is None else subject.period.wording,
            "known_at": format_instant(step.since),
        }
        for step, subject in ordered
    ]
    return Derived(value=value, groups=groups_of([step for step, _ in ordered]))


def _before(_: Task, found: Sequence[Found]) -> Derivation:
    first, second = (steps_of(one)[0] for one in found)
    return Derived(value=first.since < second.since, groups=groups_of([first, second]))


_Rule: TypeAlias = Callable[[Task, Sequence[Found]], Derivation]
_RULES: Final[Mapping[Form, _Rule]] = {
    Form.VALUE: _value,
    Form.YES_NO: yes_no,
    Form.IS_SO: is_so,
    Form.IS_WHEN: _is_when,
    Form.DIFFERENCE: _difference,
    Form.WHO_SAID: who_said,
    Form.HELD_SINCE: held_since,
    Form.HELD_FOR: held_for,
    Form.FIRST_TOLD: first_told,
    Form.HELD_TOTAL: held_total,
    Form.HELD_UNTIL: held_until,
    Form.HELD_EVER: held_ever,
    Form.HELD_BESIDE: held_beside,
    Form.HELD_VALUES: held_values,
    Form.AGE: age,
    Form.APART: apart,
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
    Form.OCCURRED_WHEN: occurred_when,
    Form.OCCURRED_WHAT: occurred_what,
    Form.OCCURRED_BESIDE: occurred_beside,
    Form.FIRST_OF_TIMES: first_of_times,
}
