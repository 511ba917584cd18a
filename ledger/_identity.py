"""
Which entities are one, at a cut: pairs that resolve to `same_as`, and their components.

Source: SEMANTICS, "Entities". Only known time moves identity; valid time plays no part.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from contracts.claims import OPERATOR, Claim
from contracts.identity import IDENTITY, NOT_SAME_AS, SAME_AS
from ledger._decide import Side, State, judge
from ledger._entries import NOBODY, Entry, Identity, input_withdrawn
from ledger._relations import Contracts
from ledger._values import normal_form
from ledger._withdrawal import Replay

_SAME = normal_form(SAME_AS, "nfc_trim")
_NOT_SAME = normal_form(NOT_SAME_AS, "nfc_trim")


@dataclass(frozen=True, slots=True, kw_only=True)
class Merges:
    """
    Who is one with whom, and what stood in the way.

    `members` are the merged components of more than one entity, by their representative.
    `contested` are the entities of components that a `not_same_as` splits, with the claims; and
    pairs that are themselves in conflict.
    """

    identity: Identity
    members: Mapping[str, tuple[str, ...]]
    contested: Mapping[str, tuple[Claim, ...]]


NO_MERGES = Merges(identity=NOBODY, members={}, contested={})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pair:
    one: str
    other: str
    side: Side

    @property
    def rank(self) -> int:
        return min(entry.rank for entry in self.side.carriers)

    @property
    def is_self(self) -> bool:
        """Whether an operator states it, or both of its entities do."""
        if any(entry.claim.source.actor_class == OPERATOR for entry in self.side.carriers):
            return True
        return {self.one, self.other} <= {entry.claim.source.actor_id for entry in self.side.carriers}


def identity_of(claims: Iterable[Claim], contracts: Contracts) -> Merges:
    """Return who is one with whom, from all claims up to a cut in the order of their positions."""
    claims = list(claims)
    if not any(claim.relation in IDENTITY for claim in claims):
        return NO_MERGES
    replay = Replay(contracts, NOBODY)
    replay.extend(claims)
    same, apart, contested = _pairs(replay)
    components = _components(same)
    members: dict[str, tuple[str, ...]] = {}
    root: dict[str, str] = {}
    self_root: dict[str, str] = {}
    for component in components:
        inside = [pair for pair in same if pair.one in component]
        splitting = [
            pair
            for pair in apart
            if pair.one in component
            and pair.other in component
            and pair.rank <= max(edge.rank for edge in inside)
        ]
        if splitting:
            named = _claims_of(entry for pair in [*inside, *splitting] for entry in pair.side.carriers)
            contested.update(dict.fromkeys(component, named))
            continue
        representative = min(component)
        members[representative] = tuple(sorted(component))
        root.update(dict.fromkeys(component, representative))
        # One name joined by less is enough that nobody speaks for all of them.
        if component in _components([pair for pair in inside if pair.is_self]):
            self_root.update(dict.fromkeys(component, representative))
    return Merges(identity=Identity(root=root, self_root=self_root), members=members, contested=contested)


def moved_between(before: Merges, after: Merges) -> set[str]:
    """Return the entities whose keys may be decided otherwise after than before; none if nothing changed."""
    if before == after:
        return set()
    return {
        entity
        for merges in (before, after)
        for names in (merges.identity.root, merges.identity.self_root, merges.contested)
        for entity in names
    }


def names_paired(claims: Iterable[Claim]) -> set[str]:
    """Return the names that any claim says to be, or not to be, one with another."""
    return {
        name
        for claim in claims
        if claim.relation in IDENTITY
        for name in (claim.entity, claim.value)
        if isinstance(name, str)
    }


def _pairs(replay: Replay) -> tuple[list[_Pair], list[_Pair], dict[str, tuple[Claim, ...]]]:
    same: list[_Pair] = []
    apart: list[_Pair] = []
    contested: dict[str, tuple[Claim, ...]] = {}
    for entity, entries in replay.entries_on(SAME_AS).items():
        # Identity has no valid time, so a claim that was withdrawn anywhere is withdrawn.
        present = [entry for entry in entries if not entry.withdrawn and not input_withdrawn(entry)]
        if not present:
            continue
        one, other = json.loads(entity)
        verdict = judge(present, window_us=0)
        if verdict.state == State.CONFLICT:
            named = _claims_of(side.latest for side in verdict.sides)
            contested[one] = contested[other] = named
        elif verdict.state == State.VALUE:
            side = verdict.sides[0]
            pair = _Pair(one=one, other=other, side=side)
            if side.normal == _SAME:
                same.append(pair)
            elif side.normal == _NOT_SAME:
                apart.append(pair)
    return same, apart, contested


def _components(pairs: Sequence[_Pair]) -> list[frozenset[str]]:
    neighbours: dict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        neighbours[pair.one].add(pair.other)
        neighbours[pair.other].add(pair.one)
    seen: set[str] = set()
    components = []
    for entity in sorted(neighbours):
        if entity in seen:
            continue
        component, waiting = {entity}, [entity]
        while waiting:
            for neighbour in neighbours[waiting.pop()] - component:
                component.add(neighbour)
                waiting.append(neighbour)
        seen |= component
        components.append(frozenset(component))
    return components


def _claims_of(entries: Iterable[Entry]) -> tuple[Claim, ...]:
    by_id = {entry.claim.claim_id: entry.claim for entry in sorted(entries, key=lambda entry: entry.place)}
    return tuple(by_id.values())
