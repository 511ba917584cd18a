"""
Vectors in PostgreSQL: stored data, never recomputed for a question that was asked.

A vector is kept by unit and model, with the keyed digest of the text it was made from, so that equal
texts of a tenant are embedded once. Another model's vectors stay beside these until they are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from discovery._embedder import Vectors

LOADED_ROWS_MAX: Final = 5_000
"""Vectors read in one statement: 4 MB of 384 dimensions."""
_HEADER_BYTES: Final = 4

_LOAD: Final = sa.text(
    """
    SELECT unit_id, position, halfvec_send(embedding) AS bytes FROM unit_vector
    WHERE tenant = :tenant AND model_digest = :model AND position > :after AND position <= :upto
    ORDER BY position, unit_id LIMIT :limit
    """
)
_KNOWN: Final = sa.text(
    """
    SELECT DISTINCT ON (text_digest) text_digest, halfvec_send(embedding) AS bytes FROM unit_vector
    WHERE tenant = :tenant AND model_digest = :model AND text_digest = ANY(CAST(:digests AS bytea[]))
    ORDER BY text_digest, position
    """
)
# A unit whose event has lost its key is passed over. One that loses it in this very moment is refused
# (`unit_vector_of_key`): this statement would not see that, but the constraint waits for it.
_STORE: Final = sa.text(
    """
    INSERT INTO unit_vector (tenant, unit_id, model_digest, position, text_digest, embedding)
    SELECT :tenant, CAST(:unit AS text), :model, :position, CAST(:digest AS bytea),
           CAST(CAST(:embedding AS real[]) AS halfvec)
    WHERE EXISTS (SELECT FROM event_key WHERE tenant = :tenant AND event_id = CAST(:unit AS text))
    ON CONFLICT (tenant, unit_id, model_digest) DO NOTHING
    """
)
_COSINES: Final = sa.text(
    """
    SELECT unit_id, -(embedding <#> CAST(CAST(:embedding AS real[]) AS halfvec)) AS cosine FROM unit_vector
    WHERE tenant = :tenant AND model_digest = :model AND unit_id = ANY(CAST(:units AS text[]))
    """
)
_DROP: Final = sa.text("DELETE FROM unit_vector WHERE tenant = :tenant")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVector:
    """A unit's vector, with the position of its event and the keyed digest of its text."""

    unit_id: str
    position: int
    text_digest: bytes
    vector: Vectors


async def load_vectors(
    conn: AsyncConnection, *, tenant: str, model: str, after_position: int, upto_position: int
) -> dict[str, Vectors]:
    """Return the stored vectors of units of these positions, by unit."""
    found: dict[str, Vectors] = {}
    after = after_position
    while True:
        parameters = {
            "tenant": tenant,
            "model": model,
            "after": after,
            "upto": upto_position,
            "limit": LOADED_ROWS_MAX,
        }
        rows = (await conn.execute(_LOAD, parameters)).all()
        found.update((row.unit_id, _vector(row.bytes)) for row in rows)
        # A unit is an event, so a position is one row and no page can split it.
        if len(rows) < LOADED_ROWS_MAX:
            return found
        after = rows[-1].position


async def known_vectors(
    conn: AsyncConnection, *, tenant: str, model: str, digests: Sequence[bytes]
) -> dict[bytes, Vectors]:
    """Return vectors that the tenant has for these texts already, by the keyed digest of the text."""
    rows = await conn.execute(_KNOWN, {"tenant": tenant, "model": model, "digests": list(digests)})
    return {bytes(row.text_digest): _vector(row.bytes) for row in rows}


async def store_vectors(
    conn: AsyncConnection, *, tenant: str, model: str, vectors: Sequence[StoredVector]
) -> None:
    """
    Store vectors; one that is there already stays as it is.

    Raises:
        NotFound: One of the events is being erased; none was stored.
    """
    if vectors:
        await conn.execute(
            _STORE,
            [
                {
                    "tenant": tenant,
                    "unit": stored.unit_id,
                    "model": model,
                    "position": stored.position,
                    "digest": stored.text_digest,
                    "embedding": stored.vector.tolist(),
                }
                for stored in vectors
            ],
        )


async def unit_cosines(
    conn: AsyncConnection, *, tenant: str, model: str, vector: Vectors, units: Sequence[str]
) -> dict[str, float]:
    """Return the cosine of each unit that has a vector."""
    parameters = {"tenant": tenant, "model": model, "embedding": vector.tolist(), "units": list(units)}
    rows = await conn.execute(_COSINES, parameters)
    return {row.unit_id: float(row.cosine) for row in rows}


async def drop_vectors(conn: AsyncConnection, *, tenant: str) -> int:
    """Delete every vector of a tenant, whatever model made it; return how many."""
    return (await conn.execute(_DROP, {"tenant": tenant})).rowcount


def _vector(data: Any) -> Vectors:  # noqa: ANN401 - bytes or memoryview, as the driver likes
    # pgvector's binary form: 16 bits of dimension, 16 unused, then big-endian numbers of two bytes.
    return np.frombuffer(bytes(data), dtype=">f2", offset=_HEADER_BYTES).astype(np.float32)
