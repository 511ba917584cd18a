"""
How a question is read by whoever answers it: the planner, over names that the ledger gives.

The service only proposes. Which key a question names follows from its words and the record alone;
nothing that a proposal says can choose another key, only leave evidence out. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from contracts.proposals import KeyProposal, Proposal
from contracts.trails import Question
from contracts.views import View
from discovery._border import is_name
from discovery._names import NAME_WORDS_MAX, tenant_names
from discovery._planner import FIRST_PERSON, SECOND_PERSON, plan_question
from discovery._text import tokenize

SPELLED_WORDS_MAX: Final = 128
"""Words of a question that a name is looked for in."""
_NAMED_PPM: Final = 1_000_000


def spellings(question: str, proposal: Proposal) -> tuple[str, ...]:
    """
    Return the names that a question may spell, to be looked up in the record.

    Every run of its words, as written and as a name is mostly written; and what the proposal found
    in it, which may be spelled with other accents or signs. The planner decides which stand there.
    """
    found: dict[str, None] = {}
    tokens = tokenize(question)[:SPELLED_WORDS_MAX]
    for start in range(len(tokens)):
        for last in tokens[start : start + NAME_WORDS_MAX]:
            written = question[tokens[start].start : last.end]
            found.update(dict.fromkeys((written, written.lower(), written.title())))
    found.update(dict.fromkeys(proposal.plan.entities))
    found.update(dict.fromkeys(key.entity for key in proposal.keys))
    return tuple(name for name in found if is_name(name))


def speaks_of_self(question: str) -> bool:
    """Say whether a question is put in the first person."""
    return any(token.word in FIRST_PERSON for token in tokenize(question))


def speaks_to_agent(question: str) -> bool:
    """Say whether a question is put to whoever has the memory: "Where are you?"."""
    return any(token.word in SECOND_PERSON for token in tokenize(question))


def grounded(
    question: Question,
    *,
    view: View,
    proposal: Proposal,
    claimed: Mapping[str, frozenset[str]],
    user: str | None,
    agent: str | None = None,
    relations: Iterable[str] = (),
) -> Proposal:
    """
    Return the proposal with the plan and the named keys that follow from the record.

    Args:
        question: As it was put.
        view: Relative times count from its `valid_at`.
        proposal: Untrusted. Its candidates stay; its keys stay as keys that only add evidence.
        claimed: Entities that the record knows by the cut, with the relations claimed on them.
        user: Whom the first person means, as the record has it.
        agent: Whom the second person means, as the record has it.
        relations: Of the tenant, beside those that are claimed on what is named: a question may name
            a value alone.
    """
    known = {*relations, *(relation for own in claimed.values() for relation in own)}
    names = tenant_names(entities=claimed, relations=known, users=[] if user is None else [user])
    names = replace(names, agent=agent)
    plan = plan_question(question.text, names, valid_at=view.valid_at)
    named = {
        (entity, relation): KeyProposal(entity=entity, relation=relation, score_ppm=_NAMED_PPM, named=True)
        for relation in plan.relations
        for entity in plan.entities
        if relation in claimed.get(entity, ())
    }
    others = [replace(key, named=False) for key in proposal.keys if (key.entity, key.relation) not in named]
    return replace(proposal, plan=plan, keys=(*named.values(), *others))
