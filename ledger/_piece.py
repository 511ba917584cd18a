"""
The connected pieces of the ledger that some keys are on, each read whole or not at all.

Connected are keys that a claim on the one acts on the other, or was derived from it. A piece with a
key that has more claims than are read of one, or of too many keys, is not whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from contracts.claims import Claim
from contracts.limits import LISTED_CLAIMS_MAX
from ledger._found import Found, found_on
from ledger._ground import Ground, ground_of
from ledger._tombstones import is_veiled
from ledger._world import Key, Reader, bears_elsewhere, keys_of, with_merged

PIECE_CLAIMS_MAX: Final = 8 * LISTED_CLAIMS_MAX
"""Claims that are read to follow what some keys are connected with."""


@dataclass(slots=True, kw_only=True)
class Pieces:
    """
    What was read around some keys: `found` by key, `touched` the keys that each is connected with.

    `buried` are those of them on which, or by way of which, something was erased.
    """

    ground: Ground
    found: dict[Key, Found] = field(default_factory=dict)
    touched: dict[Key, set[Key]] = field(default_factory=dict)
    buried: set[Key] = field(default_factory=set)

    def whole(self, key: Key) -> set[Key] | None:
        """Return all keys of a key's piece, None where it was not read whole."""
        seen: set[Key] = set()
        waiting = with_merged([key], self.ground.merges)
        while waiting:
            one = waiting.pop()
            found = self.found.get(one)
            if found is None or found.is_long or one in self.buried:
                return None
            seen.add(one)
            waiting |= self.touched[one] - seen
        return seen

    def is_buried(self, key: Key) -> bool:
        """Return whether anything was erased that the key, as far as it was followed, is connected with."""
        seen: set[Key] = set()
        waiting = with_merged([key], self.ground.merges)
        while waiting:
            one = waiting.pop()
            if one in self.buried:
                return True
            seen.add(one)
            waiting |= self.touched.get(one, set()) - seen
        return False


async def pieces_of(reader: Reader, wanted: Sequence[Key], *, at: datetime | None) -> Pieces:
    """
    Read the pieces of some keys, with the cells of those keys at an instant.

    Raises:
        IntegrityFault: A claim, contract or cell is not what was written.
    """
    asked = list(dict.fromkeys(wanted))
    stand, read = await found_on(reader, asked, at=at)
    return await pieces_around(reader, dict(zip(asked, read, strict=True)), await ground_of(reader, stand))


async def pieces_around(reader: Reader, read: Mapping[Key, Found], ground: Ground) -> Pieces:
    """
    Return the pieces of keys that were read, with what is read of the others in them.

    Raises:
        IntegrityFault: A claim or contract is not what was written.
    """
    pieces = Pieces(ground=ground)
    await _take(reader, pieces, read)
    waiting, followed = set(read), 0
    while True:
        merged = with_merged(waiting, ground.merges)
        waiting = merged.union(*(pieces.touched[key] for key in waiting)) - pieces.found.keys()
        if not waiting or followed + len(waiting) > PIECE_CLAIMS_MAX:
            return pieces
        ordered = sorted(waiting)
        _, found = await found_on(reader, ordered, at=None)
        await _take(reader, pieces, dict(zip(ordered, found, strict=True)))
        followed += sum(len(one.claims) for one in found)


async def buried_of(reader: Reader, keys: Iterable[Key], ground: Ground) -> set[Key]:
    """Return those of keys, under every name, on which or by way of which something was erased."""
    if not ground.has_tombstones:
        return set()
    names = with_merged(keys, ground.merges)
    return {key for key in names if is_veiled(*key)} | await reader.graves.touched(names)


async def _take(reader: Reader, pieces: Pieces, read: Mapping[Key, Found]) -> None:
    """Note what was read of keys, and which keys their claims touch; a long key is not followed."""
    pieces.buried |= await buried_of(reader, read, pieces.ground)
    short = {key: found for key, found in read.items() if not found.is_long}
    elsewhere = [claim for found in short.values() for claim in found.claims if bears_elsewhere(claim)]
    reached = await reader.reached(elsewhere)
    for key, found in read.items():
        pieces.found[key] = found
        touched: set[Key] = set()
        for claim in found.claims if key in short else ():
            touched |= keys_of(claim) | reached.get(claim.claim_id, set())
        pieces.touched[key] = with_merged(touched, pieces.ground.merges)


def in_order(claims: Iterable[Claim]) -> list[Claim]:
    """Return claims once each, by position."""
    by_id = {claim.claim_id: claim for claim in claims}
    return sorted(by_id.values(), key=lambda claim: claim.position)
