"""The embedded servers: private, durable, found again, and never confused with a stranger."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import stat
import subprocess
import sys

import psycopg
import pytest
import redis as redis_py
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.ext.asyncio import create_async_engine

from contracts.errors import Unavailable
from echoplane._embedded import (
    OWNER_ROLE,
    PLANE_ROLE,
    RELAY_ROLE,
    ensure_database,
    ensure_servers,
    find_servers,
    stop_servers,
    use_servers,
)
from echoplane._folders import DataFolder, server_user
from echoplane._postgres import SUPERUSER, PostgresAddress, ensure_postgres, find_postgres, stop_postgres
from echoplane._processes import ProcessRecord, exclusive, is_zombie, reap, start_detached
from echoplane._redis import ensure_redis, find_redis, stop_redis
from echoplane._settings import Settings


def _ask(address: PostgresAddress, statement: str) -> str:
    with psycopg.connect(
        address.conninfo(role=SUPERUSER, database="postgres"), autocommit=True
    ) as connection:
        row = connection.execute(statement).fetchone()
    assert row is not None
    return str(row[0])


def _do(address: PostgresAddress, statement: str) -> None:
    with psycopg.connect(
        address.conninfo(role=SUPERUSER, database="postgres"), autocommit=True
    ) as connection:
        connection.execute(statement)


def _settings(folder: DataFolder) -> Settings:
    return Settings(data_dir=folder.root)


async def test_a_killed_server_whose_starter_is_gone_is_replaced(folder):
    program = (
        "import asyncio, pathlib, sys\n"
        "from echoplane._folders import DataFolder\n"
        "from echoplane._postgres import ensure_postgres\n"
        "folder = DataFolder.at(pathlib.Path(sys.argv[1]), system=pathlib.Path(sys.argv[2]))\n"
        "print(asyncio.run(ensure_postgres(folder, settings={})).pid)\n"
    )
    starter = subprocess.run(
        [sys.executable, "-c", program, str(folder.root), str(folder.system)],
        check=True,
        stdout=subprocess.PIPE,
    )
    pid = int(starter.stdout)

    # Its zombie keeps the lock until process 1 collects it; the start has to wait for that.
    os.kill(pid, signal.SIGKILL)
    again = await ensure_postgres(folder, settings={})

    assert again.pid != pid
    assert _ask(again, "SELECT 1") == "1"


async def test_committed_rows_survive_a_kill_and_the_same_process_can_start_again(folder):
    address = await ensure_postgres(folder, settings={})
    _do(address, "CREATE TABLE kept AS SELECT 7 AS value")

    os.kill(address.pid, signal.SIGKILL)
    # From here on it is a zombie of ours, which PostgreSQL takes for a server that runs.
    while not is_zombie(address.pid):
        await asyncio.sleep(0.01)
    again = await ensure_postgres(folder, settings={})

    assert again.pid != address.pid
    assert _ask(again, "SELECT value FROM kept") == "7"


async def test_a_server_is_durable_checksummed_and_deaf_to_the_network(folder):
    address = await ensure_postgres(folder, settings={})

    shown = {
        name: _ask(address, f"SHOW {name}")
        for name in ("fsync", "full_page_writes", "synchronous_commit", "data_checksums", "listen_addresses")
    }

    assert shown == {
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "on",
        "data_checksums": "on",
        "listen_addresses": "",
    }
    assert _ask(address, "SHOW server_encoding") == "UTF8"
    assert _ask(address, "SELECT datcollate FROM pg_database WHERE datname = 'template1'") == "C"


async def test_only_their_own_account_reaches_the_sockets(folder):
    address = await ensure_postgres(folder, settings={})
    redis = await ensure_redis(folder)

    for folder_of_socket in (address.socket_folder, redis.socket.parent):
        assert stat.S_IMODE(folder_of_socket.stat().st_mode) == 0o700


async def test_redis_listens_on_its_socket_alone_and_keeps_nothing(folder):
    redis = await ensure_redis(folder)

    with redis_py.Redis(unix_socket_path=str(redis.socket), decode_responses=True) as client:
        configured = client.config_get("port", "save", "appendonly")

    assert configured == {"port": "0", "save": "", "appendonly": "no"}


async def test_a_running_server_is_found_not_started_twice(folder):
    first = await asyncio.gather(*(ensure_postgres(folder, settings={}) for _ in range(4)))
    second = await asyncio.gather(*(ensure_redis(folder) for _ in range(4)))

    assert len({address.pid for address in first}) == 1
    assert len({address.pid for address in second}) == 1


async def test_a_server_outlives_its_starter_and_a_later_process_stops_it(folder):
    program = (
        "import asyncio, pathlib, sys\n"
        "from echoplane._folders import DataFolder\n"
        "from echoplane._postgres import ensure_postgres\n"
        "from echoplane._redis import ensure_redis\n"
        "folder = DataFolder.at(pathlib.Path(sys.argv[1]), system=pathlib.Path(sys.argv[2]))\n"
        "print(asyncio.run(ensure_postgres(folder, settings={})).pid)\n"
        "print(asyncio.run(ensure_redis(folder)).pid)\n"
    )
    starter = subprocess.run(
        [sys.executable, "-c", program, str(folder.root), str(folder.system)],
        check=True,
        capture_output=True,
        text=True,
    )
    postgres_pid, redis_pid = map(int, starter.stdout.split())

    found, found_redis = await find_postgres(folder), await find_redis(folder)
    assert found is not None
    assert found_redis is not None
    stopped = await stop_postgres(folder), await stop_redis(folder)

    assert (found.pid, found_redis.pid) == (postgres_pid, redis_pid)
    assert stopped == (True, True)
    assert await find_postgres(folder) is None
    assert await find_redis(folder) is None


async def test_servers_are_found_again_when_every_record_of_them_is_lost(folder):
    postgres, redis = await ensure_postgres(folder, settings={}), await ensure_redis(folder)
    for record in folder.run.glob("*.json"):
        record.unlink()

    assert await ensure_postgres(folder, settings={}) == postgres
    assert await ensure_redis(folder) == redis


async def test_a_stranger_with_a_recorded_pid_is_never_signalled(folder):
    stranger = start_detached(["/bin/sleep", "60"], log=folder.log / "sleep.log", environment={})
    record = ProcessRecord.of(stranger)
    assert record is not None
    # What is left on disk names the stranger's pid, as after a crash and a reboot.
    ProcessRecord(pid=stranger, birth="another boot:1").write(folder.run / "redis.json")
    data = folder.home("postgres") / "data"
    data.mkdir()
    (data / "postmaster.pid").write_text(f"{stranger}\n{data}\n1\n7416\n/nowhere\n\n1 1\nready\n")

    stopped = await stop_redis(folder), await stop_postgres(folder)

    assert stopped == (False, False)
    assert record.is_alive()
    assert record.signal(signal.SIGKILL)
    assert await record.ended(within_seconds=5)


async def test_a_signal_to_a_record_whose_process_is_gone_reaches_nobody(folder):
    pid = start_detached(["/bin/sleep", "60"], log=folder.log / "sleep.log", environment={})
    record = ProcessRecord.of(pid)
    assert record is not None
    impostor = ProcessRecord(pid=pid, birth=record.birth + "0")

    assert not impostor.signal(signal.SIGKILL)
    assert record.is_alive()
    assert record.signal(signal.SIGKILL)
    assert await record.ended(within_seconds=5)
    assert not record.signal(signal.SIGKILL)


async def test_a_crash_between_initdb_and_its_end_is_made_good(folder):
    half = folder.home("postgres") / "data.new"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")

    address = await ensure_postgres(folder, settings={})

    assert _ask(address, "SELECT 1") == "1"
    assert not half.exists()


async def test_a_cluster_of_another_version_is_refused_and_left_alone(folder):
    data = folder.home("postgres") / "data"
    data.mkdir()
    (data / "PG_VERSION").write_text("17\n")

    with pytest.raises(Unavailable, match="made by version 17"):
        await ensure_postgres(folder, settings={})

    assert (data / "PG_VERSION").read_text() == "17\n"


async def test_a_lock_left_over_that_names_a_living_stranger_is_explained_and_kept(folder, monkeypatch):
    address = await ensure_postgres(folder, settings={})
    os.kill(address.pid, signal.SIGKILL)
    while not is_zombie(address.pid):
        await asyncio.sleep(0.01)
    reap(address.pid)
    user = server_user()
    log = folder.log / "sleep.log"
    stranger = start_detached(["/bin/sleep", "60"], log=log, environment={}, user=user)
    lock = folder.home("postgres") / "data" / "postmaster.pid"
    lock.write_text(lock.read_text().replace(str(address.pid), str(stranger), 1))
    monkeypatch.setattr("echoplane._postgres.LOCK_RETRY_SECONDS", 0.2)

    with pytest.raises(Unavailable, match=f"names process {stranger}, which is no server"):
        await ensure_postgres(folder, settings={})

    assert lock.exists()
    record = ProcessRecord.of(stranger)
    assert record is not None
    assert record.signal(signal.SIGKILL)
    assert await record.ended(within_seconds=5)


async def test_a_setting_that_the_server_refuses_is_said_with_its_reason(folder):
    with pytest.raises(Unavailable, match="no_such_setting"):
        await ensure_postgres(folder, settings={"no_such_setting": "1"})


async def test_a_stopped_but_not_dead_redis_is_unavailable_not_doubled(folder, monkeypatch):
    redis = await ensure_redis(folder)
    monkeypatch.setattr("echoplane._redis.READY_SECONDS", 0.2)
    monkeypatch.setattr("echoplane._redis.ANSWER_SECONDS", 0.2)
    os.kill(redis.pid, signal.SIGSTOP)
    try:
        with pytest.raises(Unavailable, match="does not answer"):
            await ensure_redis(folder)
        # Who needs nothing of it to begin does not wait for it.
        assert await find_redis(folder, answers=False) == redis
    finally:
        os.kill(redis.pid, signal.SIGCONT)

    assert await ensure_redis(folder) == redis


async def test_a_server_that_dies_before_its_database_is_made_is_unavailable(folder):
    settings = Settings(data_dir=folder.root)
    async with exclusive(folder.run / "database.lock"):
        ensuring = asyncio.create_task(ensure_servers(settings))
        while (address := await find_postgres(folder)) is None:
            await asyncio.sleep(0.02)
        # Once it lets go of this lock it has seen an answer, and waits for us.
        async with exclusive(folder.run / "postgres.lock"):
            record = ProcessRecord.of(address.pid)
            assert record is not None
            assert record.signal(signal.SIGKILL)
        assert await record.ended(within_seconds=10)

    with pytest.raises(Unavailable, match="ended just after its start"):
        await ensuring


async def test_the_roles_of_the_plane_own_nothing_and_are_bound_by_row_security(folder):
    address = await ensure_postgres(folder, settings={})
    urls = await ensure_database(address, "planes")
    _do(address, f"ALTER ROLE {PLANE_ROLE} BYPASSRLS")

    await ensure_database(address, "planes")

    mighty = (
        "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'echoplane_%' "
        "AND (rolsuper OR rolbypassrls OR rolcreatedb OR rolcreaterole OR rolreplication)"
    )
    owned = (
        f"SELECT count(*) FROM pg_database WHERE pg_get_userbyid(datdba) IN ('{PLANE_ROLE}', '{RELAY_ROLE}')"
    )
    assert _ask(address, mighty) == "0"
    assert _ask(address, owned) == "0"
    for url in (urls.plane, urls.relay):
        engine = create_async_engine(url)
        async with engine.connect() as connection:
            with pytest.raises(ProgrammingError, match="permission denied"):
                await connection.execute(text("CREATE TABLE mine (id int)"))
        await engine.dispose()


async def test_the_owner_can_use_vectors_and_exclusion_without_being_superuser(folder):
    address = await ensure_postgres(folder, settings={})
    urls = await ensure_database(address, "planes")
    assert urls.owner is not None
    engine = create_async_engine(urls.owner)

    async with engine.begin() as connection:
        await connection.execute(
            text(
                "CREATE TABLE t (line bigint, r int4range, v vector(2),"
                " EXCLUDE USING gist (line WITH =, r WITH &&))"
            )
        )
        user = (await connection.execute(text("SELECT current_user"))).scalar_one()
    await engine.dispose()

    assert user == OWNER_ROLE


async def test_statements_and_values_never_reach_the_log(folder):
    address = await ensure_postgres(folder, settings={})
    _do(address, "CREATE TABLE unique_value (v text PRIMARY KEY)")
    _do(address, "INSERT INTO unique_value VALUES ('a secret of hers')")

    with pytest.raises(psycopg.errors.UniqueViolation):
        _do(address, "INSERT INTO unique_value VALUES ('a secret of hers')")
    with pytest.raises(psycopg.errors.UndefinedTable):
        _do(address, "SELECT 'a secret of hers' FROM nowhere")

    assert "secret" not in (folder.log / "postgres.log").read_text(encoding="utf-8")


async def test_the_last_user_to_leave_stops_the_servers(folder):
    settings = _settings(folder)

    async with use_servers(settings) as servers:
        async with use_servers(settings) as same:
            assert same == servers
        still_there = await find_servers(settings)

    assert still_there == servers
    assert await find_servers(settings) is None


async def test_a_user_that_was_killed_does_not_keep_the_servers_alive(folder):
    settings = _settings(folder)
    program = (
        "import asyncio, sys\n"
        "from echoplane._embedded import use_servers\n"
        "from echoplane._settings import Settings\n"
        "async def main():\n"
        "    async with use_servers(Settings(data_dir=sys.argv[1])):\n"
        "        print('in', flush=True)\n"
        "        await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(folder.root)], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"in\n"
        async with use_servers(settings):
            other.kill()
            other.wait()

    assert await find_servers(settings) is None


async def test_external_servers_are_used_as_they_are_and_never_stopped(folder, postgres, redis):
    url = postgres.url(role=SUPERUSER, database="postgres").replace("postgresql+psycopg", "postgresql")
    settings = Settings(data_dir=folder.root, database_url=url, database_relay_url=url, redis_url=redis.url())

    async with use_servers(settings) as servers:
        assert servers.database.plane.startswith("postgresql+psycopg://")
        assert servers.database.owner is None
        assert (servers.postgres, servers.redis) == (None, None)
    await stop_servers(settings)

    assert _ask(postgres, "SELECT 1") == "1"
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as client:
        client.connect(str(redis.socket))
