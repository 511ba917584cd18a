"""Subjects: the speaker, people by name, things by description. Whoever is not resolved is nobody."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from projection._english._clauses import Clause
from projection._english._tokens import Token
from projection._english._words import KIN_ADJECTIVES, KINSHIP, NOT_NAMES, PETS, PRONOUNS, VAGUE, word_set

_NAME_TOKENS_MAX: Final = 4
TITLES: Final = word_set("dr mr mrs ms prof professor doctor uncle aunt auntie sir lady captain")
"""Before a name: of a person, not of a pet."""
_POSSESSIVES: Final = word_set("my our his her their your")
_THING_WORDS_MAX: Final = 4
_VAGUE_THINGS: Final = word_set(
    "best worst first last next previous other others same only thing things rest problem point truth "
    "question answer idea reason issue trick news way kids children people guy guys man woman boy girl "
    "meeting party event weather whole most more few two three four five many sun moon world"
)


class Person(Enum):
    """Grammatical person, for agreement: I, we, one name, several names, a thing."""

    FIRST = "i"
    WE = "we"
    ONE = "one"
    SEVERAL = "several"
    THING = "thing"
    PET = "pet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """
    Whom a clause is about: entities, and the index of the token after the subject.

    For `Person.PET` ("my hamster Pip") the entity is its owner and `pet` the value that means it.
    """

    person: Person
    entities: tuple[str, ...]
    end: int
    pet: Token | None


def read_subject(clause: Clause, start: int, actor_id: str) -> Subject | None:
    """Read the subject at token `start`, or None where none is resolved there."""
    low = clause.low(start)
    if low == "i":
        return Subject(person=Person.FIRST, entities=(actor_id,), end=start + 1, pet=None)
    if low == "we":
        return Subject(person=Person.WE, entities=(actor_id,), end=start + 1, pet=None)
    if low == "the":
        return _thing(clause, start)
    if low == "my":
        pet = _pet(clause, start, actor_id)
        if pet is not None:
            return pet
    return _names(clause, start, actor_id)


def _names(clause: Clause, start: int, actor_id: str) -> Subject | None:
    entities: list[str] = []
    index = start
    while True:
        if clause.low(index) == "i":
            entities.append(actor_id)
            index += 1
        else:
            read = read_name(clause, index)
            if read is None:
                return None
            name, index = read
            entities.append(name)
        if clause.low(index) not in {"and", ","} or index + 1 >= len(clause):
            break
        if clause.low(index) == "," and not _continues_list(clause, index):
            break
        index += 2 if clause.low(index) == "," and clause.low(index + 1) == "and" else 1
    person = Person.ONE if len(entities) == 1 else Person.SEVERAL
    return Subject(person=person, entities=tuple(entities), end=index, pet=None)


def _continues_list(clause: Clause, comma: int) -> bool:
    return clause.tokens[comma + 1].text[:1].isupper() and "and" in (
        t.low for t in clause.tokens[comma : comma + 5]
    )


def read_name(clause: Clause, start: int) -> tuple[str, int] | None:
    """Read "Ana Berg", "Dr. Berg", "my sister Ana", "Ben's brother Tom"; return the name and what follows."""
    index = _after_kin(clause, start)
    first = index
    tokens = clause.tokens
    while index < len(tokens) and index - first < _NAME_TOKENS_MAX:
        token = tokens[index]
        if (
            not token.text[:1].isupper()
            or token.low in NOT_NAMES
            or token.low in PRONOUNS
            or "." in token.text
        ):
            break
        index += 1
        if token.low in TITLES and clause.low(index) == ".":
            index += 1
    if index == first or (first == 0 and tokens[0].low.endswith("ing")):
        return None
    if index - first == 1 and tokens[first].text.isupper() and len(tokens[first].text) > 1:
        return None
    name = tokens[index - 1]
    end = name.end
    words = [token.text for token in tokens[first:index]]
    joined = " ".join(words).replace(" .", ".")
    # "my sister, Ana," stands apart by commas, of which the second is not part of the name.
    if first != start and clause.low(first - 1) == "," and clause.low(index) == ",":
        index += 1
    return (joined, index) if end > 0 else None


def _after_kin(clause: Clause, start: int) -> int:
    """Step over "my best friend", "our neighbour", "Ben's younger brother", where a name follows."""
    index = start
    if clause.low(index) in _POSSESSIVES:
        index += 1
    elif clause.low(index + 1) == "'s" and clause.tokens[index].text[:1].isupper():
        index += 2
    else:
        return start
    while True:
        while clause.low(index) in KIN_ADJECTIVES:
            index += 1
        if clause.low(index) not in KINSHIP:
            return start
        index += 1
        if clause.low(index) != "'s":
            break
        index += 1
    if clause.low(index) == ",":
        index += 1
    named = index < len(clause) and clause.tokens[index].text[:1].isupper()
    return index if named else start


def _thing(clause: Clause, start: int) -> Subject | None:
    index = start + 1
    words: list[str] = []
    while index < len(clause) and len(words) <= _THING_WORDS_MAX:
        low = clause.low(index)
        if low in {"is", "are", "'s", "was", "has"}:
            break
        if not low[:1].isalnum() or low in VAGUE or low in _VAGUE_THINGS or low in KINSHIP:
            return None
        words.append(low)
        index += 1
    if not 1 <= len(words) <= _THING_WORDS_MAX or index >= len(clause):
        return None
    return Subject(person=Person.THING, entities=(" ".join(words),), end=index, pet=None)


def _pet(clause: Clause, start: int, actor_id: str) -> Subject | None:
    index = start + 1
    while clause.low(index) in {"old", "little", "sweet", "dear", "beloved", "poor", "other", "first"}:
        index += 1
    if clause.low(index) not in PETS:
        return None
    pet = clause.tokens[index]
    index += 1
    comma = clause.low(index) == ","
    if comma:
        index += 1
    if index < len(clause) and clause.tokens[index].text[:1].isupper():
        pet = clause.tokens[index]
        index += 1
        if comma and clause.low(index) == ",":
            index += 1
    elif comma:
        return None
    return Subject(person=Person.PET, entities=(actor_id,), end=index, pet=pet)
