"""Export: all that the ledger holds of one tenant, as of one instant, into a folder."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import BadRequest, NotFound, Unavailable
from contracts.grants import Grant, Right
from contracts.times import format_instant
from ledger import _tables
from ledger._commits import checkpoint_at
from ledger._database import Database
from ledger._export_form import EXPORTED, FORMAT, ExportedTable, ExportWriter, Manifest, columns_of
from ledger._grants import check_right
from ledger._keys import TenantKeys
from ledger._read import head
from ledger._tenants import tenant_keys

_ROWS_AT_ONCE: Final = 64
"""Rows that are in memory at once: the largest has megabytes."""
_DISK: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})
"""What is not for who named the folder to mend."""


async def export_tenant(db: Database, tenant: str, folder: Path, *, grant: Grant) -> Manifest:
    """
    Write a tenant into a folder that is empty or not there, as it stood at one instant; return its manifest.

    What was erased is in it as it is in the database: without its keys, and with its tombstones. What
    is in it otherwise is in the clear where it is in the database.

    Args:
        db: The database.
        tenant: Whose ledger.
        folder: Where to; left behind without a manifest if the export is cut off.
        grant: What the caller may do; `admin` is needed.

    Raises:
        NotFound: No such tenant.
        Forbidden: The grant lacks the right.
        BadRequest: The folder holds something, or cannot be written.
        Unavailable: The database is down or busy, or the disk is full or fails.
    """
    check_right(grant, tenant, Right.ADMIN)
    async with db.snapshot(tenant) as conn:
        await conn.execute(sa.text("SET LOCAL statement_timeout = 0"))
        keys = await tenant_keys(db, tenant, conn)
        row = (await conn.execute(sa.select(_tables.tenant))).one_or_none()
        if row is None or not row.wrapped_keys:
            raise NotFound(what="tenant")
        end = await head(conn)
        checkpoint = await checkpoint_at(conn, tenant, end.commit)
        try:
            _make(folder)
            tables = tuple([await _write(conn, folder, table, keys) for table in EXPORTED])
            manifest = Manifest(
                format=FORMAT,
                tenant=tenant,
                created_at=format_instant(row.created_at.astimezone(UTC)),
                created_by=row.created_by,
                wrapped_keys=bytes(row.wrapped_keys).hex(),
                commit=end.commit,
                position=end.position,
                hash=end.hash.hex(),
                root=checkpoint.root.hex(),
                tables=tables,
                seal="",
            )
            manifest = replace(manifest, seal=manifest.sealed(keys))
            manifest.write(folder)
        except OSError as error:
            if error.errno in _DISK:
                raise Unavailable(
                    part="disk", reason=f"{error.strerror}; what is in {folder} is no export"
                ) from error
            raise BadRequest(field=str(folder), reason=f"cannot be written: {error.strerror}") from error
    return manifest


async def _write(conn: AsyncConnection, folder: Path, table: sa.Table, keys: TenantKeys) -> ExportedTable:
    rows = await conn.stream(
        sa.text(_query(table)), {"tenant": keys.tenant}, execution_options={"yield_per": _ROWS_AT_ONCE}
    )
    try:
        with ExportWriter(folder, table, keys) as writer:
            async for (line,) in rows:
                writer.add(line)
            return writer.end()
    finally:
        await rows.close()


def _query(table: sa.Table) -> str:
    """Return the query for the lines of a table, in the order of its key."""
    columns = ", ".join(f'"{name}"' for name in columns_of(table))
    order = ", ".join(f'"{column.name}"' for column in table.primary_key.columns)
    source = f'"{table.name}"'
    if table is _tables.cell:
        source = (
            "(SELECT c.*, l.epoch, l.entity, l.relation, l.part FROM cell c JOIN line l USING (tenant, line))"
        )
    return (
        f"SELECT row_to_json(r)::text FROM (SELECT {columns} FROM {source} AS t "  # noqa: S608 — declared names
        f"WHERE t.tenant = :tenant ORDER BY {order}) AS r"
    )


def _make(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.scandir(folder) as entries:
        if next(entries, None) is not None:
            raise BadRequest(field=str(folder), reason="is not empty")
