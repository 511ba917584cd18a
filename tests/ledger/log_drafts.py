"""Drafts for the tests of the log, and what they read back."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from ledger import log


def draft(text: str | None = "Ann moved to Lyon.", **fields: Any) -> EventDraft:
    """One event by Ann, as JSON would bring it."""
    form = {"stream": "chat-1", "kind": "turn", "actor": {"id": "ann", "class": "user"}, "text": text}
    return EventDraft.model_validate(
        {name: value for name, value in (form | fields).items() if value is not None}
    )


def claim(value: Any = "Lyon", **fields: Any) -> dict[str, Any]:
    return {"entity": "ann", "relation": "lives_in", "value": value, **fields}


async def append(db: log.Database, *drafts: EventDraft, tenant: str = "acme", **options: Any):
    return await log.append(db, tenant, drafts, **{"grant": LOCAL_GRANT, **options})


async def read_all(db: log.Database, tenant: str = "acme") -> list[log.LoggedEvent]:
    async with db.snapshot(tenant) as conn:
        keys = await log.tenant_keys(db, tenant, conn)
        return await log.read_events(conn, keys, after_position=0, limit=1_000)


async def head_of(db: log.Database, tenant: str = "acme") -> log.Head:
    async with db.snapshot(tenant) as conn:
        return await log.head(conn)


async def as_owner(
    engine: AsyncEngine, statement: str, *, tenant: str = "acme", **parameters: Any
) -> list[Any]:
    """Do what the plane may not do: a statement of the schema's owner on one tenant's rows."""
    async with engine.begin() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', :t, true)"), {"t": tenant})
        done = await conn.execute(sa.text(statement), parameters)
        rows = list(done) if done.returns_rows else []
        # A statement that met no row would prove nothing.
        assert rows or done.rowcount
        return rows
