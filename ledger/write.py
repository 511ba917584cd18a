"""
Fold events into claims and cells: the only way by which the projection is written.

Promises: claims and cells are a pure function of the log, the same for any batch size, order of
calls and crash; progress moves in the transaction that writes the rows.
Does not promise: that a claim is true, or stands. Ask `resolve`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import sqlalchemy as sa
from sqlalchemy.exc import DataError, IntegrityError, ProgrammingError
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.claims import Claim
from contracts.errors import NotFound, OtherProjector, Poisoned
from contracts.grants import Grant, Right
from contracts.limits import BUILDING_EVENTS_MAX
from contracts.ports import Projector
from ledger._batch import Batch, Poison, Projected, project
from ledger._begun import Folder, begin
from ledger._cells import Cells
from ledger._database import Database
from ledger._digest import ledger_digest
from ledger._epochs import (
    Begun,
    begin_epoch,
    building_epoch,
    cursor_of,
    drop_epoch,
    take_over,
)
from ledger._folded import add_tombstones, write_folded
from ledger._folding import Folding
from ledger._garbage import uncollected
from ledger._grants import check_right
from ledger._keys import TenantKeys
from ledger._lease import CURSOR, FOLD_WAIT_SECONDS, end_overdue_folds
from ledger._poison import DeadLetter, Skipped, bury, dead_letters, error_name, forget_passed, skip_event
from ledger._registrations import CONTRACT
from ledger._registry import ContractReceipt, contracts_at, register_contract, store_contract
from ledger._rows import Rows
from ledger._supposing import Supposed, keys_of_event, supposing
from ledger._verify_claims import ClaimsReport, verify_claims
from ledger._worlds import keep_left

__all__ = [
    "CONTRACT",
    "CURSOR",
    "Begun",
    "ClaimsReport",
    "ContractReceipt",
    "DeadLetter",
    "FoldReport",
    "Skipped",
    "Supposed",
    "begin_epoch",
    "dead_letters",
    "drop_epoch",
    "end_overdue_folds",
    "fold",
    "keys_of_event",
    "ledger_digest",
    "register_contract",
    "retry_event",
    "skip_event",
    "supposing",
    "verify_claims",
]

_MOVE: Final = sa.text(
    "UPDATE epoch SET commit = :commit, position = :position, projector_version = :version "
    "WHERE tenant = :tenant AND epoch = :epoch"
)
_COMMIT_END: Final = sa.text(
    "SELECT first_position + event_count - 1 FROM commit "
    "WHERE tenant = :tenant AND first_position = :after + 1"
)
# Pending as long as any epoch is: the serving one is not the only one that the log is folded into.
_REACHED: Final = sa.text(
    "DELETE FROM outbox o WHERE o.tenant = :tenant AND o.commit <= :commit AND NOT EXISTS (SELECT FROM "
    "epoch e WHERE e.tenant = o.tenant AND e.state IN ('serving', 'building') AND e.commit < o.commit)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldReport:
    """
    What one fold did.

    `commit` is where the epoch now stands, `after` where the fold began, `head` the log's end.

    `building` is the epoch that is still being built, be it this one or one beside it; `built` says
    what the same call did for it after this.

    `unplaced` counts claims that found nothing to act on, or no input; `refused_contracts` those
    that came after claims on their relation; `skipped` events that were passed over by decision;
    `read_whole` keys of which every claim was read, because what was said did not follow from less.
    """

    tenant: str
    epoch: int
    after: int
    commit: int
    head: int
    events: int
    claims: int
    unplaced: int
    refused_contracts: int
    skipped: int
    read_whole: int
    building: int | None
    built: FoldReport | None

    @property
    def is_at_head(self) -> bool:
        """Return whether nothing was left to fold, into any epoch."""
        return self.commit >= self.head and self.building is None


async def fold(
    db: Database,
    tenant: str,
    projector: Projector,
    *,
    events_max: int,
    wait_seconds: float = FOLD_WAIT_SECONDS,
) -> FoldReport:
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
        wait_seconds: How long another fold of the tenant is waited for.

    Raises:
        NotFound: No such tenant.
        Poisoned: An event cannot be folded. What stands before it is; it is in `dead_letter`.
        OtherProjector: The epoch was begun by another version of the projector.
        Unavailable: The database is down; or, as its part `CURSOR`, another fold of the tenant goes on.
    """
    folder = Folder(db=db, tenant=tenant, projector=projector, wait_seconds=wait_seconds)
    report: FoldReport | None = None
    try:
        report = await _fold_epoch(folder, events_max=events_max, building=None)
    except (Poisoned, OtherProjector):
        if await building_epoch(db, tenant) is None:
            raise
    if report is not None and (report.building is None or report.commit < report.head):
        return report
    # At once, and not in the next call: a log that grows all the time would always leave that something
    # to fold for the serving epoch.
    return await _build(folder, events_max=events_max, beside=report)


