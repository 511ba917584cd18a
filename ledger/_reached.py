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
from ledger._world import Key, Reader, references_of


class Reached:
    """Filled claim by claim, in the order of the log."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._of_event: dict[str, set[Key]] = defaultdict(set)
        self._read: set[str] = set()
        self._clear: dict[str, set[Key]] = {}
        self._stored: dict[str, set[Key]] = {}

    def get(self, claim: Claim) -> set[Key]:
        """Return the keys that a claim of this fold bears on beside its own."""
        return self._clear.get(claim.claim_id, set())

    @property
    def stored(self) -> Mapping[str, set[Key]]:
        """The same as they are stored, by claim id."""
        return self._stored

    def note_alone(self, claim: Claim) -> None:
        """Take in a claim that bears on its own key alone."""
        self._of_event[claim.event_id] |= self._own(claim)

    async def note(self, claim: Claim) -> set[Key]:
        """Take in a claim that bears on others; return every key that it bears on, its own among them."""
        keys = {(claim.entity, claim.relation)} if claim.relation != NO_KEY else set()
        stored = await self._stored_of(claim)
        graves = self._reader.graves
        if isinstance(claim, Tombstone):
            stored = {graves.veil(key) for key in stored}
        if any(is_veiled(*key) for key in stored):
            stored -= {graves.veil(key) for key in keys}
        self._stored[claim.claim_id] = stored - keys
        self._clear[claim.claim_id] = await graves.clear(stored) - keys
        self._of_event[claim.event_id] |= self._own(claim) | self._stored[claim.claim_id]
        return keys | self._clear[claim.claim_id]

    async def _stored_of(self, claim: Claim) -> set[Key]:
        found: set[Key] = {
            (reference.entity or NO_KEY, reference.relation or NO_KEY)
            for reference in claim.targets
            if reference.event_id is None
        }
        if isinstance(claim, Tombstone):
            # Whoever names it by such a key finds it there, and not on the one that it is kept on.
            found |= set(claim.called)
        references = references_of(claim)
        await self._learn(set(references) - self._read)
        return found.union(*(self._of_event[name] for name in references))

    async def _learn(self, event_ids: set[str]) -> None:
        """Read which keys the claims of events bear on, once in a fold however many claims name them."""
        if not event_ids:
            return
        self._read |= event_ids
        claims = await self._reader.of_events(event_ids)
        known = self._stored
        reached = await self._reader.reached(claim for claim in claims if claim.claim_id not in known)
        for claim in claims:
            more = known.get(claim.claim_id) or reached.get(claim.claim_id, set())
            self._of_event[claim.event_id] |= self._own(claim) | more

    def _own(self, claim: Claim) -> set[Key]:
        if claim.relation == NO_KEY:
            return set()
        key = (claim.entity, claim.relation)
        return {self._reader.graves.veil(key) if isinstance(claim, Tombstone) else key}


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
