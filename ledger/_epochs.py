"""
Epochs beside each other: one serves, one may be built, older ones stay until they are dropped.

Whoever takes several rows of a tenant's epochs takes the higher number first: so a fold that is done,
a registration and a fold that goes on never wait for each other in a circle.

Source: SEMANTICS, "Time" (epoch, generation); DESIGN, decision 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import BadRequest, EpochDropped, NotFound
from contracts.events import Receipt
from contracts.grants import Grant, Right
from contracts.limits import DROP_ROWS_MAX
from contracts.relations import RelationContract
from ledger._append import append_within
from ledger._database import Database
from ledger._grants import check_right
from ledger._keys import TenantKeys
from ledger._registrations import Registration, registration_draft
from ledger._tenants import tenant_keys

# A lock is waited for longer than a fold takes, and shorter than a statement may.
_LOCK_TIMEOUT: Final = sa.text("SELECT set_config('lock_timeout', '30s', true)")

_SERVING: Final = sa.text(
    "SELECT epoch, commit, position, projector_version FROM epoch "
    "WHERE tenant = :tenant AND state = 'serving' FOR UPDATE"
)
_BUILDING: Final = sa.text(
    "SELECT epoch, commit, position, projector_version FROM epoch "
    "WHERE tenant = :tenant AND epoch = :epoch AND state = 'building' FOR UPDATE"
)
ONE_AT_A_TIME: Final = sa.text(
    "SELECT pg_advisory_xact_lock(hashtextextended('echoplane epochs ' || CAST(:tenant AS text), 0))"
)
"""Whoever holds the head of the log and epochs, in whatever order, takes this before either."""
_LIVE: Final = sa.text(
    "SELECT epoch, commit, state, projector_version FROM epoch WHERE tenant = :tenant "
    "AND state IN ('serving', 'building') ORDER BY epoch DESC FOR UPDATE"
)
_BUILDING_NUMBER: Final = sa.text("SELECT epoch FROM epoch WHERE tenant = :tenant AND state = 'building'")
_BEGIN: Final = sa.text(
    "INSERT INTO epoch (tenant, epoch, commit, position, projector_version, state) "
    "VALUES (:tenant, :epoch, 0, 0, '', 'building')"
)
_BECOME: Final = sa.text("UPDATE epoch SET state = :state WHERE tenant = :tenant AND epoch = :epoch")
_STATE: Final = sa.text("SELECT state FROM epoch WHERE tenant = :tenant AND epoch = :epoch")
_STATE_LOCKED: Final = sa.text("SELECT state FROM epoch WHERE tenant = :tenant AND epoch = :epoch FOR UPDATE")
_PREPARE_DROP: Final = sa.text("SELECT echoplane_drop_prepared()")
_DROP_ROWS: Final = sa.text("SELECT echoplane_drop_rows(:tenant, :epoch, :rows)")
# In the order in which they are deleted: as long as anything is left, the last of it is.
_HALF_DROPPED: Final = sa.text(
    "SELECT e.epoch FROM epoch e WHERE e.tenant = :tenant AND e.state = 'dropped' AND ("  # noqa: S608 — names of tables
    + " OR ".join(
        f"EXISTS (SELECT FROM {table} t WHERE t.tenant = e.tenant AND t.epoch = e.epoch)"
        for table in ("line", "reach", "claim", "tombstone_reach", "veiled_name", "relation", "dead_letter")
    )
    + ") ORDER BY e.epoch"
)
_LIST: Final = sa.text(
    "SELECT e.epoch, e.state, e.commit, e.projector_version, h.commit AS head, "
    "(SELECT d.position FROM dead_letter d WHERE d.tenant = e.tenant AND d.epoch = e.epoch "
    "AND d.position > e.position ORDER BY d.position LIMIT 1) AS stopped_at "
    "FROM epoch e JOIN head h ON h.tenant = e.tenant WHERE e.tenant = :tenant AND e.epoch > :after "
    "ORDER BY e.epoch LIMIT CAST(:limit AS integer)"
)


class EpochState(StrEnum):
    """What becomes of an epoch, in this order; one that is overtaken while it is built never serves."""

    BUILDING = "building"
    SERVING = "serving"
    RETIRED = "retired"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """
    One projection of a tenant's log: folded to `commit`, of `head` in the log.

    `projector_version` is empty until something is folded. `stopped_at` is the position of an event
    that it could not fold and waits before.
    """

    number: int
    state: EpochState
    commit: int
    head: int
    projector_version: str
    stopped_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """The epoch that is being built, and whether this call began it."""

    epoch: int
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """The epochs that are folded, locked against every fold: the serving one, and one being built."""

    serving: int
    building: int | None
    building_commit: int
    building_version: str

    @property
    def newest(self) -> int:
        """The one that the last change holds in; none has a higher number."""
        return self.serving if self.building is None else self.building

    @property
    def next(self) -> int:
        """The one that the next change holds in: one that has folded nothing yet, else a new one."""
        return self.newest if self.building is not None and not self.building_commit else self.newest + 1

    @property
    def numbers(self) -> list[int]:
        """All of them."""
        return [self.serving] if self.building is None else [self.serving, self.building]


async def list_epochs(db: Database, tenant: str, *, after: int = 0, limit: int | None = None) -> list[Epoch]:
    """
    Return the epochs of a tenant, the first one first: all, or a page of those after one.

    Raises:
        NotFound: No such tenant; where a page begins further on, it is empty.
    """
    async with db.snapshot(tenant) as conn:
        rows = (await conn.execute(_LIST, {"tenant": tenant, "after": after, "limit": limit})).all()
    if not rows and not after:
        raise NotFound(what="tenant")
    return [
        Epoch(
            number=row.epoch,
            state=EpochState(row.state),
            commit=row.commit,
            head=row.head,
            projector_version=row.projector_version,
            stopped_at=row.stopped_at,
        )
        for row in rows
    ]


async def check_not_dropped(conn: AsyncConnection, tenant: str, epoch: int) -> None:
    """
    Check that an epoch can be read.

    Raises:
        EpochDropped: Its rows were deleted.
    """
    if await conn.scalar(_STATE, {"tenant": tenant, "epoch": epoch}) == EpochState.DROPPED:
        raise EpochDropped(epoch=epoch)


# --- folding -------------------------------------------------------------------------------------


async def cursor_of(conn: AsyncConnection, tenant: str, building: int | None) -> Any:  # noqa: ANN401 — a row
    """
    Take an epoch that is being built under lock; where there is none, or it is no more, the serving one.

    Raises:
        NotFound: No such tenant.
    """
    if building is not None:
        row = (await conn.execute(_BUILDING, {"tenant": tenant, "epoch": building})).one_or_none()
        if row is not None:
            return row
    for _ in range(2):
        # Where another has taken over while this waited for the lock, the second look finds that.
        row = (await conn.execute(_SERVING, {"tenant": tenant})).one_or_none()
        if row is not None:
            return row
    raise NotFound(what="tenant")


async def building_epoch(db: Database, tenant: str) -> int | None:
    """Return the number of the epoch that is being built."""
    async with db.tenant(tenant) as conn:
        number: int | None = await conn.scalar(_BUILDING_NUMBER, {"tenant": tenant})
    return number


async def take_over(conn: AsyncConnection, tenant: str, *, epoch: int, commit: int) -> bool:
    """
    Make an epoch serve that is folded to the head, in its fold's own transaction; True if it does.

    It does not where readers see more of the log already: none of them ever goes back.
    """
    serving = (await conn.execute(_SERVING, {"tenant": tenant})).one()
    if serving.commit > commit:
        return False
    retired = {"tenant": tenant, "epoch": serving.epoch, "state": EpochState.RETIRED.value}
    await conn.execute(_BECOME, retired)
    await conn.execute(_BECOME, {"tenant": tenant, "epoch": epoch, "state": EpochState.SERVING.value})
    return True


# --- beginning -----------------------------------------------------------------------------------


async def lock_live(conn: AsyncConnection, tenant: str) -> Live:
    """
    Take the epochs that are folded under lock: no fold is under way while it is held.

    Raises:
        NotFound: No such tenant.
        Unavailable: A fold takes too long.
    """
    await conn.execute(_LOCK_TIMEOUT)
    # Whoever begins an epoch comes here first: a row that is new is seen, not waited past.
    await conn.execute(ONE_AT_A_TIME, {"tenant": tenant})
    rows = {row.state: row for row in await conn.execute(_LIVE, {"tenant": tenant})}
    if EpochState.SERVING not in rows:
        raise NotFound(what="tenant")
    building = rows.get(EpochState.BUILDING)
    return Live(
        serving=rows[EpochState.SERVING].epoch,
        building=None if building is None else building.epoch,
        building_commit=0 if building is None else building.commit,
        building_version="" if building is None else building.projector_version,
    )


async def begin_epoch(
    db: Database, tenant: str, *, projector_version: str, stream: str, actor_id: str, grant: Grant
) -> Begun:
    """
    Begin to fold the whole log again beside the epoch that serves, which it takes over from at the head.

    One that is being built by this projector already, or was not begun to be folded, is what is
    asked for: nothing is written then.

    Args:
        db: The database.
        tenant: Whose ledger.
        projector_version: Of the projector that is to fold it.
        stream: Of the event that says so.
        actor_id: Who asks for it.
        grant: What the caller may do; `admin` is needed.

    Raises:
        NotFound: No such tenant.
        Forbidden: The grant lacks the right.
        Unavailable: Unknown whether begun; ask again.
    """
    check_right(grant, tenant, Right.ADMIN)
    async with db.tenant(tenant) as conn:
        live = await lock_live(conn, tenant)
        if live.building is not None and live.building_version in {"", projector_version}:
            return Begun(epoch=live.building, is_new=False)
        keys = await tenant_keys(db, tenant, conn)
        await begin_within(conn, db, keys, live, contract=None, stream=stream, actor_id=actor_id, grant=grant)
    db.waker.wake(tenant)
    return Begun(epoch=live.next, is_new=True)


async def begin_within(
    conn: AsyncConnection,
    db: Database,
    keys: TenantKeys,
    live: Live,
    *,
    contract: RelationContract | None,
    stream: str,
    actor_id: str,
    grant: Grant,
) -> Receipt:
    """
    Begin the epoch `live.next`, with a contract that holds in it from the first event on.

    One that is being built and has folded nothing takes the contract in; one that has is given up
    for the next, which has its contracts too: what it made was made without this one.
    """
    if live.next != live.building:
        if live.building is not None:
            given_up = {"tenant": keys.tenant, "epoch": live.building, "state": EpochState.RETIRED.value}
            await conn.execute(_BECOME, given_up)
        await conn.execute(_BEGIN, {"tenant": keys.tenant, "epoch": live.next})
    said = Registration(contract=contract, epoch=live.next)
    draft = registration_draft(said, stream=stream, actor_id=actor_id)
    # Last: from here on until the commit, every other append of the tenant waits.
    return await append_within(conn, db, keys, draft, grant=grant)


# --- dropping ------------------------------------------------------------------------------------


async def drop_epoch(db: Database, tenant: str, epoch: int, *, grant: Grant) -> int:
    """
    Delete everything that a retired epoch made of the log, and return how many rows that were.

    Its number stays taken. What was answered from it can neither be asked nor built anew any more:
    that is `EpochDropped` from then on. Calling it again goes on where it was cut off.

    Raises:
        NotFound: No such tenant or epoch.
        Forbidden: The grant lacks `admin`.
        BadRequest: It serves, or is being built.
    """
    check_right(grant, tenant, Right.ADMIN)
    async with db.tenant(tenant) as conn:
        state = await conn.scalar(_STATE_LOCKED, {"tenant": tenant, "epoch": epoch})
        if state is None:
            raise NotFound(what="epoch")
        if state not in {EpochState.RETIRED, EpochState.DROPPED}:
            raise BadRequest(field="epoch", reason=f"epoch {epoch} is {state}: only a retired one is dropped")
        # First, and committed: nobody reads what is half gone.
        dropped = {"tenant": tenant, "epoch": epoch, "state": EpochState.DROPPED.value}
        await conn.execute(_BECOME, dropped)
    return await _delete(db, tenant, epoch)


async def half_dropped(conn: AsyncConnection, tenant: str) -> list[int]:
    """Return the epochs that are dropped and have rows all the same: that was cut off, or goes on."""
    return list(await conn.scalars(_HALF_DROPPED, {"tenant": tenant}))


async def finish_drops(db: Database, tenant: str) -> None:
    """Delete what is left of the epochs whose dropping was cut off, or help where it goes on."""
    async with db.tenant(tenant) as conn:
        left = await half_dropped(conn, tenant)
    for epoch in left:
        await _delete(db, tenant, epoch)


async def _delete(db: Database, tenant: str, epoch: int) -> int:
    async with db.tenant(tenant) as conn:
        await conn.execute(_PREPARE_DROP)
    count = 0
    while True:
        async with db.tenant(tenant) as conn:
            # One at a time: of rows that another is about to delete none is found, as if none were left.
            await conn.execute(_STATE_LOCKED, {"tenant": tenant, "epoch": epoch})
            parameters = {"tenant": tenant, "epoch": epoch, "rows": DROP_ROWS_MAX}
            rows = await conn.scalar(_DROP_ROWS, parameters) or 0
        if not rows:
            return count
        count += rows
