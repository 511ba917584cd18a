"""Processor time and memory of processes: what a busy machine changes least."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import psutil

from tests.acceptance.planes import own_plane, wait_until


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


def used_by_an_idle_plane(seconds: float, *, tenants_count: int = 24) -> dict[str, Used]:
    """
    Return what each process of a plane uses in so many seconds after all is folded and indexed.

    A server is one with the processes below it, those that came and went meanwhile too.
    """
    with own_plane() as plane:
        with plane.http() as client:
            for number in range(tenants_count):
                client.put(f"/v1/tenant-{number}").raise_for_status()
                event = {"stream": "s", "kind": "turn", "actor": {"id": "ann", "class": "user"},
                         "text": "I live in Lyon."}  # fmt: skip
                client.post(f"/v1/tenant-{number}/events", json={"events": [event]}).raise_for_status()
        plane.wait_folded()
        wait_until(plane.is_indexed, what="everything is indexed")
        [status] = plane.say("status")
        pids = {"supervisor": status["supervisor"]} | {role["role"]: role["pid"] for role in status["roles"]}
        servers = {"postgres": plane.postgres().pid, "redis": plane.redis_pid()}
        before = _seconds(pids, servers)

        time.sleep(seconds)

        after = _seconds(pids, servers)
        return {
            name: Used(
                seconds=after[name] - before[name], memory_bytes=psutil.Process(pid).memory_info().rss
            )
            for name, pid in {**pids, **servers}.items()
        }  # fmt: skip


def _seconds(pids: Mapping[str, int], servers: Mapping[str, int]) -> dict[str, float]:
    # What is below the supervisor are the roles, each for itself.
    alone = {name: sum(psutil.Process(pid).cpu_times()[:2]) for name, pid in pids.items()}
    return alone | {name: spent([pid]) for name, pid in servers.items()}
