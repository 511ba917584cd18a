"""
LoCoMo as published: two-person conversations become events.

Only `sample_id` (to choose by) and the turns of `conversation` are read; questions, answers,
evidence, observations and summaries are never looked at. Ids are made from positions, so that no
public id enters the plane. Session dates carry no zone: they are read as UTC and written with the
offset `-00:00`, which RFC 3339 reserves for a local offset that is not known.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from contracts.errors import BadRequest
from contracts.events import EventDraft
from echoplane._failures import refusal

ZONE_ASSUMED: Final = "-00:00"
"""Offset of an instant whose source stated none: read as UTC, and marked so."""

_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
# The names are English whatever the locale, so `strptime` would depend on the machine.
_DATE: Final = re.compile(r"(\d{1,2}):(\d{2}) (am|pm) on (\d{1,2}) ([A-Z][a-z]+), (\d{4})")
_SESSION: Final = re.compile(r"session_(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Events for one tenant, in order; `tenant` is the default name, made from the position."""

    tenant: str
    drafts: tuple[EventDraft, ...]


def read_document(path: Path) -> bytes:
    """
    Read a file, plain or gzip, whatever it is called.

    Raises:
        BadRequest: It cannot be read.
    """
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except (OSError, EOFError) as error:
        raise BadRequest(field=str(path), reason=f"cannot be read: {error}") from error


def read_locomo(path: Path, *, conversation: str | None) -> list[Batch]:
    """
    Read conversations, one batch each.

    Args:
        path: The published JSON file, plain or gzip.
        conversation: The published id of the only one wanted; all if None.

    Raises:
        BadRequest: Not this format, or no such conversation.
    """
    try:
        document = json.loads(read_document(path))
    except ValueError as error:
        raise BadRequest(field=str(path), reason=f"not JSON: {error}") from error
    if not isinstance(document, list):
        raise BadRequest(field=str(path), reason="not a list of conversations")
    batches = []
    for number, sample in enumerate(document, start=1):
        try:
            if conversation is not None and sample["sample_id"] != conversation:
                continue
            drafts = tuple(_turns(sample["conversation"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise BadRequest(
                field=f"{path}: conversation {number}", reason=f"not LoCoMo's format: {error!r}"
            ) from error
        batches.append(Batch(tenant=f"locomo-{number}", drafts=drafts))
    if not batches:
        raise BadRequest(field="conversation", reason="the file holds no such conversation")
    return batches


def _turns(conversation: dict[str, Any]) -> Iterator[EventDraft]:
    numbers = sorted(int(match[1]) for key in conversation if (match := _SESSION.fullmatch(key)))
    count = 0
    for session, number in enumerate(numbers, start=1):
        observed_at = _instant(conversation[f"session_{number}_date_time"], session=session)
        for turn in conversation[f"session_{number}"]:
            count += 1
            yield _draft(turn, stream=f"session-{session:04}", count=count, observed_at=observed_at)


def _draft(turn: dict[str, Any], *, stream: str, count: int, observed_at: str) -> EventDraft:
    text = turn["text"]
    if caption := turn.get("blip_caption"):
        # The pictures are not published: their captions stand for them, told apart by brackets.
        text = f"{text} [shares a picture: {caption}]"
    try:
        return EventDraft.model_validate(
            {
                "stream": stream,
                "kind": "turn",
                "actor": {"id": turn["speaker"], "class": "user"},
                "observed_at": observed_at,
                "source_event_id": f"turn-{count:06}",
                "text": text,
            }
        )
    except ValidationError as error:
        raise refusal(error, where=f"turn {count}") from error


def _instant(wording: str, *, session: int) -> str:
    match = _DATE.fullmatch(wording.strip())
    if match is None or match[5] not in _MONTHS:
        raise BadRequest(field=f"session {session}", reason="its date is not of the published form")
    hour = int(match[1]) % 12 + (12 if match[3] == "pm" else 0)
    month = _MONTHS.index(match[5]) + 1
    return f"{match[6]}-{month:02}-{int(match[4]):02}T{hour:02}:{match[2]}{ZONE_ASSUMED}"
