"""
Whether a question turns its key around: asks for what has the entity as its value.

"Who is Ada the boss of?" and "How often was Ada visited?" name Ada and a relation, and ask for the
other end of it. Told by the grammar of the sentence alone: who stands where to the verb, or to the noun.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from contracts.lexicon import CARDINALITY_OF
from realize._asking import PARTICIPLES
from realize._scope import cues_of, fold, words_in

_BE: Final = frozenset({"am", "is", "are", "was", "were", "be", "been", "being"})
_HAVE: Final = frozenset({"has", "have", "had"})
_HELPING: Final = _HAVE | {"do", "does", "did"}
_DETERMINERS: Final = frozenset({"the", "a", "an"})
_BETWEEN: Final = _BE | {"also", "already", "currently", "ever", "now", "often", "still", "usually"}
_FIRST_PERSON: Final = frozenset({"i", "me", "myself"})
_SECOND_PERSON: Final = frozenset({"you", "yourself"})
_ASKERS: Final = frozenset({"i", "we", "you"})
_ASKED_FOR: Final = frozenset({"who", "whom", "what", "which"})
_PREPOSITIONS: Final = frozenset({"at", "by", "for", "from", "in", "of", "on", "to", "with"})
_ACTED: Final = frozenset({"has_pet", "owns", "likes", "dislikes", "speaks", "plays", "drives", "visited"})
"""Listed relations whose entity does something to its value; of the others a participle tells a state."""
_MUTUAL: Final = frozenset({"married_to", "engaged_to", "dating"})


def turns_around(question: str, *, entity: str, relation: str) -> bool:
    """Say whether a question asks whose value, on this relation, the entity is."""
    sentence = _Sentence(question, entity=entity, relation=relation)
    if relation in _MUTUAL or not sentence.names:
        return False
    return sentence.is_passive() or sentence.is_held() or sentence.is_of_another() or sentence.is_object()


class _Sentence:
    """A question's words, and at which places the entity, and words that mean the relation, stand."""

    def __init__(self, question: str, *, entity: str, relation: str) -> None:
        self._words = words_in(question)
        self._relation = relation
        own = frozenset(words_in(entity))
        said = {word.removesuffix("'s") for word in self._words}
        self.names = own if own & said else (_FIRST_PERSON & said or _SECOND_PERSON & said)
        self._cues = cues_of(relation).difference(map(fold, _ASKED_FOR))
        *stated, last = words_in(relation.replace("_", " ")) or [""]
        # "X is a member of Y": the relation's name is the noun with its preposition.
        self._has_preposition = bool(stated) and last in _PREPOSITIONS
        self._stated = frozenset(stated)

    def is_passive(self) -> bool:
        """Tell of "How often was Ada visited?", but not of "Where is the van parked?" (`parked_in`)."""
        if self._relation in CARDINALITY_OF and self._relation not in _ACTED:
            return False
        words = self._words
        for place, word in enumerate(words):
            if not self._is_cue(word) or not (word.endswith("ed") or word in PARTICIPLES):
                continue
            if (self._has_preposition and word in self._stated) or self._at(place + 1) in {"to", "with"}:
                continue
            before = place - 1
            while before >= 0 and words[before] in _BETWEEN:
                before -= 1
            if self._is_name(before) and not _BE.isdisjoint(words[:place]):
                return True
        return False

    def is_held(self) -> bool:
        """Tell of "Who is Ada the boss of?", "Ada is the boss of whom?", "For whom is Ada boss?"."""
        for place, word in enumerate(self._words):
            if word not in _BE:
                continue
            after = self._past_name(place + 1)
            behind = self._is_name(place - 1)
            if after is None and not behind:
                continue
            start = place + 1 if after is None else after
            noun = start + (self._at(start) in _DETERMINERS)
            end = noun
            while self._is_cue(self._at(end)):
                end += 1
            if end == noun or self._is_direct(self._words[noun:end]):
                continue
            of_whom = self._at(place - 1) in _ASKED_FOR and self._at(place - 2) in _PREPOSITIONS
            is_of = self._at(end) == "of"
            if is_of or (after is not None and (noun > start or of_whom)):
                return True
        return False

    def is_of_another(self) -> bool:
        """Tell of "Who has Ada as boss?", and, of `parent_of`, of "Who is Ada's parent?"."""
        for place, word in enumerate(self._words):
            if word in _HAVE and self._at(place - 1) not in self.names:
                after = self._past_name(place + 1)
                if after is not None and self._at(after) == "as":
                    return True
            if not self._relation.endswith("_of") or word not in self._stated:
                continue
            owner = self._at(place - 1).removesuffix("'s")
            if owner != self._at(place - 1) and owner in self.names:
                return True
            if self._at(place + 1) == "of" and self._past_name(place + 2) is not None:
                return True
        return False

    def is_object(self) -> bool:
        """Tell of "How often did Bob visit Ada?", but not of "Do you know the boss of Ada?"."""
        for place, word in enumerate(self._words):
            if word not in _HELPING or self._at(place + 1) in _ASKERS or self._is_name(place + 1):
                continue
            for cue in range(place + 2, len(self._words) - 1):
                if self._is_cue(self._words[cue]) and self._past_name(cue + 1) is not None:
                    return not any(map(self._is_name, range(place, cue)))
        return False

    def _is_direct(self, noun: Sequence[str]) -> bool:
        return self._has_preposition and not self._stated.isdisjoint(noun)

    def _is_cue(self, word: str) -> bool:
        return bool(word) and word not in self.names and fold(word) in self._cues

    def _is_name(self, place: int) -> bool:
        return self._at(place) in self.names

    def _past_name(self, place: int) -> int | None:
        """Return the place behind the entity's name where it stands at a place; None where it does not."""
        start = place + (self._at(place) in _DETERMINERS | {"my", "our"})
        end = start
        while self._is_name(end):
            end += 1
        return end if end > start else None

    def _at(self, place: int) -> str:
        return self._words[place] if 0 <= place < len(self._words) else ""
