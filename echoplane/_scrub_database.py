"""
Taking the remains of deleted rows out of the files of PostgreSQL.

A deleted row stays where it was: in the holes of its pages and of the indexes over it, among the
statistics of its columns, in the write-ahead log, and in the half-made copies of a rewriting that
was killed. So each table that holds content or keys is written anew, then the statistics, then the
log goes on in new files. Each step may be cut off anywhere, and everything begun again.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import psycopg
from psycopg import sql

from contracts.errors import Unavailable

LOCK_MS: Final = 5_000
"""How long one rewriting waits for its lock; whoever comes meanwhile waits behind it."""
LOCK_TRIES: Final = 12
OTHERS_SECONDS: Final = 150.0
"""How long to wait for transactions that may still see what was erased; the plane's own end sooner."""
LOG_FILES_MAX: Final = 256
"""Files of the write-ahead log that are gone through, at most."""

SEALED: Final = frozenset(
    (
        *("alembic_version", "head", "outbox", "epoch", "trail_head"),
        *("commit", "event", "context", "trail"),
    )
)
"""Tables without content in clear and without keys: what is left of their rows says nothing."""

_POLL_SECONDS: Final = 0.05
_NAME_OF_RELATION: Final = re.compile(r"([0-9]+)(?:_(?:fsm|vm|init))?(?:\.[0-9]+)?")

_TABLES: Final = """
    SELECT relname FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> ALL (%s)
    ORDER BY relname
"""
# Sessions of this database whose snapshot is older than a transaction number, or who hold an older one.
_OLDER: Final = """
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND (age(backend_xmin) > age(%(mark)s::xid) OR age(backend_xid) > age(%(mark)s::xid))
"""
_BEGUN_BEFORE: Final = """
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start <= %(mark)s
"""
# Of columns that no ANALYZE looks at a migration said what to presume, and that is no content.
_FORGET_STATISTICS: Final = """
    SELECT pg_clear_attribute_stats('public', relname, attname, false)
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    WHERE relnamespace = 'public'::regnamespace AND relname = ANY (%s) AND attnum > 0 AND NOT attisdropped
        AND attstattarget IS DISTINCT FROM 0
"""
_FILES: Final = """
    SELECT name, (pg_stat_file(folder || '/' || name, true)).size FROM (
        SELECT 'base/' || oid AS folder, pg_ls_dir('base/' || oid) AS name
        FROM pg_database WHERE datname = current_database())
"""
_KNOWN_FILES: Final = "SELECT DISTINCT pg_relation_filenode(oid)::text FROM pg_class"
_FOLDER: Final = """
    SELECT current_setting('data_directory') || '/base/' || oid
    FROM pg_database WHERE datname = current_database()
"""


@asynccontextmanager
async def connected(conninfo: str) -> AsyncIterator[psycopg.AsyncConnection]:
    """
    Connect for a scrub.

    Raises:
        Unavailable: The server is not there, or a step was refused or could not have its lock.
    """
    try:
        async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as connection:
            await connection.execute("SET application_name = 'echoplane_scrub'")
            await connection.execute(f"SET lock_timeout = {LOCK_MS}")
            await connection.execute("SET statement_timeout = 0")
            yield connection
    except psycopg.Error as error:
        # Without its words, which may quote a row.
        raise Unavailable(part="scrub", reason=f"the server refused a step ({error.sqlstate})") from error


async def rewrite_tables(connection: psycopg.AsyncConnection) -> tuple[str, ...]:
    """
    Write every table anew that may hold content or keys, with its indexes; return their names.

    Locks one table at a time against everybody, for as long as its rewriting takes.

    Raises:
        Unavailable: A transaction that may still see what was erased does not end, or a lock was not to
            be had.
    """
    await _wait_until_unseen(connection)
    rows = await (await connection.execute(_TABLES, [sorted(SEALED)])).fetchall()
    tables = tuple(str(name) for (name,) in rows)
    for table in tables:
        await _rewrite(connection, table)
    return tables


async def renew_statistics(connection: psycopg.AsyncConnection, tables: Collection[str]) -> None:
    """
    Make the statistics of tables anew: they hold the most common values of each column.

    What was deleted of them stays in the files of their catalogue: see `rewrite_statistics`.
    """
    # Cleared, since an analysis of a table that has become empty leaves its old statistics alone.
    await connection.execute(_FORGET_STATISTICS, [list(tables)])
    for table in tables:
        await connection.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(table)))


