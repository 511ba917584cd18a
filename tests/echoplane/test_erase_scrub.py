"""After a scrub, bytes of deleted rows are in no file; until then nobody says that they are gone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from contracts.errors import BadRequest, Busy, Poisoned, Unavailable
from echoplane import _scrub, _scrub_database
from echoplane._embedded import DATABASE, ensure_database
from echoplane._postgres import SUPERUSER, ensure_postgres, find_postgres
from echoplane._processes import ProcessRecord
from echoplane._scrub import Announcement, announcing, is_owed, keep_settled, read_scrub, settle
from echoplane._settings import Settings
from ledger import _tables

SECRET = b"Quixlorandia"


@pytest.fixture
async def address(folder):
    made = await ensure_postgres(folder, settings={})
    await ensure_database(made, DATABASE)
    return made


@pytest.fixture
def settings(folder):
    return Settings(data_dir=folder.root)


def connect(address):
    return psycopg.connect(address.conninfo(role=SUPERUSER, database=DATABASE), autocommit=True)


def write_secrets(connection, name="noted"):
    """Fill a table as the plane's are: few different names, many rows, an index over them."""
    connection.execute(f"CREATE TABLE {name} (name text, said text)")
    connection.execute(f"CREATE INDEX ON {name} (name)")
    connection.execute(
        f"INSERT INTO {name} SELECT '{SECRET.decode()}', '{SECRET.decode()} ' || n "
        "FROM generate_series(1, 2000) AS n"
    )
    connection.execute(f"ANALYZE {name}")
    connection.execute("CHECKPOINT")


def seen_in(folder):
    """Return the files that hold the secret, by the folder they are in or the sort of relation."""
    return sorted(
        str(path.relative_to(folder.home("postgres")))
        for path in folder.home("postgres").rglob("*")
        if path.is_file() and SECRET in path.read_bytes()
    )


def place_of(connection, relation):
    (path,) = connection.execute("SELECT pg_relation_filepath(%s::regclass)", [relation]).fetchone()
    return f"data/{path}"


async def test_deleted_rows_are_everywhere_before_a_scrub_and_nowhere_after_it(folder, address, settings):
    with connect(address) as connection:
        write_secrets(connection)
        connection.execute("DELETE FROM noted")
        connection.execute("VACUUM")
        connection.execute("CHECKPOINT")
        before = seen_in(folder)
        places = [place_of(connection, name) for name in ("noted_name_idx", "pg_statistic")]

        answer = await settle(settings, force=True)

        assert seen_in(folder) == []
        assert connection.execute("SELECT FROM pg_stats WHERE tablename = 'noted'").fetchall() == []
    # The negative control: a plain VACUUM leaves it, and this search sees it.
    assert set(places) <= set(before)
    assert any(path.startswith("data/pg_wal/") for path in before)
    assert answer.state == "done"
    assert {place.state for place in answer.places} == {"done"}


async def test_rows_that_are_left_stay_and_are_found_by_their_index(folder, address, settings):
    with connect(address) as connection:
        write_secrets(connection)
        connection.execute("INSERT INTO noted SELECT 'Ann', 'tea ' || n FROM generate_series(1, 3000) AS n")
        connection.execute("DELETE FROM noted WHERE name <> 'Ann'")

        await settle(settings, force=True)

        connection.execute("SET enable_seqscan = off")
        assert connection.execute("SELECT count(*) FROM noted WHERE name = 'Ann'").fetchone() == (3_000,)
        assert seen_in(folder) == []
        common = connection.execute(
            "SELECT most_common_vals::text FROM pg_stats WHERE tablename = 'noted' AND attname = 'name'"
        )
        assert common.fetchone() == ("{Ann}",)


async def test_what_a_killed_rewriting_left_behind_goes_too(folder, address, settings):
    with connect(address) as connection:
        write_secrets(connection)
        with contextlib.closing(connect(address)) as rewriting:
            # As a rewriting does: a new file in a transaction that never ends.
            rewriting.execute("BEGIN")
            rewriting.execute("CREATE TABLE copied AS SELECT * FROM noted")
            copy = place_of(rewriting, "copied")
            connection.execute("CHECKPOINT")
            os.kill(rewriting.info.backend_pid, signal.SIGKILL)
    address = await again(folder)
    with connect(address) as connection:
        connection.execute("DROP TABLE noted")
        assert copy in seen_in(folder)

        await settle(settings, force=True)

    assert seen_in(folder) == []


async def again(folder):
    """Wait for a server one of whose processes was killed: it ends the others and recovers by itself."""
    async with asyncio.timeout(30):
        while True:
            with contextlib.suppress(psycopg.OperationalError, AttributeError):
                address = await find_postgres(folder)
                connect(address).close()
                return address
            await asyncio.sleep(0.1)


async def test_a_file_of_a_transaction_that_goes_on_is_left_alone(folder, address, settings, monkeypatch):
    monkeypatch.setattr(_scrub_database, "OTHERS_SECONDS", 0.5)
    with connect(address) as writer, writer.transaction():
        writer.execute("CREATE TABLE copied AS SELECT n FROM generate_series(1, 5000) AS n")
        async with _scrub_database.connected(
            address.conninfo(role=SUPERUSER, database=DATABASE)
        ) as connection:
            with pytest.raises(Unavailable):
                await _scrub_database.remove_leftovers(connection)
    with connect(address) as connection:
        assert connection.execute("SELECT count(*) FROM copied").fetchone() == (5_000,)


