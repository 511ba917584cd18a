"""
Text as discovery sees it: tokens in any script, folded words, stemmed terms.

Where a script writes no spaces, every character is a word of its own, and lexical terms are pairs of
them; of Han each character too, which is often a word. Emoji are terms. Identifiers such as `RedMug_2`
are read as their parts and as a whole.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass
from typing import Final

import snowballstemmer
from bm25s.stopwords import STOPWORDS_EN_PLUS

STOP_WORDS: Final = frozenset(STOPWORDS_EN_PLUS)
WORD_CHARACTERS_MAX: Final = 64
"""Characters of a word that count; what is longer is no word and would only bloat the index."""
_CACHED_STEMS: Final = 100_000

# Scripts without spaces between words: kana, Han, Hangul (whose endings stick to the word), Thai to Myanmar.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
)
# Vowel signs and the like are no word characters to `re`, and would cut words of these scripts apart.
_MARKS: Final = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u0900-\u0963\u0981-\u0dff"
)
_TOKEN: Final = re.compile(rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])(?:[^\W_]|[{_MARKS}]))+")
_IS_UNSPACED: Final = re.compile(rf"[{_UNSPACED}]")
_CASE_PARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_INNER_CAPITAL: Final = re.compile(r"[a-z][A-Z]")
# What may be left out without making another word: accents, vowel points, and the stroke that stretches one.
_FOLDED_MARKS: Final = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]"
)
_HAN: Final = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
_EMOJI: Final = re.compile("[\u2600-\u27bf\U0001f300-\U0001faff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A word of a text: folded, as it was written, and the characters `[start, end)` it stands at."""

    word: str
    raw: str
    start: int
    end: int


def fold(text: str) -> str:
    """Return the text without case, compatibility forms, accents and vowel points."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFC", _FOLDED_MARKS.sub("", unicodedata.normalize("NFD", folded)))


def tokenize(text: str) -> list[Token]:
    """Return the words of a text in order; of an unspaced script, its characters."""
    tokens: list[Token] = []
    for match in _TOKEN.finditer(text):
        raw, start = match.group(), match.start()
        if _IS_UNSPACED.match(raw):
            tokens += [
                Token(word=fold(character), raw=character, start=start + offset, end=start + offset + 1)
                for offset, character in enumerate(raw)
            ]
        else:
            tokens.append(Token(word=fold(raw), raw=raw, start=start, end=match.end()))
    return tokens


def words(text: str) -> tuple[str, ...]:
    """Return the folded words of a text."""
    return tuple(token.word for token in tokenize(text))


@functools.lru_cache(maxsize=1)
def _stemmer() -> snowballstemmer.stemmer:
    return snowballstemmer.stemmer("english")


@functools.lru_cache(maxsize=_CACHED_STEMS)
def stem(word: str) -> str:
    """Return the English stem of a folded word; another script's word as it is."""
    return str(_stemmer().stemWord(word)) if word.isascii() else word


def terms(text: str) -> list[str]:
    """Return what a text is indexed under: stems without stop words, in order, with repetitions."""
    found: list[str] = []
    for match in _TOKEN.finditer(text):
        raw = match.group()
        if _IS_UNSPACED.match(raw):
            folded = fold(raw)
            found += [folded[at : at + 2] for at in range(max(1, len(folded) - 1))]
            if len(folded) > 1:
                found += _HAN.findall(folded)
            continue
        parts = _CASE_PARTS.findall(raw) if _INNER_CAPITAL.search(raw) else []
        for part in (raw, *parts):
            word = fold(part)[:WORD_CHARACTERS_MAX]
            # A lone Latin letter is what an apostrophe or an initial leaves.
            if word not in STOP_WORDS and (len(word) > 1 or not word.isascii() or word.isdecimal()):
                found.append(stem(word))
    return found if text.isascii() else found + _EMOJI.findall(text)


def content_stems(text: str) -> frozenset[str]:
    """Return the stems of a name's words, leaving out stop words."""
    return frozenset(stem(word) for word in words(text) if word not in STOP_WORDS)
