"""
Which entities are one, at a cut: pairs that resolve to `same_as`, and their components.

Source: SEMANTICS, "Entities". Only known time moves identity; valid time plays no part.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from contracts.claims import OPERATOR, Claim
from contracts.identity import IDENTITY, SAME_AS
from contracts.resolutions import Conflict, MissingReason, Rival
from ledger._decide import Side, State, Verdict, judge
from ledger._entries import NOBODY, Entry, Identity, input_withdrawn
from ledger._register import names_of_pair, other_name
from ledger._relations import Contracts
from ledger._tombstones import Tombstone
from ledger._values import spelt_form
from ledger._withdrawal import Replay

_SAME = spelt_form(SAME_AS, "nfc_trim")
_LAPSED = {
    State.ENDED: MissingReason.ENDED,
    State.ERASED: MissingReason.ERASED,
    State.WITHDRAWN: MissingReason.WITHDRAWN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Merges:
    """
    Who is one with whom, and what stood in the way.

    `members` are the merged components of more than one entity, by their representative.
    `contested` are, by entity, the conflicts about who it is: a component that a `not_same_as`
    splits, or a pair that is itself in conflict. `doubted` are claims of a lower class that split
    nothing, by entity: open disputes. `disputed` are, by entity, the open disputes of its own pairs,
    and `unplaced` claims on them that found no target. `apart` are, by entity, those it is not, and
    `stated` the claims that bear its merges; `lapsed` says why an entity that was paired is not any
    more.
    """

    identity: Identity
    members: Mapping[str, tuple[str, ...]]
    contested: Mapping[str, tuple[Conflict, ...]]
    doubted: Mapping[str, tuple[Claim, ...]]
    disputed: Mapping[str, tuple[Claim, ...]]
    unplaced: Mapping[str, tuple[Claim, ...]]
    apart: Mapping[str, tuple[tuple[str, tuple[Claim, ...]], ...]]
    stated: Mapping[str, tuple[Claim, ...]]
    lapsed: Mapping[str, MissingReason]

    def names_of(self, entity: str) -> tuple[str, ...]:
        """Return the names that are one entity, sorted; the entity alone if it is merged with none."""
        return self.members.get(self.identity.entity(entity), (entity,))

    def questions(self, entity: str) -> tuple[Claim, ...]:
        """Return the claims that leave open who the entity is: shown with every answer about it."""
        names = self.names_of(entity)
        # Each once, and those that all the names share looked at once.
        conflicts = {id(one): one for name in names for one in self.contested.get(name, ())}
        doubts = {id(own): own for name in names for own in [self.doubted.get(name, ())]}
        claims = [
            *(rival.claim for one in conflicts.values() for rival in one.rivals),
            *(claim for own in doubts.values() for claim in own),
        ]
        return tuple({claim.claim_id: claim for claim in claims}.values())


NO_MERGES = Merges(
    identity=NOBODY, members={}, contested={}, doubted={}, disputed={}, unplaced={}, apart={}, stated={},
    lapsed={},
)  # fmt: skip


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
        """Whether an operator states it, or both of its entities do; nobody states what he derives."""
        stated = [entry for entry in self.side.carriers if not entry.is_derived]
        if any(entry.source_class == OPERATOR for entry in stated):
            return True
        return {self.one, self.other} <= {entry.actor_id for entry in stated}


def identity_of(claims: Iterable[Claim], contracts: Contracts) -> Merges:
    """Return who is one with whom, from all claims up to a cut in the order of their positions."""
    claims = list(claims)
    if not any(claim.relation in IDENTITY for claim in claims):
        return NO_MERGES
    replay = Replay(contracts, NOBODY)
    replay.extend(claims)
    found = _pairs(replay)
    members: dict[str, tuple[str, ...]] = {}
    root: dict[str, str] = {}
    self_root: dict[str, str] = {}
    components = _components(found.same)
    joining, doubting = _by_component(components, found)
    for number, component in enumerate(components):
        inside, within = joining[number], doubting[number]
        lowest = max(edge.rank for edge in inside)
        splitting = [pair for pair in within if pair.rank <= lowest]
        if splitting:
            conflict = _split(inside, splitting)
            for name in component:
                found.contested[name].append(conflict)
            continue
        doubts = [entry.claim for pair in within for entry in pair.side.carriers]
        # One list for all of them: a component may have as many doubts as names.
        found.doubted.update(dict.fromkeys(component, tuple(doubts)))
        representative = min(component)
        members[representative] = tuple(sorted(component))
        root.update(dict.fromkeys(component, representative))
        self_root.update(_speaking(component, inside))
    return Merges(
        identity=Identity(root=root, self_root=self_root),
        members=members,
        contested={name: tuple(conflicts) for name, conflicts in found.contested.items()},
        doubted={name: claims for name, claims in found.doubted.items() if claims},
        disputed=_disputed(replay),
        unplaced=_by_name((claim, _paired(claim)) for claim in replay.unplaced),
        apart=_others(found.apart),
        stated={
            name: tuple(claim for _, claims in others for claim in claims)
            for name, others in _others(found.same).items()
            if name in root
        },
        lapsed=found.lapsed,
    )


def pair_verdict(entries: Iterable[Entry]) -> Verdict:
    """Return what a pair comes to, from all that ever counted on it."""
    # Identity has no valid time, so a claim that was withdrawn anywhere is withdrawn.
    present = [entry for entry in entries if not entry.withdrawn and not input_withdrawn(entry)]
    if not present:
        return Verdict(state=State.WITHDRAWN, sides=(), superseded=())
    return judge(present, window_us=0)


def moved_between(before: Merges, after: Merges) -> set[str]:
    """Return the entities whose keys may be decided otherwise after than before; none if nothing changed."""
    if before == after:
        return set()
    return {
        entity
        for merges in (before, after)
        for names in (merges.identity.root, merges.identity.self_root)
        for entity in names
    }


def names_paired(claims: Iterable[Claim]) -> set[str]:
    """Return the names that any claim says to be, or not to be, one with another."""
    return {name for claim in claims for name in _paired(claim)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What the pairs resolve to."""

    same: list[_Pair] = field(default_factory=list)
    apart: list[_Pair] = field(default_factory=list)
    contested: dict[str, list[Conflict]] = field(default_factory=lambda: defaultdict(list))
    doubted: dict[str, tuple[Claim, ...]] = field(default_factory=dict)
    lapsed: dict[str, MissingReason] = field(default_factory=dict)


