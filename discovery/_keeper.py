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
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import EchoplaneError, NotFound, Unavailable
from contracts.events import Event, Kind
from contracts.limits import APPEND_EVENTS_MAX, PAGE_EVENTS_MAX
from discovery._cache import IndexCache
from discovery._embedder import Embedder, Vectors
from discovery._embedding import Embedding
from discovery._index import TenantIndex
from discovery._vectors import drop_vectors, load_vectors
from discovery._wire import Health
from ledger import log

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
    # Whose vectors it has room for: another may be taken into use while it is read.
    model: str | None
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
        cache: IndexCache | None = None,
    ) -> None:
        self._db = db
        self._cache = cache
        self.embedding = Embedding(db)
        self._memory_bytes_max = memory_bytes_max
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._loading: dict[str, asyncio.Task[None]] = {}
        self._work = asyncio.Event()
        self.use(embedder)

    @property
    def tenants(self) -> tuple[str, ...]:
        """Tenants in memory, the one asked least recently first."""
        return tuple(self._held)

    def use(self, embedder: Embedder | None) -> None:
        """
        Take an embedder into use; what another one made is left where it is and not read.

        Raises:
            ModelMismatch: Its vectors cannot be stored.
        """
        self.embedding.use(embedder)
        self._held.clear()
        self._loading.clear()
        self._work.set()

    def health(self) -> Health:
        """Return what is held, in numbers."""
        indexes = [held.index for held in self._held.values()]
        return Health(
            model_digest=self.embedding.model_digest,
            tenants=len(indexes),
            units=sum(len(index) for index in indexes),
            units_without_vector=sum(len(index) - int(index.embedded(len(index)).sum()) for index in indexes),
        )

    def close(self) -> None:
        """Let threads go; what they are doing is finished and thrown away."""
        for loading in self._loading.values():
            loading.cancel()
        for held in self._held.values():
            if held.reading is not None:
                held.reading.cancel()
        self.embedding.close()

    # --- reading the log ------------------------------------------------------------------------

    async def ready(self, tenant: str, *, cut: int, epoch: int | None, wait_seconds: float) -> TenantIndex:
        """
        Return the tenant's index, caught up with the cut if that can be done in time.

        What could not be read in time goes on being read; the index says how far it is.

        Raises:
            NotFound: No such tenant.
            Unavailable: The database is down, or the tenant's file takes longer to read.
        """
        held = self._held.get(tenant)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_seconds):
                held = await self._hold(tenant)
                for _ in range(READS_MAX):
                    if held.index.complete_commit >= cut and not _lags(held.index, epoch, cut):
                        break
                    # Shielded: a question that gives up does not take the reading away from the next.
                    await asyncio.shield(self._read(tenant, held, epoch))
                    held = await self._hold(tenant)
        if held is None:
            raise Unavailable(part="discovery", reason="it is still reading the tenant's index")
        self._work.set()
        return held.index

    async def begin(self, tenant: str) -> None:
        """Begin to read a tenant, without waiting for the end of it."""
        reading = self._read(tenant, await self._hold(tenant), None)
        reading.add_done_callback(lambda _: self._work.set())

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
        while (held := self._held.get(tenant)) is None:
            # Shielded, one for all who ask: a file that takes long is read once, and to its end.
            await asyncio.shield(self._load(tenant))
        self._held.move_to_end(tenant)
        self._shrink(keep=tenant)
        return held

    def _load(self, tenant: str) -> asyncio.Task[None]:
        task = self._loading.get(tenant)
        if task is None:
            task = self._loading[tenant] = asyncio.create_task(
                self._begin_held(tenant), name=f"load {tenant}"
            )
            task.add_done_callback(_look_at)
        return task

    async def _begin_held(self, tenant: str) -> None:
        task = asyncio.current_task()
        try:
            begun = await self._begun(tenant)
            # Else it was forgotten, or another embedder taken into use: whoever waits begins anew.
            if self._loading.get(tenant) is task:
                self._held[tenant] = begun
        finally:
            if self._loading.get(tenant) is task:
                del self._loading[tenant]

    async def _begun(self, tenant: str) -> _Held:
        """Return an index as its file has it, else an empty one."""
        model = self.embedding.model_digest
        if self._cache is not None:
            loaded = await self._cache.load(self._db, tenant, model)
            if loaded is not None and model == self.embedding.model_digest:
                return _Held(index=loaded.index, model=model, read_from_head=loaded.head_position)
        async with self._db.snapshot(tenant) as conn:
            head = await log.head(conn)
        return _Held(
            index=TenantIndex(dimensions=self.embedding.dimensions),
            model=self.embedding.model_digest,
            read_from_head=head.position,
        )

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
                stored = await _stored(conn, tenant, held.model, index.position, page)
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
        index.is_warm = True
        if epoch is not None:
            await self._read_claims(tenant, index, epoch)

    def _forget_erased(self, tenant: str, index: TenantIndex) -> None:
        # Postings of an erased text are spread over every list: the tenant is read anew without it. Its
        # stored vectors went with its key.
        index.is_dropped = True
        self._held.pop(tenant, None)
        if self._cache is not None:
            self._cache.drop(tenant)
        _log.info("index_dropped_after_erasure", tenant=tenant)

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
                    if held is None:
                        continue
                    try:
                        waiting |= await self.embedding.some_units(tenant, held.index)
                        if not waiting:
                            await self._keep(tenant, held.index)
                    except EchoplaneError as error:
                        _log.warning("embedding_put_off", tenant=tenant, error=error.code)
                        await asyncio.sleep(RETRY_SECONDS)
                        waiting = True

    async def _keep(self, tenant: str, index: TenantIndex) -> None:
        """Write an index to its file if it has grown enough."""
        model = self.embedding.model_digest
        if self._cache is not None and index.is_warm and self._cache.wants(tenant, model, index):
            await self._cache.save(self._db, tenant, model, index)

    def forget(self, tenant: str) -> None:
        """Drop a tenant, also from its file; the next question reads it anew."""
        if self._cache is not None:
            self._cache.drop(tenant)
        self._loading.pop(tenant, None)
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


async def _stored(
    conn: AsyncConnection, tenant: str, model: str | None, after: int, page: Sequence[log.LoggedEvent]
) -> dict[str, Vectors]:
    if model is None or not page:
        return {}
    return await load_vectors(
        conn, tenant=tenant, model=model, after_position=after, upto_position=page[-1].position
    )


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


def _lags(index: TenantIndex, epoch: int | None, cut: int) -> bool:
    if epoch is None:
        return False
    book = index.claims.get(epoch)
    return book is None or book.complete_commit < cut


def _look_at(task: asyncio.Task[None]) -> None:
    # A reading that nobody waits for any more must not end in silence.
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.warning("index_reading_failed", error=type(error).__name__)
