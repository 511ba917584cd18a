"""
The question planner: rules only, from the question's own words and the tenant's own names.

General English. Nothing here was written from, or tuned to, a benchmark's questions. Where no
rule applies the operation is `fact`, and the confidence says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from contracts.proposals import Plan
from discovery._names import NAME_WORDS_MAX, TenantNames
from discovery._operations import find_operation, surface_of
from discovery._relations import find_relations
from discovery._text import STOP_WORDS, Token, tokenize
from discovery._times import find_times

ENTITIES_MAX: Final = 16
"""Entities that one plan names."""

# Polite frames around the question proper: "do you know if" leaves a yes/no question behind.
_FRAME: Final = re.compile(
    r"""
    ^ (?:
      (?:please|hey|hi|hello|ok|okay|so|and|well|now) \s
    | (?:can|could|would|will) \s you \s (?:(?:please|kindly|possibly)\s)?
      (?: (?:tell|remind|show|let) (?:\s(?:me|us))? (?:\s(?:know|again))? \s )?
    | (?:please\s)? (?:tell|remind|show) \s (?:me|us) \s (?:again\s)?
    | (?:please\s)? give \s (?:me|us) \s
    | (?:please\s)? let \s (?:me|us) \s know \s
    | do \s you \s (?:happen\sto\s)? (?:know|remember|recall|have) \s (?!about)
    | (?:i|we) (?:\s(?:d|would|just))? \s
      (?: like | want | need | am\scurious | wonder | was\swondering | a?m\swondering )
      (?: \s to \s (?:know|remember|hear) )? \s
    | (?: is\sthere\s | do\syou\shave\s )? any \s
      (?: news | word | updates? | information | idea | record ) \s (?:(?:on|about|of)\s)?
    )+
    """,
    re.VERBOSE,
)
SECOND_PERSON: Final = frozenset({"you", "your", "yourself"})
FIRST_PERSON: Final = frozenset({"i", "my", "me", "mine", "myself"})
# Someone may be called Will, and something It: such a name must be capitalized inside the sentence.
_COMMON: Final = STOP_WORDS | {"may", "might", "would", "could", "shall", "must", "march", "august", "mark"}


def plan_question(text: str, names: TenantNames, *, valid_at: datetime | None = None) -> Plan:
    """
    Read a question.

    Args:
        text: The question as it was put.
        names: The tenant's own names, as known at the view's cut.
        valid_at: What relative times ("last week") are counted from; None leaves them without bounds.

    The same arguments give the same plan, on any machine.
    """
    tokens = tokenize(text)
    framed = " ".join(token.word for token in tokens)
    frame = _FRAME.match(framed)
    skipped = len(framed[: frame.end()].split()) if frame else 0
    # Words after a frame that left nothing are the question after all ("Do you remember?").
    proper = tokens[skipped:] if skipped < len(tokens) else tokens
    entities, taken = _find_entities(proper, names)
    asked = [token.word for index, token in enumerate(proper) if index not in taken]
    times = find_times(text, valid_at=valid_at)
    relations = find_relations(asked, names.relations)
    question = " ".join(token.word for token in proper)
    operation, matched = find_operation(question, relations, names_time=bool(times))
    return Plan(
        operation=operation,
        entities=entities,
        relations=relations,
        times=times,
        surface=surface_of(operation, question, names_time=bool(times)),
        confidence_ppm=_confidence(matched=matched, entities=entities, relations=relations),
    )


def _confidence(*, matched: bool, entities: Sequence[str], relations: Sequence[str]) -> int:
    # Coarse on purpose: a rule that matched, and each kind of name found, is worth a share.
    return 300_000 + 300_000 * matched + 200_000 * bool(entities) + 150_000 * bool(relations)


def _find_entities(tokens: Sequence[Token], names: TenantNames) -> tuple[tuple[str, ...], frozenset[int]]:
    """Return the entities named, in order, and the indexes of the words that name them."""
    found: dict[str, None] = {}
    taken: set[int] = set()
    at = 0
    while at < len(tokens):
        length = _longest_name(tokens, at, names)
        if length:
            spelled = tuple(token.word for token in tokens[at : at + length])
            found.update(dict.fromkeys(_best_spelling(names.entities[spelled], tokens[at : at + length])))
            taken.update(range(at, at + length))
        elif names.user is not None and tokens[at].word in FIRST_PERSON:
            found[names.user] = None
        at += max(1, length)
    if not found and names.agent is not None and not SECOND_PERSON.isdisjoint(each.word for each in tokens):
        # "Where are you?", but not "Where did you see the cup?", which asks of the cup.
        found[names.agent] = None
    return tuple(found)[:ENTITIES_MAX], frozenset(taken)


def _longest_name(tokens: Sequence[Token], at: int, names: TenantNames) -> int:
    for length in range(min(NAME_WORDS_MAX, len(tokens) - at), 0, -1):
        spelled = tuple(token.word for token in tokens[at : at + length])
        if spelled in names.entities and not _is_common_word(tokens, at, length):
            return length
    return 0


def _is_common_word(tokens: Sequence[Token], at: int, length: int) -> bool:
    if length > 1 or tokens[at].word not in _COMMON:
        return False
    return at == 0 or tokens[at].raw[:1].islower() or tokens[at].word == "i"


def _best_spelling(spellings: Sequence[str], tokens: Sequence[Token]) -> Sequence[str]:
    # Two names that differ in case alone are told apart by case, where the question gives it.
    raw = [token.raw for token in tokens]
    exact = [name for name in spellings if [token.raw for token in tokenize(name)] == raw]
    return exact or spellings
