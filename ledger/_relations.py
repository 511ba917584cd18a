"""
Relation contracts as the ledger applies them: whose word ranks, and whose replaces whose.

Source: SEMANTICS, "Relation contracts".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from contracts.claims import ASSISTANT, DERIVED, OPERATOR, SELF, SENSOR, USER, ValidityKind
from contracts.errors import BadRequest
from contracts.identity import IDENTITY as _IDENTITY
from contracts.identity import SAME_AS
from contracts.lexicon import CARDINALITY_OF
from contracts.relations import (
    ACTOR,
    CLASS,
    OTHERS,
    Cardinality,
    RelationContract,
    Supersession,
    default_contract,
)
from ledger._claims import canonical
from ledger._values import NORMALIZERS

IDENTITY: Final = _IDENTITY
"""Their contract is fixed: nobody is `self` on them."""

VALUE_TYPES: Final = frozenset(
    {"entity", "text", "number", "instant", "date", "interval", "boolean", "place", "json"}
)

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


def unregistered(relation: str) -> RelationContract:
    """Return the contract of a relation that nobody registered: the lexicon's cardinality, else one value."""
    return default_contract(relation, cardinality=CARDINALITY_OF.get(relation, Cardinality.ONE))


_IDENTITY_CONTRACT: Final = RelationContract(
    relation=SAME_AS,
    cardinality=Cardinality.ONE,
    value_type="entity",
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


def contract_bytes(contract: RelationContract) -> bytes:
    """Return the contract as canonical JSON."""
    return canonical(
        {
            "relation": contract.relation,
            "cardinality": contract.cardinality.value,
            "value_type": contract.value_type,
            "validity": contract.validity.value,
            "authority": [list(names) for names in contract.authority],
            "supersession": [[name, rule.value] for name, rule in contract.supersession],
            "conflict_window_us": contract.conflict_window // timedelta(microseconds=1),
            "normalizer": contract.normalizer,
        }
    )


def contract_of(form: bytes) -> RelationContract:
    """
    Return the contract of its canonical JSON.

    Raises:
        BadRequest: A field is missing, unknown or has a value that no contract can have.
    """
    try:
        fields = json.loads(form)
        contract = RelationContract(
            relation=fields.pop("relation"),
            cardinality=Cardinality(fields.pop("cardinality")),
            value_type=fields.pop("value_type"),
            validity=ValidityKind(fields.pop("validity")),
            authority=tuple(tuple(map(_text, names)) for names in fields.pop("authority")),
            supersession=tuple(
                (_text(name), Supersession(rule)) for name, rule in fields.pop("supersession")
            ),
            conflict_window=timedelta(microseconds=fields.pop("conflict_window_us")),
            normalizer=fields.pop("normalizer"),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadRequest(field="relation", reason=f"not a relation contract: {error}") from error
    if fields:
        raise BadRequest(field="relation", reason=f"unknown fields: {', '.join(sorted(fields))}")
    check_contract(contract)
    return contract


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
    if contract.relation in IDENTITY:
        raise BadRequest(field="relation", reason="the contract of entity identity is fixed")
    if contract.value_type not in VALUE_TYPES:
        raise BadRequest(field="value_type", reason=f"one of {', '.join(sorted(VALUE_TYPES))}")
    if contract.normalizer not in NORMALIZERS:
        raise BadRequest(field="normalizer", reason=f"one of {', '.join(sorted(NORMALIZERS))}")
    if contract.conflict_window < timedelta(0):
        raise BadRequest(field="conflict_window", reason="is negative")
    names = [name for place in contract.authority for name in place]
    if not names or not all(contract.authority) or not all(names):
        raise BadRequest(field="authority", reason="a list of places, each with at least one name")
    if ACTOR in names or CLASS in names:
        raise BadRequest(field="authority", reason=f"{ACTOR} and {CLASS} are followed by a name")
    if len(set(names)) != len(names):
        raise BadRequest(field="authority", reason="names the same source twice")
    classes = [name for name, _ in contract.supersession]
    if len(set(classes)) != len(classes):
        raise BadRequest(field="supersession", reason="names the same class twice")
