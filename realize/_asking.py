"""
Whether a question asks for what its key holds: the value, of this entity, as it is at the view.

"Who lives with Ann?", "Why does Ann live in Lyon?" and "Where had Ann lived?" name the key of Ann's
home and do not ask for it.
"""

from __future__ import annotations

from typing import Final

from contracts.lexicon import ALSO_CALLED, CARDINALITY_OF, RELATIONS
from contracts.relations import Cardinality
from realize._scope import cues_of, fold, words_in

_ASKING: Final = frozenset({"what", "which", "who", "whom", "whose", "where", "when", "why", "how"})
_AUXILIARIES: Final = frozenset({"do", "does", "did", "am", "is", "are", "was", "were", "has", "have", "had"})
_PAST: Final = frozenset({"did", "was", "were", "had"})
_PERFECT: Final = frozenset({"has", "have", "'ve"})
PARTICIPLES: Final = frozenset(
    {"bought", "built", "chosen", "driven", "eaten", "fed", "found", "given", "held", "hired", "kept"}
    | {"known", "led", "lent", "made", "met", "paid", "read", "run", "seen", "sent", "shown", "sold"}
    | {"spoken", "taught", "told", "understood", "won", "worn", "written"}
)
"""Participles that no ending tells, of what is done to somebody."""
_OWN_PARTICIPLES: Final = frozenset({"been", "become", "come", "done", "felt", "gone", "had", "left", "lost"})
_TELLING: Final = frozenset({"heard", "known", "learned", "mentioned", "recorded", "said", "told"})
"""What I have told you is not about another time."""
_FIRST_PERSON: Final = frozenset({"i", "my", "me", "mine", "myself"})
_SECOND_PERSON: Final = frozenset({"you", "your", "yourself"})
_PEOPLE: Final = frozenset({"who", "whom", "people", "persons", "person"})
_HOW: Final = frozenset({"many", "often", "much", "frequently"})

_NEWEST: Final = frozenset({"latest", "newest"})
_NOW: Final = frozenset({"now", "nowadays", "current", "currently", "still", "today", "days", "moment"})
_WHAT_OCCURRED: Final = frozenset(
    {"place", "places", "person", "people", "thing", "things", "what", "which", "where", "who", "whom"}
) | {"different", "distinct"}

_MUTUAL: Final = frozenset({"married_to", "engaged_to", "dating"})
_OF_PEOPLE: Final = _MUTUAL | {"works_at", "named", "likes", "dislikes", "visited"}
_OF_PLACES: Final = frozenset({"lives_in", "works_at", "studies_at", "born_in", "located_in", "visited"})
_PLACE_WORDS: Final = frozenset(
    {"in", "inside", "within", "at", "on", "to", "location", "place", "address", "home", "room", "position"}
    | {"whereabouts"}
)
AGE: Final = "age"
_BIRTHDAY: Final = "birthday"
_AGED: Final = frozenset({"old", "age", "aged", "older", "younger"})

_CUE_WORDS: Final = {each.relation: {word for cue in each.cues for word in cue} for each in RELATIONS}


def is_birth(relation: str) -> bool:
    """Say whether a relation holds a day of birth, whatever it is called."""
    return ALSO_CALLED.get(relation, relation) == _BIRTHDAY


def asks_age(question: str) -> bool:
    """Say whether a question asks for an age, which a day of birth is not, but gives."""
    return not _AGED.isdisjoint(words_in(question))


def fits(question: str, *, entity: str, relation: str) -> bool:
    """Say whether the asking word, and who does what to whom, ask for the value of the key."""
    if (is_birth(relation) or relation == AGE) and asks_age(question):
        # An age is worked out of a day of birth, or of what was told on another day.
        return False
    words = [word.removesuffix("'s") for word in words_in(question)]
    names = frozenset(words_in(entity))
    at = next((place for place, word in enumerate(words) if word in _ASKING and word not in names), None)
    if at is None:
        return True
    after = words[at + 1 :]
    return _word_fits(words[at], after, relation) and not _asks_of_others(
        question, words[at:], entity=entity, relation=relation
    )


