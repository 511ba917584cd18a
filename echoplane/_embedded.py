"""
The servers that a plane stands on: embedded ones by default, external ones by URL.

`use_servers` is the door: inside its block the servers run, and of several processes that use the
same data folder the last one to leave stops them. External servers are never started or stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg import sql
from pydantic import SecretStr

from contracts.errors import Unavailable
from echoplane._folders import DataFolder
from echoplane._postgres import SUPERUSER, PostgresAddress, ensure_postgres, find_postgres, stop_postgres
from echoplane._processes import SharedUse, exclusive
from echoplane._redis import RedisAddress, ensure_redis, find_redis, stop_redis
from echoplane._settings import Settings

DATABASE: Final = "echoplane"
OWNER_ROLE: Final = "echoplane_owner"
"""Owns the schema and runs migrations; the plane never connects as it."""
PLANE_ROLE: Final = "echoplane_plane"
"""Owns nothing and is bound by row security: without a tenant set it sees no row."""
RELAY_ROLE: Final = "echoplane_relay"
"""Owns nothing; reads across tenants the few tables whose policies name it."""
BACKFILL_ROLE: Final = "echoplane_backfill"
"""A member of the plane's role that may also state the clock of an append; for backfill and tests."""
EXTENSIONS: Final = ("btree_gist", "vector")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseUrls:
    """SQLAlchemy URLs of one database, one for each role; of an external one, those that were given."""

    plane: str
    relay: str
    owner: str | None
    backfill: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """Where to connect. The addresses are those of our own servers, none for external ones."""

    database: DatabaseUrls
    redis_url: str
    postgres: PostgresAddress | None
    redis: RedisAddress | None


async def ensure_servers(settings: Settings) -> Servers:
    """
    Start what does not run yet, and make roles, database and extensions.

    Migrations are the caller's: `ledger.schema.upgrade` with the owner's URL.

    Raises:
        Unavailable: A server cannot be started or reached.
    """
    folder = DataFolder.at(settings.data_dir)
    (postgres, database), redis = await asyncio.gather(
        _ensure_own_database(settings, folder), _ensure_own_redis(settings, folder)
    )
    redis_url = _revealed(settings.redis_url) if redis is None else redis.url()
    assert redis_url is not None
    return Servers(database=database, redis_url=redis_url, postgres=postgres, redis=redis)


async def _ensure_own_database(
    settings: Settings, folder: DataFolder
) -> tuple[PostgresAddress | None, DatabaseUrls]:
    external = _external_database(settings)
    if external is not None:
        return None, external
    postgres = await ensure_postgres(folder, settings={})
    async with exclusive(folder.run / "database.lock"):
        try:
            return postgres, await ensure_database(postgres, DATABASE)
        except psycopg.OperationalError as error:
            # It died after it had answered; whoever watches the servers tries again.
            raise Unavailable(part="postgres", reason="it ended just after its start") from error


async def _ensure_own_redis(settings: Settings, folder: DataFolder) -> RedisAddress | None:
    return await ensure_redis(folder) if settings.redis_url is None else None


async def find_servers(settings: Settings, *, redis_answers: bool = True) -> Servers | None:
    """
    Return the servers if all of them are there, starting nothing; external ones are taken as they are.

    Args:
        redis_answers: False for who needs nothing of Redis to begin: it may stand still.

    Raises:
        Unavailable: One of ours runs and does not answer.
    """
    if not settings.data_dir.expanduser().is_dir():
        return None
    folder = DataFolder.at(settings.data_dir)
    postgres, database = None, _external_database(settings)
    if database is None:
        postgres = await find_postgres(folder)
        if postgres is None:
            return None
        database = urls(postgres, DATABASE)
    redis, redis_url = None, _revealed(settings.redis_url)
    if redis_url is None:
        redis = await find_redis(folder, answers=redis_answers)
        if redis is None:
            return None
        redis_url = redis.url()
    return Servers(database=database, redis_url=redis_url, postgres=postgres, redis=redis)


