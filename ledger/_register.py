"""
What was said so far, and what a claim means when it names some of it.

A register of claims and the entries they made, filled by a replay in the order of the log.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import partial

from contracts.claims import Claim, TargetRef
from contracts.identity import IDENTITY, SAME_AS
from contracts.relations import RelationContract, ValueType
from ledger._claims import NO_KEY, canonical
from ledger._entries import Entry, Identity
from ledger._intervals import ALWAYS, Intervals, interval, lower, union, upper
from ledger._relations import Contracts
from ledger._tombstones import Erased, Spot, Tombstone, nobody_since, own_spot, spot_of
from ledger._values import Normals, takes


class Register:
    """Claims by event and the entries they made, by claim and by key."""

    def __init__(self, contracts: Contracts, identity: Identity) -> None:
        self.contracts = contracts
        self.identity = identity
        self._entries: dict[tuple[str, str], list[Entry]] = defaultdict(list)
        self._of_claim: dict[str, Entry] = {}
        self._of_event: dict[str, dict[int, Claim]] = defaultdict(dict)
        self._meant: dict[Spot, list[Entry]] = defaultdict(list)
        self._called: dict[tuple[str, str], list[Entry]] = defaultdict(list)
        self._erased_at: dict[Spot, set[str]] = defaultdict(set)
        self._moved: dict[Spot, object] = {}
        self._has_erased = False
        self._normals = Normals(identity.root)
        self._named: set[tuple[str, str]] = set()

    def note(self, claim: Claim) -> None:
        """Take in a claim that was replayed: from here on it can be named."""
        self._of_event[claim.event_id][claim.position.ordinal] = claim
        if not isinstance(claim, Tombstone):
            self._named.add(self.key(claim.entity, claim.relation))
            return
        self._has_erased = True
        self._moved |= {moved.spot: moved.value for moved in claim.moved}
        for value, said_at in [(claim.value, claim.said_at), *((m.value, m.said_at) for m in claim.moved)]:
            if isinstance(value, Erased):
                for spot in said_at:
                    self._erased_at[spot].add(value.normal)

    def is_named(self, entity: str, relation: str) -> bool:
        """Return whether anything that is left names the key, or one that it is one with."""
        return self.key(entity, relation) in self._named

    def add(self, entry: Entry) -> None:
        """Take in an entry that a claim made."""
        self._entries[self.key_of(entry)].append(entry)
        self._of_claim[entry.claim.claim_id] = entry
        if isinstance(entry.claim, Tombstone):
            for spot in entry.claim.meant_by:
                self._meant[spot].append(entry)
            for key in entry.claim.called:
                self._called[key].append(entry)

    def entries_of(self, entity: str, relation: str) -> Sequence[Entry]:
        """Return what ever counted on the key of this entity, or of those it is one with."""
        return self._entries.get((self.identity.entity(entity), relation), ())

    def entries_on(self, relation: str) -> dict[str, Sequence[Entry]]:
        """Return what ever counted on a relation, by entity."""
        return {key[0]: entries for key, entries in self._entries.items() if key[1] == relation}

    def entries_made(self, claims: Iterable[Claim]) -> list[Entry]:
        """Return the entries that these claims made, whatever became of them."""
        return [self._of_claim[claim.claim_id] for claim in claims if claim.claim_id in self._of_claim]

    def entry_of(self, claim_id: str) -> Entry | None:
        """Return the entry that a claim made, whatever became of it."""
        return self._of_claim.get(claim_id)

    def key(self, entity: str, relation: str) -> tuple[str, str]:
        return self.identity.entity(entity), relation

    def key_of(self, entry: Entry) -> tuple[str, str]:
        return self.key(entry.entity, entry.relation)

    def normal(self, value: object, contract: RelationContract) -> str:
        """Return a value's normal form; for the name of a merged entity, the one that its names share."""
        return value.normal if isinstance(value, Erased) else self._normals.of(value, contract)

    def takes(self, claim: Claim, relation: str, value: object, old: Entry | None = None) -> bool:
        """
        Return whether a relation takes what a claim says there: nothing, or a value of its type.

        Of one that was erased it is known whether it did, be the value a claim's own or that of `old`,
        which a correction has it from: what went with that was taken to another key.
        """
        contract = self.contracts.of(relation)
        if isinstance(claim, Tombstone):
            return not claim.is_wrong or contract.value_type == ValueType.ANY
        if not isinstance(value, Erased):
            return value is None or takes(value, contract)
        return (
            old is None
            or relation == old.relation
            or contract.value_type == ValueType.ANY
            or old.erased_in is None
            or claim.commit >= old.erased_in
            or own_spot(claim) in self._moved
        )

    def restated(self, claim: Claim, old: Entry) -> tuple[str, str, object, bool]:
        """Return the key and value of a correction of this, and whether the value is this one's."""
        if claim.relation == NO_KEY:
            entity, relation, value = old.entity, old.relation, claim.value
            if relation in IDENTITY:
                value = None
        else:
            entity, relation, value = key_and_value(claim)
        if value is not None or old.value is None:
            return entity, relation, value, value is None
        return entity, relation, self._inherited(claim, old, self.key(entity, relation)), True

    def _inherited(self, claim: Claim, old: Entry, key: tuple[str, str]) -> object:
        """Return the value that a correction has from this; on another key, as it is known there."""
        spot = own_spot(claim)
        own = claim.moved if isinstance(claim, Tombstone) else ()
        moved = next((one.value for one in own if one.spot == spot), self._moved.get(spot))
        if moved is not None:
            return moved
        is_later = old.erased_in is not None and claim.commit >= old.erased_in
        return Erased(spot=spot) if is_later and key != self.key_of(old) else old.value

    def claims_named(self, reference: TargetRef, by: Claim) -> list[Claim]:
        """Return the earlier claims of the event that the reference means."""
        if reference.event_id is None:
            return []
        return [
            claim
            for claim in self._said_in(reference)
            if place_of(claim) < place_of(by)
            and not self._is_unknown(claim, by)
            and self._is_meant(claim, reference, by)
        ]

    def _said_in(self, reference: TargetRef) -> Iterable[Claim]:
        """Return the claims of the event that a reference names; only that of its ordinal if it has one."""
        said = self._of_event.get(reference.event_id or "", {})
        if reference.ordinal is None:
            return said.values()
        # Found, not searched for: many claims may each name as many targets in one large event.
        return [said[reference.ordinal]] if reference.ordinal in said else []

    def keys_meant(self, claim: Claim) -> set[tuple[str, str]]:
        """Return the keys of the claims that a claim names as its targets or its winner."""
        keys: set[tuple[str, str]] = set()
        for reference in [*claim.targets, *(() if claim.winner is None else (claim.winner,))]:
            if reference.event_id is None:
                keys.add((reference.entity or NO_KEY, reference.relation or NO_KEY))
            keys |= {self._key_made(found) for found in self.claims_named(reference, claim)}
        return keys

    def keys_of_event(self, reference: TargetRef, by: Claim) -> set[tuple[str, str]]:
        """Return the keys of the earlier claims of the event that a reference names."""
        found = self._of_event.get(reference.event_id or "", {}).values()
        return {self._key_made(claim) for claim in found if place_of(claim) < place_of(by)}

    def _key_made(self, claim: Claim) -> tuple[str, str]:
        entry = self._of_claim.get(claim.claim_id)
        return key_and_value(claim)[:2] if entry is None else (entry.entity, entry.relation)

    def _is_unknown(self, claim: Claim, by: Claim) -> bool:
        """Return whether a claim was erased with all about its subject before another was made."""
        since = self._hidden_since(claim)
        return since is not None and by.commit >= since

    def _hidden_since(self, claim: Claim) -> int | None:
        """Return the commit that erased a claim with all about its subject."""
        is_stone = isinstance(claim, Tombstone)
        return nobody_since(names_of_pair(self._key_made(claim)[0])[0]) if is_stone else None

    def _is_meant(self, claim: Claim, reference: TargetRef, by: Claim) -> bool:
        if reference.entity is None and reference.value is None and reference.span is None:
            return True
        if isinstance(claim, Tombstone) and (
            self._hidden_since(claim) is not None or (claim.pair is not None and by.commit < claim.erased_in)
        ):
            # What it was called by is not known any more; that it was meant is.
            return spot_of(reference, by) in claim.meant_by
        entry = self._of_claim.get(claim.claim_id)
        entity, relation, value = key_and_value(claim)
        if entry is not None and relation == NO_KEY:
            entity, relation = entry.entity, entry.relation
        if entry is not None and value is None:
            value = entry.value
        wanted_key = self._key_said(reference.entity or NO_KEY, reference.relation or NO_KEY)
        if reference.entity is not None and wanted_key not in {
            self._key_said(entity, relation),
            self._key_said(claim.entity, relation_said(claim)),
        }:
            return False
        if reference.value is not None:
            contract = self.contracts.of(relation)
            wanted = self.normal(reference.value, contract)
            # An identity pair's value is internal; what was said of it is the other entity.
            said = other_name(claim) if relation in IDENTITY else value
            spot = self._spot_of(reference, by)
            if said is None or not self.is_said(self.normal(said, contract), wanted, spot):
                return False
        span = reference.span
        return span is None or any(found.start < span.end and span.start < found.end for found in claim.spans)

    def _key_said(self, entity: str, relation: str) -> tuple[str, str]:
        """Return a key under the name that merged ones share; who is one with whom is said of names."""
        return (entity, relation) if relation in IDENTITY else self.key(entity, relation)

    def targets(self, references: Iterable[TargetRef], by: Claim) -> list[tuple[Entry, Intervals]]:
        """
        Return the entries now in place of what is named, once each, and over which interval each.

        A reference without an event means the source's own claims on its key.
        """
        found: dict[int, tuple[Entry, Intervals]] = {}
        for reference in references:
            where = _interval_of(reference)
            for entry in self._entries_meant(reference, by):
                known = found.get(id(entry))
                if known is None:
                    found[id(entry)] = (entry, where)
                elif known[1] not in {where, ALWAYS}:
                    found[id(entry)] = (entry, union(known[1], where))
        return list(found.values())

    def misses(self, references: Iterable[TargetRef], by: Claim, *, beside: Collection[str] = ()) -> bool:
        """Return whether any of the references finds no entry, nor a claim of those ids beside."""
        return any(
            not self._entries_meant(reference, by)
            and not any(claim.claim_id in beside for claim in self.claims_named(reference, by))
            for reference in references
        )

    def claims_meant(self, reference: TargetRef, by: Claim) -> list[Claim]:
        """Return the earlier claims that a reference of a claim means, be they there still or not."""
        if reference.event_id is not None:
            return self.claims_named(reference, by)
        return [e.claim for e in self._entries_named(reference, by) if place_of(e.claim) < place_of(by)]

    def _entries_meant(self, reference: TargetRef, by: Claim) -> list[Entry]:
        if reference.event_id is None:
            return [entry for entry in self._entries_named(reference, by) if entry.heir is None]
        return [current(entry) for entry in self.entries_made(self.claims_named(reference, by))]

    def _entries_named(self, reference: TargetRef, by: Claim) -> list[Entry]:
        """Return what the claim's own source said on the key that a reference names without an event."""
        entity, relation, value = key_named(reference)
        spot = self._spot_of(reference, by)
        said = partial(self._said_by, by=by, relation=relation, value=value, spot=spot)
        found = said(self.entries_of(entity, relation))
        if spot is None:
            return found
        erased = [
            entry
            for entry in self._called.get((reference.entity or NO_KEY, relation), ())
            if not self._is_unknown(entry.claim, by)
        ]
        return list(dict.fromkeys([*found, *said(erased), *self._meant.get(spot, ())]))

    def own(self, by: Claim, *, entity: str, relation: str, value: object) -> list[Entry]:
        """Return what counts with the claim's own source on a key, ends only where no value is named."""
        entries = self.entries_of(entity, relation)
        said = self._said_by(entries, by=by, relation=relation, value=value, spot=own_spot(by))
        return [entry for entry in said if entry.heir is None]

    def is_said(self, normal: str | None, wanted: str | None, spot: Spot | None) -> bool:
        """Return whether a value, by its normal form, is the one wanted (None: any) at a spot."""
        return wanted in {None, normal} or (spot is not None and normal in self._erased_at.get(spot, ()))

    def _spot_of(self, reference: TargetRef, by: Claim) -> Spot | None:
        """Return where a reference stands; None where nothing was erased that could be meant from there."""
        return spot_of(reference, by) if self._has_erased else None

    def _said_by(
        self, entries: Iterable[Entry], *, by: Claim, relation: str, value: object, spot: Spot | None
    ) -> list[Entry]:
        normal = None if value is None else self.normal(value, self.contracts.of(relation))
        return [
            entry
            for entry in entries
            if entry.actor_id == by.source.actor_id
            and (normal is None or (not entry.is_end and self.is_said(entry.normal, normal, spot)))
        ]