async def test_a_scrub_that_cannot_be_done_stays_owed_says_why_and_is_done_later(
    folder, address, settings, monkeypatch
):
    monkeypatch.setattr(_scrub_database, "OTHERS_SECONDS", 0.5)
    with connect(address) as connection, connect(address) as reader:
        write_secrets(connection)
        Announcement(folder).owe()
        with reader.transaction():
            # It may still see every row, so a rewriting would take them along.
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            reader.execute("SELECT count(*) FROM pg_class")
            connection.execute("DELETE FROM noted")
            with pytest.raises(Unavailable):
                await settle(settings)
            refused = read_scrub(folder)
        # The server's own processes may still see it for a while.
        monkeypatch.undo()
        answer = await settle(settings)

    assert (refused.state, refused.at) == ("pending", None)
    assert "does not end" in refused.failure
    assert (answer.state, answer.failure) == ("done", None)
    assert seen_in(folder) == []
    assert not is_owed(folder)


async def test_without_a_server_it_stays_owed(folder, settings):
    Announcement(folder).owe()

    with pytest.raises(Unavailable):
        await settle(settings)

    assert read_scrub(folder).state == "pending"


def test_what_changed_nothing_owes_nothing_and_what_may_have_been_done_does(folder):
    refused = [BadRequest(field="subject", reason="no"), Poisoned(epoch=1, position=2, error="ValueError"),
               Busy(part="erasures", reason="others go on", retry_after_seconds=1)]  # fmt: skip
    for error in refused:
        with pytest.raises(type(error)), announcing(folder):
            raise error
    with announcing(folder):
        pass
    assert not is_owed(folder)

    def cut_off():
        with announcing(folder) as announce:
            announce()
            assert not is_owed(folder)
            raise Unavailable(part="database", reason="unknown whether committed")

    with pytest.raises(Unavailable):
        cut_off()
    assert is_owed(folder)


def test_an_erasure_under_way_is_not_paid_for_and_one_of_a_killed_process_is_owed(folder):
    Announcement(folder)
    assert not is_owed(folder)

    program = (
        "import os, pathlib, signal, sys\n"
        "from echoplane._folders import DataFolder\n"
        "from echoplane._scrub import Announcement\n"
        "Announcement(DataFolder.at(pathlib.Path(sys.argv[1])))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(folder.root)], check=False)

    assert is_owed(folder)
    assert read_scrub(folder).state == "pending"


async def test_one_scrub_pays_for_all_that_was_owed_when_it_began_and_no_more(
    folder, address, settings, monkeypatch
):
    for _ in range(3):
        Announcement(folder).owe()
    real = _scrub._scrub

    async def meanwhile(*arguments):
        places = await real(*arguments)
        Announcement(folder).owe()
        return places

    monkeypatch.setattr(_scrub, "_scrub", meanwhile)
    assert (await settle(settings)).state == "pending"
    monkeypatch.setattr(_scrub, "_scrub", real)
    assert (await settle(settings)).state == "done"


async def test_the_supervisor_pays_what_is_owed_again_after_a_failure(folder, address, settings, monkeypatch):
    monkeypatch.setattr(_scrub, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(_scrub, "RETRY_SECONDS", 0.1)
    tries = []

    async def fails_first(*_):
        tries.append(1)
        if len(tries) == 1:
            raise Unavailable(part="scrub", reason="busy")
        return []

    monkeypatch.setattr(_scrub, "_scrub", fails_first)
    Announcement(folder).owe()
    task = asyncio.create_task(keep_settled(settings, told=asyncio.Event()))
    async with asyncio.timeout(20):
        while is_owed(folder):
            await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert len(tries) == 2
    assert read_scrub(folder).state == "done"


async def test_nothing_is_called_done_of_a_server_that_is_not_ours(folder, address, monkeypatch):
    folder.run.mkdir(exist_ok=True)
    url = address.url(role="echoplane_plane", database=DATABASE)
    owner = address.url(role="echoplane_owner", database=DATABASE)
    outside = {"data_dir": folder.root, "database_url": url, "database_relay_url": url}

    blind = await settle(Settings(**outside), force=True)
    owning = await settle(Settings(**outside, database_owner_url=owner), force=True)

    assert (blind.state, owning.state) == ("operator", "operator")
    assert {place.state for place in blind.places} == {"operator"}
    assert [place.place for place in owning.places if place.state == "done"] == ["tables and indexes"]


def test_a_table_is_scrubbed_unless_it_is_known_to_hold_no_content():
    """Whoever adds a table need not know of the scrub; whoever calls one sealed has to be right."""
    assert set(_tables.metadata.tables) >= _scrub_database.SEALED - {"alembic_version"}
    clear = {
        name
        for name, table in _tables.metadata.tables.items()
        if {"entity", "relation", "part", "wrapped_key", "embedding", "error"} & set(table.columns.keys())
    }
    assert clear & _scrub_database.SEALED == set()


def test_a_process_record_that_a_crash_cut_short_counts_as_owed(folder):
    place = folder.root / "scrub"
    place.mkdir(mode=0o700)
    (place / "ab.announced").write_text('{"pid": 1')

    assert ProcessRecord.read(Path(place / "ab.announced")) is None
    assert is_owed(folder)
