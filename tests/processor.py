"""Processor time and memory of processes: what a busy machine changes least."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

from tests.acceptance.planes import RunningPlane, own_plane, wait_until


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What a process used while nobody used the plane, and the memory that it holds."""

    seconds: float
    memory_bytes: int


def spent(pids: Iterable[int]) -> float:
    """Return the seconds that processes and all below them have used so far, the ended ones too."""
    processes = [psutil.Process(pid) for pid in pids]
    below = [child for process in processes for child in process.children(recursive=True)]
    # Each once: a server may be below the process that is measured beside it.
    return sum(sum(one.cpu_times()[:4]) for one in {*processes, *below} if one.is_running())


def used_by_an_idle_plane(seconds: float) -> dict[str, Used]:
    """Return what each process of a plane uses in so many seconds after all is folded and indexed."""
    with own_plane() as plane:
        with plane.http() as client:
            for tenant in ("north", "south"):
                client.put(f"/v1/{tenant}").raise_for_status()
                event = {"stream": "s", "kind": "turn", "actor": {"id": "ann", "class": "user"},
                         "text": "I live in Lyon."}  # fmt: skip
                client.post(f"/v1/{tenant}/events", json={"events": [event]}).raise_for_status()
        plane.wait_folded()
        wait_until(plane.is_indexed, what="everything is indexed")
        processes = _processes_of(plane)
        before = {name: sum(one.cpu_times()[:2]) for name, one in processes.items()}

        time.sleep(seconds)

        return {
            name: Used(
                seconds=sum(one.cpu_times()[:2]) - before[name], memory_bytes=one.memory_info().rss
            )
            for name, one in processes.items() if one.is_running()
        }  # fmt: skip


def _processes_of(plane: RunningPlane) -> dict[str, psutil.Process]:
    """Return every process of a plane by what it is: supervisor, roles, servers and their children."""
    [status] = plane.say("status")
    found = {"supervisor": psutil.Process(status["supervisor"])}
    found |= {role["role"]: psutil.Process(role["pid"]) for role in status["roles"]}
    servers = {"postgres": plane.postgres().pid, "redis": plane.redis_pid()}
    for name, pid in servers.items():
        found[name] = psutil.Process(pid)
        for child in found[name].children(recursive=True):
            found[f"{name} {child.pid}"] = child
    return found
