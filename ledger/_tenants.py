"""Tenants and their keys."""

from __future__ import annotations

import re
from typing import Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import BadRequest, NotFound
from ledger import _tables
from ledger._database import TENANTS_CACHED_MAX, Database
from ledger._driver_errors import translated
from ledger._keys import TenantKeys
from ledger._wake import autocommit

# As the check `tenant_name` has it.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_CREATE: Final = sa.text("SELECT echoplane_create_tenant(:tenant, :wrapped_keys, :created_at)")


async def create_tenant(db: Database, tenant: str) -> bool:
    """
    Make a tenant with an empty log; True if it was not there before.

    Raises:
        BadRequest: The name is not 1 to 63 letters, digits, `.`, `_` or `-`, the first a letter or digit.
        Unavailable: The database is down or busy.
    """
    if _NAME.fullmatch(tenant) is None:
        raise BadRequest(field="tenant", reason="1 to 63 of A-Z a-z 0-9 . _ - and first a letter or digit")
    parameters = {
        "tenant": tenant,
        "wrapped_keys": db.ring.new_tenant(tenant, randomness=db.randomness),
        "created_at": db.clock(),
    }
    with translated():
        async with autocommit(db.plane).connect() as connection:
            return bool(await connection.scalar(_CREATE, parameters))


async def tenant_exists(db: Database, tenant: str) -> bool:
    """Say whether there is such a tenant."""
    async with db.tenant(tenant) as conn:
        return await conn.scalar(sa.select(_tables.tenant.c.tenant)) is not None


async def list_tenants(db: Database) -> list[str]:
    """Return every tenant's name, sorted; by the relay's role, which sees no content."""
    async with db.across_tenants() as conn:
        names = await conn.scalars(sa.select(_tables.tenant.c.tenant))
        return sorted(names)


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
    if wrapped is None:
        raise NotFound(what="tenant")
    keys = db.ring.open_tenant(tenant, bytes(wrapped))
    while len(db.tenant_keys) >= TENANTS_CACHED_MAX:
        # The oldest goes: an idle tenant must cost nothing for ever.
        del db.tenant_keys[next(iter(db.tenant_keys))]
    db.tenant_keys[tenant] = keys
    return keys
