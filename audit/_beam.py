"""
BEAM as published: one folder a chat, with its messages in one file and its questions in another.

A chat is read from its cut form where there is one, as the benchmark's own evaluation does. The mark
`->-> 1,1` that the generator left in messages is no part of what was said, and is taken out.
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
    parse_json,
    read_document,
    reading,
)
from audit._locomo import MONTHS
from contracts.errors import BadRequest

_FORM: Final = "BEAM"
# The first is how the benchmark spells it.
_CHATS: Final = ("chat_trunecated", "chat_truncated", "chat")
_ABSTENTION: Final = "abstention"
_ANSWERS: Final = ("answer", "ideal_answer", "ideal_summary", "expected_compliance")
"""Under which names kinds of questions have what is right."""
_QUESTIONS: Final = ("probing_questions", "probing_questions/probing_questions")
_MARK: Final = re.compile(r"\s*->->\s*\d+,\d+\s*$|->->\s*\d+,\d+")
_ANCHOR: Final = re.compile(r"([A-Z][a-z]+)-(\d{1,2})-(\d{4})")


def read_beam(path: Path) -> list[History]:
    """
    Read chats and their questions: one folder, or a folder of such folders by number or name.

    Raises:
        BadRequest: Not this format.
    """
    histories = []
    for folder in _folders(path):
        messages, asked = _messages(folder), _document(folder, _QUESTIONS)
        questions = reading(
            str(folder),
            partial(_questions, asked),
            form=_FORM,
        )
        histories.append(History(turns=tuple(turn for _, turn in messages), questions=questions))
    return checked(histories, path=path)


def read_beam_gold(path: Path) -> list[tuple[Gold, ...]]:
    """Return what is gold, by chat and question, as `read_beam` numbers them; errors as there."""
    found = []
    for folder in _folders(path):
        places = {message_id: place for place, (message_id, _) in enumerate(_messages(folder))}
        asked = _document(folder, _QUESTIONS)
        found.append(reading(str(folder), partial(_gold, asked, places), form=_FORM))
    return found


def _questions(asked: object) -> tuple[HistoryQuestion, ...]:
    return tuple(HistoryQuestion(text=str(item["question"]), asked_at=None) for _, item in _asked(asked))


def _gold(asked: object, places: dict[int, int]) -> tuple[Gold, ...]:
    return tuple(
        Gold(
            kind=kind,
            turns=frozenset(
                places[number] for number in _numbers(item.get("source_chat_ids")) if number in places
            ),
            apart=False,
            answer=None if kind == _ABSTENTION else _answer(item),
        )
        for kind, item in _asked(asked)
    )


def _answer(item: dict[str, Any]) -> str:
    return next((str(item[name]) for name in _ANSWERS if item.get(name) is not None), "")


def _folders(path: Path) -> list[Path]:
    if _find(path, _CHATS) is not None:
        return [path]
    try:
        below = [folder for folder in path.iterdir() if folder.is_dir() and _find(folder, _CHATS) is not None]
    except NotADirectoryError as error:
        raise BadRequest(field=str(path), reason="is a file; BEAM is a folder of chats") from error
    except OSError as error:
        raise BadRequest(field=str(path), reason=f"cannot be read: {error}") from error
    if not below:
        raise BadRequest(field=str(path), reason="holds no chat: chat.json or chat.json.gz, in a folder each")
    return sorted(below, key=lambda folder: (not folder.name.isdigit(), folder.name.zfill(12)))


def _find(folder: Path, names: tuple[str, ...]) -> Path | None:
    files = (folder / f"{name}{ending}" for name in names for ending in (".json", ".json.gz"))
    return next((file for file in files if file.is_file()), None)


def _document(folder: Path, names: tuple[str, ...]) -> Any:  # noqa: ANN401 - any JSON
    file = _find(folder, names)
    if file is None:
        raise BadRequest(field=str(folder), reason=f"has no {names[0]}.json or {names[0]}.json.gz")
    return parse_json(read_document(file), where=str(file))


def _asked(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:  # noqa: ANN401 - any JSON
    """Yield each question with its kind: by kind in an object, or in one list that names it."""
    if isinstance(document, dict):
        for kind, items in document.items():
            for item in items:
                yield str(kind), item
    else:
        for item in document:
            yield str(item.get("question_type") or item.get("category") or item.get("type")), item


def _messages(folder: Path) -> list[tuple[int, HistoryTurn]]:
    """Return each message with its published number."""
    document = _document(folder, _CHATS)
    return reading(str(folder), partial(_Walk().messages, document), form=_FORM)


class _Walk:
    """Goes through a chat, however deep its messages lie; each batch is a session, dated by its first."""

    def __init__(self) -> None:
        self._found: list[tuple[int, HistoryTurn]] = []
        self._session = 1
        self._observed_at: str | None = None

    def messages(self, node: Any) -> list[tuple[int, HistoryTurn]]:  # noqa: ANN401 - any JSON
        self._visit(node)
        return self._found

    def _visit(self, node: Any) -> None:  # noqa: ANN401 - any JSON
        if isinstance(node, list):
            for inner in node:
                self._visit(inner)
        elif isinstance(node, dict) and "content" in node and "role" in node:
            self._message(node)
        elif isinstance(node, dict):
            if "turns" in node and self._found:
                self._session = self._found[-1][1].session + 1
            self._date(node.get("time_anchor"))
            for inner in node.values():
                if isinstance(inner, (list, dict)):
                    self._visit(inner)

    def _message(self, node: dict[str, Any]) -> None:
        self._date(node.get("time_anchor"))
        number = node.get("id")
        self._found.append(
            (
                len(self._found) if number is None else int(number),
                HistoryTurn(
                    session=self._session,
                    speaker=str(node["role"]),
                    speaker_class="assistant" if node["role"] == "assistant" else "user",
                    observed_at=self._observed_at,
                    text=_MARK.sub("", str(node["content"] or "")).strip(),
                ),
            )
        )

    def _date(self, wording: object) -> None:
        match = _ANCHOR.fullmatch(str(wording or "").strip())
        if match is not None and match[1] in MONTHS:
            month = MONTHS.index(match[1]) + 1
            self._observed_at = f"{match[3]}-{month:02}-{int(match[2]):02}T00:00{ZONE_ASSUMED}"


def _numbers(node: Any) -> Iterator[int]:  # noqa: ANN401 - any JSON
    """Yield every whole number at any depth."""
    if isinstance(node, dict):
        node = list(node.values())
    if isinstance(node, list):
        for inner in node:
            yield from _numbers(inner)
    elif isinstance(node, int) and not isinstance(node, bool):
        yield node
    elif isinstance(node, str):
        yield from map(int, re.findall(r"\d+", node))
