"""A fold that has begun: it holds its epoch's cursor, and has read what it folds."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import OtherProjector
from contracts.ports import Projector
from ledger._ahead import Place
from ledger._batch import Batch, read_batch, read_next
from ledger._database import LOCK_TIMEOUT_MS, Database
from ledger._decisions import skipped_in
from ledger._epochs import cursor_of
from ledger._events import StoredEvent
from ledger._lease import begin_fold, leased
from ledger._tenants import tenant_keys
from ledger._world import Reader
from ledger._worlds import Left, take_left

# With the commit of the last erasure: what was opened before it is not folded. How long the cursor is waited
# for holds for it alone: another lock, as of a table that two workers extend, passes in moments.
_HEAD: Final = sa.text(
    "SELECT set_config('lock_timeout', :lock_ms, true), h.commit, "
    "(SELECT e.epoch FROM epoch e WHERE e.tenant = h.tenant AND e.state = 'building') AS building, "
    "EXISTS (SELECT FROM dead_letter d WHERE d.tenant = h.tenant AND d.epoch = :epoch "
    "AND d.position > :position) AS is_stopped, coalesce((SELECT max(e.commit) FROM erased e "
    "WHERE e.tenant = h.tenant), 0) AS erased FROM head h WHERE h.tenant = :tenant"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """Whose log is folded by which projector, and how long another that does the same is waited for."""

    db: Database
    tenant: str
    projector: Projector
    wait_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What is folded, how the log stands, and what was left of the fold before: `head` is a row."""

    reader: Reader
    head: Any
    batch: Batch
    left: Left | None

    def place(self, after: int) -> Place:
        """Return a place in the log as it stands now."""
        return Place(keys=self.reader.keys, after=after, erased=self.head.erased)

    def read_next(self, *, events_max: int) -> asyncio.Task[list[StoredEvent]] | None:
        """Begin to read the events of the fold that is next; None where there is none, or none is sure."""
        if self.head.is_stopped or self.batch.last_commit >= self.head.commit:
            return None
        reading = read_next(self.reader.conn, self.reader.keys, self.batch, events_max=events_max)
        return asyncio.create_task(reading)


async def begin(folder: Folder, conn: AsyncConnection, *, events_max: int, building: int | None) -> Begun:
    """
    Take the cursor of an epoch, the serving one or that which is being built, and read what it folds.

    Raises:
        OtherProjector: The epoch was begun by another version of the projector.
        Unavailable: As its part `CURSOR`, another fold of the tenant goes on.
    """
    tenant = folder.tenant
    keys = await tenant_keys(folder.db, tenant, conn)
    with leased():
        await begin_fold(conn, wait_seconds=folder.wait_seconds)
        cursor = await cursor_of(conn, tenant, building)
    _refuse_other_version(cursor, folder.projector)
    at = {"tenant": tenant, "epoch": cursor.epoch, "position": cursor.position}
    head = (await conn.execute(_HEAD, {**at, "lock_ms": str(LOCK_TIMEOUT_MS)})).one()
    # Before an event that could not be folded, it is looked at again, and nothing is read beyond.
    events_max = 1 if head.is_stopped else events_max
    skipped = await skipped_in(conn, keys, cursor.epoch, after=cursor.position)
    place = Place(keys=keys, after=cursor.position, erased=head.erased)
    opened = folder.db.ahead.take(place)
    batch = await read_batch(conn, keys, cursor, events_max=events_max, skipped=skipped, opened=opened)
    reader = Reader(conn=conn, keys=keys, epoch=cursor.epoch, cut=cursor.commit)
    return Begun(reader=reader, head=head, batch=batch, left=take_left(folder.db.left, place, cursor.epoch))


def _refuse_other_version(cursor: Any, projector: Projector) -> None:  # noqa: ANN401 — a row
    # An epoch is one projection of the whole log: half by one version, half by another, it would
    # follow from neither, and no fold could make it again.
    begun_by = cursor.projector_version
    if cursor.commit and begun_by and begun_by != projector.version:
        raise OtherProjector(epoch=cursor.epoch, begun_by=begun_by, given=projector.version)
