"""
News of commits, for whoever follows a log: one listening connection for all of them, and none for nobody.

It is a hint, as it is to the relay: a hint that is lost costs a follower one round of its own polling.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy.ext.asyncio import AsyncEngine

from contracts.errors import Busy, Unavailable
from contracts.limits import FOLLOWERS_MAX
from ledger._wake import listening

POLL_SECONDS: Final = 1.0
"""How long a follower waits for news before it looks for itself."""
BUSY_SECONDS: Final = 5.0
"""When whoever was turned away may ask again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """Wakes followers, by tenant."""

    engine: AsyncEngine
    _followers: dict[str, set[asyncio.Event]] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def followers_count(self) -> int:
        """How many follow a log now."""
        return sum(len(one) for one in self._followers.values())

    @contextmanager
    def of(self, tenant: str) -> Iterator[asyncio.Event]:
        """
        Yield what is set when a tenant may have new commits; whoever looks for them clears it first.

        Raises:
            Busy: `FOLLOWERS_MAX` are there already.
        """
        if self.followers_count >= FOLLOWERS_MAX:
            raise Busy(
                part="followers", reason=f"{FOLLOWERS_MAX} follow a log", retry_after_seconds=BUSY_SECONDS
            )
        woken = asyncio.Event()
        self._followers.setdefault(tenant, set()).add(woken)
        if all(task.done() for task in self._tasks):
            task = asyncio.create_task(self._listen(), name="news")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            yield woken
        finally:
            self._followers[tenant].discard(woken)
            if not self._followers[tenant]:
                del self._followers[tenant]

    async def close(self) -> None:
        """Listen no more; who still follows has its polling."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _listen(self) -> None:
        while self._followers:
            try:
                async with listening(self.engine) as wakes:
                    # What was sent while nobody listened is not sent again.
                    self._wake(list(self._followers))
                    while self._followers:
                        self._wake(await wakes.wait(timeout_seconds=POLL_SECONDS))
            except Unavailable:
                await asyncio.sleep(POLL_SECONDS)

    def _wake(self, tenants: Iterable[str]) -> None:
        for tenant in tenants:
            for woken in self._followers.get(tenant, ()):
                woken.set()
