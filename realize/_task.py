"""
What a question asks to be done with the states that the ledger resolved.

A question is a task only if all of it is understood: every word of it is a slot or part of one way
of asking. What is not is left to the reader of the evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from contracts.proposals import Plan, TimeExpression
from contracts.trails import Question
from realize._asking import AGE, asks_age, fits, is_birth
from realize._being import with_relation
from realize._inverse import turns_around
from realize._phrases import KEY, KNOWN_AFTER, KNOWN_BEFORE, WAYS
from realize._scope import words_in
from realize._slots import slotted


class Form(StrEnum):
    """What is derived, and so which surface is shown."""

    VALUE = "value"
    YES_NO = "yes_no"
    IS_SO = "is_so"
    IS_WHEN = "is_when"
    DIFFERENCE = "difference"
    FIRST_KNOWN = "first_known"
    KNOWN_SINCE = "known_since"
    KNOWN_AS = "known_as"
    TIMES_REVISED = "times_revised"
    LARGEST_REVISION = "largest_revision"
    TOTAL_REVISION = "total_revision"
    ELAPSED = "elapsed"
    VALUES = "values"
    VALUES_COUNT = "values_count"
    CHANGES = "changes"
    WHO_SAID = "who_said"
    HELD_SINCE = "held_since"
    HELD_FOR = "held_for"
    HELD_TOTAL = "held_total"
    HELD_UNTIL = "held_until"
    HELD_EVER = "held_ever"
    HELD_BESIDE = "held_beside"
    HELD_VALUES = "held_values"
    FIRST_TOLD = "first_told"
    AGE = "age"
    APART = "apart"
    ORDER = "order"
    BEFORE = "before"
    OCCURRED_WHEN = "occurred_when"
    OCCURRED_WHAT = "occurred_what"
    OCCURRED_BESIDE = "occurred_beside"
    FIRST_OF_TIMES = "first_of_times"


OCCURRED: Final = frozenset({Form.OCCURRED_WHEN, Form.OCCURRED_WHAT, Form.OCCURRED_BESIDE})
"""What is read off all that happened, within the time that is named."""
STAYS: Final = frozenset(
    {Form.HELD_TOTAL, Form.HELD_UNTIL, Form.HELD_EVER, Form.HELD_BESIDE, Form.HELD_VALUES}
)
"""What is read off the stretches in which a key had its values."""
THROUGH_TIME: Final = STAYS | {Form.HELD_SINCE, Form.HELD_FOR, Form.FIRST_TOLD, Form.FIRST_OF_TIMES}
"""What is read off all of a key's valid time, and not at one instant of it."""
_OF_NOW: Final = THROUGH_TIME | OCCURRED | {
    Form.YES_NO, Form.IS_SO, Form.IS_WHEN, Form.WHO_SAID, Form.AGE, Form.APART,
}  # fmt: skip
"""What may be asked without a time: of what stands at the view."""


