"""A plane that nobody uses costs next to nothing: the CPU of all its processes, and the memory of each."""

from __future__ import annotations

import pytest

from tests.processor import used_by_an_idle_plane

IDLE_SECONDS = 60.0
CPU_SHARE_MAX = 0.03
"""Of one core."""


@pytest.mark.slow
def test_an_idle_plane_uses_next_to_no_cpu():
    used = used_by_an_idle_plane(IDLE_SECONDS)

    for name, one in used.items():
        print(f"{name:<16} {one.seconds:6.2f} s CPU  {one.memory_bytes / 2**20:7.1f} MiB")
    share = sum(one.seconds for one in used.values()) / IDLE_SECONDS
    print(f"idle: {share:.2%} of a core over {IDLE_SECONDS:.0f} s, all processes")
    assert share <= CPU_SHARE_MAX
