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


_SAYS_WHERE: Final = frozenset({"location", "whereabouts"})
"""Those of them that answer "where" alone: a `position` may be an engineer's, and a `place` the third."""
LOOSE: Final = "located_in"
"""As the rules and most who tell it mean it: what is in a thing, on it, under it or beside it."""
_AT: Final = "at"
_NOW: Final = r"(?: (?:now|today|currently|right now|at present|at the moment))?"
_LOCATED: Final = r"(?: (?:R|located))?"
_IS: Final = rf"where (?P<be>'s|is|are|was|were) (?:the )?(?P<e>E\d){_LOCATED}"
_BEEN: Final = rf"where(?: all)? (?P<be>has|have) (?:the )?(?P<e>E\d)(?: ever)? been{_LOCATED}"
_TELL: Final = (
    rf"(?:please )?(?:(?:tell|show) me|do you know) where (?:the )?(?P<e>E\d) (?P<be>is|are){_LOCATED}"
)
_WHERE: Final = (
    re.compile(rf"{_IS}(?P<rest>{_NOW}|(?: (?:on|in|at|during))? P\d)"),
    re.compile(rf"{_BEEN}(?P<rest>(?: so far| until now)?)"),
    re.compile(rf"{_TELL}(?P<rest>{_NOW})"),
)
"""Ways to ask where a thing is, was on a day, or has been, with no word of how it is there."""


def says_where(relation: str) -> bool:
    """Say whether a relation's name alone says where a thing is, in whatever way."""
    return relation in _SAYS_WHERE or any(
        places(relation, how) for how in ("in", "on", _AT) if relation not in _PLACES
    )


def may_place(relation: str, how: str) -> bool:
    """Say whether what has a relation's value may be where a preposition asks, though its name is another."""
    if not says_where(relation) or places(relation, how):
        return False
    return relation == LOOSE or _AT in {how, words_in(relation.replace("_", " "))[-1]}


def places(relation: str, how: str) -> bool:
    """Say whether a relation's name says where a thing is, in a way that a preposition asks for."""
    *stem, last = words_in(relation.replace("_", " ")) or [""]
    if relation in _PLACES:
        return True
    return _INSIDE.get(last, last) == _INSIDE.get(how, how) and _PLACED.issuperset(stem)


def with_relation(form: str, relation: str) -> str:
    """Return a question as slots and words with `R` where being in a place means the relation."""
    where = _where(form)
    if where is not None and says_where(relation):
        return f"where {where['be']} {where['e']} R{where['rest']}"
    match = _BEING.fullmatch(form)
    if match is None or "R" in form.split() or not places(relation, match["how"]):
        return form
    how = _INSIDE.get(match["how"], match["how"])
    return f"{match['before']} {match['e']}{match['been']} R {how} {match['after']}"


def placed_keys(
    question: Question, plan: Plan, claimed: Mapping[str, frozenset[str]]
) -> tuple[tuple[str, str], ...]:
    """
    Return the keys on which it is asked where something is or was; none where that is not plain.

    Several only of one entity that is asked "where" alone, and that the record places by several relations.

    Args:
        question: As it was put.
        plan: Whose entities are named in it.
        claimed: Of each name, on which relations the record has anything.
    """
    form = slotted(question.text, plan, entities=plan.entities, relation="located")
    match = None if form is None else _BEING.fullmatch(form)
    where = None if form is None or match is not None else _where(form)
    found = match or where
    if found is None:
        return ()
    entity = plan.entities[int(found["e"][1:])]
    own = sorted(claimed.get(entity, ()))
    if match is None:
        return tuple((entity, relation) for relation in own if says_where(relation))
    # Of two such relations either may be meant, and what one has the other may lack.
    placing = [(entity, relation) for relation in own if places(relation, match["how"])]
    return tuple(placing) if len(placing) == 1 else ()


def _where(form: str) -> re.Match[str] | None:
    return next((match for each in _WHERE if (match := each.fullmatch(form)) is not None), None)
