"""
What every answer rests on beside its own key: contracts, and who is one with whom.

Contracts are kept in memory by a digest of their rows, which comes with whatever is read: the same
rows are the same contracts, and changed ones are read and held against their seals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

from ledger._found import Stand
from ledger._identity import NO_MERGES, Merges, identity_of
from ledger._keys import TenantKeys
from ledger._relations import Contracts
from ledger._world import Reader

CONTRACTS_KEPT_MAX: Final = 16
"""Sets of contracts of one tenant, at different cuts and epochs, that are kept in memory."""

# For as long as the tenant's keys are held in memory, by which the rows were checked.
_KEPT: Final[WeakKeyDictionary[TenantKeys, dict[bytes, Contracts]]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Contracts and merges at one cut; whether the tenant erased anything that left a tombstone."""

    contracts: Contracts
    merges: Merges
    has_tombstones: bool


async def ground_of(reader: Reader, stand: Stand) -> Ground:
    """
    Return the contracts and merges at the reader's cut, where it stands as was read there.

    Raises:
        IntegrityFault: A claim or contract is not what was written.
    """
    reader.graves.know(are_there=stand.has_tombstones)
    contracts = await _contracts(reader, stand)
    merges = NO_MERGES
    if stand.has_identity or stand.has_tombstones:
        merges = identity_of(await reader.identity_claims(), contracts)
    reader.graves.learn_contracts(contracts)
    reader.graves.learn_merges(merges)
    return Ground(contracts=contracts, merges=merges, has_tombstones=stand.has_tombstones)


def contracts_kept(keys: TenantKeys, digest: bytes) -> Contracts | None:
    """Return the contracts of that digest; None where they were not read yet."""
    return _KEPT.setdefault(keys, {}).get(digest)


async def _contracts(reader: Reader, stand: Stand) -> Contracts:
    kept = _KEPT.setdefault(reader.keys, {})
    found = contracts_kept(reader.keys, stand.contracts)
    if found is None:
        found = await reader.contracts()
        while len(kept) >= CONTRACTS_KEPT_MAX:
            del kept[next(iter(kept))]
        kept[stand.contracts] = found
    return found
