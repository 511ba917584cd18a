"""
Deleting a tenant whole: its keys first, then every row of every table.

The first step is one transaction, after which nothing of it can be read, appended or folded. The
rows go afterwards, some at a time; that is cut off anywhere, and begun again by the same call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import sqlalchemy as sa

from contracts.grants import Grant, Right
from contracts.limits import TENANT_ROWS_MAX
from ledger import _tables
from ledger._database import Database
from ledger._epochs import ONE_AT_A_TIME
from ledger._export_form import EXPORTED
from ledger._tenancy import TenantUse, check_operator, show_tenant
from ledger._tenants import forget_tenant

_LOCK_TIMEOUT: Final = sa.text("SELECT set_config('lock_timeout', '30s', true)")
_END: Final = sa.text("SELECT echoplane_end_tenant(:tenant, :at, :by, :reason)")
_DELETE: Final = sa.text("SELECT echoplane_delete_rows(:tenant, :table, :rows)")

DELETED_IN_ORDER: Final = (*(table.name for table in reversed(EXPORTED)), _tables.tenant.name)
"""Every table, each before what its rows come from."""


async def delete_tenant(
    db: Database,
    tenant: str,
    *,
    reason: str,
    actor_id: str,
    grant: Grant,
    announce: Callable[[], None] = lambda: None,
) -> TenantUse:
    """
    Delete a tenant for ever, and return what is left: its name, when it was, by whom, and why.

    Its name is not given again. Called again it goes on where it was cut off.

    Args:
        db: The database.
        tenant: Which one.
        reason: Why. Kept in the clear, for as long as the database is.
        actor_id: Who deletes it.
        grant: What the caller may do: the plane's own, with the right `erase`.
        announce: Called before anything goes: whatever is raised after that may leave it deleted.

    Raises:
        NotFound: There is no such tenant, and there was none.
        Forbidden: The grant is a tenant's.
        Unavailable: The database is down or busy; delete again.
    """
    check_operator(grant, tenant, Right.ERASE)
    async with db.tenant(tenant) as conn:
        await conn.execute(_LOCK_TIMEOUT)
        await conn.execute(ONE_AT_A_TIME, {"tenant": tenant})
        if await conn.scalar(sa.select(_tables.tenant.c.tenant)) is None:
            # Deleted before, or never there.
            return await show_tenant(db, tenant)
        announce()
        bound = {"tenant": tenant, "at": db.clock(), "by": actor_id, "reason": reason}
        await conn.execute(_END, bound)
    forget_tenant(db, tenant)
    for table in DELETED_IN_ORDER:
        while await _delete_rows(db, tenant, table):
            pass
    return await show_tenant(db, tenant)


async def _delete_rows(db: Database, tenant: str, table: str) -> int:
    async with db.tenant(tenant) as conn:
        # One at a time: of rows that another is about to delete none is found, as if none were left.
        await conn.execute(ONE_AT_A_TIME, {"tenant": tenant})
        bound = {"tenant": tenant, "table": table, "rows": TENANT_ROWS_MAX}
        rows: int | None = await conn.scalar(_DELETE, bound)
    return rows or 0
