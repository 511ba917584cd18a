"""What a plane costs that nobody uses: processor time of all its processes, and the memory of each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from tests.bench.grounds import Grounds
from tests.bench.measure import Row
from tests.processor import used_by_an_idle_plane

IDLE_SECONDS: Final = 60.0


async def idle(at: Grounds, *, large: bool) -> AsyncIterator[Row]:
    """A plane of its own with its tenants folded and indexed, for a minute."""
    _ = at, large
    used = await asyncio.to_thread(used_by_an_idle_plane, IDLE_SECONDS)
    share = 100 * sum(one.seconds for one in used.values()) / IDLE_SECONDS
    yield Row(bench="idle plane, of a core", size=len(used), n=1, unit="%", value=share, note="all processes")
    for name, one in used.items():
        mebibytes, milliseconds = one.memory_bytes / 2**20, 1e3 * one.seconds
        yield Row(
            bench="idle process", size=1, n=1, unit="MiB", value=mebibytes,
            note=f"{name}, {milliseconds:.0f} ms of processor time in {IDLE_SECONDS:.0f} s",
        )  # fmt: skip
