"""
What the supervisor says about itself, for other processes: one small file below `run/`.

The file is a report, never a lock: whether a supervisor lives is read from its process record, and
that there is only one is held by a lock of the kernel.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Final, Self

from echoplane._folders import DataFolder
from echoplane._processes import ProcessRecord

STATE_FILE: Final = "state.json"
SUPERVISOR_LOCK: Final = "supervisor.lock"
START_LOCK: Final = "start.lock"
USE_LOCK: Final = "use.lock"
WANTED_FOLDER: Final = "wanted"
"""One empty file for each role that a command asks a running supervisor for, and `up` to make it stay."""


class Mode(StrEnum):
    """`up` until `down`; `ephemeral` until the last command that uses it has finished."""

    UP = "up"
    EPHEMERAL = "ephemeral"


class Role(StrEnum):
    """The processes that make up a plane, in the order in which they are started."""

    WORKER = "worker"
    DISCOVERY = "discovery"
    API = "api"


def is_worker(name: str) -> bool:
    """Return whether a process of that name is a worker: `worker`, `worker-2` and so on."""
    return name.partition("-")[0] == Role.WORKER


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleState:
    """One process, by its name: none while it waits to be started again, and how often it was."""

    role: str
    process: ProcessRecord | None
    restarts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneState:
    """
    The supervisor's report.

    `ready` is when servers run and migrations are done; `http` is where the API listens, if it does.
    """

    mode: Mode
    process: ProcessRecord
    ready: bool
    failure: str | None
    http: str | None
    roles: tuple[RoleState, ...]

    @classmethod
    def read(cls, folder: DataFolder) -> Self | None:
        """Return the report; none if there is none or a crash left half of one."""
        try:
            stored = json.loads((folder.run / STATE_FILE).read_text(encoding="utf-8"))
            return cls(
                mode=Mode(stored["mode"]),
                process=ProcessRecord(**stored["process"]),
                ready=bool(stored["ready"]),
                failure=stored["failure"],
                http=stored["http"],
                roles=tuple(
                    RoleState(
                        role=str(role["role"]),
                        process=ProcessRecord(**role["process"]) if role["process"] else None,
                        restarts=int(role["restarts"]),
                    )
                    for role in stored["roles"]
                ),
            )
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def write(self, folder: DataFolder) -> None:
        """Store the report; a reader sees the old one or the new one, never a part."""
        path = folder.run / STATE_FILE
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        beside.write_text(json.dumps(asdict(self)), encoding="utf-8")
        beside.replace(path)


def living_state(folder: DataFolder) -> PlaneState | None:
    """Return the report of a supervisor that runs; none if there is no such process."""
    state = PlaneState.read(folder)
    return state if state is not None and state.process.is_alive() else None
