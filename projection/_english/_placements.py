"""Placements, such as "I put the blue mug on the shelf": where a thing now is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from projection._english._clauses import Clause
from projection._english._objects import Item
from projection._english._subjects import read_name
from projection._english._words import FINITE, ROOMS_AND_FURNITURE, VAGUE

_VERBS: Final = frozenset({"put", "moved", "placed", "left", "carried", "returned"})
_WITHOUT_SUBJECT: Final = frozenset({"moved", "placed", "carried", "returned"})
_TO: Final = frozenset({"in", "on", "under", "into", "onto", "to", "inside", "behind", "beside", "at"})
_WORDS_MAX: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A thing, the tokens that name where it went, and what follows."""

    entity: str
    location: Item
    end: int


def read_placement(clause: Clause, start: int) -> Placement | None:
    """Read a placement at token `start`, or None."""
    index = start
    if clause.low(index) in {"i", "we"}:
        index += 1
    elif clause.low(index) not in _WITHOUT_SUBJECT:
        named = read_name(clause, index)
        if named is None:
            return None
        index = named[1]
    if clause.low(index) in {"have", "'ve", "has"}:
        index += 1
    if clause.low(index) in {"just", "already"}:
        index += 1
    if clause.low(index) not in _VERBS or clause.low(index + 1) != "the":
        return None
    thing = _phrase(clause, index + 2)
    if thing is None:
        return None
    end = thing[1]
    if clause.low(end) == "from" and clause.low(end + 1) == "the":
        source = _phrase(clause, end + 2)
        if source is None:
            return None
        end = source[1]
    if clause.low(end) not in _TO or clause.low(end + 1) != "the":
        return None
    place = _phrase(clause, end + 2)
    if place is None or clause.low(place[1] - 1) not in ROOMS_AND_FURNITURE:
        return None
    words = " ".join(token.low for token in clause.tokens[thing[0] : thing[1]])
    return Placement(entity=words, location=Item(start=place[0], end=place[1], text=None), end=place[1])


def _phrase(clause: Clause, start: int) -> tuple[int, int] | None:
    index = start
    while index < len(clause) and index - start <= _WORDS_MAX:
        low = clause.low(index)
        if low in _TO or low in {"from", ",", "and", "with"}:
            break
        if low in FINITE or low in VAGUE or not low[0].isalnum():
            return None
        if index > start and clause.low(index - 1) in ROOMS_AND_FURNITURE and low not in ROOMS_AND_FURNITURE:
            break
        index += 1
    return (start, index) if start < index <= start + _WORDS_MAX else None
