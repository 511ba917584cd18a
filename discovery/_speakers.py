"""
What is embedded of a question and of a turn: the text without the names of those who speak.

Who speaks is in every one of their turns and in none of its meaning. Left in a question, the name draws
the turns that mention it; left in a turn, that one is near to whatever is asked of the person whom it
calls by name. What the names say is said by the routes of words and of actors.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from discovery._selection import Searched
from discovery._text import tokenize, words

NAME_WORDS_MAX: Final = 4
LOOKED_AT_CHARACTERS_MAX: Final = 8_000
"""Characters of a turn that are looked through: more than any model here sees of it."""

_POSSESSIVE: Final = re.compile(r"['’]s\b")


def dense_question(index: Searched, question: str, count: int) -> str:
    """Return the question without the names of those who have spoken; whole if nothing else is left."""
    return _without(question, lambda name: index.is_speaker(name, count), capitalized=False)


def dense_turn(index: Searched, text: str, row: int) -> str:
    """
    Return a turn's text without the names of those who had spoken by then.

    Only where it writes them with a capital: "user" and "will" are words too, and unlike a question a
    turn that is found by its words alone has them in its windows as well.
    """
    head, tail = text[:LOOKED_AT_CHARACTERS_MAX], text[LOOKED_AT_CHARACTERS_MAX:]
    return _without(head, lambda name: index.is_speaker(name, row + 1), capitalized=True) + tail


def _without(text: str, is_speaker: Callable[[tuple[str, ...]], bool], *, capitalized: bool) -> str:
    tokens = tokenize(text)
    spelled = [token.word for token in tokens]
    kept: list[str] = []
    at, copied = 0, 0
    while at < len(tokens):
        length = next(
            (
                length
                for length in range(min(NAME_WORDS_MAX, len(tokens) - at), 0, -1)
                if (tokens[at].raw[0].isupper() or not capitalized)
                and is_speaker(tuple(spelled[at : at + length]))
            ),
            0,
        )
        if length:
            kept.append(text[copied : tokens[at].start])
            copied = tokens[at + length - 1].end
            possessive = _POSSESSIVE.match(text, copied)
            copied = possessive.end() if possessive else copied
        # What is left of a possessive is a token too, and a name begins at none.
        at += max(1, length)
    if not kept:
        return text
    shorter = " ".join("".join([*kept, text[copied:]]).split())
    return shorter if words(shorter) else text
