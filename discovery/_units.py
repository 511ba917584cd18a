"""
Units: what discovery indexes and proposes. Here one unit is one event with something to read.

What an event says is its text; an event of structured claims alone is rendered as plain words.
Commands (relation contracts, decisions, erasures) say nothing about the world and make no unit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from contracts.events import COMMAND_KINDS, ClaimDraft, Event, EventDraft, Stance, TargetDraft
from discovery._text import terms, words

RENDERED_CHARACTERS_MAX: Final = 2_000
"""Characters of rendered claims in a unit: enough for dozens of claims, bounded for hundreds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """
    One event as discovery sees it.

    `terms` are what it is found under, with the names of who speaks and what it is about;
    `dense_text` is what is embedded. `observed` is when it was observed, else recorded (UTC).
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
    return Unit(
        unit_id=event.event_id,
        position=event.position,
        commit=event.commit,
        stream=draft.stream,
        actor_id=draft.actor.id,
        actor_class=draft.actor.class_,
        observed=event.observed.first if event.observed is not None else event.recorded_at,
        terms=(*terms(draft.actor.id), *found, *missing),
        words_count=len(words(text)),
        dense_text=text,
    )


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
