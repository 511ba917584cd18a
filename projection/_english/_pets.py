"""
Names of pets, and the objects of "no longer have" and "give away".

Only a value that is named ends. "I don't have a dog any more" names a kind, and the pet is kept under
its name: an end of "dog" would end nothing that anyone stated, so nothing is said.
"""

from __future__ import annotations

from typing import Final

from projection._english import _objects as objects
from projection._english._adjuncts import starts_adjunct
from projection._english._clauses import Clause
from projection._english._objects import Item, Object, Place, Reader
from projection._english._subjects import TITLES, Person
from projection._english._words import (
    DEMONYMS,
    GROUPS,
    KINSHIP,
    NOT_NAMES,
    OCCUPATIONS,
    OWNABLE,
    PET_PLURALS,
    PETS,
    PRONOUNS,
    ROOMS_AND_FURNITURE,
    word_set,
)

_PETS: Final = PETS | PET_PLURALS
# Capitalised, and neither a pet nor a person: what one also "no longer has", or what "died".
_NOT_PETS: Final = (
    DEMONYMS | GROUPS | KINSHIP | NOT_NAMES | OCCUPATIONS | OWNABLE | _PETS | PRONOUNS | ROOMS_AND_FURNITURE
    | TITLES | objects.NOT_PROPER | objects.SITES | objects.COMPANY_WORDS | objects.SCHOOL_WORDS
    | word_set(
        "covid corona flu cancer diabetes asthma adhd internet wifi wi-fi bluetooth windows linux android "
        "iphone ipad macbook playstation xbox nintendo kindle alexa siri google amazon prime hulu disney "
        "apple microsoft excel zoom slack uber airbnb paypal visa mastercard medicare medicaid steam "
        "chrome firefox safari tesla toyota honda ford bmw audi volvo "
        "battery power electricity signal engine screen server traffic conversation romance chivalry disco "
        "hundreds thousands millions dozens plants flowers trees roses soldiers"
    )
)  # fmt: skip


def one_word(index: int) -> Item:
    """Return the value that token `index` is."""
    return Item(start=index, end=index + 1, text=None)


def is_name(clause: Clause, index: int) -> bool:
    """Say that one capitalised word may be a pet's name; the first word's plural may be any noun."""
    if index >= len(clause):
        return False
    token = clause.tokens[index]
    spelled_out = token.text.isupper() and len(token.text) > 1
    plural = index == 0 and token.low.endswith("s")
    return token.text[:1].isupper() and token.text.isalpha() and not (
        spelled_out or plural or token.low in _NOT_PETS
    )  # fmt: skip


def _own_pet(place: Place) -> Object | None:
    """Read "Zed", "my rabbit Zed"."""
    clause, index = place.clause, place.index
    owners = {"my", "our"} if place.person == Person.FIRST else {"his", "her", "their"}
    if clause.low(index) in owners and clause.low(index + 1) in PETS:
        index += 2
        if clause.low(index) == ",":
            index += 1
    return Object(items=(one_word(index),), end=index + 1) if is_name(clause, index) else None


def _ending(reader: Reader) -> Reader:
    """Return the reader for objects after which nothing but an adverb or a date follows."""

    def read(place: Place) -> Object | None:
        found = reader(place)
        ends = found is not None and starts_adjunct(place.clause, found.end, place.observed)
        return found if ends else None

    return read


def _away(reader: Reader) -> Reader:
    """Return the reader for "Zed away": the object, then the verb's particle."""

    def read(place: Place) -> Object | None:
        found = reader(place)
        if found is None or place.clause.low(found.end) != "away":
            return None
        return Object(items=found.items, end=found.end + 1)

    return read


LOSS_READERS: Final[dict[str, Reader]] = {
    "own_pet": _ending(objects.listed(_own_pet)),
    "own_pet_away": _away(objects.listed(_own_pet)),
    "sold_away": _away(objects.sold),
}
"""Readers of what is had no longer, by the names that frames call them."""


def names_pet(clause: Clause, item: Item) -> bool:
    """Say that a value of `has_pet` is a name, and no kind such as "black cat"."""
    capital = clause.tokens[item.start].text[:1].isupper()
    return capital and clause.low(item.end - 1) not in _PETS
