"""
The answer: derived from resolved keys, shown only with its lines, or withheld with the reason.

Order of the rules, first that applies: no named key; more than one key; a question whose words
move it off the view; conflict (always said); missing; required evidence deferred; then the
operation. docs/answers.md holds the table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final, assert_never

from contracts.answers import Answer
from contracts.contexts import ClosureSet, ContextPack
from contracts.proposals import Operation, Plan, Proposal
from contracts.relations import Cardinality, RelationContract
from contracts.resolutions import Conflict, KeyResolution, Missing, Resolved, ResolvedSet
from contracts.trails import Question
from contracts.values import with_unit
from contracts.views import View
from realize._asking import asks_for_some, asks_what_occurred, fits, looks_back
from realize._being import says_where
from realize._bound import at_least
from realize._found import Derivation, Withheld
from realize._inverse import turns_around
from realize._scope import (
    asks_of_another,
    left_over,
    mean_another,
    names_whole,
    shifts,
    untitled,
    words_in,
    words_of,
)
from realize._select import named_keys, once_each, values_of
from realize._show import answered, disclosed, evidence, insufficient, rivals, show

_TYPED: Final = frozenset(
    # A preference that resolves ("favourite tea") is a state like any other.
    {Operation.FACT, Operation.CURRENT_STATE, Operation.PREFERENCE, Operation.COUNT, Operation.LIST}
)
_OF_MANY: Final = frozenset({Operation.COUNT, Operation.LIST})
_JOINED: Final = re.compile(r"\b(?:and|or|both|either|nor)\b|[,&/]", re.IGNORECASE)


def realize(
    *,
    question: Question,
    plan: Plan,
    proposal: Proposal,
    resolutions: Sequence[KeyResolution],
    pack: ContextPack,
    closures: ClosureSet | None = None,
    derivation: Derivation | None = None,
) -> Answer:
    """
    Derive the answer of a frozen context. A pure function.

    Where nothing stands on the key, the lines cited are those of the key's own closures: what was
    withdrawn and what withdrew it, what has ended.

    `evidence` means that lines were found and none of the rules below may turn them into a value:
    the caller reads them. `insufficient_evidence` means that the question names a key on which
    nothing stands, or that its evidence did not fit, or that nothing was found at all.

    `derivation` is what was derived of a question that is understood whole (`read_task`).
    """
    keys = named_keys(plan, proposal, resolutions)
    if keys is None:
        return insufficient("key_not_resolved")
    if derivation is not None:
        contract = _contract_of(derivation, keys, resolutions)
        return show(question, derivation, pack, contract=contract)
    if not keys:
        bound = at_least(question, plan, resolutions, pack)
        return evidence(pack, "no_named_key") if bound is None else bound
    if plan.operation not in _TYPED or plan.surface == "boolean":
        return evidence(pack, "operation_not_typed")
    if len(keys) > 1 or _names_another(question, proposal, keys[0]):
        return evidence(pack, "several_keys")
    (key,) = keys
    if turns_around(question.text, entity=key.entity, relation=key.relation):
        return evidence(pack, "question_not_understood")
    same = [each.entity for each in resolutions if _is_same(each, key)]
    if _moves_off(question, plan, key, same) or not _at_view(plan, key.view):
        return evidence(pack, "time_or_scope_not_resolved")
    return _answer(question, plan, key, pack, about=_about(key, pack, closures))


def _about(key: KeyResolution, pack: ContextPack, closures: ClosureSet | None) -> tuple[str, ...]:
    """Return the lines that were required for a key: of what stands on it, or stood."""
    name = ["key", key.entity, key.relation]
    events = {
        event_id
        for closure in (() if closures is None else closures.closures)
        if closure.required and json.loads(closure.closure_id)[: len(name)] == name
        for event_id in closure.members
    }
    return tuple(line.line_id for line in pack.lines if line.event_id in events)


def _answer(
    question: Question, plan: Plan, key: KeyResolution, pack: ContextPack, *, about: tuple[str, ...]
) -> Answer:
    match key.resolution:
        case Conflict() as conflict:
            return _conflict(
                question, pack, [conflict], value={"rivals": rivals(conflict, key.contract)}, why=conflict.why
            )
        case Missing(reason=reason):
            return insufficient(reason.value, cites=about)
        case Resolved() as member:
            if plan.operation in _OF_MANY:
                # One value stands because later ones replace earlier ones there: that is no count.
                return evidence(pack, "not_many_valued")
            return answered(pack, [member.claims], with_unit(member.value, key.contract))
        case ResolvedSet(members=members, disputed=disputed) as several:
            if (several.members_count, several.disputed_count) != (len(members), len(disputed)):
                return _of_many(question, plan, key, pack, several)
            return _of_set(question, plan, key, pack, members=members, disputed=disputed)
        case _ as never:
            assert_never(never)


def _contract_of(
    derivation: Derivation, keys: Sequence[KeyResolution], resolutions: Sequence[KeyResolution]
) -> RelationContract | None:
    """Return the contract of the key that is in conflict, or else of the one that is named."""
    match derivation:
        case Withheld(conflict=Conflict() as conflict):
            own = [key for key in resolutions if conflict in _conflicts(key)] or keys
            return next((key.contract for key in own), None)
        case _:
            return next((key.contract for key in keys), None)


def _conflicts(key: KeyResolution) -> Sequence[Conflict]:
    match key.resolution:
        case Conflict() as conflict:
            return [conflict]
        case ResolvedSet(disputed=disputed):
            return disputed
        case _:
            return []


def _of_many(
    question: Question, plan: Plan, key: KeyResolution, pack: ContextPack, several: ResolvedSet
) -> Answer:
    """Answer of more than is listed: how many there are in all, where nothing else is asked."""
    less = left_over(question.text, entity=key.entity, relation=key.relation)
    # Which values are alike cannot be seen from some of them.
    alike = key.contract.cardinality == Cardinality.OCCURRENCE and asks_what_occurred(question.text)
    if plan.operation != Operation.COUNT or several.disputed_count or less or alike:
        return evidence(pack, "not_all_listed")
    return answered(pack, [member.claims for member in several.members], several.members_count)


def _of_set(
    question: Question,
    plan: Plan,
    key: KeyResolution,
    pack: ContextPack,
    *,
    members: Sequence[Resolved],
    disputed: Sequence[Conflict],
) -> Answer:
    """Answer from the members that the question's own words leave in."""
    words = frozenset(left_over(question.text, entity=key.entity, relation=key.relation))
    if not words and any(names_whole(question.text, member.value) for member in members):
        # A value that is spelt with plain words only: one of them is asked about, or all are.
        return evidence(pack, "time_or_scope_not_resolved")
    if words:
        rivals = [rival.value for conflict in disputed for rival in conflict.rivals]

        def is_meant(value: Any) -> bool:  # noqa: ANN401 -- values are any JSON
            return words == words_of(value) and names_whole(question.text, value)

        # Restricted to one value, and to that exactly: a value that shares a word with it might
        # be the same thing under a longer name, and would be left out in silence.
        if any(words & words_of(value) and not is_meant(value) for value in _all(members, rivals)):
            return evidence(pack, "time_or_scope_not_resolved")
        members = [member for member in members if is_meant(member.value)]
        disputed = [each for each in disputed if any(is_meant(rival.value) for rival in each.rivals)]
        if not members and not disputed:
            return evidence(pack, "time_or_scope_not_resolved")
    members = sorted(members, key=lambda member: min(claim.position for claim in member.claims))
    told = members
    counts = plan.operation == Operation.COUNT
    if key.contract.cardinality == Cardinality.OCCURRENCE and asks_what_occurred(question.text):
        # "How many places": one that was visited twice is one place, be it named in other units.
        told = once_each(members)
        if counts and disputed:
            return evidence(pack, "time_or_scope_not_resolved")
    values = [with_unit(member.value, key.contract) for member in told]
    if not disputed:
        return answered(pack, [member.claims for member in members], len(values) if counts else values)
    value = _range(members, disputed) if counts else _split(values, disputed, key.contract)
    return _conflict(question, pack, disputed, value=value, why="members_disputed", members=members)


