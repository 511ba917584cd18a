"""
How a command gets a running plane, and how the last command to finish stops one it started.

Every command holds one shared lock while it works. If no supervisor runs, one is started in
ephemeral mode; the command that finds itself the last holder ends it and waits until it has ended. A
holder that is killed counts as gone: then the supervisor itself notices that nobody is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from contracts.errors import Unavailable
from echoplane._address import require_free
from echoplane._embedded import Servers, find_servers, stop_servers
from echoplane._folders import DataFolder
from echoplane._keeper import end_roles, own_command
from echoplane._processes import POLL_SECONDS, ProcessRecord, SharedUse, exclusive, start_detached
from echoplane._settings import PREFIX, Settings
from echoplane._state import (
    START_LOCK,
    STATE_FILE,
    USE_LOCK,
    WANTED_FOLDER,
    Mode,
    PlaneState,
    Role,
    living_state,
)
from echoplane._supervisor import AlreadyRunning, Supervisor

START_SECONDS: Final = 120.0
"""The first start makes a database cluster, on a slow disk too."""
STOP_SECONDS: Final = 60.0


def child_environment(settings: Settings) -> dict[str, str]:
    """Return our environment, with the settings that are paths made absolute: children work in `/`."""
    # A child reads the same settings from the same variables; what was decided on our command line, too.
    environment = dict(os.environ)  # noqa: TID251 - handed on as it is, nothing is read from it
    for name in ("data_dir", "model_dir", "master_key_file", "embeddings_key_file"):
        path: Path | None = getattr(settings, name)
        if path is not None:
            environment[f"{PREFIX}{name.upper()}"] = str(path.expanduser().absolute())
    for name in ("http_host", "http_port", "log_level"):
        environment[f"{PREFIX}{name.upper()}"] = str(getattr(settings, name))
    # The products of discovery are small: sharing one out among cores takes longer than making it.
    environment.setdefault("OPENBLAS_NUM_THREADS", "1")
    return environment


@contextlib.asynccontextmanager
async def use_plane(settings: Settings, *, roles: Collection[Role]) -> AsyncIterator[Servers]:
    """
    Hold a running plane for the time of the block: the one that is up, else an ephemeral one.

    Args:
        settings: Where it is.
        roles: What an ephemeral one must run; not waited for.

    Raises:
        Unavailable: It cannot be started; says why and where the log is.
    """
    folder = DataFolder.at(settings.data_dir)
    use = SharedUse(folder.run / USE_LOCK)
    await use.enter()
    try:
        state = await ensure_supervisor(settings, mode=Mode.EPHEMERAL, roles=roles)
        yield await _wait_servers(settings, state.process)
    finally:
        try:
            if use.is_last():
                await _end_ephemeral(settings, folder)
        finally:
            use.leave()


async def _wait_servers(settings: Settings, supervisor: ProcessRecord) -> Servers:
    """Return the servers, once they are all there: the supervisor brings back one that just died."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + START_SECONDS
    while (servers := await find_servers(settings)) is None:
        if not supervisor.is_alive() or clock() >= deadline:
            raise Unavailable(part="servers", reason="they ended just after their start; try again")
        await asyncio.sleep(POLL_SECONDS)
    return servers


async def ask_for(settings: Settings, *roles: Role) -> None:
    """Have the supervisor that runs start roles, unless it runs them already; not waited for."""
    folder = DataFolder.at(settings.data_dir)
    state = living_state(folder)
    if state is not None:
        _wish(folder, state, mode=Mode.EPHEMERAL, roles=roles)


async def ensure_supervisor(settings: Settings, *, mode: Mode, roles: Collection[Role] = ()) -> PlaneState:
    """
    Return a supervisor whose servers run: the one there is, else a new one in the background.

    Mode `up` makes an ephemeral one stay.

    Raises:
        AddressTaken: Another program listens where it is to.
        Unavailable: It does not start.
    """
    folder = DataFolder.at(settings.data_dir)
    async with exclusive(folder.run / START_LOCK):
        state = await _settled(folder)
        _require_address(settings, state, mode=mode)
        if state is None:
            child = _start_supervisor(settings, folder, mode=mode, roles=roles)
        else:
            child = state.process
            _wish(folder, state, mode=mode, roles=roles)
        return await _wait_ready(folder, child, mode=mode)


async def claim_or_promote(settings: Settings, supervisor: Supervisor) -> PlaneState | None:
    """
    Make this process the supervisor; else return what the one that runs said before it was made to stay.

    Raises:
        AddressTaken: Another program listens where it is to.
        Unavailable: The one that runs does not start up.
    """
    folder = DataFolder.at(settings.data_dir)
    async with exclusive(folder.run / START_LOCK):
        state = await _settled(folder)
        _require_address(settings, state, mode=Mode.UP)
        if state is None:
            with contextlib.suppress(AlreadyRunning):
                await supervisor.claim()
                return None
            raise Unavailable(part="supervisor", reason="another one is ending; try again")
        _wish(folder, state, mode=Mode.UP, roles=())
        await _wait_ready(folder, state.process, mode=Mode.UP)
        return state


