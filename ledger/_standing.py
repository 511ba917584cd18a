"""Where every tenant stands: numbers and states across tenants, by the relay's role, no content."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.pool import QueuePool

from ledger import _tables
from ledger._database import POOL_CONNECTIONS, Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """
    One tenant: the commit its log ends at, and the one its serving epoch is folded to.

    `position` is that of its last folded event, `waits_since` when the oldest commit was recorded that it
    has not folded, None where there is none. `dead_letters` counts events that stop the serving epoch;
    one that a later fold passed is no more counted. `building` is the epoch that is being built beside
    it, with how far it is and what stops it. Epoch 0 is none.
    """

    tenant: str
    head: int
    cursor: int
    position: int
    waits_since: datetime | None
    epoch: int
    dead_letters: int
    projector_version: str
    building: int
    building_cursor: int
    building_position: int
    building_waits_since: datetime | None
    building_projector_version: str
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
            sa.func.coalesce(serving.c.position, 0).label("position"),
            _oldest_waiting(serving).label("waits_since"),
            sa.func.coalesce(serving.c.epoch, 0).label("epoch"),
            _stopping(serving).label("dead_letters"),
            sa.func.coalesce(serving.c.projector_version, "").label("projector_version"),
            sa.func.coalesce(building.c.commit, 0).label("building_cursor"),
            sa.func.coalesce(building.c.position, 0).label("building_position"),
            _oldest_waiting(building).label("building_waits_since"),
            sa.func.coalesce(building.c.projector_version, "").label("building_projector_version"),
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
                position=row.position,
                waits_since=None if row.waits_since is None else row.waits_since.astimezone(UTC),
                epoch=row.epoch,
                dead_letters=row.dead_letters,
                projector_version=row.projector_version,
                building=row.building,
                building_cursor=row.building_cursor,
                building_position=row.building_position,
                building_waits_since=(
                    None if row.building_waits_since is None else row.building_waits_since.astimezone(UTC)
                ),
                building_projector_version=row.building_projector_version,
                building_dead_letters=row.building_dead_letters,
            )
            for row in await conn.execute(query)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """The connections of one pool of this process: handed out, at rest, and how many there may be."""

    pool: str
    in_use: int
    idle: int
    allowed: int


def connections(db: Database) -> list[Connections]:
    """Return how full the pools of this process are."""
    found: list[Connections] = []
    for name, engine in (("plane", db.plane), ("relay", db.relay)):
        pool = engine.sync_engine.pool
        assert isinstance(pool, QueuePool)
        found.append(
            Connections(pool=name, in_use=pool.checkedout(), idle=pool.checkedin(), allowed=POOL_CONNECTIONS)
        )
    return found


def _oldest_waiting(epoch: sa.FromClause) -> sa.ScalarSelect[datetime]:
    """Return when the first commit was recorded that an epoch has not folded."""
    commit = _tables.commit
    return (
        sa.select(commit.c.recorded_at)
        .where(commit.c.tenant == epoch.c.tenant, commit.c.commit == epoch.c.commit + 1)
        .scalar_subquery()
    )


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
