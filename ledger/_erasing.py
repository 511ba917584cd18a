"""
An erasure: one transaction that appends its event, destroys keys, and folds anew what it touched.

It holds the end of the log, then the cursors of all epochs, then the end of the trails: nothing is
appended, folded or recalled meanwhile, so that everything that was accepted is known, and whoever
comes later finds all of it done. Readers go on in their snapshots and see it before or after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.erasures import ErasureReport, ErasureRequest
from contracts.errors import NotFound, NotYet, Unavailable
from contracts.events import EventDraft, Receipt
from contracts.limits import ERASURE_SECONDS_MAX, FOLD_EVENTS_MAX
from contracts.names import spelt
from contracts.ports import Projector
from ledger import _tables
from ledger._append import append_commands_within
from ledger._arrays import numbers, texts
from ledger._burial import Burial
from ledger._database import Database
from ledger._epochs import ONE_AT_A_TIME, finish_drops, half_dropped
from ledger._erasing_folded import Piece, fold_anew, piece_of
from ledger._erasing_scan import (
    Going,
    Scan,
    events_about,
    events_going,
    names_of,
    recalls_going,
    scan_log,
    scan_recalls,
)
from ledger._erasures import Erasure, erasure_drafts, events_in
from ledger._keys import TenantKeys
from ledger._tenants import tenant_keys
from ledger._tombstone_rows import form_of, row_of
from ledger._tombstones import veiled
from ledger._world import Reader
from ledger.write import fold

# A lock is waited for longer than a fold takes, and shorter than a statement may. A long key is decided, and
# the log folded on another connection, while this one says nothing to the server: it is not one left alone.
_BEGIN: Final = sa.text(
    "SELECT set_config('lock_timeout', '30s', true), "
    "set_config('idle_in_transaction_session_timeout', :idle_ms, true)"
)
_HOLD_HEAD: Final = sa.text("SELECT echoplane_hold_head(:tenant)")
_STAND: Final = sa.text(
    "SELECT h.commit AS head, e.commit AS folded FROM head h JOIN epoch e ON e.tenant = h.tenant "
    "AND e.state = 'serving' WHERE h.tenant = :tenant"
)
_HOLD_EPOCHS: Final = sa.text(
    "SELECT epoch, commit, state FROM epoch WHERE tenant = :tenant AND state <> 'dropped' "
    "ORDER BY epoch DESC FOR UPDATE"
)
_HOLD_TRAILS: Final = sa.text("SELECT number FROM trail_head WHERE tenant = :tenant FOR UPDATE")
_HASHES: Final = sa.text(
    "SELECT event_id, hash FROM event WHERE tenant = :tenant AND event_id = ANY(CAST(:event_ids AS text[]))"
)
_UNITS: Final = sa.text(
    "SELECT count(DISTINCT unit_id) FROM unit_vector WHERE tenant = :tenant "
    "AND unit_id = ANY(CAST(:event_ids AS text[]))"
)
_ERASE: Final = sa.text(
    "SELECT echoplane_erase(:tenant, CAST(:event_ids AS text[]), CAST(:erasure_ids AS text[]), "
    "CAST(:contexts AS text[]), CAST(:trails AS text[]), CAST(:positions AS bigint[]), "
    "CAST(:ordinals AS integer[]))"
)
_MOVE: Final = sa.text(
    "UPDATE epoch SET commit = :commit, position = :position "
    "WHERE tenant = :tenant AND epoch = :epoch AND commit = :before"
)
_REACHED: Final = sa.text(
    "DELETE FROM outbox o WHERE o.tenant = :tenant AND o.commit <= :commit AND NOT EXISTS (SELECT FROM "
    "epoch e WHERE e.tenant = o.tenant AND e.state IN ('serving', 'building') AND e.commit < o.commit)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked to be erased, by whom, and what is called before any of it goes."""

    request: ErasureRequest
    actor_id: str
    announce: Callable[[], None]


async def carry_out(db: Database, tenant: str, projector: Projector, asked: Asked) -> ErasureReport:
    """Erase what is asked; see `ledger.erase.erase`."""
    async with db.erasures.of(tenant):
        return await _carry_out(db, tenant, projector, asked)


