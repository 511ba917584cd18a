"""
Which words of a question its key does not explain.

A count or a list is of everything that stands on a key. A question that asks for less ("How many
*black* pets …", "… visited *Naples*?") says so in words that are neither function words, nor the
entity's name, nor words that mean the relation. Such a question must not be answered with the
whole; the words left over are returned for the caller to judge.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import takewhile
from typing import Final

from contracts.lexicon import ALSO_CALLED, FAVORITE_PREFIX, RELATIONS

_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SIGNS: Final = re.compile(
    r"""[^\w\s,.;:?!'’"“”()…‐–—-]                            # a symbol
    |[‐–—-](?![\w\s]) |(?<![\w\s])(?<!^)[‐–—-]              # a dash at a mark
    |\w[‐–—-](?:\s|$|\d) |\s[‐–—-](?:[^\W\d]|\s*$)         # or at one side of a word
    |[‐–—]\s*\d |-\s+\d                                    # or before a number, and not its sign
    |(?<!\d)[^\w\s-]\d |\d\s*['’"“”()]                    # a mark at a number
    """,
    re.VERBOSE,
)
_OPENING: Final = "\"'\u201c\u2018("
_CLOSING: Final = "\"'\u201d\u2019).,;:?!\u2026"
"""What may stand before and behind a name without being part of it."""
_POLITE: Final = re.compile(r"^\W*(?:please\s+)?(?:would|will|can|could)\s+you\b", re.IGNORECASE)
_SUFFIXES: Final = ("ing", "ed", "es", "s", "e")
_STEM_MIN: Final = 3
_POSSESSIVES: Final = frozenset({"my", "our", "your", "his", "her", "their", "its"})


def _set(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


_MARKS: Final = re.compile("[\u0300-\u036f]")
_SPELLING: Final = {"colour": "color"}

_FUNCTION_WORDS: Final = _set(
    "a actually again all altogether am an and any anything are at be been being by count current",
    "currently did different distinct do does each ever every everything exactly for get give got had",
    "hello hey hi just okay precisely really recall remember remind thank thanks",
    "has have having he her him his how i in into is it its know known list many me moment much",
    "my myself name named names now number of often one ones our overall own owned people",
    "person place places please present right say she show so some still tell that the their them",
    "there these they thing things this those time times to today total up us was we were what",
    "what's where which who whom whose you your days here latest newest nowadays",
)
"""Words that ask, count or point, and so restrict nothing."""

_SHIFTS: Final = _set(
    "after afterwards ago another aren't back before besides child childhood could couldn't didn't",
    "doesn't don't earlier except should want wanted wants then",
    "first former formerly future hasn't haven't if initially isn't later never next no nobody",
    "not once only originally other past previous previously second third unless until used",
    "wasn't weren't will without won't would",
)
"""Words that move the question to another time or world, or turn it round."""


def shifts(question: str, *, entity: str) -> bool:
    """Say whether a question asks for another time, another world or the opposite."""
    # A person may be called Will.
    return bool(_SHIFTS.intersection(words_in(_POLITE.sub("", question))).difference(words_in(entity)))


def left_over(question: str, *, entity: str, relation: str) -> tuple[str, ...]:
    """Return the words that neither the entity, the relation nor plain English explains."""
    explained = Explained(entity, relation)
    return tuple(word for word in words_in(_POLITE.sub("", question)) if not explained.has(word))


def untitled(question: str, left: Iterable[str], *, entity: str, relation: str) -> tuple[str, ...]:
    """Return the words left over without a title before the entity's name ("my *friend* Ann")."""
    explained = Explained(entity, relation)
    words = words_in(question)
    titles: set[str] = set()
    for place, word in enumerate(words):
        if word in _POSSESSIVES:
            title = list(takewhile(lambda each: not explained.has(each), words[place + 1 :]))
            if explained.names.intersection(words[place + 1 + len(title) :][:1]):
                titles.update(title)
    return tuple(word for word in left if word not in titles)


def mean_another(words: Iterable[str], relations: Iterable[str]) -> bool:
    """Say whether words left over mean one of some other relations ("Ann's *husband*")."""
    cues = {cue for relation in relations for cue in cues_of(relation)}
    return any(fold(word) in cues for word in words)


def asks_of_another(question: str, *, entity: str, relation: str) -> bool:
    """
    Say whether what is asked about only belongs to the entity: "Ann's mother", "the door of X".

    A noun that nothing explains stands after a possessive, or before "of" and the entity. One
    that the entity's name follows is a title ("my friend Ruben") and changes nothing.
    """
    explained = Explained(entity, relation)
    words = words_in(question)
    for place, word in enumerate(words):
        if word in _POSSESSIVES or word.endswith(("'s", "s'")):
            after = words[place + 1 :]
            unexplained = list(takewhile(lambda each: not explained.has(each), after))
            follows = after[len(unexplained) : len(unexplained) + 1]
            if unexplained and not explained.names.issuperset(follows or {""}):
                return True
        if word == "of" and place and not explained.has(words[place - 1]):
            return bool(explained.names.intersection(words[place + 1 : place + 3]))
    return False


def words_of(value: object) -> frozenset[str]:
    """Return the words of a value, as `left_over` writes them; none where it is not a text."""
    return frozenset(words_in(value)) if isinstance(value, str) else frozenset()


def names_whole(question: str, value: object) -> bool:
    """
    Say whether a value stands in a question whole, in normal form: without case and Latin accents.

    "York" does not name "New York", nor "C" "C++", and "C++" names no "C".
    """
    if not isinstance(value, str) or not value.strip():
        return False
    whole = rf"(?<![^\s{_OPENING}]){re.escape(_normal(value))}(?=[{_CLOSING}]*(?:\s|$))"
    return re.search(whole, _normal(question)) is not None


def _normal(text: str) -> str:
    bare = _bare(unicodedata.normalize("NFC", text).casefold().replace("’", "'"))
    return " ".join(bare.split())


def has_signs(text: str) -> bool:
    """
    Say whether anything but words, plain numbers and punctuation stands in a text.

    Its words alone would say something else: `A-`, `C++`, `>7`, `.5`, `7 %`, and all minus signs but
    the plain one of `-7`.
    """
    return _SIGNS.search(text) is not None


def words_in(text: str) -> list[str]:
    """Return the words of a text in order, without case and Latin accents."""
    found = _WORD.findall(unicodedata.normalize("NFC", text))
    return [_bare(word.casefold().replace("’", "'")) for word in found]


def _bare(word: str) -> str:
    if word.isascii():
        return word
    return unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFKD", word)))


class Explained:
    """The words that an entity, a relation and plain English explain."""

    def __init__(self, entity: str, relation: str) -> None:
        self.names = frozenset(words_in(entity))
        self._cues = cues_of(relation)

    def has(self, word: str) -> bool:
        plain = self.names | _FUNCTION_WORDS
        return word in plain or word.removesuffix("'s") in plain or fold(word) in self._cues


def cues_of(relation: str) -> frozenset[str]:
    """Return the folded words that mean a relation."""
    words = set(words_in(relation.replace("_", " ")))
    for listed in RELATIONS:
        if listed.relation == ALSO_CALLED.get(relation, relation):
            words |= {word for cue in listed.cues for word in cue}
    if relation.startswith(FAVORITE_PREFIX):
        words |= {"favourite", "favorite", "prefer", "like", "love", "enjoy", "best", "most"}
        words |= {"kind", "type", "sort"}
    return frozenset(fold(word) for word in words)


def fold(word: str) -> str:
    """Cut the endings that number and tense put on."""
    word = word.removesuffix("'s")
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _STEM_MIN:
            word = word.removesuffix(suffix)
            break
    return _SPELLING.get(word, word)
