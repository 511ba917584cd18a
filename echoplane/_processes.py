"""
Servers and roles as processes of their own, which outlive whoever started them.

A pid alone proves nothing: the number may belong to a stranger by the time it is used. A
process is ours if its pid and its moment of birth are both the recorded ones, and signals go
through a pidfd, which cannot come to mean another process in between.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from contracts.errors import Unavailable

POLL_SECONDS: Final = 0.02
"""How long a wait for another process sleeps between two looks."""
LOCK_WAIT_SECONDS: Final = 180.0
"""How long to wait for whoever starts or stops the same server; longer than a slow recovery."""
LOG_BYTES_MAX: Final = 16 * 1_048_576
"""A log is set aside, once, when it is longer than this at a start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRecord:
    """Which process, beyond doubt: `birth` is the boot and the tick at which it started."""

    pid: int
    birth: str

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Return the record of a living process; none if it is gone or only waits to be reaped."""
        reap(pid)
        birth = _birth(pid)
        return None if birth is None else cls(pid=pid, birth=birth)

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Return what was recorded; none if nothing was, or a crash left half a file."""
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            return cls(pid=int(stored["pid"]), birth=str(stored["birth"]))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def write(self, path: Path) -> None:
        """Store the record; a reader sees the old one or the new one, never a part."""
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        beside.write_text(json.dumps(asdict(self)), encoding="utf-8")
        beside.replace(path)

    def is_alive(self) -> bool:
        """Whether this very process runs. A zombie does not."""
        reap(self.pid)
        return _birth(self.pid) == self.birth

    def signal(self, number: signal.Signals) -> bool:
        """Send the signal to this very process; false if it no longer runs."""
        try:
            pidfd = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            # Looked at only now: from here on the descriptor cannot come to mean another process.
            if _birth(self.pid) != self.birth:
                return False
            signal.pidfd_send_signal(pidfd, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(pidfd)
        return True

    async def ended(self, *, within_seconds: float) -> bool:
        """Wait for the end of this very process; false if it still runs after the wait."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + within_seconds
        while self.is_alive():
            if clock() >= deadline:
                return False
            await asyncio.sleep(POLL_SECONDS)
        return True


class _Detached(subprocess.Popen[bytes]):
    """A child that is meant to outlive its starter, so leaving it behind is no mistake to warn of."""

    def __del__(self) -> None:
        pass


# A dead child stays a zombie, and keeps its pid, until its parent asks for it. PostgreSQL takes a
# zombie for a running server, so a crashed one could not be replaced by the process that started it.
_children: dict[int, _Detached] = {}


def reap(pid: int) -> int | None:
    """Collect a dead child of this process; return its exit status, none while it runs or is no child."""
    child = _children.get(pid)
    if child is None:
        return None
    status = child.poll()
    if status is not None:
        del _children[pid]
    return status


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """An account that a server runs under because ours is root, which a server must not be."""

    name: str
    uid: int
    gid: int


@contextlib.contextmanager
def open_log(path: Path) -> Iterator[int]:
    """Open a log to append to; one that has grown long is set aside once."""
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size > LOG_BYTES_MAX:
            path.replace(path.with_name(f"{path.name}.1"))
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def start_detached(
    command: Sequence[str],
    *,
    log: Path,
    environment: Mapping[str, str],
    user: User | None = None,
) -> int:
    """
    Start a program in a session of its own and return its pid.

    Args:
        command: Program and arguments.
        log: Where its output is appended. Opened by us, so `user` needs no right to it.
        environment: All of it; nothing of ours is inherited.
        user: Account to run under; none for our own.
    """
    with open_log(log) as descriptor:
        child = _Detached(
            command,
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            # A server must not keep a folder busy, nor depend on one that its account cannot enter.
            cwd="/",
            env=dict(environment),
            start_new_session=True,
            umask=0o077,
            user=None if user is None else user.uid,
            group=None if user is None else user.gid,
            extra_groups=None if user is None else [],
        )
    _children[child.pid] = child
    return child.pid


@contextlib.asynccontextmanager
async def exclusive(path: Path) -> AsyncIterator[None]:
    """
    Hold the lock file alone. The kernel lets go of it when the holder dies, however it dies.

    Raises:
        Unavailable: Another process held it all the time.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    clock = asyncio.get_running_loop().time
    deadline = clock() + LOCK_WAIT_SECONDS
    try:
        while not _try_lock(descriptor, fcntl.LOCK_EX):
            if clock() >= deadline:
                raise Unavailable(part=path.stem, reason="another process is starting or stopping it")
            await asyncio.sleep(POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


class SharedUse:
    """
    One user among several of the same thing; the last one to leave is told so.

    A user that is killed counts as gone: the kernel drops its lock with it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    async def enter(self) -> None:
        """
        Become a user. Waits while a last one is still tidying up.

        Raises:
            Unavailable: The tidying did not end.
        """
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        clock = asyncio.get_running_loop().time
        deadline = clock() + LOCK_WAIT_SECONDS
        while not _try_lock(descriptor, fcntl.LOCK_SH):
            if clock() >= deadline:
                os.close(descriptor)
                raise Unavailable(part=self._path.stem, reason="another process is stopping it")
            await asyncio.sleep(POLL_SECONDS)
        self._descriptor = descriptor

    def is_last(self) -> bool:
        """
        Stop being a user; true if no other was left, and then new ones wait until `leave`.

        Two that ask at the same moment are told apart by the kernel: one of them is the last.
        """
        assert self._descriptor is not None, "is_last() belongs between enter() and leave()"
        return _try_lock(self._descriptor, fcntl.LOCK_EX)

    def leave(self) -> None:
        """Let the others in."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _try_lock(descriptor: int, mode: int) -> bool:
    try:
        fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_zombie(pid: int) -> bool:
    """Whether the process is dead and its parent has not asked for it yet."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return fields.rpartition(")")[2].split()[0] == "Z"


def _birth(pid: int) -> str | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    # The name, in parentheses, may itself hold spaces and parentheses: count from behind it.
    state, *rest = fields.rpartition(")")[2].split()
    if state in {"Z", "X"}:
        return None
    start_tick = rest[18]
    return f"{boot}:{start_tick}"
