"""
Units: what discovery indexes and proposes. Here one unit is one event with something to read.

What an event says is its text; an event of structured claims alone is rendered as plain words.
Commands (relation contracts, decisions, erasures) say nothing about the world and make no unit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import IntFlag
from typing import Any, Final

from contracts.events import COMMAND_KINDS, ClaimDraft, Event, EventDraft, Stance, TargetDraft
from discovery._text import terms, words
from discovery._times import find_times

RENDERED_CHARACTERS_MAX: Final = 2_000
"""Characters of rendered claims in a unit: enough for dozens of claims, bounded for hundreds."""
MARKED_CHARACTERS_MAX: Final = 1_000
"""Characters of a text that are looked through for times and numbers: few of a long one are its own."""

_DIGIT: Final = re.compile(r"\d")
_QUESTION_MARKS: Final = ("?", "\uff1f", "\u061f", "\u037e")


class Mark(IntFlag):
    """What a text has in it, whatever its words."""

    ASKS = 1
    """It ends with a question."""
    TIME = 2
    """It names a time: a date, or one that is counted from when it was said."""
    NUMBER = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """
    One event as discovery sees it.

    `terms` are what it is found under, with the names of who speaks and what it is about;
    `dense_text` is what is embedded. `observed` is when it was observed, else recorded (UTC).
    `told` are the times `[start, end)` that its text names, as they were meant when it was observed.
    """

    unit_id: str
    position: int
    commit: int
    stream: str
    actor_id: str
    actor_class: str
    observed: datetime
    terms: tuple[str, ...]
    words_count: int
    marks: Mark
    told: tuple[tuple[datetime, datetime], ...]
    dense_text: str


def unit_of(event: Event) -> Unit | None:
    """Return the event's unit, or None where there is nothing to read in it."""
    draft = event.draft
    rendered = render_claims(draft)
    text = draft.text if draft.text is not None and draft.text.strip() else rendered
    if draft.kind in COMMAND_KINDS or not text:
        return None
    found = terms(text)
    # What the text itself does not say: structured claims, subjects ("she" is Ann), and the speaker.
    more = [term for part in (rendered, *draft.subjects) for term in terms(part)]
    missing = dict.fromkeys(term for term in more if term not in set(found))
    observed = event.observed.first if event.observed is not None else event.recorded_at
    times = find_times(text[:MARKED_CHARACTERS_MAX], valid_at=observed)
    return Unit(
        unit_id=event.event_id,
        position=event.position,
        commit=event.commit,
        stream=draft.stream,
        actor_id=draft.actor.id,
        actor_class=draft.actor.class_,
        observed=observed,
        terms=(*terms(draft.actor.id), *found, *missing),
        words_count=len(words(text)),
        marks=_marks(text, names_time=bool(times)),
        told=tuple((time.start, time.end) for time in times if time.start and time.end),
        dense_text=text,
    )


def _marks(text: str, *, names_time: bool) -> Mark:
    """Return what a text has in it; of a long one, of how it begins and ends."""
    marks = Mark.ASKS if text.rstrip().endswith(_QUESTION_MARKS) else Mark(0)
    if names_time:
        marks |= Mark.TIME
    return marks | Mark.NUMBER if _DIGIT.search(text[:MARKED_CHARACTERS_MAX]) else marks


def render_claims(draft: EventDraft) -> str:
    """Return the structured claims of an event as plain words, in order; empty where there are none."""
    parts: list[str] = []
    length = 0
    for part in _parts(draft):
        length += len(part) + 2
        if length > RENDERED_CHARACTERS_MAX:
            break
        parts.append(part)
    return ". ".join(parts)


def _parts(draft: EventDraft) -> Iterator[str]:
    for claim in draft.claims:
        yield from _claim_parts(claim, draft.stance_of(claim))
    for target in draft.targets:
        yield _key_words(target.entity, target.relation, target.value)


def _claim_parts(claim: ClaimDraft, stance: Stance) -> Iterator[str]:
    said = "" if stance == Stance.ASSERT else f"{stance.value}: "
    yield f"{said}{_key_words(claim.entity, claim.relation, claim.value)}"
    targets: list[TargetDraft] = claim.targets or []
    for target in targets:
        yield _key_words(target.entity, target.relation, target.value)


def _key_words(entity: str | None, relation: str | None, value: Any) -> str:  # noqa: ANN401 - any JSON
    parts = (entity or "", (relation or "").replace("_", " "), value_text(value))
    return " ".join(part for part in parts if part)


def value_text(value: Any) -> str:  # noqa: ANN401 - any JSON
    """Return a claim's value as words."""
    match value:
        case None:
            return ""
        case str():
            return value
        case _:
            return json.dumps(value, ensure_ascii=False, sort_keys=True)
