"""
The piece of an epoch that an erasure touches, taken out and folded anew without what was erased.

It is closed: everything that its claims are connected with, at whatever commit, is in it. So folding
it alone comes to the lines that folding the whole log anew comes to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.claims import Claim
from contracts.identity import IDENTITY
from ledger._arrays import binaries, numbers, texts
from ledger._burial import reached_from
from ledger._cells import Cells
from ledger._claims import NO_KEY
from ledger._entries import Identity
from ledger._folded import write_folded
from ledger._folding import Folding
from ledger._identity import NO_MERGES, Merges, identity_of, names_paired
from ledger._keys import TenantKeys
from ledger._reached import tombstones_apart
from ledger._relations import Contracts
from ledger._tombstones import Tombstone, is_veiled, names_in, veiled
from ledger._withdrawal import Replay
from ledger._world import Key, Reader

_UNFOLD: Final = sa.text(
    "SELECT echoplane_unfold(:tenant, :epoch, CAST(:lines AS bigint[]), CAST(:claims AS bytea[]), "
    "CAST(:positions AS bigint[]), CAST(:ordinals AS integer[]), CAST(:veils AS text[]))"
)
_KEYS_OF: Final = sa.text(
    "SELECT DISTINCT entity, relation FROM claim WHERE tenant = :tenant AND epoch = :epoch "
    "AND (entity = ANY(CAST(:names AS text[])) OR relation = ANY(CAST(:relations AS text[])))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """
    A closed piece of one epoch as it stood before: its keys, and its claims in the order of the log.

    Claims about who is one with whom are all in it, be they touched or not: its lines hang on them.
    """

    reader: Reader
    contracts: Contracts
    claims: tuple[Claim, ...]
    keys: frozenset[Key]

    def replay(self) -> Replay:
        """Return its claims replayed, as known at the end."""
        merges = identity_of(self.claims, self.contracts)
        replay = Replay(self.contracts, merges.identity)
        replay.extend(self.claims)
        return replay


async def piece_of(
    conn: AsyncConnection, keys: TenantKeys, *, epoch: int, cut: int, events: Iterable[str],
    names: Iterable[str],
) -> Piece:  # fmt: skip
    """
    Return the piece of an epoch that the claims of these events, or what is left of them, are connected with.

    Tombstones know the names in clear.

    Raises:
        IntegrityFault: A claim or contract in it is not what was written.
    """
    reader = Reader(conn=conn, keys=keys, epoch=epoch, cut=cut)
    if await reader.graves.are_there():
        reader.graves.learn(names)
    contracts = await reader.contracts()
    identities = await reader.identity_claims()
    going = await reader.of_events(events)
    touched = {(claim.entity, claim.relation) for claim in going if claim.relation != NO_KEY}
    for reached in (await reader.reached(going)).values():
        touched |= reached
    # What identity hangs on beside itself has lines of its own.
    touched |= {
        (claim.entity, claim.relation)
        for claim in identities
        if claim.relation not in IDENTITY and claim.relation != NO_KEY
    }
    moved = names_paired(claim for claim in going if claim.relation in IDENTITY)
    ever = _ever_merged(identities)
    if moved:
        touched |= await _keys_moved(reader, contracts, ever, moved)
    world, loaded = await reader.world(touched, ever)
    by_id = {claim.claim_id: claim for claim in [*identities, *world, *going]}
    named = await reader.graves.named(by_id.values())
    return Piece(
        reader=reader,
        contracts=contracts,
        claims=tuple(sorted(named, key=lambda claim: claim.position)),
        keys=frozenset(key for key in loaded if not is_veiled(*key)),
    )


def _ever_merged(identities: Iterable[Claim]) -> Merges:
    """Return the names that may have been one at some commit, as if they always were."""
    near: dict[str, set[str]] = defaultdict(set)
    for claim in identities:
        names = names_paired([claim])
        for name in names:
            near[name] |= names
    members: dict[str, tuple[str, ...]] = {}
    root: dict[str, str] = {}
    for name in sorted(near):
        if name not in root:
            component = {name} | reached_from([name], near)
            members[name] = tuple(sorted(component))
            root.update(dict.fromkeys(component, name))
    return replace(NO_MERGES, identity=Identity(root=root, self_root={}), members=members)


async def _keys_moved(reader: Reader, contracts: Contracts, ever: Merges, names: Iterable[str]) -> set[Key]:
    """Return the keys that may be decided otherwise where these names are not one with others any more."""
    every = {other for name in names for other in ever.names_of(name)}
    valued = [name for name, contract in contracts.registered.items() if contract.value_type == "entity"]
    bound = {"tenant": reader.keys.tenant, "epoch": reader.epoch, "names": sorted(every), "relations": valued}
    rows = await reader.conn.execute(_KEYS_OF, bound)
    return {(row.entity, row.relation) for row in rows if row.relation != NO_KEY}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Empty(Cells):
    """Of lines that are about to be made there is nothing yet; of others nothing is asked."""

    async def reached(self, keys: Iterable[Key]) -> set[Key]:  # noqa: ARG002 — as the other
        return set()

    async def relations_of(self, entities: Iterable[str]) -> set[str]:  # noqa: ARG002 — as the other
        return set()

    async def keys_on(self, relations: Sequence[str]) -> list[Key]:  # noqa: ARG002 — as the other
        return []


async def fold_anew(piece: Piece, erased_ids: frozenset[str]) -> None:
    """
    Take a piece out of its epoch and fold it anew, without the erased events and with what is left of them.

    The claims of these events are deleted already, and what is left of them, and of others, is written.
    """
    known, stones = tombstones_apart(claim for claim in piece.claims if claim.event_id not in erased_ids)
    await _take_out(piece, known, stones, erased_ids)
    reader = piece.reader
    anew = Reader(conn=reader.conn, keys=reader.keys, epoch=reader.epoch, cut=0)
    if await anew.graves.are_there():
        anew.graves.learn_contracts(piece.contracts)
        anew.graves.learn_claims(known)
    ours = {stone.claim_id for stone in stones}
    left = await anew.graves.of_batch(erased_ids | {stone.event_id for stone in stones})
    claims = [
        *known,
        *(stone for stone in left if stone.event_id in erased_ids or stone.claim_id in ours),
    ]
    by_commit: dict[int, list[Claim]] = defaultdict(list)
    for claim in sorted(claims, key=lambda claim: claim.position):
        if claim.commit <= reader.cut:
            by_commit[claim.commit].append(claim)
    cells = _Empty(conn=reader.conn, keys=reader.keys, epoch=reader.epoch)
    folding = Folding(anew, cells, piece.contracts)
    folded = [claim for made in by_commit.values() for claim in made]
    await folding.prepare(folded)
    for commit, made in by_commit.items():
        await folding.commit(commit, made)
    await write_folded(anew, folding, folded)


async def _take_out(
    piece: Piece, known: Sequence[Claim], stones: Sequence[Tombstone], erased_ids: frozenset[str]
) -> None:
    reader = piece.reader
    lines = await Cells(conn=reader.conn, keys=reader.keys, epoch=reader.epoch).lines(piece.keys)
    gone = {
        name
        for claim in piece.claims
        if claim.event_id in erased_ids or isinstance(claim, Tombstone)
        for name in names_in(claim)
    }
    await reader.conn.execute(
        _UNFOLD,
        {
            "tenant": reader.keys.tenant,
            "epoch": reader.epoch,
            "lines": numbers(line.line_id for line in lines),
            "claims": binaries(bytes.fromhex(claim.claim_id) for claim in known),
            "positions": numbers(stone.position.event for stone in stones),
            "ordinals": numbers(stone.position.ordinal for stone in stones),
            "veils": texts(sorted({veiled(reader.keys, name) for name in gone})),
        },
    )