def _pairs(replay: Replay) -> _Found:
    found = _Found()
    for entity, entries in replay.entries_on(SAME_AS).items():
        one, other = json.loads(entity)
        verdict = pair_verdict(entries)
        if verdict.state == State.CONFLICT:
            conflict = _conflict([side.latest for side in verdict.sides])
            for name in (one, other):
                found.contested[name].append(conflict)
        elif verdict.state in _LAPSED:
            found.lapsed.update(dict.fromkeys((one, other), _LAPSED[verdict.state]))
        elif verdict.state == State.VALUE:
            pair = _Pair(one=one, other=other, side=verdict.sides[0])
            (found.same if pair.side.normal == _SAME else found.apart).append(pair)
    return found


def _disputed(replay: Replay) -> dict[str, tuple[Claim, ...]]:
    """Return, by name, the disputes of pairs of which one that they are about stands."""
    return _by_name(
        (
            dispute.claim,
            [
                name
                for entry in dispute.about
                if entry.relation == SAME_AS and entry.erased_in is None
                if not entry.withdrawn and not input_withdrawn(entry)
                for name in names_of_pair(entry.entity)
            ],
        )
        for dispute in replay.disputes
        if not isinstance(dispute.claim, Tombstone)
    )


def _paired(claim: Claim) -> list[str]:
    """Return the names that a claim on a key of identity is about."""
    names = [claim.entity, other_name(claim)] if claim.relation in IDENTITY else []
    return [name for name in names if isinstance(name, str)]


def _by_name(claims: Iterable[tuple[Claim, Iterable[str]]]) -> dict[str, tuple[Claim, ...]]:
    found: dict[str, list[Claim]] = defaultdict(list)
    for claim, names in claims:
        for name in set(names):
            found[name].append(claim)
    return {name: tuple(own) for name, own in found.items()}


def _split(inside: Sequence[_Pair], splitting: Sequence[_Pair]) -> Conflict:
    pairs = (inside, splitting)
    return _conflict([max((pair.side.latest for pair in own), key=lambda e: e.place) for own in pairs])


def _conflict(entries: Sequence[Entry]) -> Conflict:
    ordered = sorted(entries, key=lambda entry: entry.claim.position)
    first, second, *others = (
        Rival(value=None if entry.is_end else entry.value, ended=entry.is_end, claim=entry.claim)
        for entry in ordered
    )
    return Conflict(
        rivals=(first, second, *others),
        why="claims of who is one with whom contradict each other, and none is of a higher class",
        superseded=(),
    )


def _speaking(component: Iterable[str], inside: Sequence[_Pair]) -> dict[str, str]:
    """
    Return, by name, the representative of those that strong pairs join, of who may speak as them.

    Whoever says himself what joins him to others, and is not confirmed, speaks as none of them: of
    merged names every claim counts about all, and his would outrank what others say about those.
    """
    root = {name: name for name in component}
    for part in _components([pair for pair in inside if pair.is_self]):
        root.update(dict.fromkeys(part, min(part)))
    joined_by = {
        root.get(entry.actor_id)
        for pair in inside
        if root[pair.one] != root[pair.other]
        for entry in pair.side.carriers
    }
    return {name: own for name, own in root.items() if own not in joined_by}


def _others(pairs: Iterable[_Pair]) -> dict[str, tuple[tuple[str, tuple[Claim, ...]], ...]]:
    """Return, by name, each other name of its pairs, with the claims."""
    found: dict[str, list[tuple[str, tuple[Claim, ...]]]] = defaultdict(list)
    for pair in pairs:
        claims = tuple(entry.claim for entry in pair.side.carriers)
        found[pair.one].append((pair.other, claims))
        found[pair.other].append((pair.one, claims))
    return {name: tuple(others) for name, others in found.items()}


def _by_component(
    components: Sequence[frozenset[str]], found: _Found
) -> tuple[list[list[_Pair]], list[list[_Pair]]]:
    """Return, of each component, the pairs that join it, and those within it that are said to be apart."""
    number_of = {name: number for number, component in enumerate(components) for name in component}
    joining: list[list[_Pair]] = [[] for _ in components]
    doubting: list[list[_Pair]] = [[] for _ in components]
    for pair in found.same:
        joining[number_of[pair.one]].append(pair)
    for pair in found.apart:
        number = number_of.get(pair.one)
        if number is not None and number == number_of.get(pair.other):
            doubting[number].append(pair)
    return joining, doubting


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
