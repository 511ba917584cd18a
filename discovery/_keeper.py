"""
Keeps tenants' indexes: loads them on demand, lets them catch up with the log, embeds in the background.

The log is the only truth: an index is what was read of it so far, lives in memory, and can be lost at
any moment. Vectors alone are kept, in PostgreSQL, because making them is slow.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import EchoplaneError, ModelMismatch, NotFound
from contracts.events import Event, Kind
from contracts.limits import APPEND_EVENTS_MAX, PAGE_EVENTS_MAX
from discovery._cells import Near, lay
from discovery._embedder import Embedder, Vectors
from discovery._index import TenantIndex
from discovery._units import unit_of
from discovery._vectors import (
    StoredVector,
    drop_vectors,
    known_vectors,
    load_vectors,
    store_vectors,
    unit_cosines,
)
from discovery._wire import Health
from ledger import log

DIMENSIONS: Final = 384
"""Of the column that vectors are stored in."""
EMBED_BATCH_TEXTS: Final = 32
"""Units embedded between two looks at what else waits: about a quarter of a second."""
EVENTS_BETWEEN_TURNS: Final = 50
"""Events indexed before questions get a turn."""
MEMORY_BYTES_MAX: Final = 1_073_741_824
"""Memory that indexes may hold together; past it the tenant asked least recently goes."""
RETRY_SECONDS: Final = 1.0
READS_MAX: Final = 3
"""Readings that one question waits for: one under way, its own, and one more after an erasure."""

# A page has to hold any commit whole, or a cut could be taken for reached in the middle of one.
assert PAGE_EVENTS_MAX >= APPEND_EVENTS_MAX

_log = structlog.get_logger(__name__)


@dataclass(slots=True, kw_only=True)
class _Held:
    """An index in memory, and the reading that is going on for it."""

    index: TenantIndex
    # ERASURE events up to this position were in the log before the first event was read.
    read_from_head: int
    reading: asyncio.Task[None] | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Keeper:
    """The indexes of this process. One event loop; embedding runs in threads of its own."""

    def __init__(
        self,
        db: log.Database,
        *,
        embedder: Embedder | None,
        memory_bytes_max: int = MEMORY_BYTES_MAX,
    ) -> None:
        self._db = db
        self._embedder: Embedder | None = None
        self._memory_bytes_max = memory_bytes_max
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._work = asyncio.Event()
        # One thread for units and one for questions: a question does not wait behind a batch.
        self._unit_thread = ThreadPoolExecutor(1, thread_name_prefix="embed-units")
        self._question_thread = ThreadPoolExecutor(1, thread_name_prefix="embed-question")
        self.use(embedder)

    @property
    def tenants(self) -> tuple[str, ...]:
        """Tenants in memory, the one asked least recently first."""
        return tuple(self._held)

    @property
    def model_digest(self) -> str | None:
        """The model that vectors are made with; None while there is none."""
        return None if self._embedder is None else self._embedder.model_digest

    def use(self, embedder: Embedder | None) -> None:
        """
        Take an embedder into use; what another one made is left where it is and not read.

        Raises:
            ModelMismatch: Its vectors do not fit the column they are stored in.
        """
        if embedder is not None and embedder.dimensions != DIMENSIONS:
            raise ModelMismatch(
                index_model=f"{DIMENSIONS} dimensions",
                served_model=f"{embedder.model_digest} of {embedder.dimensions}",
            )
        self._embedder = embedder
        self._held.clear()
        self._work.set()

    def health(self) -> Health:
        """Return what is held, in numbers."""
        indexes = [held.index for held in self._held.values()]
        return Health(
            model_digest=self.model_digest,
            tenants=len(indexes),
            units=sum(len(index) for index in indexes),
            units_without_vector=sum(len(index) - int(index.embedded(len(index)).sum()) for index in indexes),
        )

    def close(self) -> None:
        """Let threads go; what they are doing is finished and thrown away."""
        for held in self._held.values():
            if held.reading is not None:
                held.reading.cancel()
        self._unit_thread.shutdown(wait=True, cancel_futures=True)
        self._question_thread.shutdown(wait=True, cancel_futures=True)

    # --- reading the log ------------------------------------------------------------------------

    async def ready(self, tenant: str, *, cut: int, epoch: int | None, wait_seconds: float) -> TenantIndex:
        """
        Return the tenant's index, caught up with the cut if that can be done in time.

        What could not be read in time goes on being read; the index says how far it is.

        Raises:
            NotFound: No such tenant.
            Unavailable: The database is down.
        """
        held = await self._hold(tenant)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_seconds):
                for _ in range(READS_MAX):
                    if held.index.complete_commit >= cut and not _lags(held.index, epoch, cut):
                        break
                    # Shielded: a question that gives up does not take the reading away from the next.
                    await asyncio.shield(self._read(tenant, held, epoch))
                    held = await self._hold(tenant)
        self._work.set()
        return held.index

    async def wake(self, tenant: str) -> None:
        """Catch up with the log because somebody said that there is more of it, or none any more."""
        try:
            async with self._db.snapshot(tenant) as conn:
                await log.head(conn)
            held = await self._hold(tenant)
            epoch = None
            if held.index.claims:
                # The one that serves now, which may be another than the last question's.
                async with self._db.snapshot(tenant) as conn:
                    epoch = (await log.serving(conn)).epoch
            await asyncio.shield(self._read(tenant, held, epoch))
            self._work.set()
        except NotFound:
            # It was deleted.
            self.forget(tenant)

    async def _hold(self, tenant: str) -> _Held:
        held = self._held.get(tenant)
        if held is None:
            async with self._db.snapshot(tenant) as conn:
                head = await log.head(conn)
            # Another question may have made it in the meantime.
            held = self._held.setdefault(
                tenant, _Held(index=TenantIndex(dimensions=DIMENSIONS), read_from_head=head.position)
            )
        self._held.move_to_end(tenant)
        self._shrink(keep=tenant)
        return held

    def _shrink(self, *, keep: str) -> None:
        total = sum(held.index.bytes_held for held in self._held.values())
        for tenant in list(self._held):
            if total <= self._memory_bytes_max or tenant == keep:
                return
            total -= self._held.pop(tenant).index.bytes_held
            _log.info("index_evicted", tenant=tenant)

    def _read(self, tenant: str, held: _Held, epoch: int | None) -> asyncio.Task[None]:
        if held.reading is None or held.reading.done():
            held.reading = asyncio.create_task(self._catch_up(tenant, held, epoch), name=f"read {tenant}")
            held.reading.add_done_callback(_look_at)
        return held.reading

    async def _catch_up(self, tenant: str, held: _Held, epoch: int | None) -> None:
        """Read the log to its end, then the claims of the epoch."""
        index = held.index
        while True:
            async with self._db.snapshot(tenant) as conn:
                keys = await log.tenant_keys(self._db, tenant, conn)
                page = await log.read_events(conn, keys, after_position=index.position, limit=PAGE_EVENTS_MAX)
                stored = await self._stored(conn, tenant, index.position, page)
            if not page:
                break
            if any(
                event.position > held.read_from_head
                and isinstance(event, Event)
                and event.draft.kind == Kind.ERASURE
                for event in page
            ):
                self._forget_erased(tenant, index)
                return
            await _add(index, page, stored)
        index.complete_commit = index.last_commit
        if epoch is not None:
            await self._read_claims(tenant, index, epoch)

    def _forget_erased(self, tenant: str, index: TenantIndex) -> None:
        # Postings of an erased text are spread over every list: the tenant is read anew without it. Its
        # stored vectors went with its key.
        index.is_dropped = True
        self._held.pop(tenant, None)
        _log.info("index_dropped_after_erasure", tenant=tenant)

    async def _stored(
        self, conn: AsyncConnection, tenant: str, after: int, page: Sequence[log.LoggedEvent]
    ) -> dict[str, Vectors]:
        if self._embedder is None or not page:
            return {}
        return await load_vectors(
            conn,
            tenant=tenant,
            model=self._embedder.model_digest,
            after_position=after,
            upto_position=page[-1].position,
        )

    async def _read_claims(self, tenant: str, index: TenantIndex, epoch: int) -> None:
        book = index.book(epoch)
        while True:
            async with self._db.snapshot(tenant) as conn:
                keys = await log.tenant_keys(self._db, tenant, conn)
                folded = await log.folded_to(conn, epoch)
                claims = await log.read_claims(
                    conn, keys, epoch=epoch, after_position=book.position, limit=PAGE_EVENTS_MAX
                )
            for number, claim in enumerate(claims):
                index.add_claim(claim)
                if number % EVENTS_BETWEEN_TURNS == 0:
                    await asyncio.sleep(0)
            if not claims:
                # Folded in order: with nothing more to read, everything up to there was read.
                book.complete_commit = max(book.complete_commit, folded)
                return

    # --- vectors --------------------------------------------------------------------------------

    async def embed_question(self, text: str) -> Vectors | None:
        """Return the vector of a question; None while there is no embedder."""
        if self._embedder is None:
            return None
        loop = asyncio.get_running_loop()
        vectors = await loop.run_in_executor(self._question_thread, self._embedder.embed, [text])
        return np.asarray(vectors[0], dtype=np.float32)

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

    async def embed_in_background(self) -> None:
        """Embed what has no vector yet, a batch a tenant in turn, until cancelled."""
        while True:
            await self._work.wait()
            self._work.clear()
            waiting = True
            while waiting:
                waiting = False
                for tenant in reversed(self.tenants):
                    held = self._held.get(tenant)
                    if held is None or self._embedder is None:
                        continue
                    try:
                        waiting |= await self._embed_batch(tenant, held.index, self._embedder)
                    except EchoplaneError as error:
                        _log.warning("embedding_put_off", tenant=tenant, error=error.code)
                        await asyncio.sleep(RETRY_SECONDS)
                        waiting = True

    async def _embed_batch(self, tenant: str, index: TenantIndex, embedder: Embedder) -> bool:
        """Embed the first units without a vector; return whether there were any."""
        rows = index.missing_vectors(EMBED_BATCH_TEXTS)
        if not rows:
            return await self._lay_cells(index)
        async with self._db.snapshot(tenant) as conn:
            keys = await log.tenant_keys(self._db, tenant, conn)
            events = await log.read_events_by_id(conn, keys, [index.unit_ids[row] for row in rows])
            texts = [_text_of(events.get(index.unit_ids[row])) for row in rows]
            digests = [keys.digest(b"unit text\0" + text.encode()) for text in texts]
            known = await known_vectors(conn, tenant=tenant, model=embedder.model_digest, digests=digests)
        fresh = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in known}
        loop = asyncio.get_running_loop()
        made = await loop.run_in_executor(self._unit_thread, embedder.embed, list(fresh.values()))
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
        index.set_vectors(rows, np.asarray(vectors, dtype=np.float32))
        return True

    async def _lay_cells(self, index: TenantIndex) -> bool:
        """Lay the cells of a tenant that has grown; return whether that was due."""
        codes = index.codes
        if codes is None or not codes.wants_layout:
            return False
        run = asyncio.get_running_loop().run_in_executor
        codes.use(layout := await run(self._unit_thread, lay, *codes.stored()))
        _log.info("cells_laid", units_count=len(layout.cells), probed=layout.probed)
        return False

    def forget(self, tenant: str) -> None:
        """Drop a tenant from memory; the next question reads it anew."""
        held = self._held.pop(tenant, None)
        if held is not None and held.reading is not None:
            held.reading.cancel()


async def drop_index(db: log.Database, tenant: str) -> int:
    """
    Delete the tenant's stored vectors, so that they are made anew; return how many there were.

    A running service drops what it holds in memory when it is told to (`Client.drop_index`).

    Raises:
        Unavailable: The database is down.
    """
    async with db.tenant(tenant) as conn:
        return await drop_vectors(conn, tenant=tenant)


async def _add(index: TenantIndex, page: Sequence[log.LoggedEvent], stored: dict[str, Vectors]) -> None:
    for number, event in enumerate(page):
        index.add(event)
        if number % EVENTS_BETWEEN_TURNS == EVENTS_BETWEEN_TURNS - 1:
            await asyncio.sleep(0)
    rows = [index.row_of[unit] for unit in stored if unit in index.row_of]
    if rows:
        vectors = [stored[index.unit_ids[row]] for row in rows]
        index.set_vectors(rows, np.asarray(vectors, dtype=np.float32))
    # The page may end inside its last commit.
    index.complete_commit = max(index.complete_commit, page[-1].commit - 1)


def _text_of(event: log.LoggedEvent | None) -> str:
    unit = unit_of(event) if isinstance(event, Event) else None
    # Erased since it was indexed: the tenant is about to be read anew without it.
    return unit.dense_text if unit is not None else ""


def _lags(index: TenantIndex, epoch: int | None, cut: int) -> bool:
    if epoch is None:
        return False
    book = index.claims.get(epoch)
    return book is None or book.complete_commit < cut


def _look_at(task: asyncio.Task[None]) -> None:
    # A reading that nobody waits for any more must not end in silence.
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.warning("index_reading_failed", error=type(error).__name__)
