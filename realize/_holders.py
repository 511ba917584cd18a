"""
Whose value something is: "Who lives in Bergen?", "What is in the drawer?". Pure.

A question that names a value, and no key, is read only if every word of it is understood. Its answer
is every entity whose key has exactly this value, as the ledger resolved each key of the relation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from contracts.lexicon import CARDINALITY_OF
from contracts.proposals import Plan
from contracts.relations import Cardinality
from contracts.trails import Question
from realize._being import HOW, may_place, places
from realize._phrases import way
from realize._scope import cues_of, fold, words_in
from realize._slots import slotted
from realize._task import Bounds

_TOLD_APART: Final = frozenset({"by", "of", "for", "from", "to", "with"})
"""Prepositions at the end of a relation's name that turn it round: who manages is not who is managed by."""
_NOUNS_AND_VERBS: Final = frozenset(
    {"boss", "captain", "chair", "coach", "cook", "father", "guard", "guide", "head", "host", "judge", "lead"}
    | {"manager", "master", "mentor", "mother", "nurse", "parent", "partner", "pilot", "sponsor", "tutor"}
)
"""Who coaches Ann is her coach, and not whom she coaches: names of relations that may be either."""
_PAST: Final = frozenset(
    {"did", "was", "were", "had", "drove", "held", "knew", "met", "said", "saw", "spoke", "told"}
)
_BE: Final = frozenset({"is", "are", "was", "were", "be", "being"})
_ASKED_FOR: Final = frozenset(
    {"who", "whose", "what", "which", "people", "persons", "things", "objects", "items", "everything"}
)
_MUTUAL: Final = frozenset({"married_to", "engaged_to", "dating"})

