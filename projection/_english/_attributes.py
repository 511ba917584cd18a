"""Attributes, where a noun names the relation: "my email is …", "blue is my favorite color"."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from contracts.lexicon import FAVORITE_PREFIX
from projection._english import _objects as objects
from projection._english._adjuncts import starts_adjunct
from projection._english._clauses import Clause
from projection._english._objects import Item, Object, Place, Reader
from projection._english._readers import READERS
from projection._english._subjects import Person
from projection._english._words import FINITE, KINSHIP, NOT_NAMES, PETS, PRONOUNS, VAGUE, word_set

_ATTRIBUTE_WORDS_MAX: Final = 4
_AMOUNT_WORDS_MAX: Final = 4
_FAVORITE_WORDS_MAX: Final = 3
_SKIPPED: Final = word_set("new current own full actual personal private home work mobile cell all-time")
_NO_NOUN: Final = word_set("part bit moment memory time to of in for at on with from about")
_COPULAS: Final = frozenset({"is", "'s", "are"})
_EMAIL: Final = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_PHONE: Final = re.compile(r"\+?[0-9][0-9 ()/.-]{4,24}[0-9]")
_REACH: Final = re.compile(
    r"you can (?:reach|call|text|phone|email|e-mail|contact|message) me (?:at|on|under) "
)
_AMOUNT: Final = re.compile(r"[0-9][0-9.,/:-]*[0-9]?[a-z%€$£²]*")


def _email(place: Place) -> Object | None:
    return _pattern(place, _EMAIL)


def _phone(place: Place) -> Object | None:
    return _pattern(place, _PHONE)


def _pattern(place: Place, pattern: re.Pattern[str]) -> Object | None:
    clause, index = place.clause, place.index
    end = index
    while end < len(clause) and not starts_adjunct(clause, end, None) and clause.low(end) != ",":
        end += 1
    if end == index:
        # A number such as 1990 looks like a date; here it is what is asked for.
        end = len(clause)
    words = clause.words[clause.offsets[index] : clause.offsets[end - 1] + len(clause.low(end - 1))]
    text = re.sub(r" ?([-()/.+@_]) ?", r"\1", words)
    if pattern.fullmatch(text) is None:
        return None
    return Object(items=(Item(start=index, end=end, text=None),), end=end)


def _amount(place: Place) -> Object | None:
    """Read "182 cm", "44", "90 kg"."""
    clause, index = place.clause, place.index
    if _AMOUNT.fullmatch(clause.low(index)) is None:
        return None
    end = index + 1
    while (
        end < len(clause)
        and end - index < _AMOUNT_WORDS_MAX
        and (clause.low(end).isalpha() or clause.low(end)[0].isdigit())
    ):
        if starts_adjunct(clause, end, None) or clause.low(end) in FINITE | VAGUE | {"and", "in"}:
            break
        end += 1
    return Object(items=(Item(start=index, end=end, text=None),), end=end)


def _short(place: Place) -> Object | None:
    """Read a short phrase or a name, such as a favourite thing; titles may hold small words."""
    named = objects.proper(place)
    if named is not None and (
        named.end >= len(place.clause) or starts_adjunct(place.clause, named.end, None)
    ):
        # A title keeps its article: "The Hobbit".
        the = place.index if place.clause.tokens[place.index].text == "The" else named.items[0].start
        return Object(items=(Item(start=the, end=named.end, text=None),), end=named.end)
    read = objects.phrase(place)
    if read is None:
        return None
    if place.clause.low(read.end) == "of" and (more := objects.phrase(place.at(read.end + 1))) is not None:
        return Object(items=(Item(start=read.items[0].start, end=more.end, text=None),), end=more.end)
    return read


def _code(place: Place) -> Object | None:
    """Read one word or number: a handle, a blood type, a size."""
    clause, index = place.clause, place.index
    end = index + 1
    while clause.low(end) in {"+", "-", "positive", "negative", "#"}:
        end += 1
    if not clause.low(index)[:1].isalnum() or clause.low(index) in FINITE | VAGUE:
        return None
    return Object(items=(Item(start=index, end=end, text=None),), end=end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """A relation that a noun names, and how its value is read."""

    relation: str
    read: Callable[[Place], Object | None]


# Nouns that name the relation themselves, by what a value of it looks like. Of whom one has several at
# once (a brother, a neighbour) there is none: a second one would replace the first.
_PEOPLE: Final = (
    "boss, manager, doctor, dentist, therapist, landlord, landlady, lawyer, mentor, best friend, vet, "
    "mother, father, hairdresser, accountant, supervisor"
)
_NAMES: Final = (
    "hometown, home town, nickname, surname, last name, first name, middle name, maiden name, "
    "family name, alma mater, bank, native language, mother tongue, first language"
)
_AMOUNTS: Final = (
    "height, weight, shoe size, salary, rent, room number, flat number, house number, apartment number, "
    "office number, extension, zip code, postcode, postal code, customer number, membership number, "
    "lucky number, locker number, seat number"
)
_CODES: Final = (
    "blood type, blood group, username, user name, handle, zodiac sign, star sign, license plate, "
    "licence plate, nationality, religion, clothing size, shirt size"
)
_PHONES: Final = (
    "phone number, number, telephone number, cell number, mobile number, phone, mobile, cell phone number"
)
_BY_NOUN: Final[tuple[tuple[Reader, str], ...]] = (
    (objects.person, _PEOPLE),
    (objects.proper, _NAMES),
    (_amount, _AMOUNTS),
    (_code, _CODES),
    (_short, "major, minor, eye color, hair color, eye colour, hair colour"),
)


def _table() -> dict[str, Attribute]:
    lines: list[tuple[str, Reader, str]] = [
        ("named", objects.proper, "name, full name"),
        ("email", _email, "email, email address, e-mail, e-mail address"),
        ("phone", _phone, _PHONES),
        ("birthday", READERS["day"], "birthday, date of birth, birth date, birthdate"),
        ("age", READERS["age"], "age"),
        ("works_as", READERS["occupation"], "job, profession, occupation, job title"),
        ("works_at", objects.proper, "employer"),
        ("married_to", objects.person, "wife, husband, spouse, wife 's name, husband 's name"),
        ("has_pet", objects.proper, ", ".join(f"{pet} 's name" for pet in sorted(PETS))),
        ("dating", objects.person, "girlfriend, boyfriend, girlfriend 's name, boyfriend 's name"),
        ("engaged_to", objects.person, "fiancé, fiancée, fiance, fiancee"),
    ]
    for read, nouns in _BY_NOUN:
        lines += [(noun.replace(" ", "_"), read, noun) for noun in nouns.split(", ")]
    return {
        noun: Attribute(relation=relation, read=read)
        for relation, read, nouns in lines
        for noun in nouns.split(", ")
    }


_ATTRIBUTES: Final = _table()


def _attribute(words: list[str]) -> Attribute | None:
    while len(words) > 1 and words[0] in _SKIPPED and " ".join(words) not in _ATTRIBUTES:
        words = words[1:]
    if words and words[0] in {"favorite", "favourite"}:
        noun = words[1:]
        if not _NO_NOUN.isdisjoint(noun):
            return None
        if (
            not noun
            or len(noun) > _FAVORITE_WORDS_MAX
            or not all(word.isalpha() or "-" in word for word in noun)
        ):
            return None
        if not PRONOUNS.isdisjoint(noun) or not VAGUE.isdisjoint(noun):
            return None
        relation = FAVORITE_PREFIX + "_".join(noun).replace("-", "_")
        return Attribute(relation=relation, read=_short)
    return _ATTRIBUTES.get(" ".join(words))


@dataclass(frozen=True, slots=True, kw_only=True)
class Possessed:
    """An attribute of an entity with its copula: `over` says "is no longer", `end` is what follows."""

    entity: str
    attribute: Attribute
    over: bool
    end: int


def read_possessed(clause: Clause, start: int, actor_id: str) -> Possessed | None:
    """Read "my phone number is (now)", "Ana's job is", "my address changed to"."""
    reach = _REACH.match(clause.rest(start))
    if reach is not None:
        number = Attribute(relation="phone", read=_phone)
        email = Attribute(relation="email", read=_email)
        end = start + reach.group().count(" ")
        return Possessed(
            entity=actor_id, attribute=email if "@" in clause.words else number, over=False, end=end
        )
    if clause.low(start) == "my":
        entity, index = actor_id, start + 1
    elif clause.low(start + 1) == "'s" and _names_someone(clause, start):
        entity, index = clause.tokens[start].text, start + 2
    else:
        return None
    words: list[str] = []
    while index < len(clause) and len(words) <= _ATTRIBUTE_WORDS_MAX:
        low = clause.low(index)
        if low in {"is", "are"} or (low == "'s" and clause.low(index + 1) != "name"):
            return _copula(clause, entity, words, index + 1)
        if low in {"changed", "switched"} and clause.low(index + 1) == "to":
            return _possessed(entity, words, over=False, end=index + 2)
        words.append(low)
        index += 1
    return None


def _names_someone(clause: Clause, index: int) -> bool:
    token = clause.tokens[index]
    return token.text[:1].isupper() and token.low not in NOT_NAMES and token.low not in KINSHIP


def _copula(clause: Clause, entity: str, words: list[str], index: int) -> Possessed | None:
    over = False
    while clause.low(index) in {
        "now",
        "currently",
        "still",
        "also",
        "definitely",
        "absolutely",
        "officially",
        "called",
        "on",
    }:
        index += 1
    if clause.low(index) == "no" and clause.low(index + 1) == "longer":
        over, index = True, index + 2
    return _possessed(entity, words, over=over, end=index)


def _possessed(entity: str, words: list[str], *, over: bool, end: int) -> Possessed | None:
    attribute = _attribute(words)
    if attribute is None:
        return None
    return Possessed(entity=entity, attribute=attribute, over=over, end=end)


def read_inverted(clause: Clause, actor_id: str) -> tuple[str, Attribute, Object, int] | None:
    """Read "Blue is my favorite color" and "Ana is my wife": entity, attribute, value, what follows."""
    for index in range(1, min(len(clause), 8)):
        if clause.low(index) in _COPULAS and clause.low(index + 1) == "my":
            break
    else:
        return None
    end = index + 2
    words: list[str] = []
    while end < len(clause) and len(words) < _ATTRIBUTE_WORDS_MAX and not starts_adjunct(clause, end, None):
        words.append(clause.low(end))
        end += 1
    attribute = _attribute(words)
    if attribute is None:
        return None
    value = attribute.read(
        Place(clause=Clause(clause.tokens[:index], ""), index=0, person=Person.ONE, observed=None)
    )
    if value is None or value.end != index:
        return None
    return actor_id, attribute, value, end
