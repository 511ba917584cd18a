"""How a plane stands, read from outside: nothing is started."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal

from contracts.errors import EchoplaneError, Unavailable
from contracts.reports import BuildingStatus, RoleStatus, StatusAnswer, TenantStatus
from echoplane._clock import wall_clock
from echoplane._embedded import find_servers
from echoplane._folders import DataFolder
from echoplane._keys import load_master_key
from echoplane._settings import Settings
from echoplane._state import Mode, PlaneState, RoleState, living_state

if TYPE_CHECKING:
    from ledger.log import Standing


async def read_status(settings: Settings) -> StatusAnswer:
    """Return the supervisor's report, checked against the processes, and each tenant's standing."""
    root = settings.data_dir.expanduser().absolute()
    state = living_state(DataFolder.at(root)) if root.is_dir() else None
    up = state is not None and state.ready and state.mode is Mode.UP
    mode: Literal["up", "ephemeral", "down"] = "down" if state is None else state.mode.value
    tenants: list[TenantStatus] = []
    failure = None
    if state is not None and state.ready:
        try:
            tenants = await read_standing(settings)
        except EchoplaneError as error:
            failure = f"{error} [{error.code}]"
    return StatusAnswer(
        up=up,
        mode=mode,
        supervisor=None if state is None else state.process.pid,
        data_dir=str(root),
        http=None if state is None else state.http,
        roles=[] if state is None else [_role(role) for role in _ordered(state)],
        tenants=tenants,
        failure=failure,
    )


async def read_standing(settings: Settings) -> list[TenantStatus]:
    """
    Return where each tenant stands.

    Raises:
        Unavailable: The servers are not there, or do not answer.
        BadRequest: The master key cannot be read.
    """
    from ledger import log as ledger_log  # noqa: PLC0415 - slow to load, and most commands only import us

    servers = await find_servers(settings)
    if servers is None:
        raise Unavailable(part="servers", reason="not running")
    database = ledger_log.open_database(
        plane_url=servers.database.plane,
        relay_url=servers.database.relay,
        master_key=load_master_key(settings, DataFolder.at(settings.data_dir)),
        clock=wall_clock,
    )
    try:
        return [tenant_status(one, now=wall_clock()) for one in await ledger_log.standings(database)]
    finally:
        await database.close()


def tenant_status(one: Standing, *, now: datetime) -> TenantStatus:
    return TenantStatus(
        tenant=one.tenant,
        head=one.head,
        cursor=one.cursor,
        epoch=one.epoch,
        lag=one.head - one.cursor,
        lag_seconds=waited_seconds(one.waits_since, now=now),
        dead_letters=one.dead_letters,
        projector=one.projector_version,
        building=BuildingStatus(
            epoch=one.building,
            cursor=one.building_cursor,
            lag=one.head - one.building_cursor,
            lag_seconds=waited_seconds(one.building_waits_since, now=now),
            dead_letters=one.building_dead_letters,
        )
        if one.building
        else None,
    )


def waited_seconds(since: datetime | None, *, now: datetime) -> float:
    """Return how long something has waited; 0 where nothing does, or where our clock is behind."""
    return 0.0 if since is None else max((now - since).total_seconds(), 0.0)


def _ordered(state: PlaneState) -> list[RoleState]:
    return sorted(state.roles, key=lambda role: role.role)


def _role(role: RoleState) -> RoleStatus:
    alive = role.process is not None and role.process.is_alive()
    return RoleStatus(
        role=role.role,
        pid=role.process.pid if role.process is not None and alive else None,
        state="running" if alive else "waiting",
        restarts=role.restarts,
    )
