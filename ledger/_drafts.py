"""
Drafts as canonical JSON: what is stored of an event, and what its content digest covers.

Stored is what the caller sent; a field left out and a field given at its default are one content.
Written in one pass, byte for byte as `canonical` writes it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from contracts.errors import BadRequest
from contracts.events import (
    ActorDraft,
    ClaimDraft,
    EventDraft,
    IntervalDraft,
    Kind,
    Stance,
    TargetDraft,
    ValidDraft,
)
from ledger._canonical import canonical

Model = TypeVar("Model", bound=BaseModel)

# What the library writes texts with where it leaves characters beyond ASCII as they are.
_QUOTED: Final[Callable[[str], str]] = json.encoder.encode_basestring


def draft_bytes(said: EventDraft | TargetDraft | Sequence[TargetDraft]) -> bytes:
    """
    Return a draft, or a part of it, as canonical JSON without the fields that stand at their default.

    Raises:
        BadRequest: A value in it is not JSON.
    """
    try:
        return _text(said).encode()
    except UnicodeEncodeError as error:
        raise BadRequest(field="text", reason=f"not canonical JSON: {error.reason}") from error


def draft_of(form: dict[str, Any]) -> EventDraft:
    """
    Return the draft that `draft_bytes` wrote the JSON of, by trust: without validating it again.

    Only for bytes that were just decrypted: whoever can make such bytes holds the tenant's keys, so
    they are what the border once accepted, and validating them takes longer than all the rest.

    Raises:
        LookupError, TypeError, ValueError: No draft was ever written so.
    """
    return _made(EventDraft, form)


def targets_of(draft: EventDraft) -> list[tuple[str, TargetDraft]]:
    """Return every target of a draft (targets, winners and inputs) with its path in it."""
    found = _targets_in(draft, "") if draft.targets or draft.winner is not None else []
    for ordinal, claim in enumerate(draft.claims):
        if claim.targets or claim.winner is not None or claim.inputs:
            path = f"claims[{ordinal}]."
            found += _targets_in(claim, path)
            found += [(f"{path}inputs[{index}]", target) for index, target in enumerate(claim.inputs)]
    return found


def resolved(draft: dict[str, Any], references: dict[str, str]) -> dict[str, Any]:
    """
    Return a stored draft with each target that names a `source_event_id` naming that event by id.

    Args:
        draft: As `draft_bytes` wrote it.
        references: Event id by `source_event_id`, as found when the event was appended.
    """
    if not references:
        return draft
    changed = _resolved_targets(draft, references)
    if "claims" in draft:
        changed["claims"] = [_resolved_targets(claim, references) for claim in draft["claims"]]
    return changed


def _targets_in(holder: EventDraft | ClaimDraft, path: str) -> list[tuple[str, TargetDraft]]:
    found = [(f"{path}targets[{index}]", target) for index, target in enumerate(holder.targets or ())]
    return found if holder.winner is None else [*found, (f"{path}winner", holder.winner)]


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


def _made(model: type[Model], form: Mapping[str, Any]) -> Model:
    # What `model_construct` does, a hundred times faster: that works out each default anew.
    shape = _shape(model)
    if not shape.known.issuperset(form):
        raise LookupError("a field that no draft has")
    values = {**shape.blank, **form}
    given = set(form)
    if not shape.changed.isdisjoint(form):
        for alias, name in shape.renamed:
            if alias in form:
                values[name] = values.pop(alias)
                given.remove(alias)
                given.add(name)
        for name, read in shape.readers:
            if name in form:
                values[name] = read(form[name])
    for name in shape.lists:
        if name not in form:
            values[name] = []
    made = _NEW(model)
    _SET_VALUES(made, values)
    _SET_GIVEN(made, given)
    _SET_EXTRA(made, None)
    _SET_PRIVATE(made, None)
    return made


_NEW: Final = object.__new__
_SET_VALUES, _SET_GIVEN, _SET_EXTRA, _SET_PRIVATE = (
    BaseModel.__dict__[name].__set__
    for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


def _each(model: type[BaseModel]) -> Callable[[Any], list[BaseModel]]:
    return lambda forms: [_made(model, form) for form in forms]


_READERS: Final[Mapping[type[BaseModel], Mapping[str, Callable[[Any], object]]]] = {
    ActorDraft: {},
    ValidDraft: {},
    IntervalDraft: {},
    TargetDraft: {"span": tuple, "interval": functools.partial(_made, IntervalDraft)},
    ClaimDraft: {
        "valid": functools.partial(_made, ValidDraft),
        "stance": {stance.value: stance for stance in Stance}.__getitem__,
        "inputs": _each(TargetDraft),
        "targets": _each(TargetDraft),
        "winner": functools.partial(_made, TargetDraft),
    },
    EventDraft: {
        "kind": {kind.value: kind for kind in Kind}.__getitem__,
        "actor": functools.partial(_made, ActorDraft),
        "claims": _each(ClaimDraft),
        "targets": _each(TargetDraft),
        "winner": functools.partial(_made, TargetDraft),
    },
}
"""How the JSON of a field, which no alias has, becomes its value; one that is not named is its own JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """
    A model's defaults by name, which of them are lists, and all its fields by alias.

    Not as the JSON has it is what is `renamed` (alias, name) and what `readers` read: both are `changed`.
    """

    blank: Mapping[str, object]
    lists: Sequence[str]
    known: frozenset[str]
    changed: frozenset[str]
    renamed: Sequence[tuple[str, str]]
    readers: Sequence[tuple[str, Callable[[Any], object]]]