async def _carry_out(db: Database, tenant: str, projector: Projector, asked: Asked) -> ErasureReport:
    request = asked.request
    keys = await tenant_keys(db, tenant)
    subject = None if request.subject is None else spelt(request.subject)
    await finish_drops(db, tenant)
    await _fold(db, tenant, projector)
    # Most of what has to be read is read before anybody waits.
    async with db.snapshot(tenant) as conn:
        scan = Scan(names=await _names(conn, keys, subject))
        await scan_log(conn, keys, scan)
        await scan_recalls(conn, keys, scan)
    async with db.tenant(tenant) as conn:
        await conn.execute(_BEGIN, {"idle_ms": str(ERASURE_SECONDS_MAX * 1_000)})
        # A registration takes epochs first and the head of the log then.
        await conn.execute(ONE_AT_A_TIME, {"tenant": tenant})
        head = await conn.scalar(_HOLD_HEAD, {"tenant": tenant})
        if head is None:
            raise NotFound(what="tenant")
        # What was appended since: nothing more can be, for as long as this holds.
        await _fold(db, tenant, projector)
        erasing = _Erasing(conn=conn, db=db, keys=keys, head=head, asked=asked)
        return await erasing.carry_out(request, subject, scan)


async def _fold(db: Database, tenant: str, projector: Projector) -> None:
    """Fold the serving epoch to where the log ends now; one that is being built is not waited for."""
    end: int | None = None
    while True:
        async with db.snapshot(tenant) as conn:
            row = (await conn.execute(_STAND, {"tenant": tenant})).one()
        # Not to where it ends by then: a log that grows all the time would never let anybody erase.
        end = row.head if end is None else end
        if row.folded >= end:
            return
        await fold(db, tenant, projector, events_max=FOLD_EVENTS_MAX)


