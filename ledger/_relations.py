"""
Relation contracts as the ledger applies them: whose word ranks, and whose replaces whose.

Source: SEMANTICS, "Relation contracts".
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from contracts.claims import ASSISTANT, DERIVED, OPERATOR, SELF, SENSOR, USER, ValidityKind
from contracts.errors import BadRequest
from contracts.identity import IDENTITY as _IDENTITY
from contracts.identity import SAME_AS
from contracts.lexicon import CARDINALITY_OF
from contracts.limits import CONTRACT_NAMES_MAX
from contracts.names import is_name
from contracts.relations import (
    ACTOR,
    CLASS,
    CONFLICT_WINDOW_MAX,
    OTHERS,
    SPELT,
    Cardinality,
    RelationContract,
    Supersession,
    ValueType,
    default_contract,
)
from contracts.values import NotOfType
from ledger._claims import canonical
from ledger._keys import TenantKeys
from ledger._schemas import check_schema
from ledger._units import UNITS_VERSION, check_unit
from ledger._values import NORMALIZERS

IDENTITY: Final = _IDENTITY
"""Their contract is fixed: nobody is `self` on them."""

_FORMAT: Final = 2
"""Of a stored contract. The first knew no units and no schemas, and took any value for every type."""

_CLASSES: Final = frozenset({SELF, OPERATOR, USER, SENSOR, ASSISTANT, DERIVED, OTHERS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Contracts:
    """Every contract of one epoch: those the tenant registered, the defaults for the rest."""

    registered: Mapping[str, RelationContract]

    def of(self, relation: str) -> RelationContract:
        """Return the relation's contract."""
        if relation in IDENTITY:
            return _IDENTITY_CONTRACT
        found = self.registered.get(relation)
        return found if found is not None else unregistered(relation)

    def with_registered(self, contracts: Iterable[RelationContract]) -> Contracts:
        """Return these contracts and further ones; the later of one relation counts."""
        more = {contract.relation: contract for contract in contracts}
        return Contracts(registered={**self.registered, **more}) if more else self


@functools.lru_cache(maxsize=1_024)
def unregistered(relation: str) -> RelationContract:
    """Return the contract of a relation that nobody registered: the lexicon's cardinality, else one value."""
    return default_contract(relation, cardinality=CARDINALITY_OF.get(relation, Cardinality.ONE))


_IDENTITY_CONTRACT: Final = RelationContract(
    relation=SAME_AS,
    cardinality=Cardinality.ONE,
    value_type=ValueType.ENTITY,
    unit=None,
    schema=None,
    validity=ValidityKind.SPAN,
    authority=((OPERATOR,), (OTHERS,), (ASSISTANT,), (DERIVED,)),
    supersession=((SENSOR, Supersession.ANY), (OTHERS, Supersession.SAME_SOURCE)),
    conflict_window=timedelta(0),
    normalizer="nfc_trim",
)


def rank_of(contract: RelationContract, *, actor_id: str, source_class: str) -> int:
    """
    Return the place of a source in the contract's authority: 0 is highest.

    An actor named in it ranks by name, else by class. A bare name is a class or an actor, save that
    a class of this plane is never read as somebody's name; `class:` and `actor:` say which, so that
    nobody ranks by calling himself like a class of the tenant's own. `derived` ranks last of all;
    whoever is unnamed ranks at `*`, or below all who are named where there is none.
    """
    last = len(contract.authority)
    if source_class == DERIVED:
        return last + 1
    others = last
    by_class: int | None = None
    for place, names in enumerate(contract.authority):
        if ACTOR + actor_id in names or (actor_id in names and actor_id not in _CLASSES):
            return place
        if by_class is None and (source_class in names or CLASS + source_class in names):
            by_class = place
        if OTHERS in names:
            others = min(others, place)
    return others if by_class is None else by_class


def replaces_any(contract: RelationContract, source_class: str) -> bool:
    """Return whether the class's rule of supersession is `any`."""
    rules = dict(contract.supersession)
    rule = rules.get(source_class, rules.get(OTHERS, Supersession.SAME_SOURCE))
    return rule == Supersession.ANY


def relation_seal(keys: TenantKeys, epoch: int, relation: str, commit: int, form: bytes) -> bytes:
    """Return the seal over a row of the table `relation`."""
    columns = (str(epoch), relation, str(commit))
    return keys.seal("relation", *(column.encode() for column in columns), form)


def contract_bytes(contract: RelationContract) -> bytes:
    """Return the contract as canonical JSON."""
    form: dict[str, Any] = {
        "format": _FORMAT,
        "relation": contract.relation,
        "cardinality": contract.cardinality.value,
        "value_type": ValueType(contract.value_type).value,
        "validity": contract.validity.value,
        "authority": [list(names) for names in contract.authority],
        "supersession": [[name, rule.value] for name, rule in contract.supersession],
        "conflict_window_us": contract.conflict_window // timedelta(microseconds=1),
        "normalizer": contract.normalizer,
    }
    if contract.unit is not None:
        form |= {"unit": contract.unit, "units": UNITS_VERSION}
    if contract.schema is not None:
        form["schema"] = contract.schema
    return canonical(form)


def contract_of(form: bytes) -> RelationContract:
    """
    Return the contract of its canonical JSON, of this format or an older one.

    Raises:
        BadRequest: A field is missing, unknown or has a value that no contract can have.
    """
    try:
        contract = _read(json.loads(form))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadRequest(field="relation", reason=f"not a relation contract: {error}") from error
    _check_fields(contract)
    return contract


