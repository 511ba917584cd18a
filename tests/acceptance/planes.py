"""Whole planes for the proofs: real processes in a data folder of their own, used through public doors."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import httpx
import psycopg

from contracts.errors import Unavailable
from discovery import Client
from echoplane._clock import wall_clock
from echoplane._embedded import DATABASE, DatabaseUrls, ensure_database, urls
from echoplane._folders import DataFolder
from echoplane._keys import load_master_key
from echoplane._plane import stop_plane
from echoplane._postgres import SUPERUSER, PostgresAddress, ensure_postgres, find_postgres
from echoplane._processes import ProcessRecord
from echoplane._redis import find_redis
from echoplane._settings import Settings
from echoplane._sockets import discovery_socket
from echoplane._state import PlaneState, Role
from ledger.log import Database, open_database

PROGRAM: Final = Path(sys.executable).with_name("echoplane")
PREFIX: Final = "echoplane-proof-"
PATIENCE_SECONDS: Final = 120.0
"""For what must come about, on a machine that has other things to do; speed is measured elsewhere."""
SHARED_DATA: Final = Path(__file__).resolve().parents[3] / "shared" / "data"
"""Public data sets beside the checkout, where somebody has put them."""


class RunningPlane:
    """A plane that a test starts, kills parts of, stops and starts again."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.data = root / "data"
        self.port = free_port()
        self.settings = Settings(data_dir=self.data, http_port=self.port)

    @property
    def folder(self) -> DataFolder:
        return DataFolder.at(self.data)

    @property
    def token(self) -> str:
        return (self.data / "keys" / "local.token").read_text(encoding="utf-8").strip()

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.defpath,
            "HOME": str(self.root),
            "LC_ALL": "C.UTF-8",
            "ECHOPLANE_DATA_DIR": str(self.data),
            "ECHOPLANE_HTTP_PORT": str(self.port),
        }

    # --- through the command line ----------------------------------------------------------------

    def run(self, *arguments: str, given: str | None = None, code: int = 0) -> str:
        """Run a command to its end and return what it printed; any other exit code is a failure."""
        done = subprocess.run(
            [str(PROGRAM), *arguments],
            input=given,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
        )
        assert done.returncode == code, f"{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def say(self, *arguments: str, given: str | None = None, code: int = 0) -> list[dict[str, Any]]:
        """Run a command with `--json` and return its lines."""
        return [
            json.loads(line) for line in self.run(*arguments, "--json", given=given, code=code).splitlines()
        ]

    def begin(self, *arguments: str, output: Path) -> subprocess.Popen[bytes]:
        """Start a command that a test may kill; what it prints goes to a file."""
        with output.open("wb") as file:
            return subprocess.Popen(
                [str(PROGRAM), *arguments], env=self.environment, stdout=file, stderr=file, cwd="/"
            )

    def up(self) -> None:
        """Start it, with all roles, and wait until the API answers and discovery has its model."""
        self.run("up", "--detach")
        wait_until(self.is_ready, what="the plane is ready")

    def down(self) -> None:
        self.run("down")

    def is_ready(self) -> bool:
        try:
            answer = httpx.get(f"http://127.0.0.1:{self.port}/readyz", trust_env=False, timeout=5)
        except httpx.TransportError:
            return False
        return answer.status_code == 200 and answer.json()["parts"].get("discovery") == "ok"

    # --- through HTTP ----------------------------------------------------------------------------

    @contextlib.contextmanager
    def http(self, token: str | None = None) -> Iterator[httpx.Client]:
        """Open a client; with the local token unless another is given."""
        with self.client(token) as client:
            yield client

    def client(self, token: str | None = None) -> httpx.Client:
        """Make a client, which whoever asked closes."""
        return httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"authorization": f"Bearer {token or self.token}"},
            timeout=30,
            trust_env=False,
        )

    def async_client(self) -> httpx.AsyncClient:
        """Make a client for many requests at once, with the local token and a long patience."""
        return httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"authorization": f"Bearer {self.token}"},
            timeout=300,
            trust_env=False,
        )

    # --- from behind -----------------------------------------------------------------------------

    def process_of(self, role: Role) -> ProcessRecord | None:
        state = PlaneState.read(self.folder)
        found = [one.process for one in state.roles if one.role == role] if state is not None else []
        return found[0] if found else None

    def kill(self, role: Role) -> None:
        """kill -9 one role, which must be running."""

        def is_killed() -> bool:
            # What the state names may be dead already, and its successor about to be named.
            process = self.process_of(role)
            return process is not None and process.signal(signal.SIGKILL)

        wait_until(is_killed, what=f"{role} runs")

    def kill_redis(self) -> None:
        """kill -9 Redis and delete every byte it has on disk."""
        record = ProcessRecord.read(self.folder.run / "redis.json")
        assert record is not None
        assert record.signal(signal.SIGKILL), "Redis did not run"
        home = (self.data / "redis").resolve()
        for entry in home.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def postgres(self) -> PostgresAddress:
        found = asyncio.run(find_postgres(self.folder))
        assert found is not None
        return found

    def redis_pid(self) -> int:
        found = asyncio.run(find_redis(self.folder))
        assert found is not None
        return found.pid

    def has_redis(self) -> bool:
        return asyncio.run(find_redis(self.folder)) is not None

    def superuser(self, database: str = DATABASE) -> psycopg.Connection:
        """Connect above row level security: to look, and to break what no role of the plane may."""
        conninfo = self.postgres().conninfo(role=SUPERUSER, database=database)
        return psycopg.connect(conninfo, autocommit=True)

    @contextlib.asynccontextmanager
    async def database(self, urls_given: DatabaseUrls | None = None) -> AsyncIterator[Database]:
        """Open the Python door of the log, on the plane's database or a copy of it."""
        if urls_given is None:
            address = await find_postgres(self.folder)
            assert address is not None
            urls_given = urls(address, DATABASE)
        opened = open_database(
            plane_url=urls_given.plane,
            relay_url=urls_given.relay,
            master_key=load_master_key(self.settings, self.folder),
            clock=wall_clock,
        )
        try:
            yield opened
        finally:
            await opened.close()

    async def copied_database(self, name: str) -> DatabaseUrls:
        """Copy the database of a plane that is down, and start its PostgreSQL for that."""
        address = await ensure_postgres(self.folder, settings={})
        return await ensure_database(address, name, template=DATABASE)

    # --- waiting ---------------------------------------------------------------------------------

    def standing(self) -> dict[str, tuple[int, int, int]]:
        """Return head, folded commit and dead letters of each tenant."""
        with self.superuser() as connection:
            rows = connection.execute(
                """
                SELECT h.tenant, h.commit, e.commit, (
                    SELECT count(*) FROM dead_letter AS d WHERE d.tenant = h.tenant)
                FROM head AS h JOIN epoch AS e ON e.tenant = h.tenant AND e.state = 'serving'"""
            ).fetchall()
        return {row[0]: (row[1], row[2], row[3]) for row in rows}

    def is_folded(self) -> bool:
        return all(head == folded for head, folded, _ in self.standing().values())

    def is_indexed(self) -> bool:
        """Return whether discovery has read every tenant's log and has no unit left to embed."""
        try:
            found = asyncio.run(Client(discovery_socket(self.folder)).health())
        except Unavailable:
            return False
        return found.tenants == len(self.standing()) and found.units > 0 and not found.units_without_vector

    def wait_folded(self, *, seconds: float = PATIENCE_SECONDS) -> None:
        wait_until(self.is_folded, what="every tenant is folded", seconds=seconds)

    def close(self) -> None:
        asyncio.run(stop_plane(self.settings))
        self.folder.discard()