def looks_back(question: str, *, entity: str, relation: str, cardinality: Cardinality) -> bool:
    """Say whether a question is in a past tense that its key, held at the view, does not answer."""
    if cardinality == Cardinality.OCCURRENCE or relation == "born_in" or is_birth(relation):
        # What is told in the past tense and holds for ever.
        return False
    words = set(words_in(question)) - set(words_in(entity))
    if words & _PAST or _is_perfect(question, entity, words):
        return True
    cues, present = (
        cues_of(relation),
        _CUE_WORDS.get(relation, set()) | set(words_in(relation.replace("_", " "))),
    )
    # "has lived": a past form of a cue that is not itself one, as "married" is.
    return any(word.endswith("ed") and fold(word) in cues and word not in present for word in words)


def _is_perfect(question: str, entity: str, said: set[str]) -> bool:
    """Say whether all that somebody "has had", by now, is asked for, and not what he "has" or "has got"."""
    if said & _NOW:
        return False
    names = set(words_in(entity))
    words = words_in(question)
    start = next((place for place, word in enumerate(words) if word in _PERFECT and word not in names), None)
    after = [] if start is None else [word for word in words[start + 1 :] if word not in names]
    done = set(after) - _TELLING
    return any(word.endswith("ed") or word in PARTICIPLES | _OWN_PARTICIPLES for word in done)


def asks_for_some(question: str, *, of_all_time: bool) -> bool:
    """Say whether a question asks for the newest of a set, or, of all time's, for those of now."""
    words = set(words_in(question))
    return bool(words & _NEWEST) or (of_all_time and bool(words & _NOW))


def asks_what_occurred(question: str) -> bool:
    """Say whether occurrences are asked for by what they are of ("places"), and not by their number."""
    return not _WHAT_OCCURRED.isdisjoint(words_in(question))


def _word_fits(asking: str, after: list[str], relation: str) -> bool:
    listed = relation in CARDINALITY_OF
    match asking:
        case "why" | "whose":
            return False
        case "when":
            return is_birth(relation)
        case "how":
            return bool(after) and (after[0] in _HOW or fold(after[0]) in cues_of(relation))
        case "where":
            # Where Ann's employer is, is another question than who that is.
            return relation in _OF_PLACES or (not listed and bool(_PLACE_WORDS & set(relation.split("_"))))
        case "who" | "whom":
            return relation in _OF_PEOPLE or not listed
        case _:
            # "What does Ann do at work?" is not where she works.
            return relation == "works_as" or not _does_something(after)


def _does_something(after: list[str]) -> bool:
    first = next((place for place, word in enumerate(after) if word in _AUXILIARIES), None)
    return first is not None and "do" in after[first + 1 :]


def _asks_of_others(question: str, words: list[str], *, entity: str, relation: str) -> bool:
    """Say whether the entity is the object of what is asked: "Who lives with *Ann*?"."""
    if relation in _MUTUAL or relation.endswith("_by"):
        return False
    spelled = frozenset(words_in(entity))
    said = set(words_in(question))
    names = next(
        own for own in (spelled, _FIRST_PERSON, _SECOND_PERSON) if own & said or own is _SECOND_PERSON
    )
    cues = cues_of(relation).difference(map(fold, _ASKING))
    cue = next((place for place, word in enumerate(words) if fold(word) in cues), None)
    name = next((place for place, word in enumerate(words) if word in names), None)
    if cue is None or name is None or name < cue:
        return False
    auxiliary = next((place for place, word in enumerate(words) if word in _AUXILIARIES), None)
    contracted = any(
        word.removesuffix("'s") in _ASKING and word.endswith("'s") for word in words_in(question)
    )
    if auxiliary is None:
        return not contracted
    # "Who is working for Ann?", but not "Who is the employer of Ann?" nor "Which people does Ann like?".
    people = not _PEOPLE.isdisjoint(words[:cue])
    return people and auxiliary < cue and "of" not in words[cue:name]
