"""The ground of the oracle: items, and whose word ranks (SEMANTICS §3)."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from contracts.claims import Claim
from contracts.relations import RelationContract

PAIR = "pair"


@dataclass(eq=False)
class Item:
    """A claim as it counts: with whose source and place, of which value, where."""

    claim: Claim
    entity: str
    relation: str
    source: str
    granted: str
    place: tuple[int, int]
    end: bool
    value: Any
    values: set
    kind: str
    start: datetime | None
    stop: datetime | None
    earliest: datetime | None
    timeless: bool
    occurrence: tuple | None
    gone: set = field(default_factory=set)
    heir: Item | None = None
    inputs: list = field(default_factory=list)
    raw: Any = None
    said_by: Item | None = None
    alone: Item | None = None
    erased: int | None = None


def before(one: datetime | None, other: datetime | None) -> bool:
    """Starts in order; None is the open past."""
    return other is not None and (one is None or one < other)


class Ranked:
    """Who is one with whom, and the contracts' ranks and normal forms under that."""

    contract_of: Any
    one: dict[str, set[str]]
    selves: dict[str, set[str]]
    unheard: set[str]

    def _names(self, entity: str) -> set[str]:
        return self.one.get(entity, {entity})

    def _is_self(self, actor: str, entity: str) -> bool:
        # §3: the actor and the entity of the claim are one, by pairs that an operator or both state.
        return actor in self.selves.get(entity, {entity}) and actor not in self.unheard

    # --- §3 contracts ---------------------------------------------------------------------

    def _class(self, actor: str, granted: str, entity: Any, relation: str) -> str:
        if granted == "derived" or relation == PAIR:
            return granted
        return "self" if self._is_self(actor, entity) else granted

    def _takes(self, relation: str, value: Any) -> bool:
        """§3: whether a value is one of the relation's type, which is a list of values, if it has one."""
        schema = self._contract(relation).schema if relation else None
        return value is None or schema is None or value in json.loads(schema)["enum"]

    def _contract(self, relation: str) -> RelationContract:
        return self.contract_of("same_as" if relation == PAIR else relation)

    def _rank_of(self, actor: str, granted: str, entity: Any, relation: str) -> int:
        places = self._contract(relation).authority
        source_class = self._class(actor, granted, entity, relation)
        if source_class == "derived":
            return len(places) + 1
        ours = {"self", "operator", "user", "sensor", "assistant", "derived", "*"}
        by_name = {"actor:" + actor} | ({actor} - ours)
        for wanted in (by_name, {source_class, "class:" + source_class}, {"*"}):
            for number, names in enumerate(places):
                if wanted & set(names):
                    return number
        return len(places)

    def _rank(self, item: Item) -> int:
        return self._rank_of(item.source, item.granted, item.entity, item.relation)

    def _any(self, item: Item) -> bool:
        rules = dict(self._contract(item.relation).supersession)
        source_class = self._class(item.source, item.granted, item.entity, item.relation)
        return rules.get(source_class, rules.get("*")) == "any"

    def _normal(self, value: Any, relation: str) -> Any:
        if not isinstance(value, str):
            return value
        contract = self._contract(relation)

        def spelt(text: str) -> str:
            text = unicodedata.normalize("NFC", text).strip()
            return text.casefold() if contract.normalizer == "casefold" else text

        if contract.value_type != "entity" or relation == PAIR:
            return spelt(value)
        forms = {spelt(value)}
        while True:
            more = {spelt(o) for name in self.one if spelt(name) in forms for o in self._names(name)} | forms
            if more == forms:
                return min(forms)
            forms = more
