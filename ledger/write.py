"""
Fold events into claims and cells: the only way by which the projection is written.

Promises: claims and cells are a pure function of the log, the same for any batch size, order of
calls and crash; progress moves in the transaction that writes the rows.
Does not promise: that a claim is true, or stands. Ask `resolve`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.claims import Claim
from contracts.errors import OtherProjector, Poisoned
from contracts.events import ErasedEvent, Kind
from contracts.limits import BUILDING_EVENTS_MAX
from contracts.ports import Projector
from contracts.relations import RelationContract
from ledger._cells import Cells
from ledger._database import Database
from ledger._digest import ledger_digest
from ledger._epochs import (
    LOCK_TIMEOUT,
    Begun,
    begin_epoch,
    building_epoch,
    cursor_of,
    drop_epoch,
    is_building,
    take_over,
)
from ledger._folded import add_tombstones, write_folded
from ledger._folding import Folding
from ledger._garbage import uncollected
from ledger._keys import TenantKeys
from ledger._poison import bury, error_name, forget_passed
from ledger._read import LoggedEvent, read_events
from ledger._reading import claims_in
from ledger._registrations import CONTRACT
from ledger._registry import (
    ContractReceipt,
    contract_taken,
    contracts_at,
    is_in_use,
    register_contract,
    store_contract,
)
from ledger._relations import Contracts
from ledger._rows import ClaimStream, Rows
from ledger._tenants import tenant_keys
from ledger._verify_claims import ClaimsReport, verify_claims
from ledger._world import Reader

__all__ = [
    "CONTRACT",
    "Begun",
    "ClaimsReport",
    "ContractReceipt",
    "FoldReport",
    "begin_epoch",
    "drop_epoch",
    "fold",
    "ledger_digest",
    "register_contract",
    "verify_claims",
]

_MOVE: Final = sa.text(
    "UPDATE epoch SET commit = :commit, position = :position, projector_version = :version "
    "WHERE tenant = :tenant AND epoch = :epoch"
)
_COMMITS: Final = sa.text(
    "SELECT commit, first_position + event_count - 1 AS last FROM commit "
    "WHERE tenant = :tenant AND commit > :after ORDER BY commit LIMIT :limit"
)
_HEAD: Final = sa.text(
    "SELECT h.commit, (SELECT e.epoch FROM epoch e WHERE e.tenant = h.tenant AND e.state = 'building') "
    "AS building FROM head h WHERE h.tenant = :tenant"
)
# Pending as long as any epoch is: the serving one is not the only one that the log is folded into.
_REACHED: Final = sa.text(
    "DELETE FROM outbox o WHERE o.tenant = :tenant AND o.commit <= :commit AND NOT EXISTS (SELECT FROM "
    "epoch e WHERE e.tenant = o.tenant AND e.state IN ('serving', 'building') AND e.commit < o.commit)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldReport:
    """
    What one fold did. `commit` is where the epoch now stands, `head` the log's end.

    `building` is the epoch that is still being built, be it this one or one beside it; `built` says
    what the same call did for it after this.

    `unplaced` counts claims that found nothing to act on, or no input; `refused_contracts` those
    that came after claims on their relation.
    """

    tenant: str
    epoch: int
    commit: int
    head: int
    events: int
    claims: int
    unplaced: int
    refused_contracts: int
    building: int | None
    built: FoldReport | None

    @property
    def is_at_head(self) -> bool:
        """Return whether nothing was left to fold, into any epoch."""
        return self.commit >= self.head and self.building is None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Poison:
    position: int
    error: str


@dataclass(slots=True, kw_only=True)
class _Batch:
    """Whole commits read from the log, and their claims; `poison` is the event it stops before."""

    epoch: int
    commit: int
    position: int
    last_commit: int
    last_position: int
    events: list[LoggedEvent]
    poison: _Poison | None


async def fold(db: Database, tenant: str, projector: Projector, *, events_max: int) -> FoldReport:
    """
    Fold whole commits after the cursor, up to `events_max` events (one commit at least).

    The serving epoch goes first, so that reads stay fresh. Where it has nothing more to fold, or is
    stopped, the one that is being built is folded in the same call, in a transaction of its own, and
    takes over once it is at the head.

    Args:
        db: The database.
        tenant: Whose log.
        projector: Reads claims out of events; pure.
        events_max: Events folded in this one transaction.

    Raises:
        NotFound: No such tenant.
        Poisoned: An event cannot be folded. What stands before it is; it is in `dead_letter`.
        OtherProjector: The epoch was begun by another version of the projector.
        Unavailable: The database is down, or another fold of the tenant holds the cursor.
    """
    report: FoldReport | None = None
    try:
        report = await _fold_epoch(db, tenant, projector, events_max=events_max, building=None)
    except (Poisoned, OtherProjector):
        if not await is_building(db, tenant):
            raise
    if report is not None and (report.building is None or report.commit < report.head):
        return report
    # At once, and not in the next call: a log that grows all the time would always leave that something
    # to fold for the serving epoch.
    return await _build(db, tenant, projector, events_max=events_max, beside=report)


async def _build(
    db: Database, tenant: str, projector: Projector, *, events_max: int, beside: FoldReport | None
) -> FoldReport:
    """Fold the epoch that is being built, and report it with what was folded of the serving one."""
    building, is_stopped = await building_epoch(db, tenant)
    # Before an event that could not be folded, it is looked at again, and nothing is read beyond.
    events_max = 1 if is_stopped else min(events_max, BUILDING_EVENTS_MAX)
    built = await _fold_epoch(db, tenant, projector, events_max=events_max, building=building)
    if beside is None or not beside.events:
        return built
    return replace(beside, building=built.building, built=built)


async def _fold_epoch(
    db: Database, tenant: str, projector: Projector, *, events_max: int, building: int | None
) -> FoldReport:
    """Fold one epoch: one that is being built, else, or where it is no more, the serving one."""
    try:
        with uncollected():
            report, poison = await _fold(db, tenant, projector, events_max=events_max, building=building)
    except _WRITING_FAILED as error:
        report, poison = await _fold_singly(
            db, tenant, projector, events_max=events_max, building=building, error=error
        )
    if poison is not None:
        await bury(db, tenant, report.epoch, position=poison.position, error=poison.error)
        raise Poisoned(epoch=report.epoch, position=poison.position, error=poison.error)
    return report


# What one event's rows can bring about; an outage is none of these.
_WRITING_FAILED: Final = (DataError, IntegrityError, ProgrammingError, ValueError, TypeError, LookupError,
                          ArithmeticError, RecursionError, AssertionError)  # fmt: skip


async def _fold_singly(
    db: Database,
    tenant: str,
    projector: Projector,
    *,
    events_max: int,
    building: int | None,
    error: Exception,
) -> tuple[FoldReport, _Poison | None]:
    """Fold commit by commit, to find the one that cannot be: its first event is the poison."""
    done: FoldReport | None = None
    events = claims = 0
    while done is None or (events < events_max and done.commit < done.head):
        try:
            done, poison = await _fold(db, tenant, projector, events_max=1, building=building)
        except _WRITING_FAILED as again:
            error = again
            async with db.tenant(tenant) as conn:
                cursor = await cursor_of(conn, tenant, building)
            report = FoldReport(
                tenant=tenant, epoch=cursor.epoch, commit=cursor.commit, head=cursor.commit + 1,
                events=events, claims=claims, unplaced=0, refused_contracts=0, building=building,
                built=None,
            )  # fmt: skip
            return report, _Poison(position=cursor.position + 1, error=error_name(error))
        events, claims = events + done.events, claims + done.claims
        if poison is not None:
            return done, poison
    return done, None


async def _fold(
    db: Database, tenant: str, projector: Projector, *, events_max: int, building: int | None
) -> tuple[FoldReport, _Poison | None]:
    async with db.tenant(tenant) as conn:
        keys = await tenant_keys(db, tenant, conn)
        await conn.execute(LOCK_TIMEOUT)
        cursor = await cursor_of(conn, tenant, building)
        _refuse_other_version(cursor, projector)
        head = (await conn.execute(_HEAD, {"tenant": tenant})).one()
        batch = await _read(conn, keys, cursor, events_max)
        reader = Reader(conn=conn, keys=keys, epoch=cursor.epoch, cut=cursor.commit)
        cells = Cells(conn=conn, keys=keys, epoch=cursor.epoch)
        contracts = await contracts_at(reader)
        rows = Rows(conn=conn, keys=keys, epoch=cursor.epoch)
        async with rows.claims() as stream:
            projected, late = await _project(reader, batch, projector, contracts, stream)
        await add_tombstones(
            reader, batch.events, {commit: found.claims for commit, found in projected.items()}
        )
        folding = Folding(reader, cells, contracts)
        count = await write_folded(reader, folding, await _apply(folding, batch, projected))
        for commit, found in projected.items():
            for contract in found.contracts:
                await store_contract(conn, keys, contract, epoch=cursor.epoch, commit=commit)
        await conn.execute(
            _MOVE,
            {
                "tenant": tenant, "epoch": cursor.epoch, "commit": batch.commit, "position": batch.position,
                "version": projector.version,
            },
        )  # fmt: skip
        took_over = (
            cursor.epoch == head.building
            and batch.commit >= head.commit
            and await take_over(conn, tenant, epoch=cursor.epoch, commit=batch.commit)
        )
        await conn.execute(_REACHED, {"tenant": tenant, "commit": batch.commit})
        await forget_passed(conn, tenant, cursor.epoch, position=batch.position)
    report = FoldReport(
        tenant=tenant,
        epoch=cursor.epoch,
        commit=batch.commit,
        head=head.commit,
        events=len([event for event in batch.events if event.commit <= batch.commit]),
        claims=count,
        unplaced=len(folding.unplaced),
        refused_contracts=late,
        building=None if took_over else head.building,
        built=None,
    )
    return report, batch.poison


def _refuse_other_version(cursor: Any, projector: Projector) -> None:  # noqa: ANN401 — a row
    # An epoch is one projection of the whole log: half by one version, half by another, it would
    # follow from neither, and no fold could make it again.
    begun_by = cursor.projector_version
    if cursor.commit and begun_by and begun_by != projector.version:
        raise OtherProjector(epoch=cursor.epoch, begun_by=begun_by, given=projector.version)


async def _read(conn: AsyncConnection, keys: TenantKeys, cursor: Any, events_max: int) -> _Batch:  # noqa: ANN401 — a row
    """Read whole commits, at least one."""
    rows = (
        await conn.execute(
            _COMMITS, {"tenant": keys.tenant, "after": cursor.commit, "limit": max(events_max, 1)}
        )
    ).all()
    batch = _Batch(
        epoch=cursor.epoch,
        commit=cursor.commit,
        position=cursor.position,
        last_commit=cursor.commit,
        last_position=cursor.position,
        events=[],
        poison=None,
    )
    for row in rows:
        if batch.last_commit > cursor.commit and row.last > cursor.position + events_max:
            break
        batch.last_commit, batch.last_position = row.commit, row.last
    position = cursor.position
    while position < batch.last_position:
        page = await read_events(conn, keys, after_position=position, limit=batch.last_position - position)
        position = page[-1].position
        batch.events += page
    return batch


@dataclass(slots=True, kw_only=True)
class _Projected:
    """What the events of one commit hold: claims, and contracts that hold from this commit on."""

    position: int
    claims: list[Claim]
    contracts: list[RelationContract]


async def _project(
    reader: Reader, batch: _Batch, projector: Projector, contracts: Contracts, stream: ClaimStream
) -> tuple[dict[int, _Projected], int]:
    """
    Project commit by commit, as far as no event is poison; and count contracts that came too late.

    The claims of each whole commit go on to be written.

    A contract comes too late where claims on its relation were made before: every fold of this
    epoch passes it over.
    """
    by_commit: dict[int, list[LoggedEvent]] = defaultdict(list)
    for event in batch.events:
        by_commit[event.commit].append(event)
    projected: dict[int, _Projected] = {}
    used: set[str] = set()
    late = 0
    for commit, events in sorted(by_commit.items()):
        found = _Projected(position=events[-1].position, claims=[], contracts=[])
        for event in events:
            if isinstance(event, ErasedEvent) or event.draft.kind == Kind.ERASURE:
                continue
            try:
                if event.draft.kind == Kind.RELATION:
                    await stream.arrived()
                    contract = await contract_taken(reader, event)
                    if contract is None:
                        continue
                    if contract.relation in used or await is_in_use(
                        reader.conn, reader.keys, [reader.epoch], contract.relation, before=commit
                    ):
                        late += 1
                        continue
                    found.contracts.append(contract)
                    contracts = contracts.with_registered([contract])
                else:
                    found.claims += claims_in(
                        event, projector, keys=reader.keys, epoch=reader.epoch, contracts=contracts
                    )
            except DBAPIError:
                raise
            except Exception as error:  # noqa: BLE001 — whatever a projector does wrong stops the tenant here
                batch.poison = _Poison(position=event.position, error=error_name(error))
                return projected, late
        used |= {claim.relation for claim in found.claims}
        projected[commit] = found
        await stream.take(found.claims)
    return projected, late


async def _apply(folding: Folding, batch: _Batch, projected: dict[int, _Projected]) -> list[Claim]:
    """Apply what was projected, commit by commit, and move the batch's place behind it."""
    await folding.prepare([claim for found in projected.values() for claim in found.claims])
    claims: list[Claim] = []
    for commit, found in projected.items():
        for contract in found.contracts:
            folding.register(contract)
        await folding.commit(commit, found.claims)
        claims += found.claims
        batch.commit, batch.position = commit, found.position
    if batch.poison is None:
        batch.commit, batch.position = batch.last_commit, batch.last_position
    return claims