async def rewrite_statistics(connection: psycopg.AsyncConnection) -> None:
    """
    Write the catalogue of statistics anew. Needs a superuser.

    Raises:
        Unavailable: As `rewrite_tables`.
    """
    await _wait_until_unseen(connection)
    await _rewrite(connection, "pg_statistic")


async def remove_leftovers(connection: psycopg.AsyncConnection) -> int:
    """
    Delete files that no table or index uses: what a rewriting that was killed had copied so far.

    PostgreSQL never does: it cannot tell them from those of a transaction that has not ended. So a file
    goes only once everybody has left who was there when it was first seen, and it is still nobody's.
    Needs a superuser, on the server's own machine. Returns how many there were.

    Raises:
        Unavailable: A transaction does not end.
    """
    suspects = await _unused_files(connection)
    if not suspects:
        return 0
    await _wait_for_none(connection, _BEGUN_BEFORE, mark=await _value(connection, "SELECT clock_timestamp()"))
    leftovers = suspects & await _unused_files(connection)
    folder = Path(str(await _value(connection, _FOLDER)))
    for name in leftovers:
        (folder / name).unlink(missing_ok=True)
    return len(leftovers)


async def renew_log(connection: psycopg.AsyncConnection) -> int:
    """
    Go on in new files of the write-ahead log until all that are there now are deleted; return how many.

    Needs a superuser.

    Raises:
        Unavailable: The server keeps old files: it uses them again, or somebody else still needs them.
    """
    if await _value(connection, "SHOW wal_recycle") != "off":
        raise Unavailable(
            part="scrub", reason="the server uses files of its log again (wal_recycle); start it anew"
        )
    old = await _log_files(connection)
    for _ in range(min(len(old), LOG_FILES_MAX) + 2):
        await connection.execute("CHECKPOINT")
        await connection.execute("SELECT pg_switch_wal()")
        await connection.execute("CHECKPOINT")
        if not old & await _log_files(connection):
            return len(old)
    raise Unavailable(part="scrub", reason="the server keeps old files of its log")


async def _wait_until_unseen(connection: psycopg.AsyncConnection) -> None:
    """A row that somebody may still see would be copied into the new file, deleted as it is."""
    number = await _value(connection, "SELECT pg_current_xact_id()::xid::text")
    await _wait_for_none(connection, _OLDER, mark=number)


async def _rewrite(connection: psycopg.AsyncConnection, table: str) -> None:
    for tries_left in reversed(range(LOCK_TRIES)):
        try:
            await connection.execute(sql.SQL("VACUUM (FULL) {}").format(sql.Identifier(table)))
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            if not tries_left:
                raise
        else:
            return


async def _unused_files(connection: psycopg.AsyncConnection) -> frozenset[str]:
    # Read before the catalogue: a file that is made and committed in between is known, not the reverse.
    files = await (await connection.execute(_FILES)).fetchall()
    known = {number for (number,) in await (await connection.execute(_KNOWN_FILES)).fetchall()}
    return frozenset(
        name
        for name, size in files
        # Empty ones hold nothing, and wait for the next checkpoint.
        if size and (match := _NAME_OF_RELATION.fullmatch(name)) and match[1] not in known
    )


async def _log_files(connection: psycopg.AsyncConnection) -> frozenset[str]:
    rows = await (await connection.execute("SELECT name FROM pg_ls_waldir()")).fetchall()
    return frozenset(str(name) for (name,) in rows)


async def _wait_for_none(connection: psycopg.AsyncConnection, query: str, *, mark: object) -> None:
    clock = asyncio.get_running_loop().time
    deadline = clock() + OTHERS_SECONDS
    while (row := await (await connection.execute(query, {"mark": mark})).fetchone()) is not None:
        if clock() >= deadline:
            reason = f"a transaction of server process {row[0]}, begun before the erasure, does not end"
            raise Unavailable(part="scrub", reason=reason)
        await asyncio.sleep(_POLL_SECONDS)


async def _value(connection: psycopg.AsyncConnection, query: str) -> object:
    row = await (await connection.execute(query)).fetchone()
    assert row is not None
    return row[0]
