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
    more counted. `building` is the epoch that is being built beside it, with how far it is and what
    stops it. Epoch 0 is none.
    """

    tenant: str
    head: int
    cursor: int
    epoch: int
    dead_letters: int
    projector_version: str
    building: int
    building_cursor: int
    building_dead_letters: int


async def standings(db: Database) -> list[Standing]:
    """
    Return every tenant's standing, by name.

    Raises:
        Unavailable: The database is down or busy.
    """
    head, serving = _tables.head, _tables.epoch.alias("serving")
    building = _tables.epoch.alias("building")
    query = (
        sa.select(
            head.c.tenant,
            head.c.commit.label("head"),
            sa.func.coalesce(serving.c.commit, 0).label("cursor"),
            sa.func.coalesce(serving.c.epoch, 0).label("epoch"),
            _stopping(serving).label("dead_letters"),
            sa.func.coalesce(serving.c.projector_version, "").label("projector_version"),
            sa.func.coalesce(building.c.commit, 0).label("building_cursor"),
            sa.func.coalesce(building.c.epoch, 0).label("building"),
            _stopping(building).label("building_dead_letters"),
        )
        .select_from(
            head.outerjoin(
                serving, sa.and_(serving.c.tenant == head.c.tenant, serving.c.state == "serving")
            ).outerjoin(building, sa.and_(building.c.tenant == head.c.tenant, building.c.state == "building"))
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
                projector_version=row.projector_version,
                building=row.building,
                building_cursor=row.building_cursor,
                building_dead_letters=row.building_dead_letters,
            )
            for row in await conn.execute(query)
        ]


def _stopping(epoch: sa.FromClause) -> sa.ScalarSelect[int]:
    """Return how many events an epoch waits before."""
    dead = _tables.dead_letter
    return (
        sa.select(sa.func.count())
        .select_from(dead)
        .where(
            dead.c.tenant == epoch.c.tenant,
            dead.c.epoch == epoch.c.epoch,
            dead.c.position > epoch.c.position,
        )
        .scalar_subquery()
    )
