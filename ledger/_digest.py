"""A digest of everything that was folded: equal for equal ledgers, however they came about."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ledger._keys import framed

# Numbers of lines and cells are handed out by the database in the order of arrival and are left out.
_CLAIMS: Final = (
    "SELECT position, ordinal, claim_id, commit, event_id, entity, relation, stance, body, seal FROM claim "
    "WHERE epoch = :epoch ORDER BY position, ordinal"
)
_REACH: Final = (
    "SELECT entity, relation, claim_id FROM reach WHERE epoch = :epoch ORDER BY entity, relation, claim_id"
)
_TOMBSTONES: Final = "SELECT position, ordinal, entity, relation, body, seal FROM tombstone ORDER BY 1, 2"
_TOMBSTONE_REACH: Final = (
    "SELECT entity, relation, position, ordinal FROM tombstone_reach WHERE epoch = :epoch ORDER BY 1, 2, 3, 4"
)
_CONTRACTS: Final = (
    "SELECT relation, commit, contract, seal FROM relation WHERE epoch = :epoch ORDER BY relation"
)
_CELLS: Final = (
    "SELECT l.entity, l.relation, l.part, lower(c.valid), upper(c.valid), lower(c.known), upper(c.known), "
    "c.state, c.claims FROM line l JOIN cell c ON c.tenant = l.tenant AND c.line = l.line "
    "WHERE l.epoch = :epoch "
    "ORDER BY l.entity, l.relation, l.part, lower(c.valid) NULLS FIRST, lower(c.known)"
)


async def ledger_digest(conn: AsyncConnection, epoch: int) -> str:
    """
    Return the SHA-256 (hex) of the transaction's tenant's claims and cells in one epoch.

    Two ledgers folded from one log have the same one, whatever the batches, workers and crashes.
    """
    digest = hashlib.sha256()
    for part in (_CLAIMS, _REACH, _TOMBSTONES, _TOMBSTONE_REACH, _CONTRACTS, _CELLS):
        digest.update(framed(b"part"))
        result = await conn.stream(sa.text(part), {"epoch": epoch})
        async for row in result:
            digest.update(framed(*(_form(value) for value in row)))
    return digest.hexdigest()


def _form(value: Any) -> bytes:  # noqa: ANN401 — whatever a column holds
    match value:
        case None:
            return b"-"
        case bytes() | memoryview():
            return bytes(value)
        case list():
            return framed(*(_form(item) for item in value))
        case _:
            return str(value).encode()
