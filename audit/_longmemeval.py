"""
LongMemEval: instances as published, and pools of evidence sessions.

An instance is one memory with one question. A file of evidence sessions alone (`evidence_sessions`)
makes one memory of all of them, with the sessions of every whole instance that lies beside it as
filler, and all its questions are asked of that. Whether a session answers anything is not looked at:
a session all of whose turns stand in a filler session is left out, whichever it is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
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
from contracts.errors import BadRequest

_FORM: Final = "LongMemEval"
_DATE: Final = re.compile(r"(\d{4})/(\d{2})/(\d{2})(?: \(\w+\))?(?: (\d{2}:\d{2}))?")
_WHOLE: Final = frozenset({"s-full", ""})
"""Variants that hold a haystack; the others are parts of one, and are reported apart."""

_Turn = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    """A session as it is told: its date as published, and its turns as role and content."""

    date: str
    turns: tuple[_Turn, ...]

    def order(self) -> tuple[bool, str, str]:
        """By date; where two share one, by content, so that no place hints at where it is from."""
        return self.date == "", self.date, hashlib.sha256(repr(self.turns).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contents:
    pooled: tuple[dict[str, Any], ...]
    instances: tuple[tuple[str, dict[str, Any]], ...]


def read_longmemeval(path: Path) -> list[History]:
    """
    Read memories and their questions: the pool first where there is one, then the instances in order.

    Args:
        path: A file as published or of evidence sessions, plain or gzip; or a folder of such files.

    Raises:
        BadRequest: Not this format.
    """
    contents = _contents(path)
    histories = []
    if contents.pooled:
        histories.append(reading(str(path), partial(_pool, contents), form=_FORM))
    for _, instance in contents.instances:
        histories.append(reading(str(path), partial(_instance, instance), form=_FORM))
    return checked(histories, path=path)


def read_longmemeval_gold(path: Path) -> list[tuple[Gold, ...]]:
    """Return what is gold, by memory and question, as `read_longmemeval` numbers them; errors as there."""
    contents = _contents(path)
    found = []
    if contents.pooled:
        found.append(reading(str(path), partial(_pool_gold, contents), form=_FORM))
    for variant, instance in contents.instances:
        found.append(
            reading(
                str(path),
                partial(_instance_gold, variant, instance),
                form=_FORM,
            )
        )
    return found


def _contents(path: Path) -> _Contents:
    pooled: list[dict[str, Any]] = []
    instances: list[tuple[str, dict[str, Any]]] = []
    for name, document in documents(path):
        for item in document if isinstance(document, list) else [document]:
            inner = item.get("instance", item) if isinstance(item, dict) else {}
            if "haystack_sessions" in inner:
                instances.append((str(item.get("variant", "")), inner))
            elif "evidence_sessions" in inner:
                pooled.append(inner)
            else:
                raise BadRequest(field=name, reason=f"not {_FORM}'s format: an item holds no sessions")
    return _Contents(pooled=tuple(pooled), instances=tuple(instances))


# --- one instance --------------------------------------------------------------------------------


def _instance(instance: dict[str, Any]) -> History:
    sessions = [session for _, session in _haystack(instance)]
    return History(turns=tuple(_told(sessions)), questions=(_question(instance),))


def _instance_gold(variant: str, instance: dict[str, Any]) -> tuple[Gold, ...]:
    turns = [turn for raw, _ in _haystack(instance) for turn in raw]
    gold = frozenset(place for place, turn in enumerate(turns) if turn.get("has_answer"))
    return (_labelled(instance, gold, variant=variant),)


def _haystack(instance: dict[str, Any]) -> list[tuple[list[dict[str, Any]], _Session]]:
    """Return each session as published and as it is told, by date."""
    raw = instance["haystack_sessions"]
    dates = instance.get("haystack_dates") or [""] * len(raw)
    pairs = [(turns, _session(turns, date)) for turns, date in zip(raw, dates, strict=True)]
    # Where two share a date, in the order of the file: the sort is stable.
    return sorted(pairs, key=lambda pair: (pair[1].date == "", pair[1].date))


# --- the pool ------------------------------------------------------------------------------------


def _pool(contents: _Contents) -> History:
    return History(
        turns=tuple(_told(_pooled_sessions(contents))),
        questions=tuple(_question(item) for item in contents.pooled),
    )


def _pool_gold(contents: _Contents) -> tuple[Gold, ...]:
    places: dict[tuple[str, _Turn], int] = {}
    anywhere: dict[_Turn, int] = {}
    place = 0
    for session in _pooled_sessions(contents):
        for turn in session.turns:
            places.setdefault((session.date, turn), place)
            anywhere.setdefault(turn, place)
            place += 1
    found = []
    for item in contents.pooled:
        told = [(session.date, turn) for session in _evidence(item) for turn in session.turns]
        # A session that stands in a filler session may bear another date there.
        gold = frozenset(places.get(dated, anywhere[dated[1]]) for dated in told)
        found.append(_labelled(item, gold, variant=""))
    return tuple(found)


def _pooled_sessions(contents: _Contents) -> list[_Session]:
    fillers = {
        session
        for variant, instance in contents.instances
        if variant in _WHOLE
        for _, session in _haystack(instance)
    }
    held: dict[_Turn, set[_Session]] = {}
    for session in fillers:
        for turn in session.turns:
            held.setdefault(turn, set()).add(session)
    sessions = set(fillers)
    for session in (session for item in contents.pooled for session in _evidence(item)):
        holding = [held.get(turn, set()) for turn in session.turns]
        if holding and not set.intersection(*holding):
            sessions.add(session)
    return sorted(sessions, key=_Session.order)


def _evidence(item: dict[str, Any]) -> Iterator[_Session]:
    for session in item["evidence_sessions"]:
        yield _session(session["turns"], session.get("session_date"))


# --- common --------------------------------------------------------------------------------------


def _labelled(item: dict[str, Any], turns: frozenset[int], *, variant: str) -> Gold:
    kind = str(item.get("question_type"))
    if str(item.get("question_id", "")).endswith("_abs"):
        return Gold(kind="abstention", turns=turns, apart=True, answer=None)
    answer = str(item.get("answer", ""))
    if variant not in _WHOLE:
        return Gold(kind=f"{variant}: {kind}", turns=turns, apart=True, answer=answer)
    return Gold(kind=kind, turns=turns, apart=False, answer=answer)


def _question(item: dict[str, Any]) -> HistoryQuestion:
    match = _DATE.fullmatch(str(item.get("question_date") or "").strip())
    # To the end of its day: some sessions of that day bear a later time of day.
    asked_at = f"{match[1]}-{match[2]}-{match[3]}T23:59:59{ZONE_ASSUMED}" if match else None
    return HistoryQuestion(text=str(item["question"]), asked_at=asked_at)


def _session(turns: list[dict[str, Any]], date: object) -> _Session:
    return _Session(
        date=str(date or "").strip(),
        turns=tuple((str(turn["role"]), str(turn["content"] or "")) for turn in turns),
    )


def _told(sessions: list[_Session]) -> Iterator[HistoryTurn]:
    for number, session in enumerate(sessions, start=1):
        match = _DATE.fullmatch(session.date)
        observed_at = None
        if match is not None:
            observed_at = f"{match[1]}-{match[2]}-{match[3]}T{match[4] or '00:00'}{ZONE_ASSUMED}"
        for role, content in session.turns:
            yield HistoryTurn(
                session=number,
                speaker=role,
                speaker_class="assistant" if role == "assistant" else "user",
                observed_at=observed_at,
                text=content.strip(),
            )
