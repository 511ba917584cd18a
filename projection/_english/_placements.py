"""Placements, such as "I put the blue mug on the shelf": where a thing now is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from contracts.times import Term
from projection._english._adjuncts import PARTIAL, read_adjuncts
from projection._english._clauses import Clause
from projection._english._objects import Item
from projection._english._subjects import read_name
from projection._english._words import FINITE, GROUPS, ROOMS_AND_FURNITURE, VAGUE, word_set
from projection._language import Speaker

_VERBS: Final = word_set("put moved placed left carried returned")
# Without a subject, as a log tells it. "Put the mug …" alone may be a request.
_WITHOUT_SUBJECT: Final = word_set("moved placed left carried returned")
_TAKEN: Final = word_set("picked took grabbed lifted fetched collected found")
_PARTICLES: Final = word_set("down back away up")
_TO: Final = word_set("in on under into onto to inside behind beside at")
_FROM: Final = word_set("from off")
_IT: Final = word_set("it them")
_AGENT_WORDS_MAX: Final = 3
_WORDS_MAX: Final = 4
# "I left the house in the car": gone out of, and not put anywhere.
_LEFT_BEHIND: Final = GROUPS | word_set(
    "house home flat apartment building party meeting city town country airport hotel restaurant shop store "
    "bar pub school hospital museum cinema theatre theater office room kitchen bathroom bedroom hall hallway "
    "corridor garage cellar basement attic library garden yard lobby warehouse station job company event "
    "conference concert park village bus train plane road path stage place early late"
)

_NO_NOUN: Final = _TO | _FROM | _PARTICLES | word_set("and with then of for by near next the a an that which")
# Sides, times, states and ways: "to the left", "in the evening", "in the standby mode", "upright".
_NO_PLACE: Final = PARTIAL | word_set(
    "left right front back top bottom side middle center centre end start beginning edge north south east "
    "west other first second last next morning afternoon evening noon midday midnight today tonight "
    "yesterday tomorrow meantime moment dark rain cold way direction mode state status condition position "
    "order process standby case list schedule agenda plan record level limit maximum minimum rescue ready "
    "test same upright sideways flat face upside apart aside ahead over around anyway"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A thing, the tokens that name where it went, and what follows."""

    entity: str
    location: Item
    end: int


def read_placement(clause: Clause, start: int, handled: str | None, speaker: Speaker) -> Placement | None:
    """Read a placement at token `start`, or None; `handled` is what "it" means if nothing else is named."""
    index = _after_agent(clause, start)
    taken = _taken(clause, index)
    follows = handled is not None or taken is not None
    if taken is not None:
        handled, index = taken
        if clause.low(index) == ",":
            index += 1
        if clause.low(index) not in {"and", "then"}:
            return None
        while clause.low(index) in {"and", "then"}:
            index += 1
    verb = clause.low(index)
    # "Picked up the mug and put it …" tells, where "Put it …" may ask.
    tells = follows or verb in _WITHOUT_SUBJECT or speaker.reports
    if verb not in _VERBS or (index == start and not tells):
        return None
    moved = _moved(clause, index + 1, handled)
    if moved is None or (verb == "left" and moved[0].split()[-1] in _LEFT_BEHIND):
        return None
    entity, end = moved
    if clause.low(end) not in _TO or clause.low(end + 1) != "the":
        return None
    place = _phrase(clause, end + 2, of_place=True)
    if place is None or clause.low(place[1] - 1) not in ROOMS_AND_FURNITURE:
        place = read_place(clause, end + 2, speaker.observed) if speaker.reports else None
    if place is None:
        return None
    return Placement(entity=entity, location=Item(start=place[0], end=place[1], text=None), end=place[1])


def read_place(clause: Clause, start: int, observed: Term | None) -> tuple[int, int] | None:
    """
    Read a place that a sensor names, whatever it is called: the fewest words whose rest is understood.

    None of what is no thing to put anything in or on ("moved the arm to the left", "in the evening").
    """
    for end in range(start + 1, min(start + _WORDS_MAX, len(clause)) + 1):
        low = clause.low(end - 1)
        if low in _NO_NOUN or low in FINITE or low in VAGUE or not low[0].isalnum():
            return None
        if read_adjuncts(clause, end, observed) is not None:
            return None if low in _NO_PLACE or low.endswith("ly") else (start, end)
    return None


