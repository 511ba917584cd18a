"""Processes that are killed, and commands that come and go: nothing may be left over or unusable."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx
import pytest

from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from echoplane._cli import execute
from echoplane._clock import wall_clock
from echoplane._folders import DataFolder
from echoplane._processes import ProcessRecord
from echoplane._scrub import Announcement, is_owed
from echoplane._session import with_plane
from echoplane._settings import Settings, read_settings
from echoplane._state import Mode, PlaneState, Role
from echoplane._supervisor import Supervisor
from echoplane._wiring import NEWEST

LINE = {"stream": "s", "kind": "turn", "actor": {"id": "Ann", "class": "user"}, "text": "I live in Lyon."}
PATIENCE_SECONDS = 60.0


def eventually(condition, *, seconds=PATIENCE_SECONDS):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.1)
    raise AssertionError("it did not come about")


@pytest.fixture
def environment(folder, monkeypatch):
    """A plane of this test alone, on a port that is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    monkeypatch.setenv("ECHOPLANE_DATA_DIR", str(folder.root))
    monkeypatch.setenv("ECHOPLANE_HTTP_PORT", str(port))
    yield
    assert execute(["down"]) == 0


@pytest.fixture
def start(environment, tmp_path):
    """Start a command as a process of its own, which a test may kill."""
    output = tmp_path / "output"

    def start(*arguments):
        with output.open("ab") as file:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "echoplane", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )

    start.output = output
    return start


@pytest.fixture
def run(environment, capsys):
    """Run a command in this process, which saves loading it each time."""

    def run(*arguments):
        capsys.readouterr()
        code = execute(list(arguments))
        return code, capsys.readouterr().out

    return run


@pytest.fixture
def tell(run, tmp_path):
    """Emit a sentence, and return where Ann lives then."""

    def tell(text):
        path = tmp_path / "line.jsonl"
        path.write_text(json.dumps(LINE | {"text": text}), encoding="utf-8")
        assert run("emit", str(path), "--tenant", "t")[0] == 0
        code, out = run("resolve", "Ann", "lives_in", "--tenant", "t", "--json")
        assert code == 0
        return json.loads(out)["value"]

    return tell


def alive(folder: DataFolder) -> list[str]:
    """Everything of this data folder that runs."""
    state = PlaneState.read(folder)
    records = {path.stem: ProcessRecord.read(path) for path in folder.run.glob("*.json")}
    records |= {} if state is None else {"supervisor": state.process}
    records |= {} if state is None else {role.role: role.process for role in state.roles}
    return sorted(name for name, record in records.items() if record is not None and record.is_alive())


def processes(folder: DataFolder) -> dict[str, ProcessRecord]:
    """The roles and servers that run, by name."""
    state = PlaneState.read(folder)
    found = {} if state is None else {role.role: role.process for role in state.roles}
    found |= {name: ProcessRecord.read(folder.run / f"{name}.json") for name in ("postgres", "redis")}
    return {name: record for name, record in found.items() if record is not None and record.is_alive()}


def test_commands_start_what_they_need_and_the_last_one_stops_it(tell, start, folder):
    assert tell("I live in Lyon.") == "Lyon"
    assert alive(folder) == []

    together = [start("verify", "--tenant", "t") for _ in range(2)]

    assert [process.wait(PATIENCE_SECONDS) for process in together] == [0, 0]
    assert start.output.read_text().count("t: ok, 1 commits") == len(together)
    assert alive(folder) == []


def test_the_command_line_loads_nothing_that_can_load_while_the_plane_starts():
    """Half a second of each ephemeral command."""
    code = "import sys, echoplane._cli; print([m for m in sys.modules if m in {'ledger', 'sqlalchemy'}])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_a_worker_is_started_only_where_there_is_something_to_fold(tell, folder):
    async def roles_of_a_read(*drafts: EventDraft) -> list[str]:
        async with with_plane(read_settings()) as plane:
            for draft in drafts:
                await plane.append("t", [draft], grant=LOCAL_GRANT, expected_version=None)
            request = await plane.after_last_commit("t", NEWEST)
            await plane.resolve("t", "Ann", "lives_in", request)
            return [role.role for role in PlaneState.read(folder).roles]

    assert tell("I live in Lyon.") == "Lyon"

    assert asyncio.run(roles_of_a_read()) == []
    assert asyncio.run(roles_of_a_read(EventDraft.model_validate(LINE))) == [Role.WORKER]


def test_a_killed_command_leaves_nothing_running_for_long(start, tell, folder, tmp_path):
    many = tmp_path / "many.jsonl"
    many.write_text("\n".join(json.dumps(LINE | {"source_event_id": f"{n}"}) for n in range(3_000)))
    emitting = start("emit", str(many), "--tenant", "many")
    eventually(lambda: "supervisor" in alive(folder))

    emitting.kill()
    emitting.wait()

    eventually(lambda: alive(folder) == [])
    assert tell("I live in Lyon.") == "Lyon"


