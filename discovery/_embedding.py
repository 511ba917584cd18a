"""
Vectors while the service runs: of questions at once, of units in the background, a batch a tenant in turn.

What is stored is what is compared: a vector is rounded to two bytes a number as soon as it is made, so
that an index is the same before a restart and after.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
import structlog

from contracts.errors import ModelMismatch
from contracts.events import Event
from discovery._cells import Near, lay
from discovery._embedder import DIMENSIONS_MAX, Embedder, Vectors
from discovery._index import TenantIndex
from discovery._speakers import dense_turn
from discovery._units import unit_of
from discovery._vectors import StoredVector, known_vectors, store_vectors, unit_cosines
from ledger import log

EMBED_BATCH_TEXTS: Final = 32
"""Units embedded between two looks at what else waits: about a quarter of a second."""

_log = structlog.get_logger(__name__)


class Embedding:
    """One embedder in use, and the threads that it works in. One event loop."""

    def __init__(self, db: log.Database) -> None:
        self._db = db
        self._embedder: Embedder | None = None
        # One thread for units and one for questions: a question does not wait behind a batch.
        self._unit_thread = ThreadPoolExecutor(1, thread_name_prefix="embed-units")
        self._question_thread = ThreadPoolExecutor(1, thread_name_prefix="embed-question")

    @property
    def model_digest(self) -> str | None:
        """The model that vectors are made with; None while there is none."""
        return None if self._embedder is None else self._embedder.model_digest

    @property
    def dimensions(self) -> int:
        """Numbers in one vector; 0 while there is no embedder."""
        return 0 if self._embedder is None else self._embedder.dimensions

    def use(self, embedder: Embedder | None) -> None:
        """
        Take an embedder into use; what another one made is left where it is and not read.

        Raises:
            ModelMismatch: Its vectors are longer than can be stored.
        """
        if embedder is not None and not 0 < embedder.dimensions <= DIMENSIONS_MAX:
            raise ModelMismatch(
                index_model=f"at most {DIMENSIONS_MAX} dimensions",
                served_model=f"{embedder.model_digest} of {embedder.dimensions}",
            )
        self._embedder = embedder

    def close(self) -> None:
        """Let threads go, without waiting; what they are doing is finished and thrown away."""
        for thread in (self._unit_thread, self._question_thread):
            # An endpoint may keep one for a minute.
            thread.shutdown(wait=False, cancel_futures=True)

    async def questions(self, texts: Sequence[str]) -> Vectors | None:
        """
        Return the vectors of questions; None while there is no embedder.

        Raises:
            ModelMismatch: The embedder gave something else than it says it gives.
            Unavailable: It cannot be reached.
        """
        if self._embedder is None:
            return None
        return await self._embed(self._question_thread, self._embedder, texts)

    async def _embed(self, thread: ThreadPoolExecutor, embedder: Embedder, texts: Sequence[str]) -> Vectors:
        loop = asyncio.get_running_loop()
        made = await loop.run_in_executor(thread, embedder.embed, texts)
        if made.shape != (len(texts), embedder.dimensions):
            raise ModelMismatch(
                index_model=f"{embedder.model_digest}: {len(texts)} of {embedder.dimensions} numbers",
                served_model=f"vectors of shape {made.shape}",
            )
        return made.astype(np.float16).astype(np.float32)

    async def scored(self, tenant: str, index: TenantIndex, near: Near, vector: Vectors) -> Near:
        """Return the same units scored from their stored vectors; one that has none any more is left out."""
        if self._embedder is None or len(near.rows) == 0:
            return near
        rows = {index.unit_ids[row]: row for row in near.rows.tolist()}
        async with self._db.snapshot(tenant) as conn:
            found = await unit_cosines(
                conn, tenant=tenant, model=self._embedder.model_digest, vector=vector, units=list(rows)
            )
        order = sorted(found, key=lambda unit: (-found[unit], rows[unit]))
        return Near(
            np.array([rows[unit] for unit in order], dtype=np.int64),
            np.array([found[unit] for unit in order], dtype=np.float32),
            near.low,
        )

    async def some_units(self, tenant: str, index: TenantIndex) -> bool:
        """
        Embed the first units without a vector; return whether there were any.

        Raises:
            EchoplaneError: They could not be read, embedded or stored; they are the first again.
        """
        rows = index.missing_vectors(EMBED_BATCH_TEXTS)
        embedder = self._embedder
        if embedder is None:
            return False
        if not rows:
            await self._lay_cells(index)
            return False
        async with self._db.snapshot(tenant) as conn:
            keys = await log.tenant_keys(self._db, tenant, conn)
            events = await log.read_events_by_id(conn, keys, [index.unit_ids[row] for row in rows])
            texts = [_text_of(index, row, events.get(index.unit_ids[row])) for row in rows]
            digests = [keys.digest(b"unit text\0" + text.encode()) for text in texts]
            known = await known_vectors(conn, tenant=tenant, model=embedder.model_digest, digests=digests)
        fresh = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in known}
        if fresh:
            made = await self._embed(self._unit_thread, embedder, list(fresh.values()))
            known |= dict(zip(fresh, made, strict=True))
        vectors = [known[digest] for digest in digests]
        async with self._db.tenant(tenant) as conn:
            await store_vectors(
                conn,
                tenant=tenant,
                model=embedder.model_digest,
                vectors=[
                    StoredVector(
                        unit_id=index.unit_ids[row],
                        position=index.position_of(row),
                        text_digest=digest,
                        vector=vector,
                    )
                    for row, digest, vector in zip(rows, digests, vectors, strict=True)
                ],
            )
        if index.dimensions == embedder.dimensions:
            index.set_vectors(rows, np.asarray(vectors, dtype=np.float32))
        return True

    async def _lay_cells(self, index: TenantIndex) -> None:
        codes = index.codes
        if codes is None or not codes.wants_layout:
            return
        run = asyncio.get_running_loop().run_in_executor
        codes.use(layout := await run(self._unit_thread, lay, *codes.stored()))
        _log.info("cells_laid", units_count=len(layout.cells), probed_count=layout.probed)


def _text_of(index: TenantIndex, row: int, event: log.LoggedEvent | None) -> str:
    unit = unit_of(event) if isinstance(event, Event) else None
    # Erased since it was indexed: the tenant is about to be read anew without it.
    return dense_turn(index, unit.dense_text, row) if unit is not None else ""
