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


class ValueType(StrEnum):
    """
    What the values of a relation are.

    `any` is every JSON value, as on a relation that nobody registered; the others are read, and
    refused where they cannot be. `number` has a unit or is plain; `json` follows a schema.
    """

    ANY = "any"
    ENTITY = "entity"
    TEXT = "text"
    NUMBER = "number"
    INSTANT = "instant"
    DATE = "date"
    INTERVAL = "interval"
    BOOLEAN = "boolean"
    PLACE = "place"
    JSON = "json"


SPELT: Final = frozenset({ValueType.ANY, ValueType.ENTITY, ValueType.TEXT, ValueType.PLACE, ValueType.JSON})
"""Types whose values hold words, which a normalizer spells alike."""

OTHERS: Final = "*"
"""In an authority list or a supersession rule: every class not named."""

ACTOR: Final = "actor:"
CLASS: Final = "class:"
"""In an authority list, before a name: that it is an actor's id, or a class. A bare name is either."""


CONFLICT_WINDOW_MAX: Final = timedelta(days=36_600)
"""A hundred years: whatever lies further apart is no conflict of clocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationContract:
    """
    How claims on a relation are decided.

    `unit` goes with numbers: the one that a plain number is in, and that others are turned into;
    None for numbers that have none. `schema` goes with json: a JSON Schema, as canonical JSON.
    `authority` lists source classes or named actors, highest first; each place is a tuple of
    peers. `supersession` maps a class, or `*`, to its rule. `normalizer` names a
    function of the ledger that makes equal values equal, of types that hold words.
    """

    relation: str
    cardinality: Cardinality
    value_type: ValueType
    unit: str | None
    schema: str | None
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
        value_type=ValueType.ANY,
        unit=None,
        schema=None,
        validity=ValidityKind.AT if cardinality == Cardinality.OCCURRENCE else ValidityKind.SINCE,
        authority=((SELF,), (OPERATOR,), (OTHERS,), (ASSISTANT,), (DERIVED,)),
        supersession=((SENSOR, Supersession.ANY), (OTHERS, Supersession.SAME_SOURCE)),
        conflict_window=timedelta(0),
        normalizer="nfc_trim",
    )
