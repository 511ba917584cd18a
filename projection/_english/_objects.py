"""Readers of objects: each takes a clause and a place, and says which values stand there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from contracts.times import Term
from projection._english._adjuncts import starts_adjunct
from projection._english._clauses import Clause
from projection._english._subjects import Person, read_name
from projection._english._words import (
    DEMONYMS,
    FINITE,
    GROUPS,
    OWNABLE,
    PET_PLURALS,
    PETS,
    PRONOUNS,
    VAGUE,
    word_set,
)

_DETERMINERS: Final = word_set("a an the")
_OF_NAMES: Final = word_set("of the for de la le du del van von der den and & di da des los las")
NOT_PROPER: Final = word_set(
    "i monday tuesday wednesday thursday friday saturday sunday january february march april may june july "
    "august september october november december christmas easter"
)
SCHOOL_WORDS: Final = word_set(
    "university college school academy institute polytechnic conservatory conservatoire lyceum gymnasium "
    "seminary faculty universität université universidad hochschule"
)
COMPANY_WORDS: Final = word_set(
    "inc ltd llc corp corporation company co gmbh ag plc group bank labs lab books papers press software "
    "systems technologies consulting studios studio hospital clinic bakery holdings partners industries "
    "motors airlines solutions services agency media logistics insurance capital ventures robotics energy "
    "electronics foods pharmaceuticals pharma publishing engineering architects"
)
SITES: Final = word_set(
    "facebook instagram twitter tiktok reddit snapchat whatsapp youtube netflix linkedin telegram discord "
    "x spotify tinder pinterest signal"
)
_NOT_WORKPLACES: Final = word_set(
    "place job office same desk moment time company firm night weekend home living floor top bottom end speed"
)
_NUMBER_WORDS: Final = word_set("one two three four five six seven eight nine ten")
_PHRASE_WORDS_MAX: Final = 5
_PETS: Final = PETS | PET_PLURALS


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A value: tokens `[start, end)` of the clause; `text` where the value is not the words themselves."""

    start: int
    end: int
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Object:
    """The values read (empty: none is named), and the index of the token after them."""

    items: tuple[Item, ...]
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where to read: a clause, a token, who is the subject and when it was said."""

    clause: Clause
    index: int
    person: Person
    observed: Term | None

    def at(self, index: int) -> Place:
        """Return the same, further on."""
        return Place(clause=self.clause, index=index, person=self.person, observed=self.observed)


Reader = Callable[[Place], "Object | None"]


def _lows(clause: Clause, read: Object) -> set[str]:
    return {token.low for item in read.items for token in clause.tokens[item.start : item.end]}


def _one(start: int, end: int, text: str | None = None) -> Object:
    return Object(items=(Item(start=start, end=end, text=text),), end=end)


def proper(place: Place) -> Object | None:
    """Read a capitalised name: "Lyon", "the University of Graz", "St. Mary's Hospital"."""
    clause, index = place.clause, place.index
    if clause.low(index) == "the":
        index += 1
    start = index
    while index < len(clause):
        token = clause.tokens[index]
        if _is_capital(token.text):
            if index == start and (token.low in NOT_PROPER or token.low in PRONOUNS):
                break
        elif index == start or not _joins_name(clause, index):
            break
        index += 1
    if index == start or index - start > 2 * _PHRASE_WORDS_MAX:
        return None
    return _one(start, index)


def _is_capital(text: str) -> bool:
    return text[:1].isupper() or (len(text) > 1 and text[0].islower() and text[1].isupper())


def _joins_name(clause: Clause, index: int) -> bool:
    """Say that a small word or a mark belongs to the name around it: "St. Mary's", "Bank of Graz"."""
    low = clause.low(index)
    if low == ".":
        return clause.low(index - 1) in {"st", "dr", "mt", "mr", "mrs", "jr"}
    if low == "'s":
        return not starts_adjunct(clause, index, None)
    return low in _OF_NAMES and _name_goes_on(clause, index)


def _name_goes_on(clause: Clause, index: int) -> bool:
    low = clause.low(index)
    following = index + 1
    if low in {"of", "for", "de"} and clause.low(following) in {"the", "la", "los", "las"}:
        following += 1
    return following < len(clause) and _is_capital(clause.tokens[following].text) and low != "and"


def place_name(place: Place) -> Object | None:
    """Read a place by name; "Graz, Austria" and "Graz in Austria" are "Graz"."""
    read = proper(place)
    if read is None:
        return None
    clause, end = place.clause, read.end
    while clause.low(end) in {",", "in"} and (further := proper(place.at(end + 1))) is not None:
        end = further.end
    return None if clause.low(end) == "and" else Object(items=read.items, end=end)


def phrase(place: Place, *, words_max: int = _PHRASE_WORDS_MAX) -> Object | None:
    """Read a noun phrase without its article, up to a preposition, an adverb or a date."""
    clause, index = place.clause, place.index
    if clause.low(index) in _DETERMINERS:
        index += 1
    start = index
    while index < len(clause) and index - start < words_max + 1:
        low = clause.low(index)
        # A number after the article is part of the phrase ("a 1998 Saab"), not a date.
        if low in _ENDS_PHRASE or (index > start and starts_adjunct(clause, index, place.observed)):
            break
        if not low[0].isalnum() or low in FINITE or low in VAGUE:
            return None
        index += 1
    return _one(start, index) if start < index <= start + words_max else None


_ENDS_PHRASE: Final = word_set(
    "of in on at for with near by to from as and , or named called because when where that which who under "
    "next after before away"
)


def organization(place: Place) -> Object | None:
    """Read an employer: a name, or "a small bakery"."""
    read = proper(place)
    if read is not None:
        return None if place.clause.low(read.end) in {"and", "or"} else read
    if place.clause.low(place.index) not in _DETERMINERS:
        return None
    read = phrase(place)
    if read is None or not _NOT_WORKPLACES.isdisjoint(_lows(place.clause, read)):
        return None
    return read


def named_with(words: frozenset[str], *, with_it: bool = True) -> Reader:
    """Return a reader of names that hold one of the words (or none of them)."""

    def read(place: Place) -> Object | None:
        found = proper(place)
        holds = found is not None and not words.isdisjoint(_lows(place.clause, found))
        return found if holds is with_it else None

    return read


def employer(place: Place) -> Object | None:
    """Read what one quits by name: not a website, not a club."""
    return named_with(SITES | GROUPS - {"group"}, with_it=False)(place)


def person(place: Place) -> Object | None:
    """Read a person by name: "Ana", "my colleague Ana"."""
    read = read_name(place.clause, place.index)
    if read is None or place.clause.low(read[1]) in {"and", "'s"}:
        return None
    name, end = read
    if name.casefold() in DEMONYMS:
        return None
    start = end - 1
    while start > place.index and not name.startswith(place.clause.tokens[start].text):
        start -= 1
    return _one(start, end, name)


def partner(place: Place) -> Object | None:
    """Read a person, or "my girlfriend", who is then not named."""
    clause, index = place.clause, place.index
    if clause.low(index) in {"my", "his", "her"}:
        kin = clause.low(index + 1) in {"girlfriend", "boyfriend", "partner"}
        if kin and (index + 2 >= len(clause) or not clause.tokens[index + 2].text[:1].isupper()):
            return Object(items=(), end=index + 2)
    return person(place)


def nothing(place: Place) -> Object | None:
    """Read no object at all."""
    return Object(items=(), end=place.index)


def listed(reader: Reader) -> Reader:
    """Return a reader of one or several: "A, B and C"."""

    def read(place: Place) -> Object | None:
        items: list[Item] = []
        index = place.index
        while True:
            found = reader(place.at(index))
            if found is None:
                # After a comma something else may follow: "I speak Maltese, in case that helps".
                ended = bool(items) and place.clause.low(index - 1) == ","
                return Object(items=tuple(items), end=index - 1) if ended else None
            items += found.items
            index = found.end
            low = place.clause.low(index)
            if low == "," and place.clause.low(index + 1) in {"and", "&"}:
                index += 2
            elif low in {"and", "&"} or (
                low == "," and not starts_adjunct(place.clause, index + 1, place.observed)
            ):
                index += 1
            else:
                return Object(items=tuple(items), end=index)

    return read


def pet(place: Place) -> Object | None:
    """Read "a cat named Miso" (Miso), "a black cat" (black cat), "two cats, Miso and Otis"."""
    clause, start = place.clause, place.index
    if clause.low(start) not in _DETERMINERS | _NUMBER_WORDS | {"another"} or clause.low(start) == "the":
        return None
    index = start + 1
    while index < len(clause) and clause.low(index) not in _PETS and index - start < _PHRASE_WORDS_MAX:
        if clause.low(index) in VAGUE | FINITE or not clause.low(index)[0].isalnum():
            return None
        index += 1
    if clause.low(index) not in _PETS:
        return None
    end = index + 1
    while clause.low(end) in _PETS:
        end += 1
    if clause.low(end) in {"named", "called"} or (clause.low(end) == "," and _capital_at(clause, end + 1)):
        return (
            listed(_pet_name)(place.at(end + 1)) if clause.low(end) == "," else _pet_name(place.at(end + 1))
        )
    if clause.low(end) == "house":
        return None
    return _one(start + 1, end)


def _capital_at(clause: Clause, index: int) -> bool:
    return index < len(clause) and clause.tokens[index].text[:1].isupper()


def _pet_name(place: Place) -> Object | None:
    index = place.index
    while _capital_at(place.clause, index) and place.clause.low(index) != "i":
        index += 1
    return _one(place.index, index) if index > place.index else None


def pet_of_own(place: Place) -> Object | None:
    """Read "my horse", "my horse Bella" (Bella)."""
    clause, index = place.clause, place.index
    if clause.low(index) not in {"my", "our"} or clause.low(index + 1) not in PETS:
        return None
    return _pet_name(place.at(index + 2)) or _one(index + 1, index + 2)


def ownable(place: Place) -> Object | None:
    """Read "a red bicycle": a phrase whose last word is a thing one has and keeps."""
    if place.clause.low(place.index) not in _DETERMINERS:
        return None
    read = phrase(place)
    return read if read is not None and place.clause.low(read.end - 1) in OWNABLE else None


def thing(place: Place) -> Object | None:
    """Read what "own" takes: a phrase with an article or a number."""
    clause = place.clause
    if clause.low(place.index) not in _DETERMINERS | _NUMBER_WORDS:
        return None
    read = phrase(place)
    return None if read is None or clause.low(read.end - 1) in _PETS else read


def sold(place: Place) -> Object | None:
    """Read "my old car", "the flat"."""
    if place.clause.low(place.index) not in {"my", "our", "his", "her", "the"}:
        return None
    read = phrase(place.at(place.index + 1))
    return read if read is not None and place.clause.low(read.end - 1) in OWNABLE else None
