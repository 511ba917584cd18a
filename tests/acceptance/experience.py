"""Synthetic experience: the same events for the same seed, with everything a ledger has to cope with."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any, Final

START: Final = datetime(2025, 3, 1, 8, tzinfo=UTC)
PEOPLE: Final = ("Ann", "Bea", "Cyr")
PLACES: Final = ("Lyon", "Graz", "Oslo", "Turin", "Ghent", "Porto")
OBJECTS: Final = ("blue mug", "car key", "green notebook", "umbrella", "toolbox")
ROOMS: Final = ("kitchen", "study", "hallway", "garage", "balcony")
HOBBIES: Final = ("chess", "rowing", "pottery", "birdwatching")


def experience(*, events_count: int, seed: int) -> list[dict[str, Any]]:
    """
    Return emit lines: statements in text, structured readings of two sensors, moves, late arrivals,
    corrections, retractions, a settled disagreement, occurrences and many-valued facts.
    """
    chance = random.Random(seed)
    events: list[dict[str, Any]] = []
    while len(events) < events_count:
        number = len(events)
        at = START + timedelta(minutes=7 * number)
        if chance.random() < 0.1:
            # Delivered long after it was seen.
            at -= timedelta(days=chance.randrange(1, 30))
        event = _one(chance, events, number)
        events.append(event | {"source_event_id": f"x-{number:05}", "observed_at": at.isoformat()})
    return events


def _one(chance: random.Random, before: list[dict[str, Any]], number: int) -> dict[str, Any]:
    kind = chance.choices(
        ("text", "reading", "occurrence", "many", "correction", "retraction", "dispute"),
        weights=(30, 40, 6, 8, 7, 4, 5),
    )[0]
    readings = [event for event in before if event["stream"] == "run-1" and event["kind"] == "observation"]
    if kind in {"correction", "retraction"} and not readings:
        kind = "reading"
    if kind == "text":
        return _text(chance)
    if kind in {"correction", "retraction"}:
        return _second_thought(chance, kind, chance.choice(readings))
    return _structured(chance, kind, number)


def _text(chance: random.Random) -> dict[str, Any]:
    who = chance.choice(PEOPLE)
    said = chance.choice((
        f"I live in {chance.choice(PLACES)}.",
        f"I moved to {chance.choice(PLACES)} last week, and I like {chance.choice(HOBBIES)}.",
        f"I work at {chance.choice(PLACES)} Books. {chance.choice(PEOPLE)} lives in {chance.choice(PLACES)}.",
        "What a lovely morning! Could you remind me to buy bread?",
        f"If I won the lottery I would live in {chance.choice(PLACES)}.",
    ))  # fmt: skip
    return {"stream": "chat-1", "kind": "turn", "actor": {"id": who, "class": "user"}, "text": said}


def _structured(chance: random.Random, kind: str, number: int) -> dict[str, Any]:
    thing, sensor = chance.choice(OBJECTS), chance.choice(("robot-1", "hall-camera"))
    reading = {
        "stream": "run-1", "kind": "observation", "actor": {"id": sensor, "class": "sensor"},
        "subjects": [thing],
    }  # fmt: skip
    match kind:
        case "occurrence":
            claim = {
                "entity": sensor, "relation": "visited", "value": chance.choice(ROOMS),
                "valid": {"at": (START + timedelta(minutes=7 * number)).isoformat(), "precision": "minute"},
            }  # fmt: skip
            return reading | {"claims": [claim]}
        case "many":
            claim = {"entity": chance.choice(PEOPLE), "relation": "likes", "value": chance.choice(HOBBIES)}
            return reading | {"claims": [claim]}
        case "dispute":
            who = chance.choice(PEOPLE)
            claim = {"entity": "Dov", "relation": "lives_in", "value": chance.choice(PLACES)}
            return {
                "stream": "chat-1", "kind": "claim", "actor": {"id": who, "class": "user"}, "claims": [claim],
            }  # fmt: skip
        case _:
            claim = {"entity": thing, "relation": "located_in", "value": chance.choice(ROOMS)}
            return reading | {"text": f"The {thing} is in the {claim['value']}.", "claims": [claim]}


def _second_thought(chance: random.Random, kind: str, target: dict[str, Any]) -> dict[str, Any]:
    """Correct or retract a reading: by its own source, or by an operator."""
    actor = chance.choice((target["actor"], {"id": "Ilse", "class": "operator"}))
    entity, relation = target["claims"][0]["entity"], target["claims"][0]["relation"]
    claim = {"entity": entity, "relation": relation}
    if kind == "correction":
        claim["value"] = chance.choice(ROOMS)
    return {
        "stream": "run-1", "kind": kind, "actor": actor, "subjects": target["subjects"],
        "claims": [claim], "targets": [{"source_event_id": target["source_event_id"]}],
    }  # fmt: skip