def _read(fields: dict[str, Any]) -> RelationContract:
    if "format" not in fields:
        fields = _lifted(fields)
    unit, schema = fields.pop("unit", None), fields.pop("schema", None)
    if fields.pop("format") != _FORMAT or (unit is not None and fields.pop("units") != UNITS_VERSION):
        raise ValueError("of another format or table of units")
    contract = RelationContract(
        relation=fields.pop("relation"),
        cardinality=Cardinality(fields.pop("cardinality")),
        value_type=ValueType(fields.pop("value_type")),
        unit=None if unit is None else _text(unit),
        schema=None if schema is None else _text(schema),
        validity=ValidityKind(fields.pop("validity")),
        authority=tuple(tuple(map(_text, names)) for names in fields.pop("authority")),
        supersession=tuple((_text(name), Supersession(rule)) for name, rule in fields.pop("supersession")),
        conflict_window=timedelta(microseconds=fields.pop("conflict_window_us")),
        normalizer=fields.pop("normalizer"),
    )
    if fields:
        raise ValueError(f"unknown fields: {', '.join(sorted(fields))}")
    return contract


def _lifted(fields: dict[str, Any]) -> dict[str, Any]:
    # Then a type was a word: under each any value was taken, and compared as it is under `any`.
    typed = fields["value_type"] == ValueType.ENTITY
    return fields | {"format": _FORMAT, "value_type": ValueType.ENTITY if typed else ValueType.ANY}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a name is text")
    return value


def check_contract(contract: RelationContract) -> None:
    """
    Refuse a contract that cannot be applied.

    Raises:
        BadRequest: With the field and the reason.
    """
    _check_fields(contract)
    _check_derived(contract)
    # Not where a stored one is read again: its unit takes the library of units, which loads slowly.
    try:
        if contract.unit is not None:
            check_unit(contract.unit)
    except NotOfType as error:
        raise BadRequest(field="unit", reason=str(error)) from error
    try:
        if contract.schema is not None:
            check_schema(contract.schema)
    except NotOfType as error:
        raise BadRequest(field="schema", reason=str(error)) from error


def _check_derived(contract: RelationContract) -> None:
    # Of what is registered alone: a stored one was taken, and where it stood had no effect.
    named = [place for place in contract.authority if {DERIVED, CLASS + DERIVED} & set(place)]
    if named and (len(named[0]) > 1 or named != [contract.authority[-1]]):
        reason = f"{DERIVED} ranks below every other class: leave it out, or name it alone and last"
        raise BadRequest(field="authority", reason=reason)


def _check_fields(contract: RelationContract) -> None:
    if contract.relation in IDENTITY:
        raise BadRequest(field="relation", reason="the contract of entity identity is fixed")
    if not is_name(contract.relation):
        raise BadRequest(field="relation", reason="is no name: empty or too long")
    if contract.value_type not in set(ValueType):
        raise BadRequest(field="value_type", reason=f"one of {', '.join(ValueType)}")
    _check_details(contract)
    if not timedelta(0) <= contract.conflict_window <= CONFLICT_WINDOW_MAX:
        raise BadRequest(field="conflict_window", reason=f"from 0 to {CONFLICT_WINDOW_MAX.days} days")
    _check_authority(contract)
    classes = [name for name, _ in contract.supersession]
    if len(classes) > CONTRACT_NAMES_MAX or not all(map(is_name, classes)):
        raise BadRequest(field="supersession", reason=f"at most {CONTRACT_NAMES_MAX} classes, by name")
    if len(set(classes)) != len(classes):
        raise BadRequest(field="supersession", reason="names the same class twice")


def _check_details(contract: RelationContract) -> None:
    """Refuse what goes with another type of value."""
    named = contract.value_type
    if contract.normalizer not in NORMALIZERS:
        raise BadRequest(field="normalizer", reason=f"one of {', '.join(sorted(NORMALIZERS))}")
    usual = unregistered(contract.relation).normalizer
    if named not in SPELT and contract.normalizer != usual:
        raise BadRequest(field="normalizer", reason=f"a value of type {named} holds no words to spell alike")
    if contract.unit is not None and named != ValueType.NUMBER:
        raise BadRequest(field="unit", reason=f"goes with value_type number, not {named}")
    if contract.unit is not None and not contract.unit.strip():
        raise BadRequest(field="unit", reason="is empty; leave it out for plain numbers")
    if contract.schema is not None and named != ValueType.JSON:
        raise BadRequest(field="schema", reason=f"goes with value_type json, not {named}")
    if contract.schema is None and named == ValueType.JSON:
        raise BadRequest(field="schema", reason="is needed for json; the type `any` takes every JSON value")


def _check_authority(contract: RelationContract) -> None:
    names = [name for place in contract.authority for name in place]
    if not names or not all(contract.authority) or not all(map(is_name, names)):
        raise BadRequest(field="authority", reason="a list of places, each with at least one name")
    if max(len(contract.authority), *map(len, contract.authority)) > CONTRACT_NAMES_MAX:
        raise BadRequest(field="authority", reason=f"at most {CONTRACT_NAMES_MAX} places and names in each")
    if ACTOR in names or CLASS in names:
        raise BadRequest(field="authority", reason=f"{ACTOR} and {CLASS} are followed by a name")
    if len(set(names)) != len(names):
        raise BadRequest(field="authority", reason="names the same source twice")
