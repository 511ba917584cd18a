"""The use cases of tenants: list and show them, decide about them, delete them, and move them."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from contracts.errors import BadRequest
from contracts.grants import Grant
from contracts.tenant_wire import (
    DecidedAnswer,
    DeletedAnswer,
    MovedAnswer,
    PolicyAnswer,
    TenantRecordAnswer,
    TenantsAnswer,
    TenantUseAnswer,
)
from contracts.times import format_instant
from echoplane._clock import wall_clock
from echoplane._folders import DataFolder
from echoplane._keys import load_master_key
from echoplane._plane import ask_for
from echoplane._scrub import announcing, read_scrub
from echoplane._state import Role
from echoplane._wiring import Plane
from ledger import log

OPERATOR: Final = "operator"
"""Who decides, as far as the plane knows: whoever has its own token."""


async def tenants(plane: Plane, *, after: str, limit: int, only: str | None) -> TenantsAnswer:
    found = await log.read_tenants(plane.database, after=after, limit=limit, only=only)
    return TenantsAnswer(tenants=[TenantRecordAnswer(**_record(one)) for one in found])


async def show(plane: Plane, tenant: str) -> TenantUseAnswer:
    return TenantUseAnswer(**_use(await log.show_tenant(plane.database, tenant)))


async def decide(
    plane: Plane, tenant: str, change: dict[str, Any], *, reason: str, grant: Grant
) -> DecidedAnswer:
    """Decide something about a tenant; the worker folds the event that says it."""
    decided = await log.decide(plane.database, tenant, change, reason=reason, actor_id=OPERATOR, grant=grant)
    await ask_for(plane.settings, Role.WORKER)
    return DecidedAnswer(tenant=tenant, policy=PolicyAnswer(**asdict(decided.policy)), commit=decided.commit)


async def delete(plane: Plane, tenant: str, *, reason: str, grant: Grant) -> DeletedAnswer:
    """Delete a tenant for ever; the files owe a scrub, which is not waited for."""
    folder = DataFolder.at(plane.settings.data_dir)
    with announcing(folder) as announce:
        left = await log.delete_tenant(
            plane.database, tenant, reason=reason, actor_id=OPERATOR, grant=grant, announce=announce
        )
    return DeletedAnswer(**_use(left), scrub=read_scrub(folder))


async def export(plane: Plane, tenant: str, folder: Path, *, grant: Grant) -> MovedAnswer:
    return _moved(await log.export_tenant(plane.database, tenant, folder, grant=grant))


async def restore(
    plane: Plane, folder: Path, *, tenant: str | None, master_key: bytes | None, grant: Grant
) -> MovedAnswer:
    """
    Restore an exported tenant, as the role that may state the past.

    Raises:
        BadRequest: The plane has no such role; and as `ledger.log.restore_tenant`.
    """
    database = backfilling(plane)
    try:
        manifest = await log.restore_tenant(
            database, folder, tenant=tenant, master_key=master_key, grant=grant
        )
    finally:
        await database.close()
    await ask_for(plane.settings, Role.WORKER)
    return _moved(manifest)


def backfilling(plane: Plane) -> log.Database:
    """
    Return the database as the role that may state the past; to be closed.

    Raises:
        BadRequest: The plane was given none.
    """
    urls = plane.servers.database
    if urls.backfill is None:
        raise BadRequest(
            field="ECHOPLANE_DATABASE_BACKFILL_URL", reason="is needed: it states when something was known"
        )
    return log.open_database(
        plane_url=urls.backfill,
        relay_url=urls.relay,
        master_key=load_master_key(plane.settings, DataFolder.at(plane.settings.data_dir)),
        clock=wall_clock,
    )


def _record(one: log.TenantRecord) -> dict[str, Any]:
    return {
        "tenant": one.tenant,
        "state": one.state.value,
        "created_at": _instant(one.created_at),
        "created_by": one.created_by,
        "commits": one.commits,
        "events": one.events,
        "deleted_at": _instant(one.deleted_at),
        "deleted_by": one.deleted_by,
    }


def _use(one: log.TenantUse) -> dict[str, Any]:
    return _record(one.record) | {
        "bytes": one.bytes,
        "policy": PolicyAnswer(**asdict(one.policy)),
        "reason": one.reason,
    }


def _moved(manifest: log.Manifest) -> MovedAnswer:
    return MovedAnswer(
        tenant=manifest.tenant,
        commits=manifest.commit,
        events=manifest.position,
        commit_hash=manifest.hash,
        root=manifest.root,
        rows=sum(one.rows for one in manifest.tables),
        bytes=sum(one.bytes for one in manifest.tables),
    )


def _instant(at: datetime | None) -> str | None:
    return None if at is None else format_instant(at)
