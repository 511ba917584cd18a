"""Keeps the processes of roles alive: each is started again after every exit, whatever its code."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from echoplane._folders import DataFolder
from echoplane._processes import ProcessRecord, open_log
from echoplane._state import PlaneState, Role, RoleState

BACKOFF_FIRST_SECONDS: Final = 0.1
BACKOFF_MAX_SECONDS: Final = 10.0
STEADY_SECONDS: Final = 30.0
"""A role that ran this long starts again at once, as if it had never failed."""
STOP_SECONDS: Final = 10.0
"""How long a role may take to end before it is killed."""
DISCOVERY_STOP_SECONDS: Final = 2.0
"""The same of discovery: what it is at, reading logs or loading a model, is begun anew at its next start."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """One process of a role; of workers and discoveries there may be several, numbered from 1."""

    role: Role
    number: int

    @property
    def name(self) -> str:
        """Return how the process is called in the state file, and its log."""
        return self.role.value if self.number == 1 else f"{self.role.value}-{self.number}"


def posts(role: Role, *, workers: int, discoveries: int) -> list[Post]:
    """Return the processes that make up a role."""
    count = {Role.WORKER: workers, Role.DISCOVERY: discoveries}.get(role, 1)
    return [Post(role=role, number=number) for number in range(1, count + 1)]


class Keeper:
    """
    Starts the processes of one supervisor.

    Args:
        folder: Where their logs are.
        environment: What they are started with.
        stopping: Set when nothing is to be started any more.
        say: Told how each stands.
    """

    def __init__(
        self,
        folder: DataFolder,
        *,
        environment: Mapping[str, str],
        stopping: asyncio.Event,
        say: Callable[[RoleState], None],
    ) -> None:
        self._folder = folder
        self._environment = environment
        self._stopping = stopping
        self._say = say

    async def keep(self, post: Post) -> None:
        """Keep a process alive until told to stop; cancelled, it is ended."""
        clock = asyncio.get_running_loop().time
        failures, restarts = 0, 0
        while not self._stopping.is_set():
            started = clock()
            child = await self._spawn(post)
            try:
                self._say(RoleState(role=post.name, process=ProcessRecord.of(child.pid), restarts=restarts))
                code = await child.wait()
            finally:
                await _end(child, post.role)
            if self._stopping.is_set():
                return
            failures = 0 if clock() - started >= STEADY_SECONDS else failures + 1
            delay = min(BACKOFF_MAX_SECONDS, BACKOFF_FIRST_SECONDS * 2 ** min(failures, 10))
            restarts += 1
            # An exit with 0 is no reason to stay down: a worker whose stream was deleted ends so.
            log.warning("role_ended", role=post.name, exit_code=code, restart_in_ms=round(delay * 1000))
            self._say(RoleState(role=post.name, process=None, restarts=restarts))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), delay)

    async def _spawn(self, post: Post) -> asyncio.subprocess.Process:
        with open_log(self._folder.log / f"{post.name}.log") as descriptor:
            return await asyncio.create_subprocess_exec(
                *own_command("role", post.role.value, str(post.number)),
                stdin=asyncio.subprocess.PIPE,
                stdout=descriptor,
                stderr=descriptor,
                env=self._environment,
                cwd="/",
                # A Ctrl-C at the terminal is for the supervisor, which then stops them in order.
                start_new_session=True,
            )


async def end_roles(state: PlaneState | None) -> None:
    """End the roles that a report names and that still run, by force if need be."""
    for role in () if state is None else state.roles:
        if role.process is None:
            continue
        for number in (signal.SIGTERM, signal.SIGKILL):
            role.process.signal(number)
            if await role.process.ended(within_seconds=STOP_SECONDS):
                break


def own_command(*arguments: str) -> list[str]:
    """Return the command line of our own program, whatever the working folder holds."""
    return [sys.executable, "-P", "-m", "echoplane", *arguments]


async def _end(child: asyncio.subprocess.Process, role: Role) -> None:
    if child.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        child.send_signal(signal.SIGTERM)
    try:
        await asyncio.wait_for(
            child.wait(), DISCOVERY_STOP_SECONDS if role is Role.DISCOVERY else STOP_SECONDS
        )
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()
