"""
Schema migrations: the only door to `ledger/migrations`.

Promises: after `upgrade` a database holds exactly the schema declared in `_tables`, its row level
security, and the rights of the roles `echoplane_plane`, `echoplane_relay` and `echoplane_backfill`. A
database that other scripts have made, be it under the same revision, is refused: a digest of them
stands on its table `alembic_version`, as a comment.
Does not promise: passwords. An external server's roles get theirs from its own administrator.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from contracts.errors import OtherSchema
from ledger._database import database_url
from ledger._driver_errors import translated

__all__ = ["BACKFILL_ROLE", "PLANE_ROLE", "RELAY_ROLE", "upgrade"]

PLANE_ROLE: Final = "echoplane_plane"
"""Reads and appends within one tenant at a time; owns nothing."""
RELAY_ROLE: Final = "echoplane_relay"
"""Sees numbers and states of every tenant, and no content."""
BACKFILL_ROLE: Final = "echoplane_backfill"
"""The plane's rights, and it may state the clock of an append: for tests and for backfill."""

_MIGRATIONS: Final = Path(__file__).parent / "migrations"
# Two processes that start at once must not migrate at once.
_LOCK: Final = 0x6563_686F_706C_616E
_HAS_REVISION: Final = sa.text("SELECT to_regclass('alembic_version') IS NOT NULL")
_REVISION: Final = sa.text(
    "SELECT version_num, obj_description(to_regclass('alembic_version'), 'pg_class') FROM alembic_version"
)


async def upgrade(owner_url: str) -> None:
    """
    Bring a database to the newest schema; does nothing if it is there already.

    Args:
        owner_url: A `postgresql://` URL of a role that may create tables, extensions and roles.

    Raises:
        OtherSchema: It was made by other scripts than this build's; nothing was changed.
        Unavailable: The server is down or busy.
    """
    engine = create_async_engine(database_url(owner_url), poolclass=NullPool, hide_parameters=True)
    try:
        with translated():
            async with engine.begin() as connection:
                await connection.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
                await connection.run_sync(_upgrade)
    finally:
        await engine.dispose()


def _upgrade(connection: sa.Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    newest = ScriptDirectory.from_config(config).get_current_head()
    assert newest is not None
    made = connection.execute(_REVISION).one_or_none() if connection.scalar(_HAS_REVISION) else None
    if made is not None:
        revision, digest = made
        if revision > newest or digest != _digest(revision):
            raise OtherSchema(revision=revision)
        if revision == newest:
            return
    command.upgrade(config, "head")
    connection.execute(sa.text(f"COMMENT ON TABLE alembic_version IS '{_digest(newest)}'"))


def _digest(revision: str) -> str:
    """Return the digest of the scripts that make the schema of a revision: its own and all before."""
    sha = hashlib.sha256()
    for path in sorted((_MIGRATIONS / "versions").glob("[0-9]*")):
        if path.suffix in {".py", ".sql"} and path.name.partition("_")[0] <= revision:
            script = path.read_bytes()
            sha.update(f"{path.name} {len(script)}\n".encode() + script)
    return sha.hexdigest()
