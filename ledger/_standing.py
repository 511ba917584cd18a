"""Where every tenant stands: numbers and states across tenants, by the relay's role, no content."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from ledger import _tables
from ledger._database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """
    One tenant: the commit its log ends at, and the one its serving epoch is folded to.

    `dead_letters` counts events that stop the serving epoch; one that a later fold passed is no
    more counted. Epoch 0 is none yet.
    """

    tenant: str
    head: int
    cursor: int
    epoch: int
    dead_letters: int


async def standings(db: Database) -> list[Standing]:
    """
    Return every tenant's standing, by name.

    Raises:
        Unavailable: The database is down or busy.
    """
    head, epoch, dead = _tables.head, _tables.epoch, _tables.dead_letter
    stopping = (
        sa.select(sa.func.count())
        .select_from(dead)
        .where(
            dead.c.tenant == epoch.c.tenant,
            dead.c.epoch == epoch.c.epoch,
            dead.c.position > epoch.c.position,
        )
        .scalar_subquery()
    )
    query = (
        sa.select(
            head.c.tenant,
            head.c.commit.label("head"),
            sa.func.coalesce(epoch.c.commit, 0).label("cursor"),
            sa.func.coalesce(epoch.c.epoch, 0).label("epoch"),
            stopping.label("dead_letters"),
        )
        .select_from(
            head.outerjoin(epoch, sa.and_(epoch.c.tenant == head.c.tenant, epoch.c.state == "serving"))
        )
        .order_by(head.c.tenant)
    )
    async with db.across_tenants() as conn:
        return [
            Standing(
                tenant=row.tenant,
                head=row.head,
                cursor=row.cursor,
                epoch=row.epoch,
                dead_letters=row.dead_letters,
            )
            for row in await conn.execute(query)
        ]
