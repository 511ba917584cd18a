"""
Where a thing is, was, or has ever been, asked with no word but "to be" and a preposition. Pure.

"How long was the cup in the drawer?" names no relation: being in a place is the relation, whatever name it
has in the record, as long as that says where a thing is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from contracts.proposals import Plan
from contracts.trails import Question
from realize._scope import words_in
from realize._slots import slotted

HOW: Final = r"(?P<how>in|inside|within|on|at)"
"""Prepositions of a place."""
_PLACED: Final = frozenset(
    {"contained", "found", "is", "kept", "left", "lies", "located", "parked", "placed", "put", "sits"}
    | {"stands", "stays", "stored"}
)
"""What a relation's name begins with that says where a thing is, before its preposition."""
_PLACES: Final = frozenset({"location", "place", "position", "whereabouts"})
"""Relations that say where a thing is, and leave open how."""
_INSIDE: Final = {"inside": "in", "within": "in"}
_BEING: Final = re.compile(
    rf"(?P<before>(?:.* )?(?:is|are|was|were|has|have|had)) (?:the )?(?P<e>E\d)"
    rf"(?P<been>(?: ever)?(?: been)?) {HOW} (?P<after>.+)"
)


def places(relation: str, how: str) -> bool:
    """Say whether a relation's name says where a thing is, in a way that a preposition asks for."""
    *stem, last = words_in(relation.replace("_", " ")) or [""]
    if relation in _PLACES:
        return True
    return _INSIDE.get(last, last) == _INSIDE.get(how, how) and _PLACED.issuperset(stem)


def with_relation(form: str, relation: str) -> str:
    """Return a question as slots and words with `R` where being in a place means the relation."""
    match = _BEING.fullmatch(form)
    if match is None or "R" in form.split() or not places(relation, match["how"]):
        return form
    how = _INSIDE.get(match["how"], match["how"])
    return f"{match['before']} {match['e']}{match['been']} R {how} {match['after']}"


def placed_key(
    question: Question, plan: Plan, claimed: Mapping[str, frozenset[str]]
) -> tuple[str, str] | None:
    """
    Return the key on which it is asked where something is or was; None where that is not plain.

    Args:
        question: As it was put.
        plan: Whose entities are named in it.
        claimed: Of each name, on which relations the record has anything.
    """
    form = slotted(question.text, plan, entities=plan.entities, relation="located")
    match = None if form is None else _BEING.fullmatch(form)
    if match is None:
        return None
    entity = plan.entities[int(match["e"][1:])]
    # Of two such relations either may be meant, and what one has the other may lack.
    own = [relation for relation in sorted(claimed.get(entity, ())) if places(relation, match["how"])]
    return (entity, own[0]) if len(own) == 1 else None
