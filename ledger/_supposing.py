"""
What would be, if something were appended: appended and folded in a transaction that is rolled back.

The same code appends, folds and decides as always; only the end of the transaction differs. For as
long as it lasts every other append of the tenant waits, so it is bounded.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from typing import Any, NoReturn

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import NotFound
from contracts.events import EventDraft
from ledger import _tables
from ledger._append import append_commands_within
from ledger._claims import NO_KEY, claim_of
from ledger._database import Database
from ledger._direct import fetched
from ledger._driver_errors import translated
from ledger._keys import TenantKeys
from ledger._tenants import tenant_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Supposed(Database):
    """A database as it would be: whatever reads through it, reads in the one transaction that goes."""

    conn: AsyncConnection
    tenant_alone: str

    @asynccontextmanager
    async def tenant(self, tenant: str) -> AsyncIterator[AsyncConnection]:
        """Yield the transaction; leaving it commits nothing."""
        assert tenant == self.tenant_alone, "what is supposed is supposed of one tenant"
        yield self.conn

    @asynccontextmanager
    async def snapshot(self, tenant: str) -> AsyncIterator[AsyncConnection]:
        """Yield the transaction: nobody else can append meanwhile, so all in it is of one instant."""
        assert tenant == self.tenant_alone, "what is supposed is supposed of one tenant"
        yield self.conn

    async def rows(self, statement: str, parameters: Mapping[str, object]) -> Sequence[Any]:
        """Return what a query returns in the transaction, which shows the rows of its tenant alone."""
        with translated():
            driver: Any = (await self.conn.get_raw_connection()).driver_connection
            return await fetched(driver, statement, parameters)

    def across_tenants(self) -> NoReturn:
        """Refuse: what is supposed is supposed of one tenant."""
        raise AssertionError("what is supposed is supposed of one tenant")


@asynccontextmanager
async def supposing(
    db: Database, tenant: str, drafts: Sequence[EventDraft]
) -> AsyncIterator[tuple[Supposed, int]]:
    """
    Yield the database as it would be with these events in the log, and their commit; then undo it.

    Who may is the caller's business, as nothing is written.
    """
    keys = await tenant_keys(db, tenant)
    async with db.tenant(tenant) as conn:
        transaction = conn.get_transaction()
        assert transaction is not None
        try:
            receipt = await append_commands_within(conn, db, keys, drafts)
            given = {one.name: getattr(db, one.name) for one in fields(Database)}
            yield Supposed(conn=conn, tenant_alone=tenant, **given), receipt.commit
        finally:
            await transaction.rollback()


async def keys_of_event(
    conn: AsyncConnection, keys: TenantKeys, *, epoch: int, event_id: str
) -> list[tuple[str, str]]:
    """
    Return the keys, entity and relation, that the claims of an event are on.

    Raises:
        NotFound: There is no such event.
        IntegrityFault: A row does not match its seal.
    """
    event, claim = _tables.event, _tables.claim
    there = sa.select(event.c.position).where(event.c.tenant == keys.tenant, event.c.event_id == event_id)
    position = await conn.scalar(there)
    if position is None:
        raise NotFound(what="event")
    query = sa.select(claim).where(
        claim.c.tenant == keys.tenant, claim.c.epoch == epoch, claim.c.position == position
    )
    found = [claim_of(row, keys=keys) for row in await _rows(conn, query)]
    return sorted({(one.entity, one.relation) for one in found if one.relation != NO_KEY})


async def _rows(conn: AsyncConnection, query: sa.Select[Any]) -> Sequence[Any]:
    rows: Sequence[Any] = (await conn.execute(query)).mappings().all()
    return rows
