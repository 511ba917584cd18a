"""
From claims that are erased to the tombstones that they leave: what stays true without a name or value.

Pure. It is given everything that the claims are connected with, before anything is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from contracts.claims import Claim, TargetRef
from contracts.events import Stance
from contracts.identity import IDENTITY, SAME_AS
from ledger._claims import NO_KEY
from ledger._register import key_and_value, other_name
from ledger._tombstones import VEIL, Erased, Place, Tombstone, named, names_in
from ledger._withdrawal import Replay

_ACTS: Final = frozenset({Stance.CORRECT, Stance.RETRACT, Stance.SETTLE})
"""What such a claim did to claims about others stays, be the claim itself about the one who is erased."""

Veil = Callable[[str], str]
"""Returns a name as it is kept where it may not be read."""


def about(claims: Iterable[Claim], subjects: frozenset[str], replay: Replay) -> set[str]:
    """Return the ids of the claims that are about any of these entities."""
    return {claim.claim_id for claim in claims if not subjects.isdisjoint(_entities(claim, replay))}


def _entities(claim: Claim, replay: Replay) -> set[str]:
    if claim.relation in IDENTITY:
        return {name for name in (claim.entity, other_name(claim)) if isinstance(name, str)}
    if claim.relation != NO_KEY:
        return {claim.entity}
    # A claim without a key of its own is about whatever it acts on.
    return {entity for entity, _ in replay.register.keys_meant(claim)}


@dataclass(frozen=True, slots=True, kw_only=True)
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
        going = [
            claim
            for claim in self.claims
            if claim.event_id in self.erased_ids and not isinstance(claim, Tombstone)
        ]
        hidden = about(going, self.subjects, self.replay)
        likes = self._likes(going)
        found = []
        for claim in going:
            if claim.claim_id not in hidden:
                found.append(self._tombstone(claim, likes, entity=None))
            elif claim.stance in _ACTS and (claim.targets or claim.winner is not None):
                # It keeps acting on others, from a key that nobody can ask for.
                found.append(self._tombstone(claim, likes, entity=f"{VEIL}{_name(_place(claim))}"))
        return found

    def _tombstone(self, claim: Claim, likes: _Likes, *, entity: str | None) -> Tombstone:
        place = _place(claim)
        pair = None
        relation, value = claim.relation, claim.value
        if relation in IDENTITY:
            other = other_name(claim)
            pair = (claim.entity, other if isinstance(other, str) else "")
            relation, value = SAME_AS, relation if value is not None else None

        def reference(target: TargetRef) -> TargetRef:
            if target.value is None:
                return target
            return replace(target, value=Erased(place=place, like=likes.of_reference(target, claim)))

        stone = Tombstone(
            **{name: getattr(claim, name) for name in Claim.__slots__}
            | {
                "entity": claim.entity if entity is None else entity,
                "relation": relation,
                "value": None if value is None else Erased(place=place, like=likes.of_claim(claim)),
                "targets": tuple(map(reference, claim.targets)),
                "winner": None if claim.winner is None else reference(claim.winner),
                "inputs": tuple(map(reference, claim.inputs)),
            },
            erased_in=self.erased_in,
            pair=pair,
        )
        names = {name: self.veil(name) for name in {*names_in(stone), *(pair or ())} if name}
        return named(stone, names, lambda erased: erased)

    def _likes(self, going: Sequence[Claim]) -> _Likes:
        gone = {claim.claim_id for claim in going}
        return _Likes(
            replay=self.replay,
            left=[
                claim
                for claim in self.claims
                if claim.claim_id not in gone and not isinstance(claim, Tombstone) and claim.value is not None
            ],
            graves=[claim for claim in self.claims if isinstance(claim, Tombstone)] + list(going),
        )


class _Likes:
    """Finds another claim with the same value: one that is left, else the first of those that are not."""

    def __init__(self, *, replay: Replay, left: Iterable[Claim], graves: Iterable[Claim]) -> None:
        self._replay = replay
        self._first: dict[tuple[str, str, str], Place] = {}
        self._of_relation: dict[tuple[str, str], Place] = {}
        for claims in (left, graves):
            for claim in claims:
                form = self._form(claim)
                if form is not None:
                    self._first.setdefault(form, _place(claim))
                    self._of_relation.setdefault(form[1:], _place(claim))

    def of_claim(self, claim: Claim) -> Place | None:
        form = self._form(claim)
        found = None if form is None else self._first.get(form)
        return None if found == _place(claim) else found

    def of_reference(self, reference: TargetRef, by: Claim) -> Place | None:
        """Return a claim with the value that a reference names; on identity that is a name, and no value."""
        relations = {reference.relation}
        if reference.relation is None:
            relations = {relation for _, relation in self._replay.register.keys_of_event(reference, by)}
        for relation in sorted(relation for relation in relations if relation):
            found = self._of_relation.get((relation, self._normal(reference.value, relation)))
            if found is not None:
                return found
        return None

    def _form(self, claim: Claim) -> tuple[str, str, str] | None:
        entry = self._replay.entry_of(claim.claim_id)
        entity, relation, value = key_and_value(claim)
        if entry is not None:
            entity, relation = entry.entity, entry.relation
            if claim.value is not None and relation in IDENTITY:
                value = entry.value
        if claim.value is None or value is None or relation == NO_KEY:
            # What a correction does not restate is its target's, and shares with whatever that does.
            return None
        return self._replay.identity.entity(entity), relation, self._normal(value, relation)

    def _normal(self, value: object, relation: str) -> str:
        return self._replay.register.normal(value, self._replay.contracts.of(relation))


def _place(claim: Claim) -> Place:
    return claim.position.event, claim.position.ordinal


def _name(place: Place) -> str:
    return f"{place[0]}#{place[1]}"


def derived_from(claims: Iterable[Claim], erased_ids: Iterable[str]) -> set[str]:
    """Return the events that quote what is erased, or what goes with it: those that derive from it."""
    inputs: dict[str, set[str]] = {}
    for claim in claims:
        for reference in claim.inputs:
            if reference.event_id:
                inputs.setdefault(reference.event_id, set()).add(claim.event_id)
    return reached_from(erased_ids, inputs)


def reached_from(started: Iterable[str], further: Mapping[str, set[str]]) -> set[str]:
    """Return everything that is reached from where one starts, that apart."""
    first = set(started)
    found: set[str] = set()
    waiting = list(first)
    while waiting:
        for event_id in further.get(waiting.pop(), set()) - found - first:
            found.add(event_id)
            waiting.append(event_id)
    return found
