"""
What an operator decides about a tenant: whether it may append, how much, and how long it is kept.

Each is a `decision` of the tenant's log, written in the transaction that makes it hold. How appends
are held to it stands in 0003_tenants.sql: asked under the lock that numbers them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from datetime import timedelta
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import Insert
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.erasures import ErasureRequest
from contracts.errors import Forbidden, NotFound
from contracts.grants import Grant, Right
from contracts.limits import RETENTION_EVENTS_MAX
from contracts.tenants import Policy
from ledger import _tables
from ledger._append import append_within
from ledger._database import Database
from ledger._decisions import TENANCY, decision_draft
from ledger._grants import check_right
from ledger._tenants import TenantRecord, read_tenant, tenant_keys

RETENTION_ACTOR: Final = "retention"
"""The actor of an erasure that a retention policy asked for."""

_HOLD_HEAD: Final = sa.text("SELECT echoplane_hold_head(:tenant)")
_WHY_DELETED: Final = sa.text("SELECT reason FROM deleted_tenant WHERE tenant = :tenant")
# By the clock, then by position: what was erased before is passed over without being read.
_OVERDUE: Final = sa.text(
    "SELECT e.event_id FROM event e WHERE e.tenant = :tenant AND e.position > coalesce((SELECT "
    "l.position FROM event l WHERE l.tenant = :tenant AND l.event_id = CAST(:after AS text)), 0) "
    "AND e.position < coalesce((SELECT "
    "c.first_position FROM commit c WHERE c.tenant = :tenant AND c.recorded_at >= :before "
    "ORDER BY c.recorded_at LIMIT 1), 9223372036854775807) AND e.kind NOT IN ('relation', 'decision', "
    "'erasure') AND NOT EXISTS (SELECT FROM erased x WHERE x.tenant = e.tenant AND x.event_id = e.event_id) "
    "ORDER BY e.position LIMIT :limit"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantUse:
    """
    A tenant, what holds of it, and the bytes that its log takes; `reason` says why it was deleted.

    Of one that is deleted the log takes none, though some of its rows may still be there.
    """

    record: TenantRecord
    policy: Policy
    bytes: int
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What holds of a tenant from a commit on; None where it held already, and nothing was written."""

    policy: Policy
    commit: int | None


def check_operator(grant: Grant, tenant: str, right: Right) -> None:
    """
    Check that a grant is the plane's own: a tenant must not lift its own bounds.

    Raises:
        NotFound: It is another tenant's.
        Forbidden: It is the tenant's, or lacks the right.
    """
    check_right(grant, tenant, right)
    if grant.tenant is not None:
        raise Forbidden(needs="what operators of the plane alone may do")


async def show_tenant(db: Database, tenant: str) -> TenantUse:
    """
    Return how a tenant stands, a deleted one too.

    Raises:
        NotFound: There is none of this name, and there was none.
        Unavailable: The database is down or busy.
    """
    record = await read_tenant(db, tenant)
    if record is None:
        raise NotFound(what="tenant")
    async with db.snapshot(tenant) as conn:
        policy = await _policy(conn)
        used = await conn.scalar(sa.select(_tables.head.c.bytes))
        reason = await conn.scalar(_WHY_DELETED, {"tenant": tenant})
    return TenantUse(record=record, policy=policy, bytes=used or 0, reason=reason)


async def decide(
    db: Database, tenant: str, change: dict[str, Any], *, reason: str, actor_id: str, grant: Grant
) -> Decided:
    """
    Decide something about a tenant, for as long as nothing else is decided.

    Args:
        db: The database.
        tenant: About whom.
        change: Fields of `Policy`, with what holds of each from now on.
        reason: Why, for whoever reads the log; kept like the text of any event.
        actor_id: Who decides.
        grant: What the caller may do: the plane's own, with the right `operator`.

    Raises:
        NotFound: No such tenant.
        Forbidden: The grant is a tenant's.
        BadRequest: A bound that no policy has.
        Unavailable: Unknown whether decided; decide again.
    """
    check_operator(grant, tenant, Right.OPERATOR)
    async with db.tenant(tenant) as conn:
        # As an append does: the head first, then the policy. What follows is of one instant.
        if await conn.scalar(_HOLD_HEAD, {"tenant": tenant}) is None:
            raise NotFound(what="tenant")
        before = await _policy(conn)
        policy = replace(before, **change)
        if policy == before:
            return Decided(policy=policy, commit=None)
        await conn.execute(_becomes(tenant, policy))
        keys = await tenant_keys(db, tenant, conn)
        draft = decision_draft(tenant, TENANCY, change, reason=reason, actor_id=actor_id)
        receipt = await append_within(conn, db, keys, draft, grant=grant)
    db.waker.wake(tenant)
    return Decided(policy=policy, commit=receipt.commit)


async def overdue(db: Database, tenant: str, *, after_event_id: str | None = None) -> ErasureRequest | None:
    """
    Return what a tenant's retention policy erases next: events that were recorded too long ago, the oldest.

    None where it has none, or nothing is too old. Commands stay: what they did has to be known.

    Args:
        db: The database.
        tenant: Whose log.
        after_event_id: The last event of the erasure before: what stands up to it is not passed again.

    Raises:
        Unavailable: The database is down or busy.
    """
    async with db.snapshot(tenant) as conn:
        days = (await _policy(conn)).retention_days
        if days is None:
            return None
        before = db.clock() - timedelta(days=days)
        bound = {
            "tenant": tenant,
            "after": after_event_id,
            "before": before,
            "limit": RETENTION_EVENTS_MAX,
        }
        event_ids = tuple(await conn.scalars(_OVERDUE, bound))
    return ErasureRequest(subject=None, event_ids=event_ids) if event_ids else None


async def retaining(db: Database) -> list[str]:
    """Return the tenants that have a retention policy, by name."""
    policy = _tables.tenant_policy
    query = sa.select(policy.c.tenant).where(policy.c.retention_days.is_not(None))
    async with db.across_tenants() as conn:
        return sorted(await conn.scalars(query))


async def _policy(conn: AsyncConnection) -> Policy:
    columns = [_tables.tenant_policy.c[each.name] for each in fields(Policy)]
    row = (await conn.execute(sa.select(*columns))).mappings().one_or_none()
    return Policy.NONE if row is None else Policy(**row)


def _becomes(tenant: str, policy: Policy) -> Insert:
    """Return what makes a policy hold; what may be appended in a minute may be so at once."""
    row = {
        **asdict(policy),
        "allowance": policy.events_per_minute or 0,
        "allowance_at": sa.func.clock_timestamp(),
    }
    insert = postgresql.insert(_tables.tenant_policy).values(tenant=tenant, **row)
    changed = {name: insert.excluded[name] for name in row}
    return insert.on_conflict_do_update(index_elements=["tenant"], set_=changed)
