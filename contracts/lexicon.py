"""
Names of common relations: what the extractor reads them as and the planner finds them by.

General English, written from a dictionary's point of view; no word here was chosen by looking at
a benchmark's questions or histories. A relation not listed here is found by the words of its own
name, so structured claims need no entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from contracts.relations import Cardinality


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationWords:
    """
    A relation and the English that asks about it.

    `cues` are alternatives; each is a tuple of lower-case words which all have to occur in the
    question (in any inflection that a stemmer folds).
    """

    relation: str
    cardinality: Cardinality
    cues: tuple[tuple[str, ...], ...]


def _one(relation: str, *cues: str) -> RelationWords:
    return RelationWords(relation=relation, cardinality=Cardinality.ONE, cues=_split(cues))


def _many(relation: str, *cues: str) -> RelationWords:
    return RelationWords(relation=relation, cardinality=Cardinality.MANY, cues=_split(cues))


def _split(cues: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(cue.split()) for cue in cues)


RELATIONS: Final[tuple[RelationWords, ...]] = (
    _one("lives_in", "live", "reside", "home city", "home town", "based where", "move to"),
    _one("works_at", "work where", "work at", "work for", "employer", "company", "employed"),
    _one("works_as", "job", "profession", "occupation", "work as", "living for", "job title"),
    _one("studies_at", "study where", "study at", "university", "college", "school"),
    _one("married_to", "married", "spouse", "husband", "wife"),
    _one("engaged_to", "engaged", "fiance", "fiancee"),
    _one("dating", "dating", "girlfriend", "boyfriend"),
    _many("has_pet", "pet", "pets", "adopt"),
    _many("owns", "own", "possess"),
    _many("likes", "like", "enjoy", "love", "hobby", "hobbies"),
    _many("dislikes", "dislike", "hate", "avoid"),
    _many("speaks", "speak", "language", "languages"),
    _many("allergic_to", "allergic", "allergy", "allergies"),
    _one("born_in", "born where", "birthplace", "born in"),
    _one("birthday", "birthday", "born when", "date birth", "old", "age"),
    _one("age", "old", "age"),
    _one("named", "name", "called"),
    _one("email", "email", "mail address"),
    _one("phone", "phone", "telephone", "number call"),
    _one("located_in", "where", "located", "location"),
    _one("status", "status", "state", "open", "closed", "working", "broken"),
    _many("plays", "play"),
    _many("member_of", "member", "belong"),
    _one("drives", "drive", "car"),
    RelationWords(
        relation="visited",
        cardinality=Cardinality.OCCURRENCE,
        cues=_split(("visit", "visited", "trip", "travel", "been to", "go to")),
    ),
)

CARDINALITY_OF: Final = {words.relation: words.cardinality for words in RELATIONS}
"""Cardinality of the listed relations until a tenant registers its own contract; `one` for the rest."""

_OF_BIRTH: Final = (
    "birth_date", "birth_day", "birthdate", "born_on", "date_born", "date_of_birth", "day_of_birth",
    "dob", "was_born_on",
)  # fmt: skip
ALSO_CALLED: Final = dict.fromkeys(_OF_BIRTH, "birthday")
"""Other names of a listed relation, under which it is often told as a structured claim: what it is called."""

FAVORITE_PREFIX: Final = "favorite_"
"""`favorite_<noun>` is a family: one value each, found by "favorite" and the noun."""
