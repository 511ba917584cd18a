"""
How many there are at least, where a question to count names no key: over what was proposed, and no more.

Each value counted is one that the ledger resolved, on a key that somebody proposed; of keys that
nobody proposed nothing is known, so there may be more, and the number is said as a bound. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from contracts.answers import Answer, AnswerStatus
from contracts.contexts import ContextPack
from contracts.proposals import Operation, Plan
from contracts.relations import Cardinality
from contracts.resolutions import KeyResolution, Resolved, ResolvedSet
from contracts.trails import Question
from realize._scope import left_over, shifts, words_in
from realize._show import cites, merged

_OF_SOMEBODY: Final = frozenset(
    {"i", "me", "my", "mine", "we", "us", "our", "ours", "you", "your", "he", "him", "his", "she", "her"}
    | {"they", "them", "their", "it", "its", "this", "that", "these", "those", "who", "whose", "people"}
    | {"person", "persons", "everyone", "everybody", "often", "now", "current", "currently", "today"}
)
"""Words that ask of somebody in particular, of holders and not of values, or for one instant."""


def at_least(
    question: Question, plan: Plan, resolutions: Sequence[KeyResolution], pack: ContextPack
) -> Answer | None:
    """Return evidence with a lower bound; None where not everything on a relation is asked to be counted."""
    if plan.operation != Operation.COUNT or plan.entities or plan.times or len(plan.relations) != 1:
        return None
    (relation,) = plan.relations
    text = question.text
    if shifts(text, entity="") or left_over(text, entity="", relation=relation):
        return None
    if not _OF_SOMEBODY.isdisjoint(words_in(text)):
        return None
    lines = {
        # Two keys may speak of one thing: what has the same value is counted once.
        member.form: shown
        for key in resolutions
        if key.relation == relation and key.contract.cardinality != Cardinality.OCCURRENCE
        for member in _members(key)
        if (shown := cites(pack, member.claims))
    }
    if not lines:
        return None
    return Answer(
        status=AnswerStatus.EVIDENCE,
        value={"at_least": len(lines)},
        cites=merged(lines.values()),
        reason="count_over_candidates",
    )


def _members(key: KeyResolution) -> Sequence[Resolved]:
    match key.resolution:
        case Resolved() as one:
            return [one]
        case ResolvedSet(members=members):
            return members
        case _:
            return []
