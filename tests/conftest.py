"""
Real servers for every test that asks for them; nothing is started for the others.

Each worker has a PostgreSQL and a Redis of its own. A database is migrated once and copied for each
test that asks for one, so no test sees what another left.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import hypothesis
import psycopg
import pytest
import redis as redis_py
import structlog
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from echoplane._embedded import DatabaseUrls, ensure_database
from echoplane._folders import DataFolder
from echoplane._logging import LinesOfLibraries
from echoplane._postgres import SUPERUSER, PostgresAddress, ensure_postgres, stop_postgres
from echoplane._processes import ProcessRecord
from echoplane._redis import RedisAddress, ensure_redis, stop_redis

TEMPLATE = "echoplane_template"
FOLDER_PREFIX = "echoplane-test-"

# No deadline: on a busy machine an example is slow without being wrong. The suite tries the same
# examples in each run, as Hypothesis itself chooses to under CI; `long` draws new ones, for `make prove`.
hypothesis.settings.register_profile("long", deadline=None, max_examples=2_000)
hypothesis.settings.register_profile("usual", deadline=None, derandomize=True)
if hypothesis.settings.get_current_profile_name() == "default":
    hypothesis.settings.load_profile("usual")


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """
    Undo what a command that ran in this process did to its logs, before a test and after it.

    They would go on to the standard error of that test, which is closed with it.
    """
    _reset_logs()
    yield
    _reset_logs()


@pytest.fixture(scope="session")
def server_folder() -> Iterator[DataFolder]:
    """A data folder for this worker's servers, stopped and deleted at the end."""
    _sweep()
    root = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))
    # Root's servers run under another account, which has to pass through.
    root.chmod(0o711 if os.geteuid() == 0 else 0o700)
    owner = ProcessRecord.of(os.getpid())
    assert owner is not None
    owner.write(root / "owner.json")
    folder = DataFolder.at(root / "data", system=root / "system")
    try:
        yield folder
    finally:
        _stop(folder)
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres(server_folder: DataFolder) -> PostgresAddress:
    """A PostgreSQL of this worker. Not for tests of durability: it does not wait for the disk."""
    settings = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
    return asyncio.run(ensure_postgres(server_folder, settings=settings))


@pytest.fixture(scope="session")
def redis(server_folder: DataFolder) -> RedisAddress:
    """A Redis of this worker; `redis_url` gives it empty."""
    return asyncio.run(ensure_redis(server_folder))


@pytest.fixture(scope="session")
def template(postgres: PostgresAddress) -> str:
    """The name of a migrated database that nobody connects to, so that it can be copied."""
    from ledger.schema import upgrade  # noqa: PLC0415 - a broken migration must fail its users alone

    made = asyncio.run(ensure_database(postgres, TEMPLATE))
    assert made.owner is not None
    asyncio.run(upgrade(made.owner))
    return TEMPLATE


@pytest.fixture(scope="session")
def database_numbers() -> Iterator[int]:
    """Numbers for the names of this worker's databases."""
    return itertools.count(1)


@pytest.fixture
def database(
    postgres: PostgresAddress, template: str, database_numbers: Iterator[int]
) -> Iterator[DatabaseUrls]:
    """The URLs of a fresh, migrated database: `owner`, `plane` and `relay`."""
    with migrated(postgres, template, database_numbers) as made:
        yield made


@pytest.fixture
def elsewhere(
    postgres: PostgresAddress, template: str, database_numbers: Iterator[int]
) -> Iterator[DatabaseUrls]:
    """The URLs of another one, on the same server."""
    with migrated(postgres, template, database_numbers) as made:
        yield made


@contextlib.contextmanager
def migrated(
    postgres: PostgresAddress, template: str, database_numbers: Iterator[int]
) -> Iterator[DatabaseUrls]:
    """Hold a database that is copied from the template."""
    name = f"test_{next(database_numbers)}"
    yield asyncio.run(ensure_database(postgres, name, template=template))
    with psycopg.connect(
        postgres.conninfo(role=SUPERUSER, database="postgres"), autocommit=True
    ) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def empty_database(postgres: PostgresAddress, database_numbers: Iterator[int]) -> Iterator[DatabaseUrls]:
    """The URLs of a database with roles and extensions and no schema, for tests of migrations."""
    name = f"test_{next(database_numbers)}"
    yield asyncio.run(ensure_database(postgres, name))
    with psycopg.connect(
        postgres.conninfo(role=SUPERUSER, database="postgres"), autocommit=True
    ) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
async def engine(database: DatabaseUrls) -> AsyncIterator[AsyncEngine]:
    """An engine on a fresh database, as the plane connects: owning nothing."""
    made = create_async_engine(database.plane, hide_parameters=True)
    yield made
    await made.dispose()


@pytest.fixture
async def owner_engine(database: DatabaseUrls) -> AsyncIterator[AsyncEngine]:
    """An engine on the same database as the schema's owner."""
    assert database.owner is not None
    made = create_async_engine(database.owner, hide_parameters=True)
    yield made
    await made.dispose()


@pytest.fixture
async def relay_engine(database: DatabaseUrls) -> AsyncIterator[AsyncEngine]:
    """An engine on the same database as the relay."""
    made = create_async_engine(database.relay, hide_parameters=True)
    yield made
    await made.dispose()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Discovery takes its time: what it finds does not depend on how fast the machine is."""
    monkeypatch.setattr("discovery._propose.ROUTES_SECONDS", 60.0)
    monkeypatch.setattr("discovery._service.REQUEST_SECONDS", 240.0)
    defaults = {"catch_up_seconds": 60.0, "dense_seconds": 60.0}
    monkeypatch.setattr("discovery._service.Service.__init__.__kwdefaults__", defaults)
    defaults = {"answer_seconds": 240.0, "without": ()}
    monkeypatch.setattr("discovery._client.Client.__init__.__kwdefaults__", defaults)


@pytest.fixture
def redis_url(redis: RedisAddress) -> str:
    """The URL of a Redis with nothing in it."""
    with redis_py.Redis(unix_socket_path=str(redis.socket)) as client:
        client.flushall()
    return redis.url()


def _reset_logs() -> None:
    structlog.reset_defaults()
    root = logging.getLogger()
    root.handlers[:] = [handler for handler in root.handlers if not isinstance(handler, LinesOfLibraries)]
    root.setLevel(logging.WARNING)
    logging.getLogger("uvicorn.access").disabled = False


def _stop(folder: DataFolder) -> None:
    asyncio.run(stop_redis(folder))
    asyncio.run(stop_postgres(folder))
    folder.discard()


def _sweep() -> None:
    """Stop and delete what a test run left that was killed before it could do so itself."""
    for root in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        try:
            owner = ProcessRecord(**json.loads((root / "owner.json").read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            # Being made at this moment, or somebody else's.
            continue
        # The other worker may be deleting the same folder: whoever comes second finds parts missing.
        with contextlib.suppress(OSError):
            if not owner.is_alive() and root.stat().st_uid == os.geteuid() and (root / "data").is_dir():
                _stop(DataFolder.at(root / "data", system=root / "system"))
                shutil.rmtree(root, ignore_errors=True)