_NEWEST_OF: Final = ("last_", "latest_")
"""How relations begin that hold the newest of many times: "last seen"."""
_NAMED: Final = re.compile(r"E(?P<entity>\d)(?P<owns> 's)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """A time that the question names: `[start, end)` in UTC."""

    start: datetime
    end: datetime
    wording: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A key, and the stretch of valid time that is asked about; None is the view's own instant."""

    entity: str
    relation: str
    period: Bounds | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """
    What is asked, of what, as known when.

    `known` is the time of the ledger's own clock that the question goes back to. `between` are two
    such times that are compared. `value` is a number that the question names, `words` a value in
    words, `unit` the unit of a duration, `on` the day of an age. `first` says that of several times
    the first is asked for, `number` that only a number is an answer, `revised` that there must be a
    revision to speak of, `past` that what is asked about is over.
    """

    form: Form
    subjects: tuple[Subject, ...]
    known: Bounds | None
    between: tuple[Bounds, Bounds] | None
    value: str | None
    words: str | None
    unit: str | None
    on: Bounds | None
    first: bool
    number: bool
    revised: bool
    past: bool


def read_task(question: Question, plan: Plan, keys: Sequence[tuple[str, str]]) -> Task | None:
    """
    Read a question whose every word is understood. Pure: the same for the same question for ever.

    Args:
        question: As it was put.
        plan: How discovery's planner read it over the names of the record.
        keys: The keys that it names.

    Returns:
        None where a word is left over, a time has no bounds, or more than one relation is named.
    """
    relations = {relation for _, relation in keys}
    if len(relations) != 1:
        return None
    (relation,) = relations
    entities = list(dict.fromkeys(entity for entity, _ in keys))
    text = question.text
    found = slotted(text, plan, entities=entities, relation=relation)
    found = None if found is None else with_relation(found, relation)
    if found is None or any(turns_around(text, entity=entity, relation=relation) for entity in entities):
        return None
    is_value = all(fits(text, entity=entity, relation=relation) for entity in entities)
    asked = _Asked(
        entities=entities, relation=relation, times=plan.times, asks_age=asks_age(text), is_value=is_value
    )
    tasks = (asked.task(*cut) for cut in _with_and_without_known(found))
    return next((task for task in tasks if task is not None), None)


def _with_and_without_known(form: str) -> Iterator[tuple[str, str | None]]:
    """Yield the sentence without "as known on P1", and that slot; then as it is."""
    for way in (KNOWN_BEFORE, KNOWN_AFTER):
        match = way.search(form)
        if match is not None:
            rest = f"{form[: match.start()]} {form[match.end() :]}"
            yield " ".join(rest.split()), _group(match, "k")
    yield form, None


def _group(match: re.Match[str], name: str) -> str | None:
    """Return what a name stands for, in whichever of its alternatives: `k`, `k_`, `k__` are one."""
    found = (value for key, value in match.groupdict().items() if key.rstrip("_") == name)
    return next((value for value in found if value is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What the slots of one question stand for."""

    entities: Sequence[str]
    relation: str
    times: Sequence[TimeExpression]
    asks_age: bool
    is_value: bool
    """Whether "where" and "who" ask for the value: where Ann's employer is, is another question."""

    def task(self, form: str, known: str | None) -> Task | None:
        try:
            subjects: list[Subject] = []

            def key(match: re.Match[str]) -> str:
                entity = self.entities[int((_group(match, "e") or "E0")[1:])]
                period = self._bounds(_group(match, "p"))
                subjects.append(Subject(entity=entity, relation=self.relation, period=period))
                return f"S{len(subjects) - 1}"

            sentence = KEY.sub(key, form)
            for name, way in WAYS:
                match = way.fullmatch(sentence)
                if match is not None:
                    return self._read(Form(name), match, subjects, known)
        except LookupError:
            pass
        return None

    def _read(
        self, form: Form, match: re.Match[str], subjects: list[Subject], known: str | None
    ) -> Task | None:
        period, earlier = self._bounds(_group(match, "p")), self._bounds(_group(match, "p2"))
        if form == Form.DIFFERENCE:
            # One figure at two times: what is subtracted comes second.
            (own,) = subjects
            if _group(match, "apart") and period and earlier and period.start < earlier.start:
                # Between a time and one before it: from which to which cannot be told.
                return None
            subjects = [replace(own, period=period), replace(own, period=earlier or own.period)]
        elif (entity := _group(match, "e")) is not None:
            own_period = period if form in OCCURRED else None
            subjects = [
                Subject(entity=self.entities[int(entity[1:])], relation=self.relation, period=own_period)
            ]
        elif period is not None:
            subjects = [replace(own, period=period) for own in subjects if own.period is None]
        if _group(match, "asking") is not None and not self.is_value:
            return None
        if not self._is_of_all_time(form, subjects):
            return None
        if form == Form.IS_WHEN and self.is_value:
            # A birthday is a value like any other, in whatever words it was told.
            return None
        asked = self._bounds(known or _group(match, "k"))
        on = self._bounds(_group(match, "on"))
        if (is_birth(self.relation) or self.relation == AGE) and self.asks_age:
            # An age follows from the day of birth, which holds for ever, and is that of another day.
            if form not in {Form.VALUE, Form.AGE} or len(subjects) != 1:
                return None
            form, on = Form.AGE, on or subjects[0].period
            subjects = [replace(own, period=None) for own in subjects]
        elif form == Form.AGE:
            return None
        start, end = self._bounds(_group(match, "k1")), self._bounds(_group(match, "k2"))
        # Whether a lone time is when it held or when it was known cannot be told; and of a state that
        # changed, an older value is no revision.
        timeless = any(own.period is None for own in subjects)
        if not subjects or (timeless and (asked or start or form not in _OF_NOW)):
            return None
        return Task(
            form=form,
            subjects=tuple(subjects),
            known=asked,
            between=None if start is None or end is None else (start, end),
            value=_group(match, "v"),
            words=self._words(_group(match, "words")),
            unit=_group(match, "unit"),
            on=on,
            first=_group(match, "first") is not None,
            number=_group(match, "number") is not None,
            revised=_group(match, "revised") is not None,
            past=_group(match, "past") is not None,
        )

    def _is_of_all_time(self, form: Form, subjects: Sequence[Subject]) -> bool:
        """Say whether what a form reads through all of a key's time can be asked of these subjects."""
        if form in STAYS and any(own.period is not None for own in subjects):
            return False
        # Else the first value that it had is no first time of anything.
        return form != Form.FIRST_OF_TIMES or self.relation.startswith(_NEWEST_OF)

    def _words(self, named: str | None) -> str | None:
        """Return the words of a value, in which an entity's name may stand."""
        if named is None:
            return None
        return _NAMED.sub(self._spelled, named)

    def _spelled(self, found: re.Match[str]) -> str:
        name = " ".join(words_in(self.entities[int(found["entity"])]))
        return name if found["owns"] is None else f"{name}'s"

    def _bounds(self, slot: str | None) -> Bounds | None:
        if slot is None:
            return None
        time = self.times[int(slot[1:])]
        if time.start is None or time.end is None:
            raise LookupError(slot)
        return Bounds(start=time.start, end=time.end, wording=time.wording)
