"""Driver errors become ours here and nowhere else, by SQLSTATE and constraint; the rest pass as bugs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from contracts.errors import BadRequest, EchoplaneError, Forbidden, NotFound, TenantIsLive, Unavailable
from contracts.times import YEAR_MAX
from ledger._refusals import refusal_of

# What passes by itself, by SQLSTATE or its class (two characters).
_UNAVAILABLE: Final = {
    "08": "connection lost",
    "53": "the server has no resources left",
    "57": "the server is stopping or cancelled the statement",
    "55P03": "a lock was not to be had in time",
    "25P03": "the transaction stood idle for too long",
    "40001": "another transaction was first",
    "40P01": "another transaction was first",
}
_MISSING_BY_CONSTRAINT: Final = {
    "token_of_tenant": "tenant",
    "context_of_tenant": "tenant",
    "unit_vector_of_tenant": "tenant",
    "unit_vector_of_key": "event",
    "pinned_view_of_epoch": "epoch",
}


@contextmanager
def translated() -> Iterator[None]:
    """Turn driver errors into ours: the one border. What is not listed passes as the bug it is."""
    try:
        yield
    except PoolTimeoutError as error:
        raise Unavailable(part="database", reason="all connections are in use") from error
    except (DBAPIError, psycopg.Error) as error:
        if (ours := _translation(error)) is None:
            raise
        raise ours from error


def _translation(error: DBAPIError | psycopg.Error) -> EchoplaneError | None:
    driver = error.orig if isinstance(error, DBAPIError) else error
    if not isinstance(driver, psycopg.Error):
        return None
    state = driver.sqlstate
    if state is None:
        # Without a SQLSTATE the server said nothing: the connection was refused or cut.
        lost = isinstance(driver, psycopg.OperationalError)
        return Unavailable(part="database", reason="connection lost or refused") if lost else None
    if reason := _UNAVAILABLE.get(state) or _UNAVAILABLE.get(state[:2]):
        return Unavailable(part="database", reason=reason)
    if isinstance(driver, psycopg.errors.InsufficientPrivilege):
        if "state the clock" in str(driver):
            return Forbidden(needs="stating the clock of an append")
        if "echoplane_restore_tenant" in str(driver):
            return Forbidden(needs="restoring a tenant")
    if (refusal := refusal_of(driver.diag.constraint_name, driver.diag.message_detail)) is not None:
        return refusal
    if driver.diag.constraint_name == "commit_clock_in_range":
        return BadRequest(field="clock", reason=f"an append is recorded by the year {YEAR_MAX}")
    if driver.diag.constraint_name == "head_not_live":
        return TenantIsLive()
    missing = _MISSING_BY_CONSTRAINT.get(driver.diag.constraint_name or "")
    return None if missing is None else NotFound(what=missing)