def _require_address(settings: Settings, state: PlaneState | None, *, mode: Mode) -> None:
    """Refuse to bring up a plane whose address another program holds; one that is up holds its own."""
    if mode is Mode.UP and (state is None or state.mode is not Mode.UP):
        require_free(settings.http_host, settings.http_port)


async def follow(process: ProcessRecord) -> None:
    """Stay as long as a supervisor does, and hand on what ends this process."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, process.signal, signal.SIGTERM)
    while not await process.ended(within_seconds=STOP_SECONDS):
        pass


async def _settled(folder: DataFolder) -> PlaneState | None:
    """Return what a supervisor says that runs and goes on; none once one that was ending has ended."""
    state = living_state(folder)
    if state is not None and state.failure is not None:
        await state.process.ended(within_seconds=STOP_SECONDS)
        return living_state(folder)
    return state


def _wish(folder: DataFolder, state: PlaneState, *, mode: Mode, roles: Collection[Role]) -> None:
    """Ask a running supervisor for what it does not run yet."""
    if state.mode is Mode.UP:
        return
    wanted = folder.run / WANTED_FOLDER
    wanted.mkdir(mode=0o700, exist_ok=True)
    for name in (*roles, *((mode,) if mode is Mode.UP else ())):
        (wanted / name.value).touch()
    state.process.signal(signal.SIGUSR1)


def _start_supervisor(
    settings: Settings, folder: DataFolder, *, mode: Mode, roles: Collection[Role]
) -> ProcessRecord:
    pid = start_detached(
        own_command("supervise", mode.value, *(role.value for role in roles)),
        log=folder.log / "supervisor.log",
        environment=child_environment(settings),
    )
    record = ProcessRecord.of(pid)
    if record is None:
        raise Unavailable(part="supervisor", reason=f"it ended at once, see {folder.log / 'supervisor.log'}")
    return record


async def _listens(state: PlaneState) -> bool:
    """Return whether the address of a plane that stays takes connections: its API starts last."""
    if state.mode is not Mode.UP or state.http is None:
        return False
    address = urlsplit(state.http)
    try:
        _, writer = await asyncio.open_connection(address.hostname, address.port)
    except OSError:
        return False
    writer.close()
    return True


async def _wait_ready(folder: DataFolder, child: ProcessRecord, *, mode: Mode) -> PlaneState:
    clock = asyncio.get_running_loop().time
    deadline = clock() + START_SECONDS
    while clock() < deadline:
        alive = child.is_alive()
        state = PlaneState.read(folder)
        if state is not None and state.process == child:
            if state.failure is not None:
                raise Unavailable(part="plane", reason=state.failure)
            if alive and state.ready and (mode is Mode.EPHEMERAL or await _listens(state)):
                return state
        if not alive:
            raise Unavailable(
                part="supervisor", reason=f"it ended while starting, see {folder.log / 'supervisor.log'}"
            )
        await asyncio.sleep(POLL_SECONDS)
    raise Unavailable(part="supervisor", reason=f"not ready after {START_SECONDS:.0f} s")


async def stop_plane(settings: Settings) -> bool:
    """
    Stop everything of this data folder, whoever uses it; false if nothing ran.

    Raises:
        Unavailable: Something does not end.
    """
    if not settings.data_dir.expanduser().is_dir():
        return False
    folder = DataFolder.at(settings.data_dir)
    async with exclusive(folder.run / START_LOCK):
        state = living_state(folder)
        if state is not None:
            await _end_supervisor(state)
        # What a killed supervisor left behind; nothing is there after an orderly end.
        left = PlaneState.read(folder)
        await end_roles(left)
        (folder.run / STATE_FILE).unlink(missing_ok=True)
        running = await find_servers(settings) if state is None else None
        await stop_servers(settings)
    return state is not None or (running is not None and running.postgres is not None)


async def _end_ephemeral(settings: Settings, folder: DataFolder) -> None:
    """End what commands have started for themselves, after a supervisor that was killed too."""
    # Under the lock of starts: an `up` that comes now either made it stay before, or starts its own after.
    async with exclusive(folder.run / START_LOCK):
        state = PlaneState.read(folder)
        if state is None or state.mode is not Mode.EPHEMERAL:
            return
        if state.process.is_alive():
            await _end_supervisor(state)
        else:
            await end_roles(state)
            await stop_servers(settings)
            (folder.run / STATE_FILE).unlink(missing_ok=True)


async def _end_supervisor(state: PlaneState) -> None:
    state.process.signal(signal.SIGTERM)
    if await state.process.ended(within_seconds=STOP_SECONDS):
        return
    state.process.signal(signal.SIGKILL)
    if not await state.process.ended(within_seconds=STOP_SECONDS):
        raise Unavailable(part="supervisor", reason=f"process {state.process.pid} does not end")