def pair_of(one: str, other: str) -> str:
    """Return the entity name under which the identity of two entities is decided."""
    return canonical(sorted((one, other))).decode("ascii")


def names_of_pair(entity: str) -> tuple[str, ...]:
    """Return the two names of what `pair_of` returned; any other name is itself alone."""
    try:
        found = json.loads(entity)
    except ValueError:
        return (entity,)
    is_pair = isinstance(found, list) and len(found) == len(("one", "other"))
    return tuple(found) if is_pair and pair_of(*found) == entity else (entity,)


def key_and_value(claim: Claim) -> tuple[str, str, object]:
    """Return the key a claim counts on. `same_as` and `not_same_as` are two values of one key, the pair."""
    if isinstance(claim, Tombstone) and claim.pair is not None:
        return pair_of(*claim.pair), SAME_AS, claim.value
    return _paired(claim.entity, claim.relation, claim.value)


def key_named(reference: TargetRef) -> tuple[str, str, object]:
    """Return the key and value that a reference without an event names, as `key_and_value` does."""
    return _paired(reference.entity or NO_KEY, reference.relation or NO_KEY, reference.value)


def _paired(entity: str, relation: str, value: object) -> tuple[str, str, object]:
    if relation in IDENTITY and isinstance(value, str):
        return pair_of(entity, value), SAME_AS, relation
    return entity, relation, value


def relation_said(claim: Claim) -> str:
    """Return the relation that a claim names; of an erased one of identity, none where it is not known."""
    if isinstance(claim, Tombstone) and claim.pair is not None:
        return claim.value if isinstance(claim.value, str) else NO_KEY
    return claim.relation


def other_name(claim: Claim) -> object:
    """Return what a claim about who is one with whom says of its entity: the other name."""
    if isinstance(claim, Tombstone) and claim.pair is not None:
        return claim.pair[1]
    return claim.value


def current(entry: Entry) -> Entry:
    """Return the entry now in its place."""
    while entry.heir is not None:
        entry = entry.heir
    return entry


def place_of(claim: Claim) -> tuple[int, int]:
    return claim.position.event, claim.position.ordinal


def _interval_of(reference: TargetRef) -> Intervals:
    if not reference.has_interval:
        return ALWAYS
    return interval(lower(reference.interval_start), upper(reference.interval_end))
