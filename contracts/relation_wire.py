"""Relation contracts as doors take and show them: names as in `contracts.relations`, durations in seconds."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import Field

from contracts import limits
from contracts._wire import Wire
from contracts.claims import ValidityKind
from contracts.events import Name
from contracts.lexicon import CARDINALITY_OF
from contracts.relations import Cardinality, RelationContract, Supersession, default_contract

ValueType = Literal["entity", "text", "number", "instant", "date", "interval", "boolean", "place", "json"]
Place = Annotated[list[Name], Field(min_length=1, max_length=limits.CONTRACT_NAMES_MAX)]


class ContractRequest(Wire):
    """How claims on a relation are to be decided; what is left out is as for a relation nobody registered."""

    relation: Name
    cardinality: Literal["one", "many", "occurrence"] | None = None
    value_type: ValueType | None = None
    validity: Literal["since", "span", "at"] | None = None
    authority: list[Place] | None = Field(default=None, min_length=1, max_length=limits.CONTRACT_NAMES_MAX)
    """Classes or actors, highest first; each place a list of peers."""
    supersession: dict[Name, Literal["same_source", "any"]] | None = Field(
        default=None, max_length=limits.CONTRACT_NAMES_MAX
    )
    conflict_window_seconds: int | None = Field(default=None, ge=0, le=100 * 366 * 86_400)
    normalizer: Literal["nfc_trim", "casefold", "words", "exact"] | None = None

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
            value_type=self.value_type or default.value_type,
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
            value_type=contract.value_type,
            validity=contract.validity.value,
            authority=[list(names) for names in contract.authority],
            supersession={name: rule.value for name, rule in contract.supersession},
            conflict_window_seconds=contract.conflict_window.total_seconds(),
            normalizer=contract.normalizer,
        )
