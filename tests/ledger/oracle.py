"""
A brute-force oracle, written from the rules alone: it shares no code with the ledger.

Time is a finite list of sample instants, and where a claim holds is the set of those it covers. It
is slow, and simple enough to be read beside SEMANTICS; each part names its section.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from contracts.claims import Claim
from contracts.relations import RelationContract

PAIR = "pair"
REASONS = ["ended", "erased", "withdrawn", "undetermined", "not_valid_then", "never_known"]


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


def before(one: datetime | None, other: datetime | None) -> bool:
    """Starts in order; None is the open past."""
    return other is not None and (one is None or one < other)


class Oracle:
    """Judges all claims up to one cut, at any of the sample instants."""

    def __init__(self, claims: list[Claim], contract_of, instants: list[datetime]) -> None:
        self.claims = sorted(claims, key=lambda c: (c.position.event, c.position.ordinal))
        self.contract_of = contract_of
        self.instants = instants
        self.items: list[Item] = []
        self.disputes: list[tuple[Claim, list[Item]]] = []
        self.one: dict[str, set[str]] = {}
        self.selves: dict[str, set[str]] = {}
        pairs = [c for c in self.claims if c.relation in {"same_as", "not_same_as"}]
        if pairs:
            self._replay()
            self._merge()
            self.items, self.disputes = [], []
        self._replay()

    # --- §8 entities ----------------------------------------------------------------------

    def _merge(self) -> None:
        found: dict[frozenset, str] = {}
        ranks: dict[frozenset, int] = {}
        strong: set[frozenset] = set()
        for pair in {item.entity for item in self.items if item.relation == PAIR}:
            live = [i for i in self.items if i.relation == PAIR and i.entity == pair and not i.gone]
            if not live:
                continue
            left, to_own = self._steps(live)
            kinds = {None if i.end else i.value for i in left}
            if len(kinds) == 1 and kinds <= {"same_as", "not_same_as"}:
                found[pair] = kinds.pop()
                carriers = left + [i for i in to_own if i.value == found[pair] and not i.end]
                ranks[pair] = min(self._rank(i) for i in carriers)
                sources = {i.claim.source.actor_id for i in carriers}
                if set(pair) <= sources or any(i.claim.source.actor_class == "operator" for i in carriers):
                    strong.add(pair)
        edges = {pair for pair, kind in found.items() if kind == "same_as"}
        for component in self._components(edges):
            inside = [ranks[pair] for pair in edges if pair <= component]
            splits = [
                pair
                for pair, kind in found.items()
                if kind == "not_same_as" and pair <= component and ranks[pair] <= max(inside)
            ]
            if not splits:
                self.one.update(dict.fromkeys(component, component))
                for part in self._components({pair for pair in edges & strong if pair <= component}):
                    self.selves.update(dict.fromkeys(part, part))

    @staticmethod
    def _components(edges: set) -> list[set]:
        groups: list[set] = []
        for pair in edges:
            joined = set(pair)
            for group in [group for group in groups if group & joined]:
                joined |= group
                groups.remove(group)
            groups.append(joined)
        return groups

    def _names(self, entity: str) -> set[str]:
        return self.one.get(entity, {entity})

    def _is_self(self, actor: str, entity: str) -> bool:
        return actor == entity or actor in self.selves.get(entity, set())

    # --- §3 contracts ---------------------------------------------------------------------

    def _class(self, actor: str, granted: str, entity: Any, relation: str) -> str:
        if granted == "derived" or relation == PAIR:
            return granted
        return "self" if self._is_self(actor, entity) else granted

    def _contract(self, relation: str) -> RelationContract:
        return self.contract_of("same_as" if relation == PAIR else relation)

    def _rank_of(self, actor: str, granted: str, entity: Any, relation: str) -> int:
        places = self._contract(relation).authority
        source_class = self._class(actor, granted, entity, relation)
        if source_class == "derived":
            return len(places) + 1
        for wanted in (actor, source_class, "*"):
            if wanted == actor and actor in {
                "self", "operator", "user", "sensor", "assistant", "derived", "*",
            }:  # fmt: skip
                continue
            for number, names in enumerate(places):
                if wanted in names:
                    return number
        return len(places)

    def _rank(self, item: Item) -> int:
        return self._rank_of(item.source, item.granted, item.entity, item.relation)

    def _any(self, item: Item) -> bool:
        rules = dict(self._contract(item.relation).supersession)
        source_class = self._class(item.source, item.granted, item.entity, item.relation)
        return rules.get(source_class, rules.get("*")) == "any"

    def _normal(self, value: Any, relation: str) -> Any:
        if isinstance(value, str):
            value = unicodedata.normalize("NFC", value).strip()
            if self._contract(relation).value_type == "entity" and relation != PAIR:
                return min(self._names(value))
        return value

    # --- §4 withdrawal --------------------------------------------------------------------

    def _replay(self) -> None:
        for claim in self.claims:
            getattr(self, "_" + claim.stance.value)(claim)

    def _key(self, claim: Claim) -> tuple[Any, str, Any]:
        if claim.relation in {"same_as", "not_same_as"} and claim.value is not None:
            return frozenset({claim.entity, claim.value}), PAIR, claim.relation
        return claim.entity, claim.relation, claim.value

    def _same_key(self, item: Item, entity: Any, relation: str) -> bool:
        if item.relation != relation:
            return False
        return item.entity == entity or (relation != PAIR and item.entity in self._names(entity))

    def _add(self, claim: Claim, *, like: Item | None = None, **fields: Any) -> Item:
        """Make an item; `like` is what it inherits its validity from."""
        entity, relation, _ = self._key(claim)
        validity = claim.validity
        if validity.start is None and validity.timeless and like is not None:
            when = dict(
                kind=like.kind,
                start=like.start,
                stop=like.stop,
                earliest=like.earliest,
                timeless=like.timeless,
            )
        elif validity.start is None and validity.timeless:
            start = min(claim.observed_at or claim.recorded_at, claim.recorded_at)
            kind = self._contract(fields.get("relation", relation)).validity.value
            stop = start + timedelta(microseconds=1) if kind == "at" else None
            timeless = claim.observed_at is None
            when = dict(kind=kind, start=start, stop=stop, earliest=start, timeless=timeless)
        else:
            when = dict(
                kind=validity.kind.value, start=validity.start, stop=validity.end, earliest=validity.earliest,
                timeless=validity.timeless,
            )  # fmt: skip
        item = Item(**{
            "claim": claim, "entity": entity, "relation": relation, "source": claim.source.actor_id,
            "granted": claim.source.actor_class, "place": (claim.position.event, claim.position.ordinal),
            "end": False, "values": set(), "occurrence": None, **when, **fields,
        })  # fmt: skip
        if item.relation == PAIR:
            item.kind, item.start, item.stop, item.earliest = "span", None, None, None
            item.timeless = False
        if item.value is not None:
            item.value = self._normal(item.value, item.relation)
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
            if not named:
                return
            inputs += [i for i in self.items if i.claim in named]
        _, _, value = self._key(claim)
        granted = "derived" if inputs else claim.source.actor_class
        item = self._add(claim, value=value, end=claim.stance.value == "end", inputs=inputs, granted=granted)
        self._same_occurrence(item)

    _end = _assert

    def _same_occurrence(self, item: Item) -> None:
        """§10: a later mention with the same source id and another date corrects the earlier."""
        if item.end or item.occurrence is None:
            return
        if self._contract(item.relation).cardinality.value != "occurrence":
            return
        earlier = [
            i
            for i in self.items
            if i is not item
            and i.occurrence == item.occurrence
            and not i.end
            and i.heir is None
            and self._same_key(i, item.entity, item.relation)
        ]
        old = earlier[-1] if earlier else None
        if old and (old.start, old.stop) != (item.start, item.stop) and not self._all_gone(old):
            item.place, item.values = old.place, item.values | old.values
            old.gone, old.heir = set(self.instants), item

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
            if reference.entity is not None and key != (reference.entity, reference.relation):
                continue
            if reference.value is not None:
                said = claim.value if claim.value is not None else item and item.value
                if said is None or self._normal(said, key[1]) != self._normal(reference.value, key[1]):
                    continue
            found.append(claim)
        return found

    def _current(self, claims: list[Claim]) -> list[Item]:
        found: list[Item] = []
        for item in [i for i in self.items if i.claim in claims]:
            while item.heir is not None:
                item = item.heir
            if item not in found:
                found.append(item)
        return found

    def _own(self, claim: Claim, entity: Any, relation: str, value: Any) -> list[Item]:
        return [
            i
            for i in self.items
            if i.heir is None
            and i.source == claim.source.actor_id
            and self._same_key(i, entity, relation)
            and (value is None or (not i.end and i.value == self._normal(value, relation)))
        ]

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
            if reference.event_id is None:
                items = self._own(claim, reference.entity, reference.relation, reference.value)
            else:
                items = self._current(self._named(reference, claim))
            found += [(item, where) for item in items]
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
        start, stop = claim.validity.start, claim.validity.end
        stated = {t for t in self.instants if not before(t, start) and (stop is None or t < stop)}
        if not claim.targets:
            entity, relation, value = self._key(claim)
            for item in self._own(claim, entity, relation, value):
                item.gone |= stated
            return
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
        refused = []
        for item in dict.fromkeys(i for i, _ in self._targets(claim)):
            beaten_by = [w for w in winners if self._same_key(w, item.entity, item.relation)]
            if claim.relation:
                entity, relation, _ = self._key(claim)
                beaten_by = [w for w in beaten_by if self._same_key(w, entity, relation)]
            if item in winners or not beaten_by:
                continue
            if self._may(claim, item):
                for winner in beaten_by:
                    item.gone |= self._extent(winner) - winner.gone
            else:
                refused.append(item)
        self._keep(claim, refused)

    def _dispute(self, claim: Claim) -> None:
        if claim.targets:
            about = list(dict.fromkeys(item for item, _ in self._targets(claim)))
        else:
            entity, relation, value = self._key(claim)
            about = [
                i
                for i in self.items
                if i.heir is None and self._same_key(i, entity, relation) and value in {None, i.value}
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
        if not reached:
            if relation and value is not None:
                self._same_occurrence(self._add(claim, value=value))
            return
        standing = [i for i in reached if not self._all_gone(i)]
        allowed = [i for i in standing if self._may(claim, i)]
        self._keep(claim, [i for i in standing if i not in allowed])
        if allowed:
            self._replace(claim, allowed)
        elif claim.value is not None:
            old = max(standing or reached, key=lambda i: i.place)
            key = self._restated(claim, old)
            self._same_occurrence(self._add(claim, like=old, end=old.end, **key))

    def _restated(self, claim: Claim, old: Item) -> dict:
        entity, relation, value = self._key(claim)
        if not relation:
            return {
                "entity": old.entity, "relation": old.relation,
                "value": old.value if claim.value is None or old.relation == PAIR else claim.value,
            }  # fmt: skip
        return {"entity": entity, "relation": relation, "value": old.value if value is None else value}

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

    # --- §7 derived -----------------------------------------------------------------------

    def covers(self, item: Item, at: datetime) -> bool:
        if at not in self._extent(item) or at in item.gone or self._input_gone(item):
            return False
        if item.kind != "since":
            return True
        for source in item.inputs:
            if self._contract(source.relation).cardinality.value == "occurrence":
                continue
            if source.granted == "derived":
                if not self.covers(source, at):
                    return False
            elif not self._carries(source, at):
                return False
        return True

    def _carries(self, item: Item, at: datetime) -> bool:
        lines = self._lines(item.entity, item.relation, at, observed=True)
        for line in lines.values():
            answer = self._line(line, at)
            if item in line and answer["state"] in {"value", "ended"}:
                return item in next(iter(answer["sides"].values()))
        return False

    # --- §5 one line ----------------------------------------------------------------------

    def _comparable(self, x: Item, y: Item, *, window: timedelta) -> bool:
        for end, other in ((x, y), (y, x)):
            if end.end and end.value is not None:
                if other.end and other.value not in {None, end.value}:
                    return False
                if not other.end and end.value not in other.values:
                    return False
        if x.source == y.source:
            return True
        if not (self._any(x) or self._any(y)):
            return False
        if window and x.start is not None and y.start is not None:
            return abs(x.start - y.start) >= window
        return not window or (x.start is None) != (y.start is None)

    def _steps(self, present: list[Item]) -> tuple[list[Item], list[Item]]:
        """Return what is left, and what left only to claims of its own value."""

        def value(item: Item) -> Any:
            return ("ended",) if item.end else ("is", item.value)

        to_own: list[Item] = []

        def leave(items: list[Item], beats) -> list[Item]:
            left = []
            for x in items:
                beaters = {value(y) for y in items if y is not x and beats(x, y)}
                if not beaters:
                    left.append(x)
                elif beaters == {value(x)}:
                    to_own.append(x)
            return left

        best = min(self._rank(i) for i in present)
        top = [i for i in present if self._rank(i) == best]
        to_own += [x for x in present if x not in top and {value(y) for y in top} == {value(x)}]
        window = self._contract(present[0].relation).conflict_window
        left = leave(
            top,
            lambda x, y: (
                y.kind != "since" and y.place > x.place and self._comparable(x, y, window=timedelta(0))
            ),
        )
        left = leave(
            left,
            lambda x, y: (
                (before(x.start, y.start) or (x.start == y.start and y.place > x.place))
                and self._comparable(x, y, window=window)
            ),
        )
        values = [i for i in left if not i.end]
        counted = [
            i for i in left if not (i.end and i.value is not None) or all(i.value in v.values for v in values)
        ]
        return counted, to_own

    def _line(self, line: list[Item], at: datetime) -> dict:
        present = [i for i in line if self._here(i, line, at)]
        if not present:
            return {"state": self._nothing(line, at), "sides": {}, "superseded": []}
        left, to_own = self._steps(present)
        sides: dict[Any, list[Item]] = {}
        for item in left:
            sides.setdefault(None if item.end else item.value, []).append(item)
        latest = {
            value: max(own, key=lambda i: (i.start is not None, i.start or self.instants[0], i.place))
            for value, own in sides.items()
        }
        for item in to_own:
            value = None if item.end else item.value
            if value in sides:
                sides[value].append(item)
        carrying = [i for own in sides.values() for i in own]
        superseded = [i for i in present if i not in carrying and i not in self._dropped(left, present)]
        state = "conflict" if len(sides) > 1 else ("ended" if None in sides else "value")
        return {"state": state, "sides": sides, "superseded": superseded, "latest": latest}

    def _dropped(self, left: list[Item], present: list[Item]) -> list[Item]:
        """Ends of another value: nothing beat them, they are just not counted."""
        return [
            i
            for i in present
            if i.end and i.value is not None and i not in left
            and not any(self._beats_end(i, other) for other in present if other is not i)
        ]  # fmt: skip

    def _beats_end(self, end: Item, other: Item) -> bool:
        if self._rank(other) != self._rank(end):
            return self._rank(other) < self._rank(end)
        later = before(end.start, other.start) or (end.start == other.start and other.place > end.place)
        span = other.kind != "since" and other.place > end.place
        window = self._contract(end.relation).conflict_window
        return (span and self._comparable(end, other, window=timedelta(0))) or (
            later and self._comparable(end, other, window=window)
        )

    def _nothing(self, line: list[Item], at: datetime) -> str:
        if any(at in self._extent(i) and (at in i.gone or self._input_gone(i)) for i in line):
            return "withdrawn"
        for i in line:
            doubtful = before(at, i.start) and (i.timeless or not before(at, i.earliest))
            if doubtful and at not in i.gone and not self._input_gone(i):
                return "undetermined"
        return "not_valid_then"

    # --- §6 lines -------------------------------------------------------------------------

    def _here(self, item: Item, line: list[Item], at: datetime) -> bool:
        if not self.covers(item, at):
            return False
        exact = getattr(line, "exact", None)
        return (
            exact is None or item in exact or item.end or any(self.covers(i, at) for i in exact if not i.end)
        )

    def _lines(self, entity: str, relation: str, at: datetime, *, observed: bool = False) -> dict:
        items = [i for i in self.items if self._same_key(i, entity, relation)]
        if observed:
            items = [i for i in items if i.granted != "derived"]
        match self._contract(relation).cardinality.value:
            case "one":
                return {"": items} if items else {}
            case "many":
                values = {i.value for i in items if i.value is not None}
                return {v: [i for i in items if self._on_value(i, v, items)] for v in values}
            case _:
                return self._occurrences(items)

    def _on_value(self, item: Item, value: Any, items: list[Item]) -> bool:
        if item.value == value or (item.end and item.value is None):
            return True
        others = [i for i in items if i.value == value and not i.end]
        return item.end and any(item.value in other.values for other in others)

    def _occurrences(self, items: list[Item]) -> dict:
        mentions = [i for i in items if not i.end]
        live = [i for i in mentions if any(self.covers(i, t) for t in self.instants)]

        def contains(outer: Item, inner: Item) -> bool:
            starts = not before(inner.start, outer.start)
            return (
                outer.value == inner.value
                and starts
                and (outer.stop is None or (inner.stop is not None and inner.stop <= outer.stop))
            )

        def vague(i: Item) -> bool:
            return i in live and i.occurrence is None and any(
                contains(i, j) and (j.occurrence is not None or (i.start, i.stop) != (j.start, j.stop))
                for j in live if j is not i
            )  # fmt: skip

        lines: dict[Any, Any] = {}
        for i in mentions:
            if not vague(i):
                name = i.occurrence or (i.value, i.start, i.stop)
                lines.setdefault(name, _Line()).append(i)
        for line in lines.values():
            line.exact = list(line)
            own = set().union(*(i.values for i in line))
            line += [i for i in items if i.end and (i.value is None or i.value in own)]
            line += [i for i in mentions if vague(i) and any(contains(i, j) for j in line.exact if j in live)]
        return lines

    def decide(self, entity: str, relation: str, at: datetime) -> dict:
        """The key's answer in plain words: values with the claims that carry them."""
        lines = self._lines(entity, relation, at)
        answers = {name: self._line(line, at) for name, line in lines.items()}
        states = {answer["state"] for answer in answers.values()}
        reason = None
        if not states & {"value", "conflict"}:
            reason = min(states, key=REASONS.index, default="never_known")
        here = {id(i) for line in lines.values() for i in line if self._here(i, line, at)}
        return {
            "reason": reason,
            "resolved": sorted(
                (str(value), _names(items))
                for answer in answers.values()
                if answer["state"] == "value"
                for value, items in answer["sides"].items()
            ),
            "conflicts": sorted(
                sorted((str(value), answer["latest"][value].claim.claim_id) for value in answer["sides"])
                for answer in answers.values()
                if answer["state"] == "conflict"
            ),
            "superseded": sorted({n for a in answers.values() for n in _names(a["superseded"])}),
            "disputes": [
                claim.claim_id for claim, about in self.disputes if any(id(i) in here for i in about)
            ],
        }


class _Line(list):
    exact: list


def _names(items: list[Item]) -> list[str]:
    return sorted({item.claim.claim_id for item in items})