def _range(members: Sequence[Resolved], disputed: Sequence[Conflict]) -> dict[str, int]:
    # A member whose rivals agree that there is something counts; one that may have ended may not.
    certain = sum(not any(rival.ended for rival in conflict.rivals) for conflict in disputed)
    return {"at_least": len(members) + certain, "at_most": len(members) + len(disputed)}


def _split(values: list[Any], disputed: Sequence[Conflict], contract: RelationContract) -> dict[str, Any]:
    return {"values": values, "disputed": [rivals(conflict, contract) for conflict in disputed]}


def _all(members: Sequence[Resolved], rivals: Sequence[Any]) -> list[Any]:
    return [*(member.value for member in members), *rivals]


def _names_another(question: Question, proposal: Proposal, key: KeyResolution) -> bool:
    """Say whether the question also names an entity that has no such key ("Ann and Bob")."""
    # Discovery names keys that something is claimed on: of two people, the unknown one has none.
    known = {each.entity for each in proposal.keys if each.named and each.relation == key.relation}
    others = [entity for entity in proposal.plan.entities if entity not in known]
    unexplained = [entity for entity in others if entity not in values_of(key)]
    return bool(unexplained) and _JOINED.search(question.text) is not None


def _is_same(one: KeyResolution, other: KeyResolution) -> bool:
    """Say whether two keys are one, of an entity with several names."""
    alike = one.relation == other.relation and one.resolution == other.resolution
    # Of two on which nothing stands, equal answers say nothing about who is who.
    return alike and not isinstance(one.resolution, Missing)


