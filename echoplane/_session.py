"""
A running plane for the time of a command of this machine.

Apart from the wiring, which is slow to load: it is loaded while the plane starts.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from contracts import limits
from echoplane._plane import use_plane
from echoplane._settings import Settings
from echoplane._state import Role

if TYPE_CHECKING:
    from echoplane._wiring import Plane


@contextlib.asynccontextmanager
async def with_plane(settings: Settings, *roles: Role) -> AsyncIterator[Plane]:
    """
    Hold a running plane, the one that is up or an ephemeral one, for a command of this machine.

    Args:
        settings: Where it is.
        roles: What the command needs besides the servers.
    """
    loading = asyncio.create_task(asyncio.to_thread(importlib.import_module, "echoplane._wiring"))
    async with use_plane(settings, roles=roles) as servers:
        await loading
        from echoplane._wiring import open_plane  # noqa: PLC0415 - loaded above

        async with open_plane(settings, servers, wait_ms=limits.WAIT_MS_MAX) as plane:
            yield plane