async def stop_servers(settings: Settings) -> None:
    """
    Stop our own servers of this data folder, whoever uses them.

    Raises:
        Unavailable: One does not end.
    """
    folder = DataFolder.at(settings.data_dir)
    # Each is told to end, even where the other does not.
    outcomes = await asyncio.gather(stop_redis(folder), stop_postgres(folder), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


@contextlib.asynccontextmanager
async def use_servers(settings: Settings) -> AsyncIterator[Servers]:
    """
    Hold the servers for the time of the block. The last user to leave stops them.

    A user that is killed counts as gone, and the next one to leave stops them in its place.

    Raises:
        Unavailable: As `ensure_servers`, or as `stop_servers` at the end.
    """
    folder = DataFolder.at(settings.data_dir)
    use = SharedUse(folder.run / "users.lock")
    await use.enter()
    try:
        yield await ensure_servers(settings)
    finally:
        try:
            if use.is_last():
                await stop_servers(settings)
        finally:
            use.leave()


async def ensure_database(
    address: PostgresAddress, name: str, *, template: str | None = None
) -> DatabaseUrls:
    """
    Make the roles and one database, unless they are there, and return its URLs.

    The extensions are made here because only a superuser may, and nothing of the plane is one.

    Args:
        address: A server of ours.
        name: The database.
        template: A database to copy, with its schema and extensions; none for an empty one.
    """
    async with await psycopg.AsyncConnection.connect(
        address.conninfo(role=SUPERUSER, database="postgres"), autocommit=True
    ) as connection:
        for role in (OWNER_ROLE, PLANE_ROLE, RELAY_ROLE, BACKFILL_ROLE):
            await _ensure_role(connection, role)
        await connection.execute(
            sql.SQL("GRANT {} TO {}").format(sql.Identifier(PLANE_ROLE), sql.Identifier(BACKFILL_ROLE))
        )
        found = await connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name])
        if await found.fetchone() is None:
            await connection.execute(
                sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {}").format(
                    sql.Identifier(name), sql.Identifier(OWNER_ROLE), sql.Identifier(template or "template1")
                )
            )
        # Rights to connect are not copied with a template.
        await connection.execute(
            sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(sql.Identifier(name))
        )
        await connection.execute(
            sql.SQL("GRANT CONNECT ON DATABASE {} TO {}, {}, {}").format(
                *map(sql.Identifier, (name, PLANE_ROLE, RELAY_ROLE, BACKFILL_ROLE))
            )
        )
    if template is None:
        async with await psycopg.AsyncConnection.connect(
            address.conninfo(role=SUPERUSER, database=name), autocommit=True
        ) as connection:
            # Without it, each "already exists" and "already up to date" is a notice on the log.
            await connection.execute("SET client_min_messages = warning")
            for extension in EXTENSIONS:
                await connection.execute(
                    sql.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(sql.Identifier(extension))
                )
                await connection.execute(
                    sql.SQL("ALTER EXTENSION {} UPDATE").format(sql.Identifier(extension))
                )
    return urls(address, name)


def urls(address: PostgresAddress, name: str) -> DatabaseUrls:
    """Return the URLs of a database on a server of ours."""
    return DatabaseUrls(
        owner=address.url(role=OWNER_ROLE, database=name),
        plane=address.url(role=PLANE_ROLE, database=name),
        relay=address.url(role=RELAY_ROLE, database=name),
        backfill=address.url(role=BACKFILL_ROLE, database=name),
    )


async def _ensure_role(connection: psycopg.AsyncConnection, role: str) -> None:
    found = await connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role])
    if await found.fetchone() is None:
        await connection.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(role)))
    # Said each time: a role that someone has made mightier would see through row security.
    await connection.execute(
        sql.SQL("ALTER ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS").format(
            sql.Identifier(role)
        )
    )


def _external_database(settings: Settings) -> DatabaseUrls | None:
    plane, relay = _revealed(settings.database_url), _revealed(settings.database_relay_url)
    if plane is None or relay is None:
        return None
    owner, backfill = _revealed(settings.database_owner_url), _revealed(settings.database_backfill_url)
    return DatabaseUrls(
        plane=_with_driver(plane),
        relay=_with_driver(relay),
        owner=None if owner is None else _with_driver(owner),
        backfill=None if backfill is None else _with_driver(backfill),
    )


def _with_driver(url: str) -> str:
    """Accept `postgresql://`, as every tool writes it, and name the driver that we use."""
    from sqlalchemy import make_url  # noqa: PLC0415 - slow to load, and embedded servers need none of it

    return make_url(url).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


def _revealed(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()
