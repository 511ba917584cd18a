"""How far the projection is behind its logs, and what stops it: for health checks and metrics."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.log import Database, standings


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """
    The projection's state over all tenants, from PostgreSQL alone.

    `lag_commits_max` is that of the tenant that is furthest behind; `stopped_tenants` are those
    with an event that stops them. Epochs that are being built delay no read and count apart:
    `building_count`, and `stopped_building` for the tenants whose next epoch an event stops.
    """

    tenants_count: int
    behind_count: int
    lag_commits_max: int
    dead_letters: int
    stopped_tenants: tuple[str, ...]
    building_count: int
    stopped_building: tuple[str, ...]


async def backlog(db: Database) -> Backlog:
    """
    Return how far behind the projection is.

    Raises:
        Unavailable: The database is down or busy.
    """
    found = await standings(db)
    lags = [max(one.head - one.cursor, 0) for one in found]
    return Backlog(
        tenants_count=len(found),
        behind_count=sum(lag > 0 for lag in lags),
        lag_commits_max=max(lags, default=0),
        dead_letters=sum(one.dead_letters + one.building_dead_letters for one in found),
        stopped_tenants=tuple(one.tenant for one in found if one.dead_letters),
        building_count=sum(one.building > 0 for one in found),
        stopped_building=tuple(one.tenant for one in found if one.building_dead_letters),
    )
