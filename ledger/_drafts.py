"""
Drafts as canonical JSON: what is stored of an event, and what its content digest covers.

Stored is what the caller sent; a field left out and a field given at its default are one content.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel

from contracts.events import ClaimDraft, EventDraft, IntervalDraft, TargetDraft, ValidDraft

# A null bound of an interval says "open", so here a field counts as given when it was set.
_NULL_SAYS_SOMETHING: Final = (ValidDraft, IntervalDraft)


def draft_json(draft: EventDraft) -> dict[str, Any]:
    """Return the draft as JSON, without fields that stand at their default."""
    return _model_json(draft)


def targets_of(draft: EventDraft) -> Iterator[tuple[str, TargetDraft]]:
    """Yield every target of a draft (targets, winners and inputs) with its path in it."""
    yield from _targets_in(draft, "")
    for ordinal, claim in enumerate(draft.claims):
        yield from _targets_in(claim, f"claims[{ordinal}].")
        for index, target in enumerate(claim.inputs):
            yield f"claims[{ordinal}].inputs[{index}]", target


def resolved(draft: dict[str, Any], references: dict[str, str]) -> dict[str, Any]:
    """
    Return a stored draft with each target that names a `source_event_id` naming that event by id.

    Args:
        draft: As `draft_json` made it.
        references: Event id by `source_event_id`, as found when the event was appended.
    """
    if not references:
        return draft
    changed = _resolved_targets(draft, references)
    if "claims" in draft:
        changed["claims"] = [_resolved_targets(claim, references) for claim in draft["claims"]]
    return changed


def _targets_in(holder: EventDraft | ClaimDraft, path: str) -> Iterator[tuple[str, TargetDraft]]:
    for index, target in enumerate(holder.targets or ()):
        yield f"{path}targets[{index}]", target
    if holder.winner is not None:
        yield f"{path}winner", holder.winner


def _resolved_targets(holder: dict[str, Any], references: dict[str, str]) -> dict[str, Any]:
    changed = dict(holder)
    for name in ("targets", "inputs"):
        if name in holder:
            changed[name] = [_resolved_target(target, references) for target in holder[name]]
    if "winner" in holder:
        changed["winner"] = _resolved_target(holder["winner"], references)
    return changed


def _resolved_target(target: dict[str, Any], references: dict[str, str]) -> dict[str, Any]:
    if "source_event_id" not in target:
        return target
    changed = {name: value for name, value in target.items() if name != "source_event_id"}
    return changed | {"event": references[target["source_event_id"]]}


def _model_json(model: BaseModel) -> dict[str, Any]:
    # By hand and not by `model_dump`: that has no rule which keeps a null bound of an interval and
    # drops every other null, and it takes several times as long.
    if isinstance(model, _NULL_SAYS_SOMETHING):
        given = model.model_fields_set
        return {alias: getattr(model, name) for name, alias, _ in _fields(type(model)) if name in given}
    form = {}
    for name, alias, default in _fields(type(model)):
        value = getattr(model, name)
        if value != default:
            form[alias] = value if name == "value" else _json(value)
    return form


@functools.cache
def _fields(model: type[BaseModel]) -> tuple[tuple[str, str, object], ...]:
    return tuple(
        (name, info.alias or name, info.get_default(call_default_factory=True, validated_data={}))
        for name, info in model.model_fields.items()
    )


def _json(value: object) -> Any:  # noqa: ANN401 - it is JSON
    match value:
        case BaseModel():
            return _model_json(value)
        case list() | tuple():
            return [_json(item) for item in value]
        case str():
            # Enumerations too: as the plain text that they are.
            return str(value)
        case _:
            return value
