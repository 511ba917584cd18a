"""What a fold does for tombstones: they stand among its claims, and have rows of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from contracts.claims import Claim
from contracts.events import ErasedEvent
from ledger._folding import Folding
from ledger._reached import tombstones_apart
from ledger._read import LoggedEvent
from ledger._rows import Rows
from ledger._world import Reader


async def add_tombstones(
    reader: Reader, events: Sequence[LoggedEvent], claims: Mapping[int, list[Claim]]
) -> None:
    """
    Let what is left of erased events stand in its place among the claims that were read out of the others.

    Args:
        reader: Of the fold.
        events: All that are folded.
        claims: By commit; those of a commit are put in order.
    """
    graves = reader.graves
    if not await graves.are_there():
        return
    for found in claims.values():
        graves.learn_claims(found)
    erased = [event.event_id for event in events if isinstance(event, ErasedEvent)]
    for stone in await graves.of_batch(erased) if erased else ():
        if stone.commit in claims:
            claims[stone.commit].append(stone)
    for found in claims.values():
        found.sort(key=lambda claim: claim.position)


async def write_folded(reader: Reader, folding: Folding, claims: Sequence[Claim]) -> int:
    """Write what a fold of these claims made, but for the claims themselves; return how many are left."""
    left, stones = tombstones_apart(claims)
    rows = Rows(conn=reader.conn, keys=reader.keys, epoch=reader.epoch)
    await rows.reach(folding.reached.stored, left)
    await rows.lines(folding.lines)
    await reader.graves.write_reach(stones, folding.reached.stored)
    await reader.graves.note_names({name for claim in left for name in (claim.entity, claim.relation)})
    return len(left)
