"""
Words and sentences with their places in the text, in code points. Linear in the text.

Contractions are taken apart ("don't" is `do`, `n't`), so that rules see one word at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from projection._english._words import word_set

SENTENCE_CHARACTERS_MAX: Final = 600
"""A longer sentence is not read: nobody states a simple fact in it."""
SENTENCES_MAX: Final = 3_000
"""Sentences read of one text; the longest text that is accepted holds fewer unless it is made up."""

_WORD: Final = re.compile(r"\w+(?:[-.'’&/@+]\w+)*|[^\w\s]")
_BREAK: Final = re.compile(r"[.!?…。\uff01\uff1f]+|\n+")
_ABBREVIATIONS: Final = word_set(
    "dr mr mrs ms prof st mt jr sr vs etc eg e.g i.e ie approx dept inc ltd co feb jan mar apr jun jul "
    "aug sep sept oct nov dec est ft a.m p.m u.s u.k"
)
_SPECIAL: Final = {"can't": "can", "cant": "can", "won't": "will", "wont": "will", "shan't": "shall"}
_UNPUNCTUATED: Final = {
    "im": ("i", "'m"),
    "ive": ("i", "'ve"),
    "dont": ("do", "n't"),
    "doesnt": ("does", "n't"),
    "didnt": ("did", "n't"),
    "isnt": ("is", "n't"),
    "arent": ("are", "n't"),
    "cannot": ("can", "n't"),
}
_SUFFIXES: Final = ("n't", "'m", "'re", "'ve", "'ll", "'d", "'s")


class Token(NamedTuple):
    """A word or a mark: as written, in lower case with straight apostrophes, and where it stands."""

    text: str
    low: str
    start: int
    end: int


class Sentence(NamedTuple):
    """A sentence `[start, end)` of the text, and the marks that end it."""

    start: int
    end: int
    close: str


def split_sentences(text: str) -> Iterator[Sentence]:
    """Yield sentences in order. A line break ends one; an abbreviation or a decimal point does not."""
    start = 0
    for match in _BREAK.finditer(text):
        mark = match.group()
        if mark == "." and not _ends_sentence(text, match.start(), start):
            continue
        if match.start() > start and not text[start : match.start()].isspace():
            yield Sentence(start=start, end=match.start(), close=mark)
        start = match.end()
    if start < len(text) and not text[start:].isspace():
        yield Sentence(start=start, end=len(text), close="")


def tokenize(text: str, start: int, end: int) -> list[Token]:
    """Return the tokens of `[start, end)`."""
    tokens: list[Token] = []
    for match in _WORD.finditer(text, start, end):
        word = match.group()
        low = word.lower()
        if "’" in low:
            low = low.replace("’", "'")
        place = match.start()
        parts = _contraction(low)
        if parts is None or len(low) != len(word):
            tokens.append(Token(word, low, place, match.end()))
            continue
        head, tail = parts
        cut = match.end() - len(tail) if low.endswith(tail) else match.end()
        tokens.extend(
            (
                Token(text[place:cut], head, place, cut),
                Token(text[cut : match.end()], tail, cut, match.end()),
            )
        )
    return tokens


def _contraction(low: str) -> tuple[str, str] | None:
    if low in _UNPUNCTUATED:
        return _UNPUNCTUATED[low]
    if "'" not in low:
        return None
    if low in _SPECIAL:
        return _SPECIAL[low], "n't"
    for suffix in _SUFFIXES:
        if low.endswith(suffix) and len(low) > len(suffix):
            return low.removesuffix(suffix), suffix
    return None


def _ends_sentence(text: str, dot: int, sentence_start: int) -> bool:
    after = text[dot + 1 : dot + 2]
    if after and not after.isspace() and after not in "\"'”’)»":
        return False
    # Only the last word decides; it is cut short, so that a text of one endless word stays linear.
    word = text[max(sentence_start, dot - 8) : dot].rsplit(None, 1)
    last = word[-1].lower() if word else ""
    single_capital = len(last) == 1 and text[dot - 1].isupper() and last != "i"
    return last not in _ABBREVIATIONS and not single_capital
