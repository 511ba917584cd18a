"""The first half of the oracle: what leaves (SEMANTICS §4, §9, §10)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from contracts.claims import Claim
from tests.ledger.oracle_erased import Shared
from tests.ledger.oracle_ranks import PAIR, Item, Ranked, before


class Said(Ranked):
    """All claims up to one cut, replayed: items as they count, and disputes."""

    def __init__(
        self, claims: list[Claim], contract_of, instants: list[datetime], shared: Shared | None = None
    ) -> None:
        self.shared = shared or Shared({})
        self.claims = sorted(claims, key=lambda c: (c.position.event, c.position.ordinal))
        self.contract_of = contract_of
        self.instants = instants
        self.items: list[Item] = []
        self.disputes: list[tuple[Claim, list[Item]]] = []
        self.unplaced: set[str] = set()
        self.one: dict[str, set[str]] = {}
        self.selves: dict[str, set[str]] = {}
        self.unheard: set[str] = set()

    # --- §4 withdrawal --------------------------------------------------------------------

    def _replay(self) -> None:
        for claim in self.claims:
            if self._takes(*self._key(claim)[1:]):
                getattr(self, "_" + claim.stance.value)(claim)
            else:
                self.unplaced.add(claim.claim_id)

    def _key(self, claim: Any) -> tuple[Any, str, Any]:
        if claim.relation in {"same_as", "not_same_as"} and claim.value is not None:
            return frozenset({claim.entity, claim.value}), PAIR, claim.relation
        return claim.entity, claim.relation, claim.value

    def _report(self, claim: Claim, references: Any, *, also: bool = False) -> None:
        """§2, §4: what finds nothing to act on is reported, be it one target of several."""
        if also or any(not self._meant(reference, claim) for reference in references):
            self.unplaced.add(claim.claim_id)

    def _meant(self, reference: Any, claim: Claim) -> list[Item]:
        if reference.event_id is None:
            return self._own(claim, *self._key(reference))
        return self._current(self._named(reference, claim))

    def _same_key(self, item: Item, entity: Any, relation: str) -> bool:
        if item.relation != relation:
            return False
        if relation == PAIR:
            return item.entity == entity
        return item.entity in self._names(entity) | self._erased_names(item, entity)

    def _erased_names(self, item: Item, entity: str) -> frozenset[str]:
        """§9: who was erased is the entity with all it was one with just before, at every cut."""
        hidden = self.shared.hidden_in(item)
        names = self.shared.subjects.get(hidden, frozenset())
        return names if entity in names else frozenset()

    def _add(self, claim: Claim, *, like: Item | None = None, **fields: Any) -> Item:
        """Make an item; `like` is what it inherits its validity from."""
        entity, relation, _ = self._key(claim)
        validity = claim.validity
        if validity.start is None and validity.timeless and like is not None:
            when = {name: getattr(like, name) for name in ("kind", "start", "stop", "earliest", "timeless")}
        elif validity.start is None and validity.timeless:
            start = min(claim.observed_at or claim.recorded_at, claim.recorded_at)
            kind = self._contract(fields.get("relation", relation)).validity.value
            stop = start + timedelta(microseconds=1) if kind == "at" else None
            timeless = claim.observed_at is None
            when = {"kind": kind, "start": start, "stop": stop, "earliest": start, "timeless": timeless}
        else:
            when = {
                "kind": validity.kind.value,
                "start": validity.start,
                "stop": validity.end,
                "earliest": validity.earliest,
                "timeless": validity.timeless,
            }
        item = Item(**{
            "claim": claim, "entity": entity, "relation": relation, "source": claim.source.actor_id,
            "granted": claim.source.actor_class, "place": (claim.position.event, claim.position.ordinal),
            "end": False, "values": set(), "occurrence": None, **when, **fields,
        })  # fmt: skip
        if item.relation == PAIR:
            item.kind, item.start, item.stop, item.earliest = "span", None, None, None
            item.timeless = False
        item.erased = self.shared.erased_in(claim, item.said_by)
        if item.said_by is not None:
            # §9: what was said after an erasure has the erased value; on another key, alone.
            if self._same_key(item.said_by, item.entity, item.relation):
                item.alone = item.said_by.alone
            elif self.shared.is_before(item.said_by, claim):
                item.alone = item
        if item.value is not None:
            item.raw = self._normal(item.value, item.relation)
            item.value = self.shared.value(item)
            item.values = item.values | {item.value}
        if claim.occurrence_id is not None:
            item.occurrence = (item.source, claim.occurrence_id)
        self.items.append(item)
        return item

    def _extent(self, item: Item) -> set:
        return {
            t
            for t in self.instants
            if not before(t, item.start) and (item.kind == "since" or item.stop is None or t < item.stop)
        }

    def _all_gone(self, item: Item) -> bool:
        return self._extent(item) <= item.gone or self._input_gone(item)

    def _input_gone(self, item: Item) -> bool:
        return any(self._extent(i) & i.gone or self._input_gone(i) for i in item.inputs)

    def _assert(self, claim: Claim) -> None:
        inputs: list[Item] = []
        for reference in claim.inputs:
            named = self._named(reference, claim)
            # §9: nothing that was said later can be derived from what was erased.
            made = [i for i in self.items if i.claim in named and not self.shared.is_before(i, claim)]
            if not made:
                self.unplaced.add(claim.claim_id)
                return
            inputs += made
        _, _, value = self._key(claim)
        granted = "derived" if claim.inputs else claim.source.actor_class
        item = self._add(claim, value=value, end=claim.stance.value == "end", inputs=inputs, granted=granted)
        self._same_occurrence(item)

    _end = _assert

    def _same_occurrence(self, item: Item) -> None:
        """§10: a later mention with the same source id and another date corrects every earlier one."""
        if item.end or item.occurrence is None:
            return
        if self._contract(item.relation).cardinality.value != "occurrence":
            return
        earlier = [
            i
            for i in self.items
            if i is not item
            and i.occurrence == item.occurrence
            and not self.shared.is_before(i, item.claim)
            and not i.end
            and i.heir is None
            and self._same_key(i, item.entity, item.relation)
        ]
        old = [i for i in earlier if (i.start, i.stop) != (item.start, item.stop) and not self._all_gone(i)]
        own = (item.claim.position.event, item.claim.position.ordinal)
        if old:
            item.place = max([i.place for i in old] + ([item.place] if item.place != own else []))
        for i in old:
            item.values = item.values | i.values
            i.gone, i.heir = set(self.instants), item

    def _named(self, reference: Any, by: Claim) -> list[Claim]:
        found = []
        for claim in self.claims:
            if claim.event_id != reference.event_id or claim.position >= by.position:
                continue
            item = next((i for i in self.items if i.claim is claim), None)
            key = (claim.entity, claim.relation)
            if claim.relation == "" and item is not None:
                key = (item.entity, item.relation)
            if reference.ordinal is not None and reference.ordinal != claim.position.ordinal:
                continue
            if reference.entity is not None and not self._is_key(reference, *key, item):
                continue
            is_pair = item is not None and item.relation == PAIR and reference.entity is not None
            # Which of the two is said of a pair is its value.
            if is_pair and not self.shared.may_know(item, by):
                continue
            if reference.value is not None:
                said = claim.value if claim.value is not None else item and item.raw
                if said is None or self._normal(said, key[1]) != self._normal(reference.value, key[1]):
                    continue
                if item is not None and not self.shared.may_know(item, by):
                    continue
            if item is not None and self._is_unknown(item, by):
                continue
            found.append(claim)
        return found

    def _is_key(self, reference: Any, entity: Any, relation: str, item: Item | None) -> bool:
        # §8: merged keys are one; who is one with whom is said of names.
        if reference.relation != relation:
            return False
        if relation in {"same_as", "not_same_as"}:
            return reference.entity == entity
        erased = frozenset() if item is None else self._erased_names(item, entity)
        return reference.entity in self._names(entity) | erased

    def _current(self, claims: list[Claim]) -> list[Item]:
        found: list[Item] = []
        for item in [i for i in self.items if i.claim in claims]:
            current = item
            while current.heir is not None:
                current = current.heir
            if current not in found:
                found.append(current)
        return found

    def _own(self, claim: Claim, entity: Any, relation: str, value: Any) -> list[Item]:
        return [
            i
            for i in self.items
            if i.heir is None
            and not self._is_unknown(i, claim)
            and i.source == claim.source.actor_id
            and self._same_key(i, entity, relation)
            and (value is None or (not i.end and self._says(i, value, relation, claim)))
        ]

    def _is_unknown(self, item: Item, by: Claim) -> bool:
        """§9: what was erased about a subject is there for nothing that was said later."""
        return self.shared.is_unknown(item, by)

    def _says(self, item: Item, value: Any, relation: str, claim: Claim) -> bool:
        return item.raw == self._normal(value, relation) and self.shared.may_know(item, claim)

    def _targets(self, claim: Claim) -> list[tuple[Item, set]]:
        found: list[tuple[Item, set]] = []
        for reference in claim.targets:
            where = {
                t
                for t in self.instants
                if not reference.has_interval
                or (not before(t, reference.interval_start)
                    and (reference.interval_end is None or t < reference.interval_end))
            }  # fmt: skip
            found += [(item, where) for item in self._meant(reference, claim)]
        return found

    def _may(self, claim: Claim, item: Item) -> bool:
        actor, granted = claim.source.actor_id, claim.source.actor_class
        if actor == item.source or granted == "operator":
            return True
        return self._rank_of(actor, granted, item.entity, item.relation) < self._rank(item)

    def _keep(self, claim: Claim, items: list[Item]) -> None:
        if items:
            self.disputes.append((claim, items))

    def _retract(self, claim: Claim) -> None:
        start, stop = claim.validity.earliest, claim.validity.end
        stated = {t for t in self.instants if not before(t, start) and (stop is None or t < stop)}
        if not claim.targets:
            entity, relation, value = self._key(claim)
            for item in self._own(claim, entity, relation, value):
                item.gone |= stated
            return
        mine = [c for c, _ in self.disputes if c.source.actor_id == claim.source.actor_id]
        others = [r for r in claim.targets if not any(c in mine for c in self._named(r, claim))]
        self._report(claim, others)
        refused = []
        for item, where in self._targets(claim):
            if self._may(claim, item):
                item.gone |= where & stated
            elif item not in refused:
                refused.append(item)
        self._keep(claim, refused)
        taken = [c for r in claim.targets for c in self._named(r, claim) if c.source == claim.source]
        self.disputes = [(c, items) for c, items in self.disputes if c not in taken]

    def _settle(self, claim: Claim) -> None:
        winners = self._current(self._named(claim.winner, claim))
        losers = self._losers(claim, winners)
        if claim.relation:
            winners = [w for w in winners if self._same_key(w, *self._key(claim)[:2])]
        lost = any(
            i not in winners and self._same_key(w, i.entity, i.relation) for i in losers for w in winners
        )
        self._report(claim, claim.targets, also=not winners or (bool(claim.targets) and not lost))
        refused = []
        for item in losers:
            beaten_by = [w for w in winners if self._same_key(w, item.entity, item.relation)]
            if item in winners or not beaten_by:
                continue
            if self._may(claim, item):
                for winner in beaten_by:
                    item.gone |= self._extent(winner) - winner.gone
            else:
                refused.append(item)
        self._keep(claim, refused)

    def _losers(self, claim: Claim, winners: list[Item]) -> list[Item]:
        """Those named; else whatever says otherwise on a line (§6) that a winner is on."""
        if claim.targets:
            return list(dict.fromkeys(i for i, _ in self._targets(claim)))
        found = []
        for item in [i for i in self.items if i.heir is None and i.relation == self._key(claim)[1]]:
            if self._is_unknown(item, claim):
                continue
            on_key = [w for w in winners if self._same_key(w, item.entity, item.relation)]
            said = [w for w in on_key if not w.end]
            if not on_key or (not item.end and item.value in {w.value for w in said}):
                continue
            cardinality = self._contract(item.relation).cardinality.value
            if cardinality == "one" or (
                cardinality == "occurrence"
                and any(w.occurrence is not None and w.occurrence == item.occurrence for w in on_key)
            ):
                found.append(item)
            elif item.end:
                if self._names_one(item):
                    continue
                if item.value is not None and any(item.value in w.values for w in said):
                    found.append(item)
            elif any(
                w.value is None or w.value in item.values for w in on_key if w.end and not self._names_one(w)
            ):
                found.append(item)
        return found

    def _names_one(self, end: Item) -> bool:
        """Whether an end is of one occurrence, by its source's id."""
        return end.occurrence is not None and self._contract(end.relation).cardinality.value == "occurrence"

    def _dispute(self, claim: Claim) -> None:
        if claim.targets:
            self._report(claim, claim.targets)
            about = list(dict.fromkeys(item for item, _ in self._targets(claim)))
        else:
            entity, relation, value = self._key(claim)
            about = [
                i
                for i in self.items
                if i.heir is None
                and not self._is_unknown(i, claim)
                and self._same_key(i, entity, relation)
                and (value is None or self._says(i, value, relation, claim))
            ]
        self._keep(claim, about)

    def _correct(self, claim: Claim) -> None:
        found = list(dict.fromkeys(item for item, _ in self._targets(claim)))
        entity, relation, value = self._key(claim)
        if relation:
            reached = [i for i in found if self._same_key(i, entity, relation)]
            if not reached and len(found) == 1:
                reached = found
        else:
            reached = (
                found if all(self._same_key(i, found[0].entity, found[0].relation) for i in found) else []
            )
        self._report(claim, claim.targets, also=bool(claim.targets) and not reached)
        if not reached:
            if relation and value is not None:
                self._same_occurrence(self._add(claim, value=value))
            return
        standing = [i for i in reached if not self._all_gone(i)]
        allowed = [i for i in standing if self._may(claim, i)]
        old = max(allowed or standing or reached, key=lambda i: i.place)
        key = self._restated(claim, old)
        if not self._takes(key["relation"], key["value"]):
            self.unplaced.add(claim.claim_id)
            return
        self._keep(claim, [i for i in standing if i not in allowed])
        if allowed:
            self._replace(claim, allowed)
        elif claim.value is not None:
            self._same_occurrence(self._add(claim, like=old, end=old.end, **key))

    def _restated(self, claim: Claim, old: Item) -> dict:
        entity, relation, value = self._key(claim)
        if not relation:
            inherits = claim.value is None or old.relation == PAIR
            entity, relation, value = old.entity, old.relation, None if inherits else claim.value
        said_by = old if value is None else None
        return {
            "entity": entity, "relation": relation,
            "value": old.raw if value is None else value, "said_by": said_by,
        }  # fmt: skip

    def _replace(self, claim: Claim, targets: list[Item]) -> None:
        old = max(targets, key=lambda i: i.place)
        key = self._restated(claim, old)
        own = self._rank_of(claim.source.actor_id, claim.source.actor_class, key["entity"], key["relation"])
        lent = self._rank_of(old.source, old.granted, key["entity"], key["relation"])
        who = {"source": old.source, "granted": old.granted}
        if own < lent or old.granted == "derived":
            who = {}
        values = set().union(*(i.values for i in targets))
        item = self._add(claim, like=old, place=old.place, end=old.end, values=values, **key, **who)
        if claim.occurrence_id is None:
            item.occurrence = old.occurrence
        if claim.validity.start is None and claim.validity.timeless:
            item.gone = set(old.gone)
        for target in targets:
            target.gone, target.heir = set(self.instants), item
        self._same_occurrence(item)
