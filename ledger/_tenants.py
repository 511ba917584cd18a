"""Tenants: making and finding them, and their keys."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import BadRequest, NotFound
from contracts.limits import LIST_ROWS_MAX
from ledger import _tables
from ledger._database import TENANTS_CACHED_MAX, Database
from ledger._driver_errors import translated
from ledger._keys import TenantKeys
from ledger._wake import autocommit

PLANE: Final = "echoplane"
"""Who does what nobody is named for: makes a tenant that a command writes into, erases what is asked for."""

# As the check `tenant_name` has it.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_CREATE: Final = sa.text("SELECT echoplane_create_tenant(:tenant, :wrapped_keys, :created_at, :created_by)")
_RECORD: Final = (
    "SELECT tenant, t.created_at, t.created_by, d.deleted_at, d.deleted_by, p.suspended, "
    "coalesce(h.commit, d.commits) AS commits, coalesce(h.position, d.events) AS events "
)
_USE: Final = "LEFT JOIN head h USING (tenant) LEFT JOIN tenant_policy p USING (tenant) "
_LIST: Final = sa.text(
    f"{_RECORD} FROM tenant t FULL JOIN deleted_tenant d USING (tenant) {_USE}"
    'WHERE tenant COLLATE "C" > :after ORDER BY tenant COLLATE "C" LIMIT :limit'
)
# By name in each table: the list looks through all tenants.
_ONE: Final = sa.text(
    f"{_RECORD} FROM (SELECT CAST(:tenant AS text) AS tenant) AS n LEFT JOIN tenant t USING (tenant) "
    f"LEFT JOIN deleted_tenant d USING (tenant) {_USE}"
    "WHERE t.tenant IS NOT NULL OR d.tenant IS NOT NULL"
)


class TenantState(StrEnum):
    """What becomes of a tenant; one that is being deleted is gone already, but for its last rows."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    DELETING = "deleting"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantRecord:
    """
    One tenant, in numbers: who made it and when, and how long its log is, or was.

    Of one that is deleted nobody knows any more who made it.
    """

    tenant: str
    state: TenantState
    created_at: datetime | None
    created_by: str | None
    commits: int
    events: int
    deleted_at: datetime | None
    deleted_by: str | None


async def create_tenant(db: Database, tenant: str, *, created_by: str = PLANE) -> bool:
    """
    Make a tenant with an empty log; True if it was not there before.

    Raises:
        BadRequest: The name is not 1 to 63 letters, digits, `.`, `_` or `-`, the first a letter or digit.
        TenantTaken: One of this name was deleted.
        Unavailable: The database is down or busy.
    """
    if _NAME.fullmatch(tenant) is None:
        raise BadRequest(field="tenant", reason="1 to 63 of A-Z a-z 0-9 . _ - and first a letter or digit")
    parameters = {
        "tenant": tenant,
        "wrapped_keys": db.ring.new_tenant(tenant, randomness=db.randomness),
        "created_at": db.clock(),
        "created_by": created_by,
    }
    with translated():
        async with autocommit(db.plane).connect() as connection:
            return bool(await connection.scalar(_CREATE, parameters))


async def tenant_exists(db: Database, tenant: str) -> bool:
    """Say whether there is such a tenant; one that was deleted is forgotten by this process too."""
    async with db.tenant(tenant) as conn:
        exists = await conn.scalar(sa.select(_tables.head.c.tenant)) is not None
    if not exists:
        forget_tenant(db, tenant)
    return exists


def forget_tenant(db: Database, tenant: str) -> None:
    """Forget the keys of a tenant, and with them whatever this process keeps of it."""
    keys = db.tenant_keys.pop(tenant, None)
    db.contracts.pop(tenant, None)
    if keys is not None:
        db.ahead.forget(keys)
    for of in [of for of in db.left if of[0] == tenant]:
        del db.left[of]


async def list_tenants(db: Database) -> list[str]:
    """Return every tenant's name, sorted; by the relay's role, which sees no content."""
    async with db.across_tenants() as conn:
        names = await conn.scalars(sa.select(_tables.head.c.tenant))
        return sorted(names)


async def read_tenants(
    db: Database, *, after: str, limit: int, only: str | None = None
) -> list[TenantRecord]:
    """
    Return tenants by name, deleted ones too, at most `LIST_ROWS_MAX`; empty means no more.

    Args:
        db: The database.
        after: The last name of the page before; empty to begin with.
        limit: At most so many.
        only: The one that the caller may see, None for all.

    Raises:
        Unavailable: The database is down or busy.
    """
    if only is not None:
        record = await read_tenant(db, only) if only > after and limit > 0 else None
        return [] if record is None else [record]
    bound = {"after": after, "limit": min(limit, LIST_ROWS_MAX)}
    async with db.across_tenants() as conn:
        rows = (await conn.execute(_LIST, bound)).all()
    return [_record(row) for row in rows]


async def read_tenant(db: Database, tenant: str) -> TenantRecord | None:
    """
    Return one tenant, a deleted one too; None where there is none of this name, and was none.

    Raises:
        Unavailable: The database is down or busy.
    """
    async with db.across_tenants() as conn:
        row = (await conn.execute(_ONE, {"tenant": tenant})).one_or_none()
    return None if row is None else _record(row)


async def half_deleted(db: Database) -> list[str]:
    """Return the tenants whose deleting was cut off, or goes on, by name."""
    tenant, deleted = _tables.tenant, _tables.deleted_tenant
    async with db.across_tenants() as conn:
        joined = tenant.join(deleted, tenant.c.tenant == deleted.c.tenant)
        return sorted(await conn.scalars(sa.select(tenant.c.tenant).select_from(joined)))


def _record(row: Any) -> TenantRecord:  # noqa: ANN401 — a row
    if row.deleted_at is not None:
        state = TenantState.DELETED if row.created_at is None else TenantState.DELETING
    else:
        state = TenantState.SUSPENDED if row.suspended else TenantState.ACTIVE
    return TenantRecord(
        tenant=row.tenant,
        state=state,
        created_at=None if row.created_at is None else row.created_at.astimezone(UTC),
        created_by=row.created_by,
        commits=row.commits,
        events=row.events,
        deleted_at=None if row.deleted_at is None else row.deleted_at.astimezone(UTC),
        deleted_by=row.deleted_by,
    )


async def tenant_keys(db: Database, tenant: str, conn: AsyncConnection | None = None) -> TenantKeys:
    """
    Return a tenant's keys; read once in this process.

    Args:
        db: The database.
        tenant: Whose keys.
        conn: An open transaction of that tenant; without one, one is opened if it is needed.

    Raises:
        NotFound: No such tenant.
        IntegrityFault: The keys were changed, or the master key is another one.
    """
    if (cached := db.tenant_keys.get(tenant)) is not None:
        return cached
    if conn is None:
        async with db.tenant(tenant) as own:
            wrapped = await own.scalar(sa.select(_tables.tenant.c.wrapped_keys))
    else:
        wrapped = await conn.scalar(sa.select(_tables.tenant.c.wrapped_keys))
    # Of one that was deleted they are gone before its rows are.
    if not wrapped:
        raise NotFound(what="tenant")
    keys = db.ring.open_tenant(tenant, bytes(wrapped))
    while len(db.tenant_keys) >= TENANTS_CACHED_MAX:
        # The oldest goes: an idle tenant must cost nothing for ever.
        del db.tenant_keys[next(iter(db.tenant_keys))]
    db.tenant_keys[tenant] = keys
    return keys