async def retry_event(
    db: Database, tenant: str, projector: Projector, *, position: int, grant: Grant
) -> DeadLetter | None:
    """
    Try again, now, to fold an event that stops an epoch; return what stops it still, None if it passed.

    Where it stops two epochs, it is tried in both.

    Raises:
        NotFound: No such tenant, or nothing is stopped by an event at that position.
        Forbidden: The grant lacks `operator`.
        OtherProjector: The epoch was begun by another version of the projector.
        Unavailable: The database is down, or another fold of the tenant holds the cursor.
    """
    check_right(grant, tenant, Right.OPERATOR)
    waiting = [one for one in await dead_letters(db, tenant) if one.position == position]
    if not waiting:
        raise NotFound(what="dead letter")
    folder = Folder(db=db, tenant=tenant, projector=projector, wait_seconds=FOLD_WAIT_SECONDS)
    for one in waiting:
        building = one.epoch if one.is_building else None
        try:
            await _fold_epoch(folder, events_max=1, building=building)
        except Poisoned:
            continue
    db.waker.wake(tenant)
    still = [one for one in await dead_letters(db, tenant) if one.position == position]
    return still[0] if still else None


async def _build(folder: Folder, *, events_max: int, beside: FoldReport | None) -> FoldReport:
    """Fold the epoch that is being built, and report it with what was folded of the serving one."""
    building = await building_epoch(folder.db, folder.tenant)
    events_max = min(events_max, BUILDING_EVENTS_MAX)
    built = await _fold_epoch(folder, events_max=events_max, building=building)
    if beside is None or not beside.events:
        return built
    return replace(beside, building=built.building, built=built)


async def _fold_epoch(folder: Folder, *, events_max: int, building: int | None) -> FoldReport:
    """Fold one epoch: one that is being built, else, or where it is no more, the serving one."""
    try:
        with uncollected():
            report, poison = await _fold(folder, events_max=events_max, building=building)
    except _WRITING_FAILED as error:
        report, poison = await _fold_singly(folder, events_max=events_max, building=building, error=error)
    if poison is not None:
        await bury(folder.db, folder.tenant, report.epoch, position=poison.position, error=poison.error)
        raise Poisoned(epoch=report.epoch, position=poison.position, error=poison.error)
    return report


# What one event's rows can bring about; an outage is none of these.
_WRITING_FAILED: Final = (DataError, IntegrityError, ProgrammingError, ValueError, TypeError, LookupError,
                          ArithmeticError, RecursionError, AssertionError)  # fmt: skip


async def _fold_singly(
    folder: Folder, *, events_max: int, building: int | None, error: Exception
) -> tuple[FoldReport, Poison | None]:
    """Fold commit by commit, to find the one that cannot be, and which of its events is the poison."""
    done: FoldReport | None = None
    events = claims = 0
    while done is None or (events < events_max and done.commit < done.head):
        try:
            done, poison = await _fold(folder, events_max=1, building=building)
        except _WRITING_FAILED as again:
            error = again
            async with folder.db.tenant(folder.tenant) as conn:
                cursor = await cursor_of(conn, folder.tenant, building)
            report = FoldReport(
                tenant=folder.tenant, epoch=cursor.epoch, after=cursor.commit, commit=cursor.commit,
                head=cursor.commit + 1, events=events, claims=claims, unplaced=0, refused_contracts=0,
                skipped=0, read_whole=0, building=building, built=None,
            )  # fmt: skip
            position = await _culprit(folder, building=building, after=cursor.position)
            return report, Poison(position=position, error=error_name(error))
        events, claims = events + done.events, claims + done.claims
        if poison is not None:
            return done, poison
    return done, None


