"""
Histories with questions, as a public data set has them, without anything that tells an answer.

A turn or question has no id but its place: public ids hint at what is gold, and a tie broken by one
would use it. What is gold is read apart, by `read_gold` of each set, after predictions are sealed.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from contracts.errors import BadRequest
from contracts.limits import EVALUATION_BYTES_MAX

ZONE_ASSUMED: Final = "-00:00"
"""Offset of an instant whose source stated none: read as UTC, and marked so."""

_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryTurn:
    """
    One turn; its place in `History.turns`, from 0, is its only id.

    `session` counts from 1 in time's order. `observed_at` is an instant with its offset, None where
    the source tells none. `text` may be empty: such a turn keeps its place and is never told.
    """

    session: int
    speaker: str
    speaker_class: str
    observed_at: str | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryQuestion:
    """A question in its public words, and when it is asked, where the source tells that."""

    text: str
    asked_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One memory and what is asked of it. `digest` (SHA-256, hex) covers every byte of both."""

    turns: tuple[HistoryTurn, ...]
    questions: tuple[HistoryQuestion, ...]

    @property
    def digest(self) -> str:
        """Equal for equal histories, whatever file they were read from."""
        form = json.dumps(asdict(self), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(form.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gold:
    """
    What is gold for one question: places of turns; none where the set names no evidence.

    `answer` is what the set takes for right, in its words; None where the right answer is that there is
    none. `apart` says that the set reports the question's kind apart from its main figure.
    """

    kind: str
    turns: frozenset[int]
    apart: bool
    answer: str | None


def documents(path: Path) -> Iterator[tuple[str, Any]]:
    """
    Yield each JSON document below a path with its name: a file (plain or gzip), a zip, or a folder.

    Raises:
        BadRequest: There is none, one cannot be read, or one is too large.
    """
    found = False
    for name, raw in _files(path):
        found = True
        yield name, parse_json(raw, where=name)
    if not found:
        raise BadRequest(field=str(path), reason="holds no JSON file")


def read_document(path: Path) -> bytes:
    """
    Read a file, plain or gzip, whatever it is called.

    Raises:
        BadRequest: It cannot be read, or is too large.
    """
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if packed else path.open("rb") as file:
            raw: bytes = file.read(EVALUATION_BYTES_MAX + 1)
    except (OSError, EOFError) as error:
        raise BadRequest(field=str(path), reason=f"cannot be read: {error}") from error
    if len(raw) > EVALUATION_BYTES_MAX:
        raise BadRequest(field=str(path), reason=f"has more than {EVALUATION_BYTES_MAX} bytes")
    return raw


def parse_json(raw: bytes, *, where: str) -> Any:  # noqa: ANN401 - any JSON
    """
    Return what a file holds.

    Raises:
        BadRequest: It is not JSON.
    """
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise BadRequest(field=where, reason=f"not JSON: {error}") from error


def reading(where: str, read: Callable[[], _Read], *, form: str) -> _Read:
    """
    Return what `read` returns.

    Raises:
        BadRequest: What it reads is not of the form named.
    """
    try:
        return read()
    except KeyError as error:
        raise BadRequest(field=where, reason=f"not {form}'s format: it has no {error}") from error
    except (TypeError, AttributeError, ValueError, IndexError, RecursionError) as error:
        reason = f"not {form}'s format: a part of it is of another kind than it should be ({error})"
        raise BadRequest(field=where, reason=reason) from error


def checked(histories: list[History], *, path: Path) -> list[History]:
    """
    Return histories that can be run.

    Raises:
        BadRequest: There are none, or one has no turn at all.
    """
    if not histories:
        raise BadRequest(field=str(path), reason="holds no history")
    for number, history in enumerate(histories, start=1):
        if not any(turn.text.strip() for turn in history.turns):
            raise BadRequest(field=f"{path}: history {number}", reason="holds no turn with a text")
    return histories


def _files(path: Path) -> Iterator[tuple[str, bytes]]:
    if path.is_dir():
        for file in sorted(path.rglob("*.json*")):
            if file.name.endswith((".json", ".json.gz")):
                yield str(file), read_document(file)
    elif path.is_file() and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for member in sorted(archive.infolist(), key=lambda each: each.filename):
                if not member.filename.endswith(".json"):
                    continue
                if member.file_size > EVALUATION_BYTES_MAX:
                    raise BadRequest(field=member.filename, reason="is too large")
                yield f"{path}: {member.filename}", archive.read(member)
    else:
        yield str(path), read_document(path)
