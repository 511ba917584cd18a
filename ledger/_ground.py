"""
What every answer rests on beside its own key: contracts, and who is one with whom.

Contracts are kept in memory by a digest of their rows, which comes with whatever is read: the same
rows are the same contracts, and changed ones are read and held against their seals. So are merges, by
a digest of the rows of all claims that they were worked out from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

import sqlalchemy as sa

from contracts.identity import IDENTITY
from ledger._found import Stand
from ledger._identity import NO_MERGES, Merges, identity_of
from ledger._keys import TenantKeys
from ledger._relations import Contracts
from ledger._world import Reader

CONTRACTS_KEPT_MAX: Final = 16
"""Sets of contracts of one tenant, at different cuts and epochs, that are kept in memory."""

MERGES_KEPT_MAX: Final = 16
"""The same of who is one with whom."""

# For as long as the tenant's keys are held in memory, by which the rows were checked.
_KEPT: Final[WeakKeyDictionary[TenantKeys, dict[bytes, Contracts]]] = WeakKeyDictionary()
_MERGED: Final[WeakKeyDictionary[TenantKeys, dict[bytes, Merges]]] = WeakKeyDictionary()

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
    kept = _MERGED.setdefault(reader.keys, {})
    digest = stand.contracts + bytes(row.digest)
    found = kept.get(digest)
    if found is not None:
        return found
    claims = await reader.identity_claims()
    merges = identity_of(claims, contracts)
    acting = {bytes(claim_id).hex() for claim_id in row.acting}
    # What else they hang on (what a pair was derived from, say) is not in the digest: then it is not kept.
    if all(claim.relation in IDENTITY or claim.claim_id in acting for claim in claims):
        while len(kept) >= MERGES_KEPT_MAX:
            del kept[next(iter(kept))]
        kept[digest] = merges
    return merges
