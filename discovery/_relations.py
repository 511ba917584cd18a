"""Which relations a question is about: by the lexicon's cues and by the tenant's own relation names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from contracts.lexicon import ALSO_CALLED, CARDINALITY_OF, FAVORITE_PREFIX, RELATIONS
from discovery._text import STOP_WORDS, stem, words

RELATIONS_MAX: Final = 8
"""Relations that one plan names."""

# Verbs whose past no stemmer folds; general English.
_IRREGULAR: Final = {
    "went": "go", "gone": "go", "been": "been", "drove": "drive", "driven": "drive", "spoke": "speak",
    "spoken": "speak", "wore": "wear", "ate": "eat", "eaten": "eat", "bought": "buy", "taught": "teach",
    "wed": "married", "marry": "married", "marries": "married", "met": "meet", "kept": "keep",
    "seen": "see", "saw": "see",
}  # fmt: skip
_SPELLING: Final = {"favourit": "favorit", "fave": "favorit", "colour": "color"}
# "On what date" asks for a time and says nothing of dating.
_OTHER_DATE: Final = re.compile(r"\b(?:what|which) date\b")
_QUESTION_WORDS: Final = frozenset({"where", "who", "when", "what", "which", "how"})
_NEWEST: Final = frozenset({"last", "latest"})
# Here "like" compares or asks politely; it states no liking.
_OTHER_LIKE: Final = re.compile(
    r"\b(?:look|looks|looked|feel|feels|sound|sounds|is it|was it|be|would) like\b"
)
_FAVORITE: Final = re.compile(r"\bfav(?:ou?rite|e)s?\s+(?:(?:type|kind|sort|brand) of\s+)?(?P<after>.*)")
_LIKES_BEST: Final = re.compile(r"\b(?:prefer\w*|(?:like|love|enjoy)\w* (?:best|most))\b")
_WHICH: Final = re.compile(
    r"\b(?:what|which)\s+(?:(?:type|kind|sort|brand) of\s+)?(?P<before>.+?)\s+(?:is|was|are|does|do|did)\b"
)

Cue = frozenset[str]


def root(word: str) -> str:
    """Return a word's stem with irregular pasts and spellings folded."""
    stemmed = stem(_IRREGULAR.get(word, word))
    return _SPELLING.get(stemmed, stemmed)


def content_roots(name: str) -> frozenset[str]:
    """Return the roots of the words of a relation's name, leaving out stop words."""
    return frozenset(root(word) for word in words(name) if word not in STOP_WORDS)


def _lexicon() -> tuple[tuple[str, Cue], ...]:
    return tuple(
        (entry.relation, frozenset(root(word) for word in cue)) for entry in RELATIONS for cue in entry.cues
    )


_CUES: Final = _lexicon()


def find_relations(asked: Sequence[str], known: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """
    Return the relations that a question names, the most specific first.

    Args:
        asked: Folded words of the question, without those of the entities it names.
        known: The tenant's own relations and the roots of their names.
    """
    text = _OTHER_DATE.sub(" ", _OTHER_LIKE.sub(" ", " ".join(asked)))
    stems = frozenset(root(word) for word in text.split())
    favorites = _favorites(text, stems, known)
    if favorites:
        return favorites[:RELATIONS_MAX]
    matches = [*_matches(stems, known)]
    kept: dict[str, int] = {}
    for relation, cue in matches:
        # "work where" says more than "work": the longer cue wins over the one it contains.
        if not any(cue < other for _, other in matches):
            kept[relation] = max(kept.get(relation, 0), _weight(cue))
    strong = {relation: weight for relation, weight in kept.items() if weight > 0} or kept
    order = sorted(strong, key=lambda relation: -strong[relation])
    return tuple(order[:RELATIONS_MAX])


def _weight(cue: Cue) -> int:
    # A question word alone ("where") hints at a relation only if nothing else does.
    return len(cue) if cue - _QUESTION_WORDS else 0


def _matches(stems: frozenset[str], known: Mapping[str, frozenset[str]]) -> Iterator[tuple[str, Cue]]:
    # What a listed relation is also called is found as that is, and stands beside it.
    called = [name for name in sorted(known) if name in ALSO_CALLED]
    for relation, cue in _CUES:
        if cue <= stems:
            yield relation, cue
            yield from ((name, cue) for name in called if ALSO_CALLED[name] == relation)
    for relation in sorted(known):
        # A listed relation is found by its cues; its name alone would match less exactly.
        own = known[relation]
        if "first" in stems:
            # Of what has the newest of many times, "last seen", the first is asked for too.
            own -= _NEWEST
        if relation not in CARDINALITY_OF and own and own <= stems:
            yield relation, own


def _favorites(text: str, stems: frozenset[str], known: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    if "favorit" not in stems and not _LIKES_BEST.search(text):
        return ()
    named = []
    for relation in sorted(known):
        own = known[relation]
        if relation.startswith(FAVORITE_PREFIX) and own <= stems | {"favorit"}:
            named.append(relation)
    if named:
        return tuple(sorted(named, key=lambda relation: -len(known[relation])))
    noun = _favorite_noun(text)
    return (f"{FAVORITE_PREFIX}{noun}",) if noun else ()


def _favorite_noun(text: str) -> str:
    match = _FAVORITE.search(text)
    after = _leading_nouns(match["after"]) if match else ""
    if after:
        return after
    # "Which colour is my favourite?", "Which colour do I like best?"
    which = _WHICH.search(text)
    return _leading_nouns(which["before"]) if which else ""


def _leading_nouns(text: str) -> str:
    nouns: list[str] = []
    for word in words(text)[:3]:
        if word in STOP_WORDS:
            break
        nouns.append(word)
    return "_".join(nouns)
