"""
What every answer rests on beside its own key: contracts, and who is one with whom.

Both change only when something is folded or appended. They are kept in memory for as long as
neither happens, by the stamp of the snapshot that they were read in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary

import sqlalchemy as sa

from ledger._found import Stamp
from ledger._identity import NO_MERGES, Merges, identity_of
from ledger._keys import TenantKeys
from ledger._relations import Contracts
from ledger._world import Reader

CUTS_KEPT_MAX: Final = 64
"""Cuts of one epoch whose contracts and identities are kept in memory."""

_STAMP: Final = sa.text(
    "SELECT (SELECT commit FROM epoch WHERE tenant = :tenant AND epoch = :epoch) AS folded, "
    "(SELECT commit FROM head WHERE tenant = :tenant) AS head"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Contracts and merges at one cut; whether the tenant erased anything that left a tombstone."""

    contracts: Contracts
    merges: Merges
    has_tombstones: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    stamp: Stamp
    at: dict[int, Ground] = field(default_factory=dict)


# For as long as the tenant's keys are held in memory, which is what was read can be checked with.
_KEPT: Final[WeakKeyDictionary[TenantKeys, dict[int, _Kept]]] = WeakKeyDictionary()


async def ground_of(reader: Reader, stamp: Stamp | None = None) -> Ground:
    """
    Return the contracts and merges at the reader's cut.

    Args:
        reader: In a snapshot.
        stamp: That of the snapshot, where it was read already.

    Raises:
        IntegrityFault: A claim or contract is not what was written.
    """
    if stamp is None:
        parameters = {"tenant": reader.keys.tenant, "epoch": reader.epoch}
        row: Any = (await reader.conn.execute(_STAMP, parameters)).one()
        stamp = (row.folded or 0, row.head or 0)
    epochs = _KEPT.setdefault(reader.keys, {})
    kept = epochs.get(reader.epoch)
    if kept is None or kept.stamp != stamp:
        kept = epochs[reader.epoch] = _Kept(stamp=stamp)
    ground = kept.at.get(reader.cut)
    if ground is None:
        contracts = await reader.contracts()
        claims = await reader.identity_claims()
        merges = identity_of(claims, contracts) if claims else NO_MERGES
        erased = await reader.graves.are_there()
        ground = Ground(contracts=contracts, merges=merges, has_tombstones=erased)
        while len(kept.at) >= CUTS_KEPT_MAX:
            del kept.at[next(iter(kept.at))]
        kept.at[reader.cut] = ground
    reader.graves.know(are_there=ground.has_tombstones)
    reader.graves.learn_contracts(ground.contracts)
    reader.graves.learn_merges(ground.merges)
    return ground
