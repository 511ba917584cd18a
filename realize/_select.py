"""
Which one key a question is answered from.

Only keys that the question itself names come into it. Where it names several, the plan decides
or nobody does: keys of the first relation in the plan's order that has any; keys that turn out to
be one (merged entities) count once; an entity that is itself a value on another of the keys
("Does Ann work at *Harlow Glass*?") is what is asked about, not whom. If more than one is left,
there is no single answer, and none is picked by score.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from contracts.proposals import Plan, Proposal
from contracts.resolutions import KeyResolution, Missing, MissingReason, Resolved, ResolvedSet


def named_pairs(plan: Plan, proposal: Proposal) -> tuple[tuple[str, str], ...]:
    """Return entity and relation of the keys that may be meant, as the question names them."""
    named = [key for key in proposal.keys if key.named]
    meant = {key.relation for key in named}
    if named and meant <= set(plan.relations):
        meant = {next(relation for relation in plan.relations if relation in meant)}
    # Else nothing says which of the relations is meant, and least of all a score.
    return tuple(sorted({(key.entity, key.relation) for key in named if key.relation in meant}))


def named_keys(
    plan: Plan, proposal: Proposal, resolutions: Sequence[KeyResolution]
) -> tuple[KeyResolution, ...] | None:
    """Return the keys that may be meant; none where none was named; None where one is unresolved."""
    wanted = named_pairs(plan, proposal)
    resolved = {(key.entity, key.relation): key for key in resolutions}
    if any(key not in resolved for key in wanted):
        return None
    return _apart([resolved[key] for key in wanted])


def _apart(keys: Sequence[KeyResolution]) -> tuple[KeyResolution, ...]:
    kept: list[KeyResolution] = []
    for key in keys:
        merged = not isinstance(key.resolution, Missing) and any(
            other.resolution == key.resolution for other in kept
        )
        if not merged:
            kept.append(key)
    values = [value for key in kept for value in values_of(key)]
    asked_about = [key for key in kept if _never_known(key) and key.entity in values]
    return tuple(key for key in kept if key not in asked_about)


def _never_known(key: KeyResolution) -> bool:
    match key.resolution:
        case Missing(reason=MissingReason.NEVER_KNOWN):
            return True
        case _:
            return False


def values_of(key: KeyResolution) -> list[Any]:
    """Return the values that stand on a key."""
    match key.resolution:
        case Resolved(value=value):
            return [value]
        case ResolvedSet(members=members):
            return [member.value for member in members]
        case _:
            return []


def once_each(members: Sequence[Resolved]) -> list[Resolved]:
    """Return members in their order, the first of each value."""
    first: dict[str, Resolved] = {}
    for member in members:
        first.setdefault(member.form, member)
    return list(first.values())
