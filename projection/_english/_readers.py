"""The table of object readers by name, and those for likings, languages, roles, groups and places."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from projection._english import _objects as objects
from projection._english._adjuncts import starts_adjunct
from projection._english._clauses import Clause
from projection._english._dates import read_date
from projection._english._objects import Item, Object, Place, Reader
from projection._english._pets import LOSS_READERS
from projection._english._subjects import Person
from projection._english._words import (
    DEVICE_STATES,
    FINITE,
    GAMES,
    GROUPS,
    INSTRUMENTS,
    LANGUAGES,
    OCCUPATIONS,
    OWNABLE,
    ROOMS_AND_FURNITURE,
    SAFE_THE,
    TRAIT_ADJECTIVES,
    VAGUE,
    word_set,
)

_AGE: Final = re.compile(r"[1-9][0-9]?|1[01][0-9]")
_INSIDE_LIKING: Final = word_set("of with in for on at to by about from without the my a an")
_NOT_LIKED_FIRST: Final = word_set(
    "the my your his her our their some any no each every another such today to a an and or one of "
    "when being having getting seeing hearing"
)
_NEVER_LIKED: Final = word_set(
    "everywhere anywhere nowhere somewhere elsewhere always sometimes often usually constantly forever anyway"
)
# Alone they are what is left of "the theme of the party", or say only where or how.
_LEFT_OVER: Final = word_set(
    "theme themes vibe vibes concept concepts look looks feel feeling feelings atmosphere mood energy "
    "approach attitude effort layout setup format tone point points detail details result results version "
    "title response answer suggestion suggestions advice aspect aspects element elements combination mix "
    "choice choices option options plan plans setting aesthetic sentiment "
    "outside inside abroad upstairs downstairs away back together around apart"
)
_LIKING_WORDS_MAX: Final = 6
_MIXED: Final = word_set("but or like except especially unlike besides including only")
_LANGUAGE_MODIFIERS: Final = word_set(
    "fluent some good basic native decent both perfect conversational broken"
)


def _one(start: int, end: int) -> Object:
    return Object(items=(Item(start=start, end=end, text=None),), end=end)


def _lows(clause: Clause, read: Object) -> set[str]:
    return {token.low for item in read.items for token in clause.tokens[item.start : item.end]}


def _liking(place: Place) -> Object | None:
    """Read one liking: "hiking in the rain", "green tea", "the sea", "Paris"."""
    clause, start = place.clause, place.index
    if clause.low(start) == "the" and (clause.low(start + 1) in SAFE_THE or _capital(clause, start + 1)):
        start += 1
    elif clause.low(start) in _NOT_LIKED_FIRST or not clause.low(start)[:1].isalpha():
        return None
    index = start
    while index < len(clause) and index - start <= _LIKING_WORDS_MAX:
        low = clause.low(index)
        if low in {",", "and", "&"} or (index > start and starts_adjunct(clause, index, place.observed)):
            break
        inside = low in _INSIDE_LIKING and index > start
        if low in _NEVER_LIKED or (not inside and low in VAGUE):
            return None
        if not inside and (low in FINITE or low in _MIXED or not low[0].isalnum()):
            return None
        index += 1
    if not start < index <= start + _LIKING_WORDS_MAX or clause.low(index - 1) in _INSIDE_LIKING:
        return None
    if index == start + 1 and clause.low(start) in _LEFT_OVER:
        return None
    return _one(start, index)


def _capital(clause: Clause, index: int) -> bool:
    return index < len(clause) and clause.tokens[index].text[:1].isupper()


def _substance(place: Place) -> Object | None:
    read = objects.phrase(place, words_max=3)
    clause, index = place.clause, place.index
    if read is None or clause.low(index) in {"the", "my", "people", "work", "mornings", "mondays"}:
        return None
    return read


def _language(place: Place) -> Object | None:
    clause, index = place.clause, place.index
    if clause.low(index) == "a" and clause.low(index + 1) in {"little", "bit"}:
        index += 3 if clause.low(index + 2) == "of" else 2
    while clause.low(index) in _LANGUAGE_MODIFIERS:
        index += 1
    return _one(index, index + 1) if clause.low(index) in LANGUAGES else None


def _play(place: Place) -> Object | None:
    clause, index = place.clause, place.index
    if clause.low(index) == "the":
        index += 1
    for words in (2, 1):
        joined = " ".join(token.low for token in clause.tokens[index : index + words])
        hyphened = joined.replace(" ", "-")
        known = INSTRUMENTS | GAMES | {"video-games", "board-games", "bass-guitar", "electric-guitar"}
        if hyphened in known and index + words <= len(clause):
            return _one(index, index + words)
    return None


def _role(place: Place) -> Object | None:
    read = objects.phrase(place, words_max=4)
    if read is None or not TRAIT_ADJECTIVES.isdisjoint(_lows(place.clause, read)):
        return None
    return read


def _occupation(place: Place) -> Object | None:
    read = _role(place)
    return read if read is not None and place.clause.low(read.end - 1) in OCCUPATIONS else None


def _group(place: Place) -> Object | None:
    read = objects.proper(place) if place.clause.low(place.index) == "the" else None
    return read if read is not None else _group_by_name(place)


def _group_by_name(place: Place) -> Object | None:
    read = objects.proper(place) or objects.phrase(place)
    if read is None or GROUPS.isdisjoint(_lows(place.clause, read)):
        return None
    return read


def _vehicle(place: Place) -> Object | None:
    clause = place.clause
    if clause.low(place.index) not in {"a", "an"}:
        return None
    read = objects.phrase(place)
    if read is None:
        return None
    item = read.items[0]
    branded = any(token.text[:1].isupper() for token in clause.tokens[item.start : item.end])
    return read if branded or clause.low(read.end - 1) in OWNABLE else None


def _location(place: Place) -> Object | None:
    clause, index = place.clause, place.index
    # "Ben is at the door" says that he has come, not where he is.
    if place.person == Person.ONE and clause.low(index - 1) == "at":
        return None
    if place.person in {Person.THING, Person.ONE} and clause.low(index) in {"the", "a"}:
        read = objects.phrase(place, words_max=4)
        return read if read is not None and clause.low(read.end - 1) in ROOMS_AND_FURNITURE else None
    if place.person == Person.THING and clause.low(index - 1) == "in":
        return objects.place_name(place)
    return None


def _device_state(place: Place) -> Object | None:
    clause, index = place.clause, place.index
    if place.person != Person.THING:
        return None
    if clause.rest(index).startswith("out of order"):
        return _one(index, index + 3)
    return _one(index, index + 1) if clause.low(index) in DEVICE_STATES else None


def _age(place: Place) -> Object | None:
    clause, index = place.clause, place.index
    if _AGE.fullmatch(clause.low(index)) is None or place.person == Person.THING:
        return None
    end = index + 1
    if clause.low(end) in {"years", "year"} and clause.low(end + 1) == "old":
        end += 2
    elif (
        clause.low(end) in {"years", "year"} and clause.low(end + 1) == "of" and clause.low(end + 2) == "age"
    ):
        end += 3
    return Object(items=(Item(start=index, end=index + 1, text=None),), end=end)


def _day(place: Place) -> Object | None:
    clause, index = place.clause, place.index
    date = read_date(clause.rest(index), place.observed)
    if date is None or not any(
        token.low[0].isdigit() for token in clause.tokens[index : index + date.words_count]
    ):
        return None
    return _one(index, index + date.words_count)


def _from_to(reader: Reader, *, both: bool) -> Reader:
    """Return a reader of "A to B": the value is B; with `both`, A is kept first."""

    def read(place: Place) -> Object | None:
        old = reader(place)
        if old is None or place.clause.low(old.end) != "to":
            return None
        new = reader(place.at(old.end + 1))
        if new is None:
            return None
        return Object(items=(*old.items, *new.items), end=new.end) if both else new

    return read


READERS: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        "age": _age,
        "day": _day,
        "device_state": _device_state,
        "employer": objects.employer,
        "dated_place": objects.place_name,
        "each_other": objects.nothing,
        "from_school": _from_to(objects.named_with(objects.SCHOOL_WORDS), both=False),
        "from_organization": _from_to(objects.proper, both=False),
        "from_place": _from_to(objects.place_name, both=False),
        "from_play": _from_to(_play, both=True),
        "group": _group,
        "group_by_name": _group_by_name,
        "language": objects.listed(_language),
        "liking": objects.listed(_liking),
        "location": _location,
        **LOSS_READERS,
        "nothing": objects.nothing,
        "occupation": _occupation,
        "organization": objects.organization,
        "organization_by_name": objects.proper,
        "organization_by_word": objects.named_with(objects.COMPANY_WORDS),
        "ownable": objects.listed(objects.ownable),
        "partner": objects.partner,
        "person": objects.person,
        "pet": objects.listed(objects.pet),
        "pet_of_own": objects.pet_of_own,
        "place": objects.place_name,
        "play": objects.listed(_play),
        "proper": objects.proper,
        "propers": objects.listed(objects.proper),
        "role": _role,
        "school": objects.proper,
        "school_by_name": objects.named_with(objects.SCHOOL_WORDS),
        "sold": objects.sold,
        "substance": objects.listed(_substance),
        "thing": objects.listed(objects.thing),
        "vehicle": _vehicle,
    }
)
