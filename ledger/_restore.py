"""
Restore: an exported tenant, into a store that has none of its name, in one transaction.

Everything is as it was: times, commits, hashes, epochs and what they hold, contexts and trails. So
nothing is folded again and nothing becomes known anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from sqlalchemy.exc import DataError, IntegrityError, ProgrammingError
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import BadRequest, IntegrityFault
from contracts.grants import Grant, Right
from contracts.limits import APPEND_BYTES_MAX, RESTORE_ROWS_MAX
from contracts.times import parse_instant
from ledger._commits import checkpoint_at
from ledger._database import Database
from ledger._export_form import MANIFEST, ExportedTable, Manifest, file_of, read_lines
from ledger._grants import check_right
from ledger._keys import TenantKeys, key_ring
from ledger._read import head

_TENANT: Final = sa.text("SELECT echoplane_restore_tenant(:tenant, :wrapped_keys, :created_at, :created_by)")
_ROWS: Final = sa.text(
    "SELECT echoplane_restore_rows(:tenant, :table, CAST(:columns AS text[]), CAST(:rows AS json))"
)


async def restore_tenant(
    db: Database, folder: Path, *, tenant: str | None, master_key: bytes | None, grant: Grant
) -> Manifest:
    """
    Make a tenant of what was exported; return the export's manifest. All of it, or nothing.

    Its name is that of the export: the hash of every commit covers it.

    Args:
        db: The database, connected as a role of `echoplane_backfill`.
        folder: The export.
        tenant: The name that the caller expects; None for whichever.
        master_key: Of the plane that it comes from; None if that is this one's.
        grant: What the caller may do; `backfill` is needed.

    Raises:
        Forbidden: The grant lacks the right, or the role may not restore.
        BadRequest: The folder is no export, or not as it was written; or is of another tenant, version or
            master key.
        TenantTaken: The name is a tenant's here, be it an empty one, or was one's that was deleted.
        Unavailable: The database is down or busy; nothing was restored.
    """
    manifest = Manifest.read(folder)
    check_right(grant, manifest.tenant, Right.BACKFILL)
    if tenant not in {None, manifest.tenant}:
        raise BadRequest(
            field="tenant", reason=f"the export is of {manifest.tenant}, and no other name fits it"
        )
    keys, wrapped = _keys(db, manifest, master_key)
    manifest.check(keys)
    for exported in manifest.tables:
        # Read twice: nothing is begun for an export that is not whole.
        for _ in read_lines(folder, exported, keys):
            pass
    async with db.tenant(manifest.tenant) as conn:
        made = {
            "tenant": manifest.tenant,
            "wrapped_keys": wrapped,
            "created_at": parse_instant(manifest.created_at, field="created_at"),
            "created_by": manifest.created_by,
        }
        await conn.execute(_TENANT, made)
        for exported in manifest.tables:
            await _fill(conn, folder, exported, keys)
        await _check_end(conn, manifest)
    db.waker.wake(manifest.tenant)
    return manifest


def _keys(db: Database, manifest: Manifest, master_key: bytes | None) -> tuple[TenantKeys, bytes]:
    """Return the tenant's keys, and the same wrapped by this plane's master key."""
    ring = db.ring if master_key is None else key_ring(master_key)
    try:
        wrapped = bytes.fromhex(manifest.wrapped_keys)
        keys = ring.open_tenant(manifest.tenant, wrapped)
        return keys, db.ring.adopt(manifest.tenant, wrapped, of=ring, randomness=db.randomness)
    except (ValueError, IntegrityFault) as error:
        raise BadRequest(
            field="master_key",
            reason=f"is not the one of the plane that made the export, or {MANIFEST} was changed",
        ) from error


async def _fill(conn: AsyncConnection, folder: Path, exported: ExportedTable, keys: TenantKeys) -> None:
    filled = 0
    try:
        for rows in _batches(read_lines(folder, exported, keys)):
            bound = {
                "tenant": keys.tenant,
                "table": exported.table,
                "columns": list(exported.columns),
                "rows": rows.decode(),
            }
            filled += await conn.scalar(_ROWS, bound) or 0
    except (DataError, IntegrityError, ProgrammingError, UnicodeDecodeError) as error:
        raise BadRequest(field=file_of(exported.table), reason="holds a row that fits no ledger") from error
    if filled != exported.rows:
        raise BadRequest(field=file_of(exported.table), reason="holds rows that come from nothing")


def _batches(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Yield JSON lists of lines: each few, and short unless its only line is not."""
    batch: list[bytes] = []
    size = 0
    for line in chain(lines, (b"",)):
        is_full = len(batch) >= RESTORE_ROWS_MAX or size + len(line) > APPEND_BYTES_MAX
        if batch and (is_full or not line):
            yield b"[" + b",".join(batch) + b"]"
            batch, size = [], 0
        batch.append(line)
        size += len(line)


async def _check_end(conn: AsyncConnection, manifest: Manifest) -> None:
    """Check that the log ends as it did; its tree was grown anew from the commits."""
    end = await head(conn)
    checkpoint = await checkpoint_at(conn, manifest.tenant, end.commit)
    found = (end.commit, end.position, end.hash.hex(), checkpoint.root.hex())
    if found != (manifest.commit, manifest.position, manifest.hash, manifest.root):
        raise BadRequest(field=MANIFEST, reason="names another end of the log than its commits come to")
