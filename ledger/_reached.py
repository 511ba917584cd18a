"""
Which keys the claims of a fold bear on beside their own, as they are decided and as they are stored.

A key that a claim bears on by way of an erased one is stored veiled, whoever else names it: so what is
stored does not hang on what was folded before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from contracts.claims import Claim
from ledger._claims import NO_KEY
from ledger._tombstones import Tombstone, is_veiled
from ledger._world import Key, Reader, bears_elsewhere, references_of


class Reached:
    """Filled claim by claim, in the order of the log."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._of_event: dict[str, list[Claim]] = defaultdict(list)
        self._clear: dict[str, set[Key]] = {}
        self._stored: dict[str, set[Key]] = {}

    def get(self, claim: Claim) -> set[Key]:
        """Return the keys that a claim of this fold bears on beside its own."""
        return self._clear.get(claim.claim_id, set())

    @property
    def stored(self) -> Mapping[str, set[Key]]:
        """The same as they are stored, by claim id."""
        return self._stored

    async def note(self, claim: Claim) -> set[Key]:
        """Take in a claim; return every key that it bears on, its own among them."""
        keys = {(claim.entity, claim.relation)} if claim.relation != NO_KEY else set()
        if bears_elsewhere(claim):
            stored = await self._stored_of(claim)
            graves = self._reader.graves
            if isinstance(claim, Tombstone):
                stored = {graves.veil(key) for key in stored}
            if any(is_veiled(*key) for key in stored):
                stored -= {graves.veil(key) for key in keys}
            self._stored[claim.claim_id] = stored - keys
            self._clear[claim.claim_id] = await graves.clear(stored) - keys
            keys = keys | self._clear[claim.claim_id]
        self._of_event[claim.event_id].append(claim)
        return keys

    async def _stored_of(self, claim: Claim) -> set[Key]:
        found: set[Key] = {
            (reference.entity or NO_KEY, reference.relation or NO_KEY)
            for reference in claim.targets
            if reference.event_id is None
        }
        references = references_of(claim)
        before = await self._reader.of_events(references)
        for target in [*before, *(made for name in references for made in self._of_event[name])]:
            if target.relation != NO_KEY:
                key = (target.entity, target.relation)
                found.add(self._reader.graves.veil(key) if isinstance(target, Tombstone) else key)
            if bears_elsewhere(target):
                more = self._stored.get(target.claim_id)
                if more is None:
                    more = (await self._reader.reached([target])).get(target.claim_id, set())
                found |= more
        return found


def tombstones_apart(claims: Iterable[Claim]) -> tuple[list[Claim], list[Tombstone]]:
    """Return the claims, and apart from them the tombstones."""
    left: list[Claim] = []
    stones: list[Tombstone] = []
    for claim in claims:
        if isinstance(claim, Tombstone):
            stones.append(claim)
        else:
            left.append(claim)
    return left, stones
