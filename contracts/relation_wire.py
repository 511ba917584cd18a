"""Relation contracts as doors take and show them: names as in `contracts.relations`, durations in seconds."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from contracts import limits
from contracts._wire import Wire
from contracts.claims import ValidityKind
from contracts.lexicon import CARDINALITY_OF
from contracts.names import Name
from contracts.relations import (
    CONFLICT_WINDOW_MAX,
    Cardinality,
    RelationContract,
    Supersession,
    ValueType,
    default_contract,
)

_TYPES = Literal[
    "any", "entity", "text", "number", "instant", "date", "interval", "boolean", "place", "json"
]  # fmt: skip
Place = Annotated[list[Name], Field(min_length=1, max_length=limits.CONTRACT_NAMES_MAX)]


class ContractRequest(Wire):
    """How claims on a relation are to be decided; what is left out is as for a relation nobody registered."""

    relation: Name
    cardinality: Literal["one", "many", "occurrence"] | None = None
    value_type: _TYPES | None = None
    unit: Annotated[str, Field(min_length=1, max_length=limits.UNIT_CHARACTERS_MAX)] | None = None
    """Of numbers: the one that a plain number is in; left out, numbers have none."""
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    """A JSON Schema (2020-12) that values of type json follow."""
    validity: Literal["since", "span", "at"] | None = None
    authority: list[Place] | None = Field(default=None, min_length=1, max_length=limits.CONTRACT_NAMES_MAX)
    """Classes or actors, highest first; each place a list of peers."""
    supersession: dict[Name, Literal["same_source", "any"]] | None = Field(
        default=None, max_length=limits.CONTRACT_NAMES_MAX
    )
    conflict_window_seconds: int | None = Field(
        default=None, ge=0, le=CONFLICT_WINDOW_MAX // timedelta(seconds=1)
    )
    normalizer: Literal["nfc_trim", "casefold", "words", "exact"] | None = None
    new_epoch: bool = False
    """Whether all events may be folded again where claims stand on the relation."""

    def contract(self) -> RelationContract:
        """Return the whole contract."""
        usual = CARDINALITY_OF.get(self.relation, Cardinality.ONE)
        cardinality = usual if self.cardinality is None else Cardinality(self.cardinality)
        default = default_contract(self.relation, cardinality=cardinality)
        rules = self.supersession
        window = self.conflict_window_seconds
        return RelationContract(
            relation=self.relation,
            cardinality=cardinality,
            value_type=default.value_type if self.value_type is None else ValueType(self.value_type),
            unit=None if self.unit is None else self.unit.strip(),
            schema=None if self.schema_ is None else _text_of(self.schema_),
            validity=default.validity if self.validity is None else ValidityKind(self.validity),
            authority=default.authority if self.authority is None else tuple(map(tuple, self.authority)),
            supersession=default.supersession
            if rules is None
            else tuple((name, Supersession(rule)) for name, rule in rules.items()),
            conflict_window=default.conflict_window if window is None else timedelta(seconds=window),
            normalizer=self.normalizer or default.normalizer,
        )


class ContractAnswer(Wire):
    """The contract that decides a relation; `registered` is false for one that nobody registered."""

    relation: str
    registered: bool
    cardinality: str
    value_type: str
    unit: str | None
    schema_: dict[str, Any] | None = Field(alias="schema")
    validity: str
    authority: list[list[str]]
    supersession: dict[str, str]
    conflict_window_seconds: float
    normalizer: str

    @classmethod
    def of(cls, contract: RelationContract, *, registered: bool) -> Self:
        """Return what a door shows of a contract."""
        return cls(
            relation=contract.relation,
            registered=registered,
            cardinality=contract.cardinality.value,
            value_type=ValueType(contract.value_type).value,
            unit=contract.unit,
            schema=None if contract.schema is None else json.loads(contract.schema),
            validity=contract.validity.value,
            authority=[list(names) for names in contract.authority],
            supersession={name: rule.value for name, rule in contract.supersession},
            conflict_window_seconds=contract.conflict_window.total_seconds(),
            normalizer=contract.normalizer,
        )


class ContractsAnswer(Wire):
    """The contracts that were registered, by relation."""

    relations: list[ContractAnswer]


def _text_of(schema: dict[str, Any]) -> str:
    """Return a schema as the canonical JSON that a contract holds."""
    return json.dumps(schema, sort_keys=True, separators=(",", ":"), allow_nan=False)
