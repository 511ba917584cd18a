"""
The connected pieces of the ledger that folds looked into, and those that wait for the fold that is next.

A piece is read whole, however many claims it has. So it is kept while folds follow one another: of a log
that goes on correcting itself each claim is read and replayed once, and not again in every fold.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from contracts.claims import Claim
from contracts.records import record
from ledger._ahead import Place
from ledger._identity import Merges
from ledger._kept import World
from ledger._relations import Contracts
from ledger._world import Key, Reader, bears_elsewhere, keys_of, with_merged

KEPT_CLAIMS_MAX: Final = 32_768
"""Claims that are kept in one process, some 5 kB each. A larger piece is read again by each fold."""
KEPT_SECONDS: Final = 20.0
"""They are forgotten after so long: longer than a fold takes, be it of another worker or tenant."""
BEHIND_EVENTS_MAX: Final = 8_192
"""Events that other workers may have folded in between. Behind more, pieces are read again."""


class Worlds:
    """Pieces by each of their keys, the one that was asked for last at the end."""

    def __init__(self) -> None:
        self._by_key: dict[Key, World] = {}
        self._in_turn: dict[int, World] = {}

    def get(self, key: Key) -> World | None:
        """Return the piece that a key is in, if it was put here."""
        world = self._by_key.get(key)
        if world is not None:
            self._in_turn[id(world)] = self._in_turn.pop(id(world))
        return world

    def keys_beside(self, keys: set[Key]) -> set[Key]:
        """Return the other keys of all pieces that any of these is in."""
        return {each for key in keys if key in self._by_key for each in self._by_key[key].keys} - keys

    def put(self, world: World) -> None:
        """Put a piece in the place of all those that it takes in."""
        for key in world.keys:
            before = self._by_key.get(key)
            if before is not None:
                self.drop(before)
            self._by_key[key] = world
        self._in_turn[id(world)] = world

    def take(self, claim: Claim, keys: Iterable[Key]) -> None:
        """Let the pieces of these keys take in a claim."""
        for key in keys:
            world = self._by_key.get(key)
            if world is not None:
                world.take(claim)

    @property
    def claims_count(self) -> int:
        """How many claims there are in all pieces."""
        return sum(len(world.claims) for world in self._in_turn.values())

    def clear(self) -> None:
        """Forget all."""
        self._by_key.clear()
        self._in_turn.clear()

    def drop(self, world: World) -> None:
        """Forget a piece: it is read again when it is next asked for."""
        self._in_turn.pop(id(world), None)
        for key in world.keys:
            if self._by_key.get(key) is world:
                del self._by_key[key]

    def trim(self, claims_max: int) -> None:
        """Forget what was not asked for in the longest time, until no more claims are left."""
        left = claims_max
        for world in reversed(list(self._in_turn.values())):
            left -= len(world.claims)
            # What waits was placed by a tail, and bears on its own key. Of more, the keys had to be known.
            if left < 0 or any(map(bears_elsewhere, world.waiting)):
                self.drop(world)


@record
class Left:
    """What a fold left: its pieces, made of the log up to a place, under these contracts and identities."""

    place: Place
    epoch: int
    contracts: Contracts
    merges: Merges
    worlds: Worlds

    async def caught_up(self, reader: Reader, contracts: Contracts, merges: Merges) -> Worlds:
        """
        Return the pieces as they are at the reader's cut: another worker may have folded in between.

        Args:
            reader: Of the fold that goes on with them; its tenant has erased nothing.
            contracts: In force at its cut.
            merges: Who is one with whom there.
        """
        if self.contracts != contracts or self.merges != merges:
            return Worlds()
        said = await reader.after(self.place.after)
        reached = await reader.reached(said)
        moved: dict[int, World] = {}
        for claim in said:
            keys = keys_of(claim) | reached.get(claim.claim_id, set())
            for world in {id(found): found for key in keys if (found := self.worlds.get(key))}.values():
                if with_merged(keys, merges) <= world.keys:
                    world.take(claim)
                    moved[id(world)] = world
                else:
                    self.worlds.drop(world)
        for world in moved.values():
            world.catch_up(reader.cut + 1)
        return self.worlds


Waiting: TypeAlias = dict[tuple[str, int], Any]
"""A `Left` each, by tenant and epoch: until its next fold, or for `KEPT_SECONDS`."""


def take_left(waiting: Waiting, place: Place, epoch: int) -> Left | None:
    """Hand out what was left of an epoch that stands at a place now; None where it is of no use."""
    left: Left | None = waiting.pop((place.keys.tenant, epoch), None)
    if left is None or left.place.keys is not place.keys or left.place.erased != place.erased:
        return None
    return left if 0 <= place.after - left.place.after <= BEHIND_EVENTS_MAX else None


def keep_left(waiting: Waiting, left: Left) -> None:
    """Keep what a fold left, as far as there is room for: what was folded last comes first."""
    of = (left.place.keys.tenant, left.epoch)
    waiting.pop(of, None)
    waiting[of] = left
    room = KEPT_CLAIMS_MAX
    for other in reversed(list(waiting.values())):
        other.worlds.trim(room)
        room -= other.worlds.claims_count

    def forget() -> None:
        if waiting.get(of) is left:
            del waiting[of]

    asyncio.get_running_loop().call_later(KEPT_SECONDS, forget)
