"""
Keeps a plane alive: servers first, then each role as a child process, again after every exit.

A role is told that its supervisor died by the end of its standard input, so that a killed
supervisor leaves no role behind; the next supervisor ends those that hang. Servers are processes of
their own: they outlive a killed supervisor, and the next one finds them.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import importlib
import os
import shutil
import signal
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from typing import Final

import structlog

from contracts.errors import EchoplaneError
from echoplane._address import require_free
from echoplane._embedded import ensure_servers, stop_servers
from echoplane._folders import DataFolder
from echoplane._keeper import STOP_SECONDS, Keeper, end_roles, posts
from echoplane._processes import ProcessRecord
from echoplane._scrub import keep_settled
from echoplane._settings import Settings
from echoplane._state import (
    STATE_FILE,
    SUPERVISOR_LOCK,
    USE_LOCK,
    WANTED_FOLDER,
    Mode,
    PlaneState,
    Role,
    RoleState,
)

WATCH_SECONDS: Final = 2.0
"""Between two looks while nothing happens: a server that ends, or a wish of a command, is seen at once."""
WATCH_SECONDS_MIN: Final = 0.1
"""Between two looks whatever happens."""
USERS_SECONDS: Final = 0.5
"""Between two looks at what nobody tells of: users of an ephemeral plane, a server that does not start."""
IDLE_SECONDS: Final = 3.0
"""An ephemeral plane that nobody has used for this long ends: its last user was killed."""

log = structlog.get_logger()


class AlreadyRunning(Exception):
    """Another supervisor holds this data folder."""


class Supervisor:
    """
    One supervisor of one data folder. `claim` first, then `run`.

    Args:
        settings: Of the whole plane; roles read the same ones from their environment.
        environment: What roles are started with.
        mode: Whether to stay, or to leave when the last user has.
        roles: What the command that starts an ephemeral plane needs. Without `up` nobody listens on
            the network, and no role runs that nobody asked for.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        environment: Mapping[str, str],
        mode: Mode,
        roles: Collection[Role] = (),
    ) -> None:
        self._settings = settings
        self._environment = dict(environment)
        self._folder = DataFolder.at(settings.data_dir)
        self._lock: int | None = None
        self._use_lock: int | None = None
        self._stopping = asyncio.Event()
        self._woken = asyncio.Event()
        self._owed = asyncio.Event()
        self._ends: dict[ProcessRecord, int] = {}
        self._servers: dict[str, ProcessRecord] = {}
        self._folder_gone = False
        self._roles: dict[str, asyncio.Task[None]] = {}
        self._keeper = Keeper(
            self._folder, environment=self._environment, stopping=self._stopping, say=self._say_role
        )
        self._scrubbing: asyncio.Task[None] | None = None
        self._wanted = set(Role) if mode is Mode.UP else set(roles)
        own = ProcessRecord.of(os.getpid())
        assert own is not None
        self._state = PlaneState(
            mode=mode, process=own, ready=False, failure=None, http=self._address(mode), roles=()
        )

    async def claim(self) -> None:
        """
        Become the only supervisor of the folder, and end roles that a killed one left.

        Raises:
            AlreadyRunning: There is another.
        """
        descriptor = os.open(self._folder.run / SUPERVISOR_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise AlreadyRunning from None
        self._lock = descriptor
        # Before anybody can read of us: a signal that nobody handles would end us.
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._told_to_stop)
        loop.add_signal_handler(signal.SIGUSR1, self._told)
        shutil.rmtree(self._folder.run / WANTED_FOLDER, ignore_errors=True)
        before = PlaneState.read(self._folder)
        await end_roles(before)
        self._say()

    async def run(self, *, started: Callable[[], Awaitable[None]] | None = None) -> None:
        """
        Start everything, stay until told to stop, stop everything.

        Args:
            started: Called once, when servers run and roles are started.

        Raises:
            EchoplaneError: It could not start; the same words stand in the state file.
        """
        stopped = asyncio.create_task(self._stopping.wait())
        starting = asyncio.create_task(self._start())
        # Told to stop while still starting, it must not first finish a slow recovery.
        await asyncio.wait({stopped, starting}, return_when=asyncio.FIRST_COMPLETED)
        try:
            if starting.done():
                starting.result()
                if started is not None:
                    await started()
                await self._watch()
        except Exception as error:
            failure = str(error) if isinstance(error, EchoplaneError) else type(error).__name__
            self._say(failure=failure)
            log.exception("plane_failed")
            raise
        finally:
            starting.cancel()
            stopped.cancel()
            await asyncio.gather(starting, stopped, return_exceptions=True)
            await self._stop()

    async def _start(self) -> None:
        if self._state.mode is Mode.UP:
            require_free(self._settings.http_host, self._settings.http_port)
        # Alembic is slow to load; the servers start meanwhile.
        loading = asyncio.create_task(asyncio.to_thread(importlib.import_module, "ledger.schema"))
        servers, _ = await asyncio.gather(ensure_servers(self._settings), loading)
        if servers.database.owner is not None:
            from ledger.schema import upgrade  # noqa: PLC0415 - loaded above

            await upgrade(servers.database.owner)
        self._say(ready=True)
        self._scrubbing = asyncio.create_task(keep_settled(self._settings, told=self._owed))
        self._take_wishes()
        log.info("plane_started", mode=self._state.mode.value)

    def _told_to_stop(self) -> None:
        self._stopping.set()
        self._woken.set()

    def _told(self) -> None:
        """Somebody wishes something, or owes a scrub."""
        self._owed.set()
        self._take_wishes()

    def _take_wishes(self) -> None:
        """Start what commands have asked for since; `up` among it means to stay until `down`."""
        with contextlib.suppress(FileNotFoundError):
            for wish in (self._folder.run / WANTED_FOLDER).iterdir():
                if wish.name == Mode.UP and self._state.mode is Mode.EPHEMERAL:
                    self._wanted = set(Role)
                    self._say(mode=Mode.UP)
                    log.info("plane_promoted")
                elif wish.name in set(Role):
                    self._wanted.add(Role(wish.name))
        if self._state.ready and not self._stopping.is_set():
            for role in sorted(self._wanted, key=list(Role).index):
                self._keep(role)

    def _keep(self, role: Role) -> None:
        for post in posts(role, workers=self._settings.workers, discoveries=self._settings.discoveries):
            if post.name not in self._roles:
                keeping = self._roles[post.name] = asyncio.create_task(self._keeper.keep(post))
                keeping.add_done_callback(lambda _: self._woken.set())

    async def _watch(self) -> None:
        """Bring back servers that died; end an ephemeral plane that nobody uses."""
        idle_since: float | None = None
        was_missing = False
        clock = asyncio.get_running_loop().time
        while not self._stopping.is_set():
            # What happens from here on is worth another look.
            self._woken.clear()
            if not self._holds_folder():
                self._look_at_servers()
                # Deleted under us: a plane that nobody can find any more must not run on.
                self._folder_gone = True
                log.error("data_folder_gone")
                return
            died, is_missing = self._look_at_servers()
            # A record that just went may be the first file of a folder that is being deleted.
            died, was_missing = died or (is_missing and was_missing), is_missing
            if died:
                log.warning("server_died")
                try:
                    await ensure_servers(self._settings)
                except (EchoplaneError, OSError):
                    # A full disk, or killed again at once: tried again with the next look.
                    log.exception("server_not_restarted")
            self._look_at_roles()
            descriptor = _lock_if_unused(self._folder) if self._state.mode is Mode.EPHEMERAL else None
            if descriptor is None:
                idle_since = None
            else:
                idle_since = clock() if idle_since is None else idle_since
                if clock() - idle_since >= IDLE_SECONDS:
                    # Kept: new users wait now, instead of finding servers that are about to go.
                    self._use_lock = descriptor
                    log.info("plane_unused")
                    return
                os.close(descriptor)
            is_calm = self._state.mode is Mode.UP and not died and not is_missing
            await self._pause(WATCH_SECONDS if is_calm else USERS_SECONDS)

    async def _pause(self, seconds: float) -> None:
        """Wait for so long, or until something happens that is worth a look."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
                if not self._stopping.is_set():
                    await asyncio.sleep(WATCH_SECONDS_MIN)

    def _look_at_roles(self) -> None:
        """Keep a role again whose keeper failed, as on a full disk: no role stays down unseen."""
        for name, keeper in tuple(self._roles.items()):
            if keeper.done() and not self._stopping.is_set():
                log.error("role_not_kept", role=name, exc_info=keeper.exception())
                del self._roles[name]
        self._take_wishes()

    def _holds_folder(self) -> bool:
        """Return whether the lock that we hold is still the one of the data folder."""
        path = self._folder.run / SUPERVISOR_LOCK
        return path.exists() and (self._lock is None or os.path.samestat(path.stat(), os.fstat(self._lock)))

    def _look_at_servers(self) -> tuple[bool, bool]:
        """Return whether a server died, and whether the record of one is missing."""
        embedded = []
        if self._settings.database_url is None:
            embedded.append("postgres")
        if self._settings.redis_url is None:
            embedded.append("redis")
        found = {server: ProcessRecord.read(self._folder.run / f"{server}.json") for server in embedded}
        # One whose record was just deleted with the folder must still be ended.
        self._servers |= {server: record for server, record in found.items() if record is not None}
        is_missing = any(record is None for record in found.values())
        alive = [record for record in found.values() if record is not None and record.is_alive()]
        for record in alive:
            self._await_end(record)
        return not is_missing and len(alive) < len(found), is_missing

    def _await_end(self, record: ProcessRecord) -> None:
        """Be woken when a server ends, which may be no child of ours."""
        if record not in self._ends:
            # Gone in between, or no descriptor is left: the next look finds it so.
            with contextlib.suppress(OSError):
                descriptor = self._ends[record] = os.pidfd_open(record.pid)
                asyncio.get_running_loop().add_reader(descriptor, self._ended, record)

    def _ended(self, record: ProcessRecord) -> None:
        self._forget_end(record)
        self._woken.set()

    def _forget_end(self, record: ProcessRecord) -> None:
        descriptor = self._ends.pop(record)
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)

    async def _stop(self) -> None:
        self._stopping.set()
        for record in tuple(self._ends):
            self._forget_end(record)
        if self._scrubbing is not None:
            # Cut off anywhere, it stays owed and is begun again.
            self._scrubbing.cancel()
            await asyncio.gather(self._scrubbing, return_exceptions=True)
        if self._folder_gone:
            await self._end_without_folder()
            return
        failed = self._state.failure is not None
        # Whoever comes now waits for our end, instead of using servers that are about to go.
        self._say(failure=self._state.failure or "it is stopping")
        try:
            for task in self._roles.values():
                task.cancel()
            await asyncio.gather(*self._roles.values(), return_exceptions=True)
            await stop_servers(self._settings)
        finally:
            if not failed:
                (self._folder.run / STATE_FILE).unlink(missing_ok=True)
            log.info("plane_stopped")
            for descriptor in (self._use_lock, self._lock):
                if descriptor is not None:
                    os.close(descriptor)

    async def _end_without_folder(self) -> None:
        """End what we started from memory: what the folder said of it is gone."""
        for task in self._roles.values():
            task.cancel()
        await asyncio.gather(*self._roles.values(), return_exceptions=True)
        for record in self._servers.values():
            for number in (signal.SIGINT, signal.SIGKILL):
                record.signal(number)
                if await record.ended(within_seconds=STOP_SECONDS):
                    break

    def _address(self, mode: Mode) -> str | None:
        if mode is not Mode.UP:
            return None
        host = self._settings.http_host
        return f"http://{f'[{host}]' if ':' in host else host}:{self._settings.http_port}"

    def _say(
        self, *, mode: Mode | None = None, ready: bool | None = None, failure: str | None = None
    ) -> None:
        self._state = replace(
            self._state,
            mode=self._state.mode if mode is None else mode,
            http=self._address(self._state.mode if mode is None else mode),
            ready=self._state.ready if ready is None else ready,
            failure=failure,
        )
        self._state.write(self._folder)

    def _say_role(self, role: RoleState) -> None:
        others = tuple(state for state in self._state.roles if state.role != role.role)
        self._state = replace(self._state, roles=(*others, role))
        self._state.write(self._folder)


def _lock_if_unused(folder: DataFolder) -> int | None:
    """Return the descriptor of the lock that users share, held alone; none if there is a user."""
    descriptor = os.open(folder.run / USE_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
