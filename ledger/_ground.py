"""
What every answer rests on beside its own key: contracts, and who is one with whom.

Contracts are kept in memory by a digest of their rows, which comes with whatever is read: the same
rows are the same contracts, and changed ones are read and held against their seals. So are merges, by
a digest of the rows of all claims that they were worked out from.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary, ref

import sqlalchemy as sa

from contracts.identity import IDENTITY
from contracts.limits import MERGES_CLAIMS_KEPT_MAX
from ledger._found import Stand
from ledger._identity import NO_MERGES, Merges, identity_of
from ledger._keys import TenantKeys
from ledger._relations import Contracts
from ledger._world import Reader

CONTRACTS_KEPT_MAX: Final = 16
"""Sets of contracts of one tenant, at different cuts and epochs, that are kept in memory."""


class MergesKept:
    """
    Who is one with whom, by a tenant's keys and the digest of the rows: of all tenants those used last.

    They are as large as the claims that they were worked out from, and together have `claims_max` of
    these at most. None stays longer than the keys by which its rows were checked.
    """

    def __init__(self, claims_max: int) -> None:
        self.claims_count = 0
        self._claims_max = claims_max
        self._kept: OrderedDict[tuple[ref[TenantKeys], bytes], tuple[Merges, int]] = OrderedDict()

    def get(self, keys: TenantKeys, digest: bytes) -> Merges | None:
        """Return what is kept, as used just now; None where nothing is."""
        at = (ref(keys), digest)
        if at not in self._kept:
            return None
        self._kept.move_to_end(at)
        return self._kept[at][0]

    def put(self, keys: TenantKeys, digest: bytes, merges: Merges, claims_count: int) -> None:
        """Keep merges that so many claims made, and let those go that were used longest ago."""
        self._drop((ref(keys), digest))
        if claims_count > self._claims_max:
            return
        self._kept[ref(keys, lambda gone: self._drop((gone, digest))), digest] = merges, claims_count
        self.claims_count += claims_count
        while self.claims_count > self._claims_max:
            self._drop(next(iter(self._kept)))

    def _drop(self, at: tuple[ref[TenantKeys], bytes]) -> None:
        _, claims_count = self._kept.pop(at, (None, 0))
        self.claims_count -= claims_count


# For as long as the tenant's keys are held in memory, by which the rows were checked.
_KEPT: Final[WeakKeyDictionary[TenantKeys, dict[bytes, Contracts]]] = WeakKeyDictionary()
_MERGED: Final = MergesKept(MERGES_CLAIMS_KEPT_MAX)

_ROW: Final = (
    "ROW(c.claim_id, c.position, c.ordinal, c.commit, c.event_id, c.entity, c.relation, c.stance, c.body, "
    "c.seal)::text AS form, c.position, c.ordinal, c.claim_id"
)
# The other name of a pair; nothing where a changed body says none, which its seal will tell.
_OTHER: Final = (
    "CASE WHEN position(CAST('\\x00' AS bytea) IN c.body) = 0 THEN "
    "CASE WHEN pg_input_is_valid(convert_from(c.body, 'LATIN1'), 'jsonb') THEN "
    "CAST(convert_from(c.body, 'LATIN1') AS jsonb) ->> 0 END END"
)
# Every claim about who is one with whom, and every one that bears on such a key: whole rows, so that one
# that was changed is read again and refused.
_ROWS: Final = sa.text(
    f"WITH said AS MATERIALIZED (SELECT c.entity, c.relation, {_OTHER} AS other, {_ROW} "  # noqa: S608 — constants
    "FROM claim c WHERE c.tenant = :tenant "
    "AND c.epoch = :epoch AND c.relation IN ('same_as', 'not_same_as') AND c.commit <= :cut), "
    "names AS (SELECT entity, relation FROM said UNION SELECT other, relation FROM said), "
    "acting AS MATERIALIZED (SELECT DISTINCT r.claim_id FROM names n CROSS JOIN LATERAL ("
    "SELECT r.claim_id FROM reach r WHERE r.tenant = :tenant AND r.epoch = :epoch "
    "AND r.entity = n.entity AND r.relation = n.relation OFFSET 0) AS r), "
    f"other AS MATERIALIZED (SELECT a.* FROM acting CROSS JOIN LATERAL (SELECT {_ROW} FROM claim c "
    "WHERE c.tenant = :tenant AND c.epoch = :epoch AND c.claim_id = acting.claim_id "
    "AND c.commit <= :cut OFFSET 0) AS a), "
    "rows AS (SELECT form, position, ordinal FROM said UNION SELECT form, position, ordinal FROM other) "
    "SELECT sha256(convert_to(coalesce(string_agg(form, '' ORDER BY position, ordinal), ''), 'UTF8')) "
    "AS digest, ARRAY(SELECT claim_id FROM other) AS acting FROM rows"
)


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
    if stand.has_tombstones:
        merges = identity_of(await reader.identity_claims(), contracts)
    elif stand.has_identity:
        merges = await _merges(reader, stand, contracts)
    reader.graves.learn_contracts(contracts)
    reader.graves.learn_merges(merges)
    return Ground(contracts=contracts, merges=merges, has_tombstones=stand.has_tombstones)


def ground_kept(keys: TenantKeys, stand: Stand) -> Ground | None:
    """Return it where nothing has to be read for it; else None."""
    contracts = contracts_kept(keys, stand.contracts)
    if contracts is None or stand.has_identity or stand.has_tombstones:
        return None
    return Ground(contracts=contracts, merges=NO_MERGES, has_tombstones=False)


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


async def _merges(reader: Reader, stand: Stand, contracts: Contracts) -> Merges:
    """Return who is one with whom, where nothing was erased."""
    bound = {"tenant": reader.keys.tenant, "epoch": reader.epoch, "cut": reader.cut}
    row = (await reader.conn.execute(_ROWS, bound)).one()
    digest = stand.contracts + bytes(row.digest)
    found = _MERGED.get(reader.keys, digest)
    if found is not None:
        return found
    claims = await reader.identity_claims()
    merges = identity_of(claims, contracts)
    acting = {bytes(claim_id).hex() for claim_id in row.acting}
    # What else they hang on (what a pair was derived from, say) is not in the digest: then it is not kept.
    if all(claim.relation in IDENTITY or claim.claim_id in acting for claim in claims):
        _MERGED.put(reader.keys, digest, merges, len(claims))
    return merges
