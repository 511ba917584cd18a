"""
The lease of a fold: who holds a tenant for longer is cut off, so that another can go on.

A fold writes under its tenant's cursor, locked, in one transaction; so a worker that stands still in the
middle and wakes up late cannot write beside another, but its lock would keep the tenant for as long as it
stands still. The server ends its session, with the lock, and what it sends when it wakes up is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import sqlalchemy as sa
from psycopg.errors import LockNotAvailable
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import Unavailable
from contracts.limits import FOLD_LEASE_SECONDS
from ledger._database import Database
from ledger._driver_errors import translated
from ledger._wake import autocommit

CURSOR: Final = "cursor"
"""The part that is unavailable while another fold of the tenant goes on."""
FOLD_WAIT_SECONDS: Final = 30.0
"""How long another fold is waited for, unless the caller has something else to do: more than one takes."""

_NAME: Final = "echoplane_fold"
_BEGIN: Final = sa.text(
    # A fold that decides a key with a very long history says nothing to the server meanwhile, for as long
    # as its lease: it must not be taken for one that was left alone, or it would begin again for ever.
    "SELECT set_config('lock_timeout', :wait_ms, true), set_config('application_name', :name, true), "
    "set_config('idle_in_transaction_session_timeout', :lease_ms, true)"
)
_END_OVERDUE: Final = sa.text(
    "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity "
    "WHERE usename = current_user AND datname = current_database() AND application_name = :name "
    "AND pid <> pg_backend_pid() AND xact_start < clock_timestamp() - make_interval(secs => :seconds)"
)


async def begin_fold(conn: AsyncConnection, *, wait_seconds: float) -> None:
    """Say that this transaction is a fold, and how long it waits for another one."""
    parameters = {
        "wait_ms": str(max(round(wait_seconds * 1_000), 1)),
        "name": _NAME,
        "lease_ms": str(FOLD_LEASE_SECONDS * 1_000),
    }
    await conn.execute(_BEGIN, parameters)


@contextmanager
def leased() -> Iterator[None]:
    """Tell another fold that goes on from a database that is down: its part is `CURSOR`."""
    try:
        yield
    except DBAPIError as error:
        if isinstance(error.orig, LockNotAvailable):
            raise Unavailable(part=CURSOR, reason="another fold of the tenant goes on") from error
        raise


async def end_overdue_folds(db: Database, *, lease_seconds: float) -> int:
    """
    End the sessions of folds that are older than their lease, whoever runs them, and return how many.

    Raises:
        Unavailable: The database is down or busy.
    """
    with translated():
        async with autocommit(db.plane).connect() as connection:
            parameters = {"name": _NAME, "seconds": lease_seconds}
            return await connection.scalar(_END_OVERDUE, parameters) or 0