def test_whatever_is_killed_is_started_again_and_work_goes_on(run, tell, folder, monkeypatch):
    monkeypatch.setenv("ECHOPLANE_WORKERS", "2")
    assert run("up", "--detach")[0] == 0
    assert tell("I live in Lyon.") == "Lyon"
    before = processes(folder)
    assert set(before) == {"api", "discovery", "worker", "worker-2", "postgres", "redis"}

    for record in before.values():
        assert record.signal(signal.SIGKILL)

    eventually(
        lambda: (
            set(now := processes(folder)) == set(before)
            and all(now[name] != record for name, record in before.items())
        )
    )
    assert eventually(lambda: run("status")[0] == 0)
    assert tell("I moved to Ghent.") == "Ghent"


def test_a_command_waits_for_a_server_that_just_died(run, tell, folder):
    assert run("up", "--detach")[0] == 0
    assert tell("I live in Lyon.") == "Lyon"
    assert processes(folder)["redis"].signal(signal.SIGKILL)

    assert tell("I moved to Ghent.") == "Ghent"


def test_a_killed_supervisor_does_not_make_the_plane_unusable(run, tell, folder):
    assert run("up", "--detach")[0] == 0
    state = PlaneState.read(folder)
    assert state is not None

    assert state.process.signal(signal.SIGKILL)

    eventually(lambda: "supervisor" not in alive(folder))
    assert run("status")[0] == 1
    assert tell("I live in Lyon.") == "Lyon"
    assert alive(folder) == []


def test_up_stays_until_it_is_told_to_end_and_then_leaves_nothing(start, folder):
    process = start("up")
    eventually(lambda: start.output.read_text().startswith("echoplane is up: http://127.0.0.1:"))
    assert process.poll() is None

    process.send_signal(signal.SIGINT)

    assert process.wait(PATIENCE_SECONDS) == 0
    assert alive(folder) == []


def test_up_says_which_port_is_taken_by_whom_and_how_to_choose_another(folder, run, capsys):
    port = read_settings().http_port
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()

        code = execute(["up", "--detach", "--json"])
        error = json.loads(capsys.readouterr().err)["error"]
        foreground = execute(["up"])

    assert (code, foreground, error["code"]) == (2, 2, "incorrect.address_taken")
    holder = f"process {os.getpid()} ({Path('/proc/self/comm').read_text(encoding='ascii').strip()})"
    assert error["details"] == {"host": "127.0.0.1", "port": port, "holder": holder}
    assert f"ECHOPLANE_HTTP_PORT={port + 1}" in error["message"]
    assert "retry" not in error["act"]
    assert run("status")[0] != 0


def test_a_plane_that_is_said_to_be_up_answers(folder, run):
    assert run("up", "--detach")[0] == 0

    state = PlaneState.read(folder)
    assert state is not None
    answer = httpx.get(f"{state.http}/healthz", trust_env=False)
    assert answer.status_code == 200
    said_at = parsedate_to_datetime(answer.headers["date"])
    assert abs((wall_clock() - said_at).total_seconds()) < PATIENCE_SECONDS


async def test_a_supervisor_that_is_told_of_something_does_not_wait_for_its_next_look(folder, monkeypatch):
    for name in ("_supervisor.WATCH_SECONDS", "_supervisor.USERS_SECONDS", "_scrub.LOOK_SECONDS"):
        monkeypatch.setattr(f"echoplane.{name}", 3_600.0)
    settings = Settings(data_dir=folder.root)
    supervisor = Supervisor(settings, environment={}, mode=Mode.EPHEMERAL)
    await supervisor.claim()
    started = asyncio.Event()

    async def say_started():
        started.set()

    running = asyncio.create_task(supervisor.run(started=say_started))
    await started.wait()
    async with asyncio.timeout(PATIENCE_SECONDS):
        before = processes(folder)["redis"]
        assert before.signal(signal.SIGKILL)
        while processes(folder).get("redis", before) == before:
            await asyncio.sleep(0.05)
        Announcement(folder).owe()
        while is_owed(folder):
            await asyncio.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)
        await running

    assert alive(folder) == []


def test_a_plane_whose_data_folder_is_deleted_ends(folder, run):
    assert run("up", "--detach")[0] == 0
    state = PlaneState.read(folder)
    assert state is not None
    servers = [ProcessRecord.read(folder.run / f"{name}.json") for name in ("postgres", "redis")]

    folder.discard()

    eventually(lambda: not any(each.is_alive() for each in [state.process, *servers]))


def test_a_data_folder_that_cannot_be_made_is_said_so(capsys):
    code = execute(["history", "Ann", "--tenant", "t", "--data-dir", "/proc/nowhere"])

    assert code == 4
    assert "--data-dir" in capsys.readouterr().err
