"""A plane that nobody uses costs next to nothing: the CPU of all its processes, and the memory of each."""

from __future__ import annotations

import time

import psutil
import pytest

from tests.acceptance.planes import RunningPlane, own_plane, wait_until

IDLE_SECONDS = 60.0
CPU_SHARE_MAX = 0.03
"""Of one core."""


def processes_of(plane: RunningPlane) -> dict[str, psutil.Process]:
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


def cpu_seconds(processes: dict[str, psutil.Process]) -> dict[str, float]:
    return {name: sum(one.cpu_times()[:2]) for name, one in processes.items()}


@pytest.mark.slow
def test_an_idle_plane_uses_next_to_no_cpu():
    with own_plane() as plane:
        with plane.http() as client:
            for tenant in ("north", "south"):
                client.put(f"/v1/{tenant}").raise_for_status()
                event = {"stream": "s", "kind": "turn", "actor": {"id": "ann", "class": "user"},
                         "text": "I live in Lyon."}  # fmt: skip
                client.post(f"/v1/{tenant}/events", json={"events": [event]}).raise_for_status()
        plane.wait_folded()
        wait_until(plane.is_indexed, what="everything is indexed")
        processes = processes_of(plane)
        before = cpu_seconds(processes)

        time.sleep(IDLE_SECONDS)

        living = {name: one for name, one in processes.items() if one.is_running()}
        after = cpu_seconds(living)
        used = {name: after[name] - before[name] for name in living}
        for name, one in living.items():
            print(f"{name:<16} {used[name]:6.2f} s CPU  {one.memory_info().rss / 2**20:7.1f} MiB")
        share = sum(used.values()) / IDLE_SECONDS
        print(f"idle: {share:.2%} of a core over {IDLE_SECONDS:.0f} s, {len(living)} processes")
    assert share <= CPU_SHARE_MAX
