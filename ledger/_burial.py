"""
From claims that are erased to the tombstones that they leave: what stays true without a name or value.

Pure. It is given everything that the claims are connected with, before anything is gone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TypeAlias, TypeVar

from contracts.claims import Claim, TargetRef
from contracts.identity import IDENTITY, SAME_AS
from ledger._claims import NO_KEY
from ledger._likes import Likes, is_moved
from ledger._register import key_and_value, names_of_pair, other_name
from ledger._tombstones import (
    Moved,
    Spot,
    Tombstone,
    hide,
    named,
    names_in,
    nobody,
    own_spot,
    references_in,
    values_in,
)
from ledger._withdrawal import Replay

Veil: TypeAlias = Callable[[str], str]
"""Returns a name as it is kept where it may not be read."""
_Node: TypeAlias = str | tuple[str, str]
"""A claim or an event, by its id, or a key."""
_Any = TypeVar("_Any", bound=Hashable)


def about(claims: Iterable[Claim], subjects: frozenset[str], replay: Replay) -> set[str]:
    """Return the ids of the claims that are about any of these entities."""
    return {claim.claim_id for claim in claims if not subjects.isdisjoint(_entities(claim, replay))}


def _entities(claim: Claim, replay: Replay) -> set[str]:
    if claim.relation in IDENTITY:
        return {name for name in (claim.entity, other_name(claim)) if isinstance(name, str)}
    if claim.relation != NO_KEY:
        return {claim.entity}
    # A claim without a key of its own is about whatever it acts on; on identity, about both names.
    keys = replay.register.keys_meant(claim)
    made = replay.entry_of(claim.claim_id)
    if made is not None:
        # What it names may have been moved to another key, and it with that.
        keys.add((made.entity, made.relation))
    return {
        name
        for entity, relation in keys
        for name in (names_of_pair(entity) if relation == SAME_AS else (entity,))
    }


@dataclass(frozen=True, kw_only=True)
class Burial:
    """
    One erasure of claims.

    `replay` is over all that the claims are connected with, tombstones of earlier erasures among
    it; `erased_ids` are the events that go and `subjects` those who go with all that is about them.
    """

    replay: Replay
    claims: Sequence[Claim]
    erased_ids: frozenset[str]
    subjects: frozenset[str]
    erased_in: int
    veil: Veil

    def tombstones(self) -> list[Tombstone]:
        """Return what the erased claims leave, in order, with every name veiled and every value erased."""
        hidden, kept = self._about_subjects
        return [
            self._tombstone(claim, self._likes, is_hidden=claim.claim_id in hidden)
            for claim in self._going
            if claim.claim_id not in hidden or claim.claim_id in kept
        ]

    def hide(self, stone: Tombstone) -> Tombstone:
        """Return a tombstone of before, as it is stored, on a key that nobody can ask for."""
        veil = self.veil
        called = self._called(stone)
        return hide(
            stone,
            self.erased_in,
            selves=tuple(map(veil, self.selves)),
            meant_by=self._meant_by(stone),
            called=tuple((veil(entity), veil(relation)) for entity, relation in called),
        )

    def earlier(self) -> tuple[list[Tombstone], list[Tombstone]]:
        """
        Return the tombstones of before that are about the subjects: those to hide, and those that go.

        To hide are those that others still need.
        """
        hidden, kept = self._about_subjects
        stones = [claim for claim in self.claims if isinstance(claim, Tombstone) and claim.claim_id in hidden]
        return (
            [stone for stone in stones if stone.claim_id in kept],
            [stone for stone in stones if stone.claim_id not in kept],
        )

    @cached_property
    def selves(self) -> tuple[str, ...]:
        """Return those of the subjects' names under which whoever has it speaks for all of them."""
        is_self = self.replay.identity.is_self
        names = sorted(self.subjects)
        return tuple(name for name in names if all(is_self(name, other) for other in names))

    def _meant_by(self, claim: Claim) -> tuple[Spot, ...]:
        """Return where a claim is meant by more than its event, if what is left of it cannot tell that."""
        hidden, _ = self._about_subjects
        is_told = claim.claim_id in hidden or claim.relation in IDENTITY
        return tuple(self._named_from.get(claim.claim_id, ())) if is_told else ()

    @cached_property
    def _named_from(self) -> dict[str, list[Spot]]:
        """Where claims are named by more than their event; without it, where of identity."""
        found: dict[str, list[Spot]] = defaultdict(list)
        for by in self.claims:
            for number, reference in enumerate(references_in(by), start=1):
                by_more = (reference.entity, reference.value, reference.span) != (None, None, None)
                if by_more and (reference.event_id is not None or reference.relation in IDENTITY):
                    for claim in self.replay.register.claims_meant(reference, by):
                        found[claim.claim_id].append((*_place(by), number))
        return found

    def _called(self, claim: Claim) -> tuple[tuple[str, str], ...]:
        """Return the keys by which a claim about the subjects is named without its event."""
        hidden, _ = self._about_subjects
        entry = self.replay.entry_of(claim.claim_id)
        if claim.claim_id not in hidden or entry is None:
            return ()
        return tuple(key for key in self._keys_named if key[1] == entry.relation)

    @cached_property
    def _keys_named(self) -> list[tuple[str, str]]:
        """The keys of the subjects that are named without an event."""
        named = {
            (reference.entity or NO_KEY, reference.relation or NO_KEY)
            for claim in self.claims
            for reference in references_in(claim)
            if reference.event_id is None
        }
        return sorted(key for key in named if key[0] in self.subjects)

    @cached_property
    def _going(self) -> list[Claim]:
        return [
            claim
            for claim in self.claims
            if claim.event_id in self.erased_ids and not isinstance(claim, Tombstone)
        ]

    @cached_property
    def _about_subjects(self) -> tuple[set[str], set[str]]:
        """Return the ids of what is erased about the subjects, now or before, and of that what is kept."""
        erased = [
            claim
            for claim in self.claims
            if claim.event_id in self.erased_ids or isinstance(claim, Tombstone)
        ]
        hidden = about(erased, self.subjects, self.replay) if self.subjects else set()
        kept = self._connected([claim for claim in erased if claim.claim_id in hidden], hidden)
        return hidden, kept

    def _tombstone(self, claim: Claim, likes: Likes, *, is_hidden: bool) -> Tombstone:
        subject = nobody(self.erased_in)
        pair = None
        relation = claim.relation
        if relation in IDENTITY:
            other = other_name(claim)
            pair = (claim.entity, other if isinstance(other, str) else "")
            pair = (subject, subject) if is_hidden else pair
            relation = SAME_AS
        position, ordinal = _place(claim)
        erased = {spot: likes.erased(spot) for spot in values_in(claim)}
        references = [
            reference
            if reference.relation in IDENTITY
            else replace(reference, value=erased.get((position, ordinal, number)))
            for number, reference in enumerate(references_in(claim), start=1)
        ]
        targets, inputs = len(claim.targets), len(claim.targets) + len(claim.inputs)
        stone = Tombstone(
            **{field.name: getattr(claim, field.name) for field in fields(Claim)}
            | {
                "entity": subject if is_hidden and claim.entity else claim.entity,
                "relation": relation,
                "value": erased.get((position, ordinal, 0)),
                "targets": tuple(references[:targets]),
                "inputs": tuple(references[targets:inputs]),
                "winner": references[inputs] if claim.winner is not None else None,
            },
            erased_in=self.erased_in,
            pair=pair,
            selves=self.selves if is_hidden and claim.entity else (),
            meant_by=self._meant_by(claim),
            called=self._called(claim),
            said_at=likes.said_at((position, ordinal, 0)),
            moved=tuple(
                Moved(spot=spot, value=likes.erased(spot), said_at=likes.said_at(spot))
                for spot in self._moved_with.get(claim.claim_id, ())
            ),
            is_wrong=claim.claim_id in self.replay.wrong,
        )
        names = {name: self.veil(name) for name in {*names_in(claim), *names_in(stone)}}
        return named(stone, names, lambda value: value)

    def _connected(self, hidden: Sequence[Claim], hidden_ids: set[str]) -> set[str]:
        """
        Return those of the claims about a subject that are connected with claims about others.

        What they did to those stays, and so does what those did to them: they keep their part, on a
        key that nobody can ask for.
        """
        others: set[_Node] = set()
        for claim in self.claims:
            if claim.claim_id not in hidden_ids:
                others |= {claim.event_id, *self._keys(claim)}
        # Claims of one key, or of one event that something acts on, are connected through a node of their
        # own: each with each of the others would be as many as their square.
        near: dict[_Node, set[_Node]] = defaultdict(set)
        first: set[_Node] = set()
        for claim in self.claims:
            for reference in references_in(claim):
                meant = self._meant(reference)
                if claim.claim_id not in hidden_ids:
                    first.add(meant)
                    continue
                _connect(near, claim.claim_id, meant)
                if meant in others:
                    first.add(claim.claim_id)
        acted_on = first | near.keys()
        for claim in hidden:
            _connect(near, claim.claim_id, self._key(claim))
            if claim.relation in IDENTITY:
                # What was derived from a pair goes by all that is said of it, of either name.
                _connect(near, claim.claim_id, key_and_value(claim)[:2])
            if claim.event_id in acted_on:
                _connect(near, claim.claim_id, claim.event_id)
        return {node for node in first | reached_from(first, near) if node in hidden_ids}

    def _meant(self, reference: TargetRef) -> _Node:
        """Return what a reference names: an event, or a key."""
        if reference.event_id is not None:
            return reference.event_id
        return self.replay.register.key(reference.entity or "", reference.relation or NO_KEY)

    def _keys(self, claim: Claim) -> set[_Node]:
        """Return the keys that a claim is on, be it by what it corrected."""
        entry = self.replay.entry_of(claim.claim_id)
        keys: set[_Node] = set() if entry is None else {self.replay.register.key_of(entry)}
        return keys if claim.relation == NO_KEY else keys | {self._key(claim)}

    def _key(self, claim: Claim) -> tuple[str, str]:
        return self.replay.register.key(claim.entity, claim.relation)

    @cached_property
    def _fallen(self) -> dict[str, str]:
        """What goes, and what has its value from that: by claim, the nearest that goes."""
        found: dict[str, str] = {}
        for claim in self.claims:
            entry = self.replay.entry_of(claim.claim_id)
            if entry is None or entry.erased_in is not None:
                continue
            old = entry.inherits_from
            if claim.event_id in self.erased_ids:
                found[claim.claim_id] = claim.claim_id
            elif old is not None and old.claim.claim_id in found:
                found[claim.claim_id] = found[old.claim.claim_id]
        return found

    @cached_property
    def _moved_with(self) -> dict[str, list[Spot]]:
        """By what goes: where it and what goes with it took its value to another key."""
        found: dict[str, list[Spot]] = defaultdict(list)
        for claim in self.claims:
            entry = self.replay.entry_of(claim.claim_id)
            if claim.claim_id in self._fallen and entry is not None and is_moved(entry, self.replay.register):
                found[self._fallen[claim.claim_id]].append(own_spot(claim))
        return found

    @cached_property
    def _likes(self) -> Likes:
        claims = [claim for claim in self.claims if not isinstance(claim, Tombstone)]
        return Likes(self.replay, claims, erased_ids=self.erased_ids, fallen=self._fallen.keys())


def _place(claim: Claim) -> tuple[int, int]:
    return claim.position.event, claim.position.ordinal


def _connect(near: dict[_Node, set[_Node]], one: _Node, other: _Node) -> None:
    near[one].add(other)
    near[other].add(one)


def reached_from(started: Iterable[_Any], further: Mapping[_Any, set[_Any]]) -> set[_Any]:
    """Return everything that is reached from where one starts, that apart."""
    first = set(started)
    found: set[_Any] = set()
    waiting = list(first)
    while waiting:
        for node in further.get(waiting.pop(), set()) - found - first:
            found.add(node)
            waiting.append(node)
    return found
