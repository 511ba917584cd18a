"""Relation contracts: what the ledger needs to know about a relation to decide what stands."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from contracts.claims import ASSISTANT, DERIVED, OPERATOR, SELF, SENSOR, ValidityKind


class Cardinality(StrEnum):
    """How many values may stand at once: one, many, or counted occurrences."""

    ONE = "one"
    MANY = "many"
    OCCURRENCE = "occurrence"


class Supersession(StrEnum):
    """Whose earlier claims a later claim replaces."""

    SAME_SOURCE = "same_source"
    ANY = "any"


OTHERS: Final = "*"
"""In an authority list or a supersession rule: every class not named."""

ACTOR: Final = "actor:"
CLASS: Final = "class:"
"""In an authority list, before a name: that it is an actor's id, or a class. A bare name is either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationContract:
    """
    How claims on a relation are decided.

    `authority` lists source classes or named actors, highest first; each place is a tuple of
    peers. `supersession` maps a class, or `*`, to its rule. `normalizer` names a
    function of the ledger that makes equal values equal.
    """

    relation: str
    cardinality: Cardinality
    value_type: str
    validity: ValidityKind
    authority: tuple[tuple[str, ...], ...]
    supersession: tuple[tuple[str, Supersession], ...]
    conflict_window: timedelta
    normalizer: str


def default_contract(relation: str, *, cardinality: Cardinality = Cardinality.ONE) -> RelationContract:
    """Return the contract of a relation that nobody registered."""
    return RelationContract(
        relation=relation,
        cardinality=cardinality,
        value_type="text",
        validity=ValidityKind.AT if cardinality == Cardinality.OCCURRENCE else ValidityKind.SINCE,
        authority=((SELF,), (OPERATOR,), (OTHERS,), (ASSISTANT,), (DERIVED,)),
        supersession=((SENSOR, Supersession.ANY), (OTHERS, Supersession.SAME_SOURCE)),
        conflict_window=timedelta(0),
        normalizer="nfc_trim",
    )