def read_handled(clause: Clause, start: int) -> str | None:
    """Return the one thing that the whole clause tells the taking of ("Picked up the box,")."""
    taken = _taken(clause, _after_agent(clause, start))
    return taken[0] if taken is not None and taken[1] == len(clause) else None


def _after_agent(clause: Clause, start: int) -> int:
    """Step over who did it: "I", "Ana", "the robot"; none is named where a log tells it."""
    index = start
    if clause.low(index) in {"i", "we"}:
        index += 1
    elif clause.low(index) in {"the", "a"}:
        index = _after_machine(clause, start)
    elif clause.low(index) not in _VERBS | _TAKEN:
        named = read_name(clause, index)
        index = start if named is None else named[1]
    if index > start and clause.low(index) in {"have", "'ve", "has"}:
        index += 1
    while index > start and clause.low(index) in {"just", "already", "then"}:
        index += 1
    return index


def _after_machine(clause: Clause, start: int) -> int:
    for index in range(start + 1, min(start + 2 + _AGENT_WORDS_MAX, len(clause))):
        low = clause.low(index)
        if low in _VERBS | _TAKEN or low in {"has", "just", "already", "then"}:
            return index if index > start + 1 else start
        if not low[0].isalnum() or low in FINITE | VAGUE | _TO or low in {"the", "a", "and"}:
            return start
    return start


def _taken(clause: Clause, index: int) -> tuple[str, int] | None:
    """Read "picked up the red umbrella from the floor": the thing, and the token after it all."""
    if clause.low(index) not in _TAKEN:
        return None
    index += 1
    if clause.low(index) in {"up", "out"}:
        index += 1
    thing = _phrase(clause, index + 1, of_place=False) if clause.low(index) == "the" else None
    if thing is None:
        return None
    end = thing[1]
    if clause.low(end) in _PARTICLES:
        end += 1
    if clause.low(end) in _FROM | _TO and clause.low(end + 1) == "the":
        source = _phrase(clause, end + 2, of_place=True)
        if source is None:
            return None
        end = source[1]
    return _words(clause, thing), end


def _moved(clause: Clause, index: int, handled: str | None) -> tuple[str, int] | None:
    """Read "the box from the hall" or "it down": the thing, and the token of its new place."""
    if clause.low(index) in _PARTICLES:
        index += 1
    if clause.low(index) in _IT:
        if handled is None or (clause.low(index) == "them") != handled.endswith("s"):
            return None
        entity, end = handled, index + 1
    else:
        thing = _phrase(clause, index + 1, of_place=False) if clause.low(index) == "the" else None
        if thing is None:
            return None
        entity, end = _words(clause, thing), thing[1]
    if clause.low(end) in _PARTICLES:
        end += 1
    if clause.low(end) in _FROM and clause.low(end + 1) == "the":
        source = _phrase(clause, end + 2, of_place=True)
        if source is None:
            return None
        end = source[1]
    return entity, end


def _words(clause: Clause, span: tuple[int, int]) -> str:
    return " ".join(token.low for token in clause.tokens[span[0] : span[1]])


def _phrase(clause: Clause, start: int, *, of_place: bool) -> tuple[int, int] | None:
    """Read a noun phrase; of a place its last noun is known ("the shelf yesterday")."""
    index = start
    while index < len(clause) and index - start <= _WORDS_MAX:
        low = clause.low(index)
        if low in _TO or low in _FROM or low in _PARTICLES or low in {",", "and", "with", "then"}:
            break
        if low in FINITE or low in VAGUE or not low[0].isalnum():
            return None
        known = index > start and clause.low(index - 1) in ROOMS_AND_FURNITURE
        if of_place and known and low not in ROOMS_AND_FURNITURE:
            break
        index += 1
    return (start, index) if start < index <= start + _WORDS_MAX else None