def make_plane() -> RunningPlane:
    """Make the folder of a plane; nothing runs yet."""
    sweep()
    root = Path(tempfile.mkdtemp(prefix=PREFIX))
    # Root's servers run under another account, which has to pass through.
    root.chmod(0o711 if os.geteuid() == 0 else 0o700)
    owner = ProcessRecord.of(os.getpid())
    assert owner is not None
    owner.write(root / "owner.json")
    return RunningPlane(root)


@contextlib.contextmanager
def own_plane() -> Iterator[RunningPlane]:
    """A plane with all roles, stopped and deleted at the end."""
    made = make_plane()
    try:
        made.up()
        yield made
    finally:
        made.close()
        shutil.rmtree(made.root, ignore_errors=True)


def sweep() -> None:
    """Stop and delete what a test run left that was killed before it could do so itself."""
    for root in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        owner = ProcessRecord.read(root / "owner.json")
        if owner is None or owner.is_alive() or root.stat().st_uid != os.geteuid():
            continue
        if (root / "data").is_dir():
            RunningPlane(root).close()
        shutil.rmtree(root, ignore_errors=True)


def wait_until(
    met: Any, *, what: str, seconds: float = PATIENCE_SECONDS, pause_seconds: float = 0.02
) -> None:
    """Look again and again until it is so; a failure says what was waited for."""
    deadline = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain: {what}"
        time.sleep(pause_seconds)


def write_lines(path: Path, events: Sequence[dict[str, Any]]) -> Path:
    """Write emit lines."""
    path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