class _Rehearsed(Exception):
    """A fold that was only tried, to be rolled back."""


async def _culprit(folder: Folder, *, building: int | None, after: int) -> int:
    """
    Return the position of the first event of the next commit that it cannot be folded with.

    Written together, a commit does not say which of its events is at fault: its beginnings are tried.
    """
    async with folder.db.tenant(folder.tenant) as conn:
        last = (await conn.execute(_COMMIT_END, {"tenant": folder.tenant, "after": after})).scalar_one()
    good, bad = after, last
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            await _fold(folder, events_max=1, building=building, until=middle)
        except _Rehearsed:
            good = middle
        except _WRITING_FAILED:
            bad = middle
    return int(bad)


async def _fold(
    folder: Folder, *, events_max: int, building: int | None, until: int | None = None
) -> tuple[FoldReport, Poison | None]:
    """Fold in one transaction; with `until`, up to that position, and only to see whether it can be done."""
    tenant, projector = folder.tenant, folder.projector
    async with folder.db.ahead.opening() as opening, folder.db.tenant(tenant) as conn:
        begun = await begin(folder, conn, events_max=events_max, building=building)
        keys, head, batch = begun.reader.keys, begun.head, begun.batch
        if until is not None:
            batch.events = [event for event in batch.events if event.position <= until]
        contracts = await contracts_at(begun.reader)
        # From here on the server reads what comes next, stores claims or waits for more.
        next_read = begun.read_next(events_max=events_max) if until is None else None
        async with Rows(conn=conn, keys=keys, epoch=batch.epoch).claims(after=next_read) as stream:
            projected, late = await project(begun.reader, batch, projector, contracts, stream)
        await add_tombstones(
            begun.reader, batch.events, {commit: found.claims for commit, found in projected.items()}
        )
        cells = Cells(conn=conn, keys=keys, epoch=batch.epoch)
        folding = Folding(begun.reader, cells, contracts, left=begun.left)
        claims = await _apply(folding, batch, projected)
        if next_read is not None:
            opening.begin(begun.place(batch.last_position), await next_read)
        count = await write_folded(begun.reader, folding, claims)
        await _move(conn, keys, batch, projected, version=projector.version)
        took_over = (
            batch.epoch == head.building
            and batch.commit >= head.commit
            and await take_over(conn, tenant, epoch=batch.epoch, commit=batch.commit)
        )
        await conn.execute(_REACHED, {"tenant": tenant, "commit": batch.commit})
        await forget_passed(conn, tenant, batch.epoch, position=batch.position)
        if until is not None:
            raise _Rehearsed
        left = await folding.leaves(begun.place(batch.position), batch.epoch)
    if left is not None:
        keep_left(folder.db.left, left)
    report = FoldReport(
        tenant=tenant,
        epoch=batch.epoch,
        after=begun.reader.cut,
        commit=batch.commit,
        head=head.commit,
        events=len([event for event in batch.events if event.commit <= batch.commit]),
        claims=count,
        unplaced=len(folding.unplaced),
        refused_contracts=late,
        skipped=batch.passed,
        read_whole=len(folding.read_whole),
        building=None if took_over else head.building,
        built=None,
    )
    return report, batch.poison


async def _move(
    conn: AsyncConnection, keys: TenantKeys, batch: Batch, projected: dict[int, Projected], *, version: str
) -> None:
    """Write the contracts that were found, and where the epoch now stands."""
    for commit, found in projected.items():
        for contract in found.contracts:
            await store_contract(conn, keys, contract, epoch=batch.epoch, commit=commit)
    moved = {"commit": batch.commit, "position": batch.position, "version": version}
    await conn.execute(_MOVE, {"tenant": keys.tenant, "epoch": batch.epoch, **moved})


async def _apply(folding: Folding, batch: Batch, projected: dict[int, Projected]) -> list[Claim]:
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