_WHO: Final = (
    r"(?:who(?: all)?|(?:which|what) (?:people|persons)"
    r"|(?:list|name|show me|give me|tell me) (?:(?:everyone|everybody|all) who|(?:all )?(?:the )?people who))"
)
_WHAT: Final = r"(?:what(?: all)?|(?:what|which) (?:things|objects|items)|list (?:everything|all) that)"
_AS: Final = r"(?: (?:in|at|on|to|for|as))?"
_VALUE: Final = (
    r"(?P<words>(?!(?:by|of|for|from|with|without|to|in|on|at|as|near|not|never|always|only|also)\b)"
    r"<WORD>(?: <WORD>){0,4}?)"
)
_ENDS: Final = rf"{_VALUE}<TODAY><AT>"
_OWN: Final = r"(?:(?:a|an|the|their|his|her) )"
_DOING: Final = tuple(
    way(text)
    for text in (
        rf"{_WHO}(?: (?:does|do|did|is|are|was|were))? R(?: R)?{_AS} {_ENDS}",
        rf"how (?P<count>many) (?:people|persons)(?: (?:is|are|was|were|do|does|did))? R(?: R)?{_AS} {_ENDS}",
    )
)
_HAVE_EVER: Final = r"(?: (?:has|have|had|was|were))? ever(?: been)?"
_EVER: Final = tuple(
    way(rf"{who}{_HAVE_EVER} R(?: R)?{_AS} {_VALUE}(?: before| so far)?")
    for who in (_WHO, r"how (?P<count>many) (?:people|persons)")
)
_BELONGING: Final = tuple(
    way(text)
    for text in (
        rf"whose R (?:is|was) {_ENDS}",
        rf"(?:who|(?:which|what) people) (?:has|have|had) {_VALUE} as {_OWN}?R<TODAY><AT>",
        rf"how (?P<count>many) people (?:have|had) {_VALUE} as {_OWN}?R<TODAY><AT>",
    )
)
_BEING: Final = tuple(
    way(text)
    for text in (
        rf"{_WHAT} (?:is|are|was|were)(?: there)?(?: R)? {HOW} {_ENDS}",
        rf"(?P<how>what) (?:does|do|did) {_VALUE} contain<TODAY><AT>",
        rf"how (?P<count>many) (?:things|objects|items) (?:is|are|was|were)(?: there)?(?: R)? {HOW} {_ENDS}",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holders:
    """
    Whose value is asked for: on which relations, which value, when; None is the view's own instant.

    `beside` are relations by which something may be at the place that is asked about, and it cannot be told
    whether it is there in the way that is asked. `counts` says that only the number is asked for, `ever` that
    whoever had it at any time by then counts.
    """

    relations: tuple[str, ...]
    beside: tuple[str, ...]
    words: str
    period: Bounds | None
    counts: bool
    ever: bool


def may_ask_holders(question: str) -> bool:
    """Say whether a question may ask whose value something is, so that the record's relations are needed."""
    found = words_in(question)
    return not {
        "who",
        "whose",
        "what",
        "which",
        "people",
        "things",
        "objects",
        "items",
        "everything",
    }.isdisjoint(found)


def placing(question: Question, plan: Plan, relations: Iterable[str]) -> tuple[str, ...]:
    """Return those of a tenant's relations on which "What is in Y?" asks; none where it asks for no place."""
    found = _being(question.text, plan)
    if found is None:
        return ()
    how = "in" if found["how"] == "what" else found["how"]
    return tuple(
        relation for relation in sorted(relations) if places(relation, how) or may_place(relation, how)
    )


def read_holders(question: Question, plan: Plan) -> Holders | None:
    """
    Read a question that names a value and asks for all that have it. Pure.

    Args:
        question: As it was put.
        plan: Whose relations are those that the question's words mean among the tenant's own.

    Returns:
        None where a word is left over, or the past is asked about without a time.
    """
    text = question.text
    being = _being(text, plan)
    if being is not None:
        how = "in" if being["how"] == "what" else being["how"]
        on = tuple(relation for relation in plan.relations if places(relation, how))
        beside = tuple(relation for relation in plan.relations if may_place(relation, how))
        return _read(being, plan, on, beside, is_past=_is_past(text, ""))
    found = [(relation, match) for relation in plan.relations for match in _matches(text, plan, relation)]
    if not found or len({(match["words"], match.groupdict().get("count")) for _, match in found}) != 1:
        return None
    is_past = any(_is_past(text, relation) for relation, _ in found)
    return _read(found[0][1], plan, tuple(dict.fromkeys(own for own, _ in found)), (), is_past=is_past)


def is_mutual(relation: str) -> bool:
    """Say whether a relation holds in both directions."""
    return relation in _MUTUAL


def _read(
    match: re.Match[str], plan: Plan, relations: tuple[str, ...], beside: tuple[str, ...], *, is_past: bool
) -> Holders | None:
    ever = match.re in _EVER
    slot = None if ever else match["p"]
    period = None
    if slot is not None:
        time = plan.times[int(slot[1:])]
        if time.start is None or time.end is None:
            return None
        period = Bounds(start=time.start, end=time.end, wording=time.wording)
    if not (relations or beside) or (is_past and period is None and not ever):
        return None
    counts = match.groupdict().get("count") is not None
    return Holders(
        relations=relations, beside=beside, words=match["words"], period=period, counts=counts, ever=ever
    )


def _being(text: str, plan: Plan) -> re.Match[str] | None:
    form = slotted(text, plan, entities=(), relation="located")
    found = (each.fullmatch(form) for each in _BEING) if form is not None else ()
    return next((match for match in found if match is not None), None)


def _matches(text: str, plan: Plan, relation: str) -> Iterator[re.Match[str]]:
    if CARDINALITY_OF.get(relation) == Cardinality.OCCURRENCE:
        return
    form = slotted(text, plan, entities=(), relation=relation)
    if form is None:
        return
    for is_verb, ways in ((True, (*_EVER, *_DOING)), (False, _BELONGING)):
        if _may_be(relation, text, is_verb=is_verb):
            yield from (match for each in ways if (match := each.fullmatch(form)) is not None)


def _may_be(relation: str, text: str, *, is_verb: bool) -> bool:
    """Say whether a relation's name is a verb of its entity, or a noun that its entity has."""
    if relation in CARDINALITY_OF:
        return True
    own = words_in(relation.replace("_", " "))
    first, last = own[0], own[-1]
    if last in _TOLD_APART:
        return is_verb and len(own) > 1 and last in words_in(text)
    if len(own) > 1 and last in {"in", "at", "on", "as"}:
        return is_verb
    verbal = first.endswith("s") and not first.endswith("ss")
    if verbal and (fold(first) in _NOUNS_AND_VERBS or first in _NOUNS_AND_VERBS):
        return False
    return verbal == is_verb


def _is_past(text: str, relation: str) -> bool:
    words = words_in(text)
    if relation == "born_in":
        # It holds for ever, and is told in the past tense.
        return False
    own, cues = words_in(relation.replace("_", " ")), cues_of(relation)
    if not (_PAST - set(own)).isdisjoint(words):
        return True
    said = [word for word in words if fold(word) in cues]
    # "is employed" tells a state; "lived" alone is over.
    return _BE.isdisjoint(words) and any(word.endswith("ed") and word not in own for word in said)
