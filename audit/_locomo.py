"""
LoCoMo as published: two-person conversations, with questions on them.

The pictures are not published: their captions stand for them, in brackets. Session dates carry no
zone: they are read as UTC and marked with the offset `-00:00`, which RFC 3339 reserves for an offset
that is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from audit._histories import (
    ZONE_ASSUMED,
    Gold,
    History,
    HistoryQuestion,
    HistoryTurn,
    checked,
    documents,
    reading,
)

_FORM: Final = "LoCoMo"
# The names are English whatever the locale, so `strptime` would depend on the machine.
MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_DATE: Final = re.compile(r"(\d{1,2}):(\d{2}) (am|pm) on (\d{1,2}) ([A-Z][a-z]+), (\d{4})")
_SESSION: Final = re.compile(r"session_(\d+)")
# Published ids are not all well formed: `D8:6; D9:17`, `D:11:26`, `D30:05`.
_TURN_ID: Final = re.compile(r"D:?(\d+):(\d+)")
_ADVERSARIAL: Final = 5
"""The category of questions on what was never said; their evidence is where the wrong premise is from."""


def read_locomo(path: Path) -> list[History]:
    """
    Read conversations and their questions, in the order of the file.

    Args:
        path: The published JSON, plain or gzip; a zip or folder of one conversation a file.

    Raises:
        BadRequest: Not this format.
    """
    histories = [reading(where, partial(_history, sample), form=_FORM) for where, sample in _samples(path)]
    return checked(histories, path=path)


def read_locomo_gold(path: Path) -> list[tuple[Gold, ...]]:
    """Return what is gold, by conversation and question, as `read_locomo` numbers them; errors as there."""
    return [reading(where, partial(_gold, sample), form=_FORM) for where, sample in _samples(path)]


def _samples(path: Path) -> Iterator[tuple[str, Any]]:
    for name, document in documents(path):
        samples = document if isinstance(document, list) else [document]
        for number, sample in enumerate(samples, start=1):
            yield f"{name}: conversation {number}", sample


def _history(sample: dict[str, Any]) -> History:
    return History(
        turns=tuple(turn for _, turn in _turns(sample)),
        questions=tuple(HistoryQuestion(text=str(item["question"]), asked_at=None) for item in sample["qa"]),
    )


def _gold(sample: dict[str, Any]) -> tuple[Gold, ...]:
    places = {turn_id: place for place, (turn_id, _) in enumerate(_turns(sample))}
    found = []
    for item in sample["qa"]:
        named = item.get("evidence") or []
        ids = {
            (int(session), int(turn))
            for wording in (named if isinstance(named, list) else [named])
            for session, turn in _TURN_ID.findall(str(wording))
        }
        # An id of no turn is a defect of the set, not of a prediction.
        turns = frozenset(places[turn_id] for turn_id in ids if turn_id in places)
        kind = item.get("category")
        apart = kind == _ADVERSARIAL
        answer = None if apart else str(item.get("answer", ""))
        found.append(Gold(kind=f"category {kind}", turns=turns, apart=apart, answer=answer))
    return tuple(found)


def _turns(sample: dict[str, Any]) -> Iterator[tuple[tuple[int, int], HistoryTurn]]:
    """Yield each turn with its published number of session and turn."""
    conversation = sample.get("conversation", sample)
    # Dates stand without a session in some: only lists hold turns.
    numbers = sorted(
        int(match[1])
        for key, held in conversation.items()
        if (match := _SESSION.fullmatch(key)) and isinstance(held, list)
    )
    for session, number in enumerate(numbers, start=1):
        observed_at = _instant(conversation.get(f"session_{number}_date_time"))
        for place, turn in enumerate(conversation[f"session_{number}"], start=1):
            published = _TURN_ID.fullmatch(str(turn.get("dia_id", "")))
            turn_id = (int(published[1]), int(published[2])) if published else (number, place)
            yield (
                turn_id,
                HistoryTurn(
                    session=session,
                    speaker=str(turn["speaker"]),
                    speaker_class="user",
                    observed_at=observed_at,
                    text=_text(turn),
                ),
            )


def _text(turn: dict[str, Any]) -> str:
    text, caption = turn.get("text") or "", turn.get("blip_caption")
    return f"{text} [shares a picture: {caption}]".strip() if caption else str(text)


def _instant(wording: object) -> str | None:
    match = _DATE.fullmatch(str(wording or "").strip())
    if match is None or match[5] not in MONTHS:
        return None
    hour = int(match[1]) % 12 + (12 if match[3] == "pm" else 0)
    month = MONTHS.index(match[5]) + 1
    return f"{match[6]}-{month:02}-{int(match[4]):02}T{hour:02}:{match[2]}{ZONE_ASSUMED}"
