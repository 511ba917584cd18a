"""
The ARMAR-7 log as published: steps of a humanoid robot become events.

One step is one event: an `observation` where it lists objects, else an `action`. How a step ended is a
claim on its skill and on the object it handled; a step that is only prepared or under way says so in
its text. Only the log is read, never the questions beside it. Ids are made from positions. Times carry
no zone: they are read as UTC and written with the offset `-00:00`, which RFC 3339 reserves for a local
offset that is not known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from contracts.errors import BadRequest
from contracts.events import EventDraft
from echoplane._failures import refusal
from echoplane._import_locomo import ZONE_ASSUMED, Batch, read_document

ROBOT: Final = "Armar7"
_ENDS: Final = frozenset({"Succeeded", "Failed", "Aborted"})
_STATES: Final = _ENDS | {"Preparing", "Running"}
_TIME: Final = re.compile(r"(\d{4}-\d{2}-\d{2})T\d{2}:\d{2}:\d{2}(\.\d{1,6})?")
_HANDS: Final = {0: "left", 1: "right"}
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def read_armar7(path: Path) -> Batch:
    """
    Read the whole log, one stream for each day that the robot ran.

    Raises:
        BadRequest: Not this format; names the line.
    """
    lines = read_document(path).decode("utf-8", errors="replace").splitlines()
    return Batch(tenant="armar7", drafts=tuple(_drafts(lines)))


def _drafts(lines: list[str]) -> Iterator[EventDraft]:
    days: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            moment = row["timestamp"]
            match = _TIME.fullmatch(moment)
            if match is None or row["action_state"] not in _STATES:
                raise BadRequest(
                    field=f"line {number}", reason="its time or state is not of the published form"
                )
            stream = days.setdefault(match[1], f"run-{len(days) + 1:04}")
            yield _draft(row, stream=stream, number=number, observed_at=moment + ZONE_ASSUMED)
        except ValidationError as error:
            raise refusal(error, where=f"line {number}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadRequest(field=f"line {number}", reason=f"not this log's format: {error!r}") from error


def _draft(row: dict[str, Any], *, stream: str, number: int, observed_at: str) -> EventDraft:
    seen = sorted({_words(thing["obj_class"]) for thing in row["objects"]})
    handled = _handled(row["parameters"])
    subjects = [ROBOT, *dict.fromkeys([*seen, *([handled] if handled else [])])]
    return EventDraft.model_validate(
        {
            "stream": stream,
            "kind": "observation" if seen else "action",
            "actor": {"id": ROBOT, "class": "sensor"},
            "subjects": subjects,
            "observed_at": observed_at,
            "source_event_id": f"step-{number:06}",
            "text": _sentence(row, seen=seen, handled=handled),
            "claims": [
                *_step_claims(row, handled=handled),
                *_sight_claims(row, observed_at=observed_at),
            ],
        }
    )


def _step_claims(row: dict[str, Any], *, handled: str | None) -> Iterator[dict[str, Any]]:
    action, state, parameters = row["action"], row["action_state"], row["parameters"]
    if state == "Running" and (spoken := _spoken(parameters)):
        yield {"entity": ROBOT, "relation": "said", "value": spoken}
    if state not in _ENDS:
        return
    yield {"entity": _words(action), "relation": "action_state", "value": state}
    if "." not in row["goal"]:
        # Only what was asked of the robot: the hundred joints moved on the way are no news.
        yield {"entity": ROBOT, "relation": "last_action", "value": _words(action)}
    if handled:
        yield {"entity": handled, "relation": "last_action", "value": _words(action)}
        yield {"entity": handled, "relation": "last_outcome", "value": state}
    if state == "Succeeded" and (place := _place(parameters)):
        yield {"entity": ROBOT, "relation": "located_in", "value": place}


def _sight_claims(row: dict[str, Any], *, observed_at: str) -> Iterator[dict[str, Any]]:
    states = {_words(thing["obj_class"]): thing["state"] for thing in row["objects"]}
    for name, state in sorted(states.items()):
        yield {"entity": name, "relation": "last_seen", "value": observed_at}
        yield {"entity": name, "relation": "observed_by", "value": ROBOT}
        if state is not None:
            yield {"entity": name, "relation": "state", "value": state}


def _sentence(row: dict[str, Any], *, seen: list[str], handled: str | None) -> str:
    parameters = row["parameters"]
    parts = [f"{ROBOT}: {_words(row['action'])} {row['action_state'].lower()}."]
    if spoken := _spoken(parameters):
        parts.append(f"Spoken text: {json.dumps(spoken, ensure_ascii=False)}.")
    if handled:
        parts.append(f"Object: {handled}.")
    if place := _place(parameters):
        parts.append(f"Location: {place}.")
    for key, name in (("graspLocationName", "Taken from"), ("graspLocation", "Taken from"),
                      ("handoverLocationName", "Handed over at"), ("configuration", "Pose"),
                      ("shapeName", "Hand shape")):  # fmt: skip
        if isinstance(value := parameters.get(key), str) and value:
            parts.append(f"{name}: {_words(value)}.")
    if (hand := _HANDS.get(parameters.get("hand", parameters.get("arm")))) is not None:
        parts.append(f"Hand: {hand}.")
    if seen:
        parts.append(f"Sees the {', the '.join(seen)}.")
    if outer := row["goal"].split(".")[:-1]:
        parts.append(f"Part of {', within '.join(_words(step) for step in reversed(outer))}.")
    if caller := row["trigger"].split("->")[0]:
        parts.append(f"Asked for by {caller}.")
    return " ".join(parts)


def _handled(parameters: dict[str, Any]) -> str | None:
    for key in ("graspObjectName", "object", "objectID", "objectInstanceID"):
        value = parameters.get(key)
        if isinstance(value, dict):
            value = value.get("className")
        if isinstance(value, str) and value:
            return _words(value)
    inner = parameters.get("graspingParams")
    return _handled(inner) if isinstance(inner, dict) else None


def _place(parameters: dict[str, Any]) -> str | None:
    for key in ("locationName", "location"):
        value = parameters.get(key)
        if isinstance(value, str) and value:
            return value.rsplit("/", maxsplit=1)[-1]
    return None


def _spoken(parameters: dict[str, Any]) -> str | None:
    text = parameters.get("text")
    return text.strip().strip('"') or None if isinstance(text, str) else None


def _words(name: str) -> str:
    """`LookAtHumanFace` and `soy-milk` as words a question would use."""
    return (
        " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in _WORD.findall(name))
        or name
    )
