"""Gold as a bundle holds it: places for ids, as the public readers number them."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final

from audit._sets import DataSet
from contracts.artifacts import GoldLine
from contracts.errors import BadRequest
from contracts.qa import QaGold

_OTHER_CHARACTERS: Final = re.compile(r"[^a-z0-9_.@+-]+")


def as_word(kind: str) -> str:
    """Return a set's name of a kind of question as a bundle can hold it: `category 1` is `category-1`."""
    return _OTHER_CHARACTERS.sub("-", kind.lower()).strip("-_.@+")[:64]


def gold_answers(data_set: DataSet, path: Path) -> list[QaGold]:
    """
    Read what is right, in the set's words, question by question. Only after a run is sealed.

    A question of which the set says nothing has an empty answer: nothing is right by it. What was right
    once, and what sources disagree about, no public set says.
    """
    return [
        QaGold(question=f"h{number}q{place}", answer=one.answer)
        for number, asked in enumerate(data_set.read_gold(path))
        for place, one in enumerate(asked)
    ]


def words_digest(answer: object) -> str:
    """Return the digest of an answer's words, whatever their order and case: strict answers have the same."""
    texts = answer if isinstance(answer, list) else [answer]
    words = sorted({word for text in texts for word in re.findall(r"\w+", str(text).casefold())})
    return hashlib.sha256(" ".join(words).encode()).hexdigest()


def gold_lines(data_set: DataSet, path: Path, *, answers: bool = False) -> list[GoldLine]:
    """
    Read what is gold, question by question. Only after predictions are sealed.

    Args:
        answers: Whether answers are scored, too: then each line has the digest of its own.

    Raises:
        BadRequest: Not the format of this set.
    """
    histories, gold = data_set.read(path), data_set.read_gold(path)
    if [len(one.questions) for one in histories] != [len(one) for one in gold]:
        raise BadRequest(field=str(path), reason="questions and their gold are not of one number")
    return [
        GoldLine(
            question=f"h{number}q{place}",
            kind=as_word(one.kind),
            apart=one.apart,
            turns=tuple(f"h{number}t{turn}" for turn in sorted(one.turns)),
            sessions=tuple(
                f"h{number}s{session}"
                for session in sorted({history.turns[turn].session for turn in one.turns})
            ),
            # By a set that says nothing, nothing is right: not even an answer without words.
            answer=words_digest(one.answer) if answers and one.answer else None,
        )
        for number, (history, asked) in enumerate(zip(histories, gold, strict=True))
        for place, one in enumerate(asked)
    ]