def _moves_off(question: Question, plan: Plan, key: KeyResolution, same: Sequence[str]) -> bool:
    """Say whether the question's words ask for another time, another relation or another holder."""
    others = [relation for relation in plan.relations if relation != key.relation]
    text, entity, relation = question.text, key.entity, key.relation
    left = left_over(text, entity=entity, relation=relation)
    if says_where(relation):
        # "Where is it located?" asks no more than "Where is it?".
        left = tuple(word for word in left if word != "located")
    named = {word for name in same for word in words_in(name)} | ({"or"} if len(same) > 1 else set())
    return (
        shifts(text, entity=entity)
        or mean_another(left, others)
        or asks_of_another(text, entity=entity, relation=relation)
        or not fits(text, entity=entity, relation=relation)
        # A time that is named, and is the view's, is what a past tense looks back from.
        or (
            not plan.times
            and looks_back(text, entity=entity, relation=relation, cardinality=key.contract.cardinality)
        )
        or _asks_for_less(question, plan, key, [word for word in left if word not in named])
    )


def _asks_for_less(question: Question, plan: Plan, key: KeyResolution, left: Sequence[str]) -> bool:
    """Say whether words are left over that one value, or its absence, does not answer."""
    if isinstance(key.resolution, ResolvedSet):
        # Words left over may choose among its members; a time, or the newest of them, is not looked for.
        occurrence = key.contract.cardinality == Cardinality.OCCURRENCE
        now = plan.operation == Operation.CURRENT_STATE
        return asks_for_some(question.text, of_all_time=occurrence and not now) or (
            occurrence and bool(plan.times)
        )
    timed = {word for time in plan.times for word in words_in(time.wording)}
    left = untitled(question.text, left, entity=key.entity, relation=key.relation)
    words = frozenset(left) - timed
    return bool(words) and not any(
        words == words_of(value) and names_whole(question.text, value) for value in values_of(key)
    )


def _at_view(plan: Plan, view: View) -> bool:
    """Say whether the times that the question names, if any, are the time it is asked at."""
    if plan.times and plan.operation in _OF_MANY:
        return False
    return all(
        (time.start is None or time.start <= view.valid_at) and (time.end is None or view.valid_at < time.end)
        for time in plan.times
    )


def _conflict(
    question: Question,
    pack: ContextPack,
    conflicts: Sequence[Conflict],
    *,
    value: dict[str, Any],
    why: str,
    members: Sequence[Resolved] = (),
) -> Answer:
    groups = [member.claims for member in members]
    groups += [(rival.claim,) for conflict in conflicts for rival in conflict.rivals]
    return disclosed(question, pack, groups, value=value, why=why)
