"""Turns at work that holds connections, or its tenant, for long: few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakValueDictionary

from contracts.errors import Busy

BUSY_SECONDS: Final = 5.0
"""When whoever was turned away may ask again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """
    So many turns of all tenants at a time, and of one tenant; whoever waits holds no connection.

    Those of one tenant come in the order in which they asked, and take no place from other tenants
    while they wait for their own.
    """

    part: str
    places: asyncio.Semaphore
    wait_seconds: float
    of_tenant: int = 1
    _tenants: WeakValueDictionary[str, asyncio.Semaphore] = field(default_factory=WeakValueDictionary)

    @asynccontextmanager
    async def of(self, tenant: str) -> AsyncIterator[None]:
        """
        Wait for a turn, and have it for the time of the block.

        Raises:
            Busy: Others' turns took longer than this waits.
        """
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(self.wait_seconds):
                    # Under no name of ours: whoever keeps the error that is raised below would keep it too.
                    await held.enter_async_context(
                        self._tenants.setdefault(tenant, asyncio.Semaphore(self.of_tenant))
                    )
                    await held.enter_async_context(self.places)
            except TimeoutError as error:
                raise Busy(part=self.part, reason="others go on", retry_after_seconds=BUSY_SECONDS) from error
            yield