@functools.cache
def _shape(model: type[BaseModel]) -> _Shape:
    fields = _fields(model)
    required = {name for name, info in model.model_fields.items() if info.is_required()}
    blank = {name: default for name, _, default in fields if name not in required}
    renamed = tuple((alias, name) for name, alias, _ in fields if alias != name)
    return _Shape(
        blank=blank,
        lists=tuple(name for name, default in blank.items() if default == []),
        known=frozenset(alias for _, alias, _ in fields),
        changed=frozenset(alias for alias, _ in renamed) | _READERS[model].keys(),
        renamed=renamed,
        readers=tuple(_READERS[model].items()),
    )


def _text(said: object) -> str:
    write = _WRITERS.get(type(said))
    return canonical(said).decode() if write is None else write(said)


def _list_text(said: Sequence[object]) -> str:
    return "[" + ",".join([_text(item) for item in said]) + "]"


def _model_text(model: BaseModel) -> str:
    values, members = model.__dict__, []
    for name, label, default in _members(type(model)):
        value = values[name]
        # All defaults are nothing and empty lists; to compare models takes longer than to write them.
        if value is None:
            continue
        kind = type(value)
        if kind is str:
            # As most are.
            members.append(label + _QUOTED(value))
        elif kind is list and not value and default == value:
            continue
        elif name == "value" or kind not in _WRITERS:
            # A caller's own: with tags where the standard has no form for it.
            members.append(label + canonical(value).decode())
        else:
            members.append(label + _WRITERS[kind](value))
    return "{" + ",".join(members) + "}"


def _bounds_text(model: BaseModel) -> str:
    # A null bound of an interval says "open", so here a field counts as given when it was set.
    values, given = model.__dict__, model.model_fields_set
    members = [label + _text(values[name]) for name, label, _ in _members(type(model)) if name in given]
    return "{" + ",".join(members) + "}"


_WRITERS: Final[Mapping[type, Callable[[Any], str]]] = {
    # Enumerations too: as the plain text that they are.
    **dict.fromkeys((str, Kind, Stance), _QUOTED),
    **dict.fromkeys((list, tuple), _list_text),
    **dict.fromkeys((EventDraft, ClaimDraft, ActorDraft, TargetDraft), _model_text),
    **dict.fromkeys((ValidDraft, IntervalDraft), _bounds_text),
}
"""By the very type: to ask whether something is a model takes pydantic longer than to write it."""


@functools.cache
def _members(model: type[BaseModel]) -> tuple[tuple[str, str, object], ...]:
    """Return the fields of a model in the order that they are written in: name, how it begins, default."""
    in_order = sorted(_fields(model), key=lambda field: field[1])
    return tuple((name, f"{_QUOTED(alias)}:", default) for name, alias, default in in_order)


@functools.cache
def _fields(model: type[BaseModel]) -> tuple[tuple[str, str, object], ...]:
    return tuple(
        (name, info.alias or name, info.get_default(call_default_factory=True, validated_data={}))
        for name, info in model.model_fields.items()
    )