async def _names(conn: AsyncConnection, keys: TenantKeys, subject: str | None) -> frozenset[str]:
    if subject is None:
        return frozenset()
    epoch = _tables.epoch
    query = sa.select(epoch.c.epoch, epoch.c.commit).where(
        epoch.c.tenant == keys.tenant, epoch.c.state == "serving"
    )
    row = (await conn.execute(query)).one()
    return await names_of(Reader(conn=conn, keys=keys, epoch=row.epoch, cut=row.commit), subject)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Erasing:
    """One erasure under lock; `head` is the last commit before it."""

    conn: AsyncConnection
    db: Database
    keys: TenantKeys
    head: int
    asked: Asked

    async def carry_out(self, request: ErasureRequest, subject: str | None, scan: Scan) -> ErasureReport:
        epochs = (await self.conn.execute(_HOLD_EPOCHS, self._bound())).all()
        serving = next(row for row in epochs if row.state == "serving")
        if serving.commit != self.head:
            raise NotYet(wanted=f"commit {self.head}", visible=f"{serving.epoch}:{serving.commit}")
        if await half_dropped(self.conn, self.keys.tenant):
            # Begun since; what is half gone is no epoch that anything could be taken out of.
            raise Unavailable(part="epochs", reason="one is being dropped")
        await self.conn.execute(_HOLD_TRAILS, self._bound())
        names = await _names(self.conn, self.keys, subject)
        if names != scan.names:
            scan = Scan(names=names)
        await scan_log(self.conn, self.keys, scan)
        await scan_recalls(self.conn, self.keys, scan)
        going, gone = await self._going(request, names, serving, scan)
        contexts = recalls_going(scan.contexts, going.event_ids)
        trails = recalls_going(scan.trails, going.event_ids)
        # Of a subject that is in no event, or in none any more, questions may be left that name it.
        if not (going.event_ids or gone or contexts or trails):
            return _nothing(going)
        touched = gone.union(going.event_ids)
        pieces = {
            row.epoch: await piece_of(
                self.conn, self.keys, epoch=row.epoch, cut=row.commit, events=touched, names=names
            )
            for row in epochs
        }
        erasure = await self._erasure(going, names, pieces[serving.epoch])
        erasure = replace(erasure, contexts=contexts, trails=trails)
        if not (going.event_ids or erasure.taken or contexts or trails):
            return _nothing(going)
        drafts = erasure_drafts(erasure, actor_id=self.asked.actor_id)
        units = await self.conn.scalar(_UNITS, self._bound(event_ids=list(going.event_ids)))
        self.asked.announce()
        receipt = await append_commands_within(self.conn, self.db, self.keys, drafts)
        await self._destroy(erasure, drafts, receipt)
        for piece in pieces.values():
            await fold_anew(piece, frozenset(going.event_ids))
        for row in epochs:
            moved = {"epoch": row.epoch, "before": self.head, "commit": receipt.commit}
            await self.conn.execute(_MOVE, self._bound(**moved, position=receipt.positions[-1]))
        await self.conn.execute(_REACHED, self._bound(commit=receipt.commit))
        return _report(going, erasure, receipt, units_count=units or 0)

    async def _going(
        self, request: ErasureRequest, names: frozenset[str], serving: Any, scan: Scan  # noqa: ANN401 — a row
    ) -> tuple[Going, set[str]]:  # fmt: skip
        """Return the events that go, and those gone before that left tombstones about the subject."""
        asked, gone = set(request.event_ids), set[str]()
        if names:
            reader = Reader(conn=self.conn, keys=self.keys, epoch=serving.epoch, cut=serving.commit)
            about, gone = await events_about(reader, names)
            asked = scan.named | about
        return await events_going(self.conn, self.keys, asked, scan), gone

    async def _erasure(self, going: Going, names: frozenset[str], piece: Piece) -> Erasure:
        veil = partial(veiled, self.keys)
        burial = Burial(
            replay=piece.replay(),
            claims=piece.claims,
            erased_ids=frozenset(going.event_ids),
            subjects=names,
            erased_in=self.head + 1,
            veil=veil,
        )
        graves = piece.reader.graves
        hidden, gone = ([graves.stored(stone) for stone in stones] for stones in burial.earlier())
        # Of those on no key of their own nothing is left to hide.
        hidden = [stone for stone in hidden if stone.entity]
        stones = [*burial.tombstones(), *map(burial.hide, hidden)]
        rows = await self.conn.execute(_HASHES, self._bound(event_ids=list(going.event_ids)))
        hashes = {row.event_id: bytes(row.hash).hex() for row in rows}
        return Erasure(
            events=tuple((event_id, hashes[event_id]) for event_id in going.event_ids),
            subjects=tuple(sorted(map(veil, names))),
            taken=tuple((stone.position.event, stone.position.ordinal) for stone in [*hidden, *gone]),
            stones=tuple(map(form_of, stones)),
            contexts=(),
            trails=(),
        )

    async def _destroy(self, erasure: Erasure, drafts: Sequence[EventDraft], receipt: Receipt) -> None:
        by = {
            event_id: erasure_id
            for draft, erasure_id in zip(drafts, receipt.event_ids, strict=True)
            for event_id in events_in(draft)
        }
        event_ids = [event_id for event_id, _ in erasure.events]
        await self.conn.execute(
            _ERASE,
            self._bound(
                event_ids=texts(event_ids),
                erasure_ids=texts(by[event_id] for event_id in event_ids),
                contexts=texts(one.recall for one in erasure.contexts),
                trails=texts(one.recall for one in erasure.trails),
                positions=numbers(position for position, _ in erasure.taken),
                ordinals=numbers(ordinal for _, ordinal in erasure.taken),
            ),
        )
        if erasure.stones:
            rows = [row_of(form, keys=self.keys) for form in erasure.stones]
            await self.conn.execute(sa.insert(_tables.tombstone), rows)

    def _bound(self, **parameters: object) -> dict[str, Any]:
        return {"tenant": self.keys.tenant, **parameters}


def _nothing(going: Going) -> ErasureReport:
    return ErasureReport(
        event_id=None, commit=None, recorded_at=None, erased=(), already_erased=going.already,
        tombstones_count=0, contexts_count=0, trails_count=0, units_count=0,
    )  # fmt: skip


def _report(going: Going, erasure: Erasure, receipt: Receipt, *, units_count: int) -> ErasureReport:
    return ErasureReport(
        event_id=receipt.event_ids[0],
        commit=receipt.commit,
        recorded_at=receipt.recorded_at,
        erased=going.event_ids,
        already_erased=going.already,
        tombstones_count=len(erasure.stones),
        contexts_count=len(erasure.contexts),
        trails_count=len(erasure.trails),
        units_count=units_count,
    )
