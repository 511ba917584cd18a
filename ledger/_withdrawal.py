"""
What leaves, and what takes its place: the claims of some keys, replayed in the order of the log.

A replay sees the claims up to one cut, under the identity of entities at that cut. Of a key it
must be given every claim on it, every claim that acts on it, and every claim those name; more does
no harm. Source: SEMANTICS, "Withdrawal" and "Fine print".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from contracts.claims import DERIVED, OPERATOR, Claim, Source, TargetRef, Validity, ValidityKind
from contracts.events import Stance
from contracts.relations import Cardinality, RelationContract
from ledger._claims import NO_KEY, UNSTATED, canonical
from ledger._entries import (
    Entry,
    Identity,
    class_of,
    extent_of,
    rank_and_rule,
    withdrawn_throughout,
)
from ledger._intervals import (
    ALWAYS,
    EMPTY,
    FOREVER,
    NEVER,
    Intervals,
    difference,
    interval,
    lower,
    union,
    upper,
)
from ledger._relations import IDENTITY, SAME_AS, Contracts
from ledger._validity import default_validity
from ledger._values import normal_form


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dispute:
    """A claim that was kept as a dispute, and the entries it is about."""

    claim: Claim
    about: tuple[Entry, ...]


class Replay:
    """
    Claims replayed in the order of their positions.

    `entries_of(entity, relation)` are all that ever counted on a key, in the order they came;
    `disputes` those still upheld by their source; `unplaced` claims that found no target.
    """

    def __init__(self, contracts: Contracts, identity: Identity) -> None:
        self.contracts = contracts
        self.identity = identity
        self.disputes: list[Dispute] = []
        self.unplaced: list[Claim] = []
        self._entries: dict[tuple[str, str], list[Entry]] = defaultdict(list)
        self._of_claim: dict[str, Entry] = {}
        self._of_event: dict[str, list[Claim]] = defaultdict(list)
        self._of_occurrence: dict[tuple[str, str, tuple[str, str]], Entry] = {}

    def extend(self, claims: Iterable[Claim]) -> None:
        """Replay further claims, in the order of their positions."""
        for claim in claims:
            self._apply(claim)
            self._of_event[claim.event_id].append(claim)

    def entries_of(self, entity: str, relation: str) -> Sequence[Entry]:
        """Return what ever counted on the key of this entity, or of those it is one with."""
        return self._entries.get((self.identity.entity(entity), relation), ())

    def entries_on(self, relation: str) -> dict[str, Sequence[Entry]]:
        """Return what ever counted on a relation, by entity."""
        return {key[0]: entries for key, entries in self._entries.items() if key[1] == relation}

    def entry_of(self, claim_id: str) -> Entry | None:
        """Return the entry that a claim made, whatever became of it."""
        return self._of_claim.get(claim_id)

    def _apply(self, claim: Claim) -> None:
        match claim.stance:
            case Stance.ASSERT | Stance.END:
                self._enter(claim)
            case Stance.CORRECT:
                self._correct(claim)
            case Stance.RETRACT:
                self._retract(claim)
            case Stance.SETTLE:
                self._settle(claim)
            case Stance.DISPUTE:
                self._dispute(claim)

    # --- what enters ------------------------------------------------------------------------

    def _enter(self, claim: Claim) -> None:
        inputs: list[Entry] = []
        for reference in claim.inputs:
            named = self._claims_named(reference, claim)
            if not named:
                # An input that this epoch does not have: the claim is not projected.
                self.unplaced.append(claim)
                return
            inputs += [self._of_claim[found.claim_id] for found in named if found.claim_id in self._of_claim]
        entity, relation, value = _key_and_value(claim)
        entry = self._make(
            claim,
            entity=entity,
            relation=relation,
            # Whoever derives speaks as `derived`, whatever class was granted.
            source=Source(actor_id=claim.source.actor_id, actor_class=DERIVED) if inputs else claim.source,
            place=_place_of(claim),
            value=value,
            validity=self._own_validity(claim, relation),
            is_end=claim.stance == Stance.END,
        )
        entry.inputs = tuple(inputs)
        self._note_occurrence(entry)

    def _own_validity(self, claim: Claim, relation: str) -> Validity:
        if claim.validity != UNSTATED:
            return claim.validity
        return default_validity(
            self.contracts.of(relation).validity,
            observed_at=claim.observed_at,
            recorded_at=claim.recorded_at,
        )

    def _make(
        self,
        claim: Claim,
        *,
        entity: str,
        relation: str,
        source: Source,
        place: tuple[int, int],
        value: object,
        validity: Validity | Entry,
        is_end: bool,
    ) -> Entry:
        contract = self.contracts.of(relation)
        source_class = class_of(source, entity=entity, relation=relation, identity=self.identity)
        rank, any_rule = rank_and_rule(contract, actor_id=source.actor_id, source_class=source_class)
        normal = None if value is None else self._normal(value, contract)
        if relation in IDENTITY:
            # Who is one with whom holds for all valid time; only known time moves it.
            kind, start, end, earliest = ValidityKind.SPAN, NEVER, FOREVER, NEVER
        elif isinstance(validity, Entry):
            kind, start, end, earliest = validity.kind, validity.start, validity.end, validity.earliest
        else:
            kind = validity.kind
            start, end, earliest = extent_of(validity)
        occurrence_id = claim.occurrence_id
        entry = Entry(
            claim=claim,
            entity=entity,
            relation=relation,
            actor_id=source.actor_id,
            stated_class=source.actor_class,
            source_class=source_class,
            rank=rank,
            replaces_any=any_rule,
            place=place,
            is_end=is_end,
            value=value,
            normal=normal,
            lineage=frozenset() if normal is None else frozenset({normal}),
            kind=kind,
            start=start,
            end=end,
            earliest=earliest,
            occurrence=None if occurrence_id is None else (source.actor_id, occurrence_id),
            withdrawn=EMPTY,
        )
        self._entries[self.identity.entity(entity), relation].append(entry)
        self._of_claim[claim.claim_id] = entry
        return entry

    def _normal(self, value: object, contract: RelationContract) -> str:
        if contract.value_type == "entity" and isinstance(value, str):
            value = self.identity.entity(value)
        return normal_form(value, contract.normalizer)

    def _note_occurrence(self, entry: Entry) -> None:
        """A later mention with the same source id and another date corrects the earlier."""
        if entry.occurrence is None or entry.is_end:
            return
        if self.contracts.of(entry.relation).cardinality != Cardinality.OCCURRENCE:
            return
        at = (self.identity.entity(entry.entity), entry.relation, entry.occurrence)
        earlier = self._of_occurrence.get(at)
        self._of_occurrence[at] = entry
        if earlier is None or (earlier.start, earlier.end) == (entry.start, entry.end):
            return
        if not withdrawn_throughout(earlier):
            entry.place = earlier.place
            entry.lineage |= earlier.lineage
            earlier.withdraw(ALWAYS, by=entry.claim)
            earlier.heir = entry

    # --- what is named ----------------------------------------------------------------------

    def _claims_named(self, reference: TargetRef, by: Claim) -> list[Claim]:
        """Return the earlier claims of the event that the reference means."""
        if reference.event_id is None:
            return []
        return [
            claim
            for claim in self._of_event.get(reference.event_id, ())
            if _place_of(claim) < _place_of(by) and self._is_meant(claim, reference)
        ]

    def _is_meant(self, claim: Claim, reference: TargetRef) -> bool:
        if reference.ordinal is not None and claim.position.ordinal != reference.ordinal:
            return False
        entry = self._of_claim.get(claim.claim_id)
        entity, relation, value = _key_and_value(claim)
        if entry is not None and relation == NO_KEY:
            entity, relation = entry.entity, entry.relation
        if entry is not None and value is None:
            value = entry.value
        if reference.entity is not None and (reference.entity, reference.relation) not in {
            (entity, relation),
            (claim.entity, claim.relation),
        }:
            return False
        if reference.value is not None:
            contract = self.contracts.of(relation)
            wanted = self._normal(reference.value, contract)
            # An identity pair's value is internal; what was said of it is the other entity.
            said = claim.value if relation in IDENTITY else value
            if said is None or self._normal(said, contract) != wanted:
                return False
        span = reference.span
        return span is None or any(found.start < span.end and span.start < found.end for found in claim.spans)

    def _targets(self, references: Iterable[TargetRef], by: Claim) -> list[tuple[Entry, Intervals]]:
        """
        Return the entries now in place of what is named, once each, and over which interval each.

        A reference without an event means the source's own claims on its key.
        """
        found: dict[int, tuple[Entry, Intervals]] = {}
        for reference in references:
            where = _interval_of(reference)
            if reference.event_id is None:
                entries = self._own(
                    by,
                    entity=reference.entity or "",
                    relation=reference.relation or "",
                    value=reference.value,
                )
            else:
                entries = [
                    _current(self._of_claim[claim.claim_id])
                    for claim in self._claims_named(reference, by)
                    if claim.claim_id in self._of_claim
                ]
            for entry in entries:
                known = found.get(id(entry))
                found[id(entry)] = (entry, where if known is None else union(known[1], where))
        return list(found.values())

    def _finds_nothing(self, references: Sequence[TargetRef], by: Claim) -> bool:
        return bool(references) and not any(
            reference.event_id is None or self._claims_named(reference, by) for reference in references
        )

    def _own(self, by: Claim, *, entity: str, relation: str, value: object) -> list[Entry]:
        """Return what counts with the claim's own source on a key, ends only where no value is named."""
        normal = None if value is None else self._normal(value, self.contracts.of(relation))
        return [
            entry
            for entry in self.entries_of(entity, relation)
            if entry.heir is None
            and entry.actor_id == by.source.actor_id
            and (normal is None or (not entry.is_end and entry.normal == normal))
        ]

    def _may(self, claim: Claim, entry: Entry) -> bool:
        """Only the same source, a higher class or an operator may withdraw."""
        if claim.source.actor_id == entry.actor_id or claim.source.actor_class == OPERATOR:
            return True
        return self._rank_on(claim.source, entry.entity, entry.relation) < entry.rank

    def _rank_on(self, source: Source, entity: str, relation: str) -> int:
        source_class = class_of(source, entity=entity, relation=relation, identity=self.identity)
        contract = self.contracts.of(relation)
        return rank_and_rule(contract, actor_id=source.actor_id, source_class=source_class)[0]

    # --- what leaves ------------------------------------------------------------------------

    def _retract(self, claim: Claim) -> None:
        stated = interval(lower(claim.validity.start), upper(claim.validity.end))
        if not claim.targets:
            entity, relation, _ = _key_and_value(claim)
            value = _key_and_value(claim)[2] if relation in IDENTITY else claim.value
            for entry in self._own(claim, entity=entity, relation=relation, value=value):
                entry.withdraw(stated, by=claim)
            return
        if self._finds_nothing(claim.targets, claim):
            self.unplaced.append(claim)
        refused = []
        for entry, where in self._targets(claim.targets, claim):
            if self._may(claim, entry):
                entry.withdraw(where if where != ALWAYS else stated, by=claim)
            else:
                refused.append(entry)
        self._keep_as_dispute(claim, refused)
        self._withdraw_disputes(claim)

    def _withdraw_disputes(self, claim: Claim) -> None:
        """A dispute that its own source takes back is no longer open."""
        named = {
            found.claim_id
            for reference in claim.targets
            for found in self._claims_named(reference, claim)
            if found.source.actor_id == claim.source.actor_id
        }
        self.disputes = [dispute for dispute in self.disputes if dispute.claim.claim_id not in named]

    def _settle(self, claim: Claim) -> None:
        if claim.winner is None:
            self.unplaced.append(claim)
            return
        winners = [entry for entry, _ in self._targets([claim.winner], claim)]
        if claim.relation != NO_KEY:
            key = self._key(*_key_and_value(claim)[:2])
            winners = [entry for entry in winners if self._key_of(entry) == key]
        if not winners or self._finds_nothing(claim.targets, claim):
            self.unplaced.append(claim)
        refused = []
        for key in dict.fromkeys(self._key_of(entry) for entry in winners):
            on_key = [entry for entry in winners if self._key_of(entry) == key]
            where = union(*(difference(entry.extent, entry.withdrawn) for entry in on_key))
            for entry in self._losers(claim, on_key, key):
                if self._may(claim, entry):
                    entry.withdraw(where, by=claim)
                else:
                    refused.append(entry)
        self._keep_as_dispute(claim, refused)

    def _losers(self, claim: Claim, winners: list[Entry], key: tuple[str, str]) -> list[Entry]:
        """Return the losers named; where none is, whatever else the key was said to have."""
        if claim.targets:
            named = [entry for entry, _ in self._targets(claim.targets, claim)]
        else:
            values = {entry.normal for entry in winners if not entry.is_end}
            named = [
                entry
                for entry in self._entries[key]
                if entry.heir is None and (entry.is_end or entry.normal not in values)
            ]
        return [entry for entry in named if entry not in winners and self._key_of(entry) == key]

    def _dispute(self, claim: Claim) -> None:
        if claim.targets:
            if self._finds_nothing(claim.targets, claim):
                self.unplaced.append(claim)
            about = [entry for entry, _ in self._targets(claim.targets, claim)]
        else:
            entity, relation, value = _key_and_value(claim)
            normal = None if value is None else self._normal(value, self.contracts.of(relation))
            about = [
                entry
                for entry in self.entries_of(entity, relation)
                if entry.heir is None and normal in {None, entry.normal}
            ]
        self._keep_as_dispute(claim, about)

    def _keep_as_dispute(self, claim: Claim, about: list[Entry]) -> None:
        if about:
            self.disputes.append(Dispute(claim=claim, about=tuple(about)))

    def _correct(self, claim: Claim) -> None:
        reached, placed = self._reached(claim)
        if not placed:
            self.unplaced.append(claim)
        if not reached:
            if claim.relation != NO_KEY and claim.value is not None:
                self._enter(claim)
            return
        standing = [entry for entry in reached if not withdrawn_throughout(entry)]
        allowed = [entry for entry in standing if self._may(claim, entry)]
        self._keep_as_dispute(claim, [entry for entry in standing if entry not in allowed])
        if allowed:
            self._replace(claim, allowed)
        elif claim.value is not None:
            self._assert_instead(claim, max(standing or reached, key=lambda entry: entry.place))

    def _reached(self, claim: Claim) -> tuple[list[Entry], bool]:
        """Return the entries that a correction reaches, and whether its targets let it reach any."""
        found = [entry for entry, _ in self._targets(claim.targets, claim)]
        if not found:
            return [], not claim.targets
        if claim.relation == NO_KEY:
            one_key = len({self._key_of(entry) for entry in found}) == 1
            return (found, True) if one_key else ([], False)
        key = self._key(*_key_and_value(claim)[:2])
        own = [entry for entry in found if self._key_of(entry) == key]
        if own:
            return own, True
        # None is on its own key: then the key itself was wrong, if there is just one it can mean.
        return (found, True) if len(found) == 1 else ([], False)

    def _replace(self, claim: Claim, targets: list[Entry]) -> None:
        """The targets leave; the correction takes the latest's place and what it does not restate."""
        old = max(targets, key=lambda entry: entry.place)
        entity, relation, value = self._restated(claim, old)
        source = Source(actor_id=old.actor_id, actor_class=old.stated_class)
        own_is_higher = self._rank_on(claim.source, entity, relation) < self._rank_on(
            source, entity, relation
        )
        inherits_validity = claim.validity == UNSTATED
        entry = self._make(
            claim,
            entity=entity,
            relation=relation,
            source=claim.source if own_is_higher or old.is_derived else source,
            place=old.place,
            value=value,
            validity=old if inherits_validity else claim.validity,
            is_end=old.is_end,
        )
        if claim.occurrence_id is None:
            entry.occurrence = old.occurrence
        if inherits_validity:
            entry.withdrawn = old.withdrawn
        for target in targets:
            entry.lineage |= target.lineage
            target.withdraw(ALWAYS, by=claim)
            target.heir = entry
        if entry.occurrence is not None:
            self._of_occurrence[self.identity.entity(entity), relation, entry.occurrence] = entry

    def _assert_instead(self, claim: Claim, old: Entry) -> None:
        """A correction that may not, or of what is gone, speaks for itself: it may inherit validity."""
        entity, relation, value = self._restated(claim, old)
        entry = self._make(
            claim,
            entity=entity,
            relation=relation,
            source=claim.source,
            place=_place_of(claim),
            value=value,
            validity=old if claim.validity == UNSTATED else claim.validity,
            is_end=old.is_end,
        )
        self._note_occurrence(entry)

    def _restated(self, claim: Claim, old: Entry) -> tuple[str, str, object]:
        if claim.relation == NO_KEY:
            entity, relation = old.entity, old.relation
            if relation in IDENTITY:
                return entity, relation, old.value
            return entity, relation, old.value if claim.value is None else claim.value
        entity, relation, value = _key_and_value(claim)
        return entity, relation, old.value if value is None else value

    def _key(self, entity: str, relation: str) -> tuple[str, str]:
        return self.identity.entity(entity), relation

    def _key_of(self, entry: Entry) -> tuple[str, str]:
        return self._key(entry.entity, entry.relation)


def pair_of(one: str, other: str) -> str:
    """Return the entity name under which the identity of two entities is decided."""
    return canonical(sorted((one, other))).decode("ascii")


def _key_and_value(claim: Claim) -> tuple[str, str, object]:
    """Return the key a claim counts on. `same_as` and `not_same_as` are two values of one key, the pair."""
    if claim.relation in IDENTITY and isinstance(claim.value, str):
        return pair_of(claim.entity, claim.value), SAME_AS, claim.relation
    return claim.entity, claim.relation, claim.value


def _current(entry: Entry) -> Entry:
    """Return the entry now in its place."""
    while entry.heir is not None:
        entry = entry.heir
    return entry


def _place_of(claim: Claim) -> tuple[int, int]:
    return claim.position.event, claim.position.ordinal


def _interval_of(reference: TargetRef) -> Intervals:
    if not reference.has_interval:
        return ALWAYS
    return interval(lower(reference.interval_start), upper(reference.interval_end))
