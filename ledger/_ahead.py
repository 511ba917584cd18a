"""
Events that are opened before their fold begins: while the server writes the fold before it.

What is opened hangs on the log alone, and on no fold. Between two folds an event may be erased: then all of
it is forgotten, and the events are read as if nothing had been opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from contracts.errors import IntegrityFault
from contracts.events import ErasedEvent, Event
from contracts.records import record
from ledger._events import StoredEvent, open_event
from ledger._keys import TenantKeys

OPENED_BYTES: Final = 16_384
"""Encrypted bytes that are opened before whoever waits for the server has its turn."""
KEPT_SECONDS: Final = 5.0
"""What was opened and not folded is forgotten after so long: it may be erased meanwhile, unseen from here."""


@record
class Place:
    """Where in a log events were read: after a position, when its last erasure was that of a commit."""

    keys: TenantKeys
    after: int
    erased: int


class Ahead:
    """The events that were opened last, until they are taken or others are opened."""

    def __init__(self) -> None:
        self._opened: tuple[Place, list[Event | ErasedEvent]] | None = None

    def take(self, place: Place) -> list[Event | ErasedEvent]:
        """Hand out the events that were opened from a place on; none where something came in between."""
        opened = self._opened
        if opened is None or opened[0].keys is not place.keys:
            return []
        self._opened = None
        return opened[1] if opened[0] == place else []

    def forget(self, keys: TenantKeys) -> None:
        """Forget what was opened of a tenant."""
        if self._opened is not None and self._opened[0].keys is keys:
            self._opened = None

    @asynccontextmanager
    async def opening(self) -> AsyncIterator[Opening]:
        """Open events beside what is done here; at its end they are kept, if nothing went wrong."""
        opening = Opening()
        try:
            yield opening
            opened = await opening.opened()
        finally:
            opening.end()
        if opened is not None:
            self._opened = opened
            asyncio.get_running_loop().call_later(KEPT_SECONDS, self._forget, opened)

    def _forget(self, opened: tuple[Place, list[Event | ErasedEvent]]) -> None:
        if self._opened is opened:
            self._opened = None


class Opening:
    """Opens events whenever the task that began it waits for something."""

    def __init__(self) -> None:
        self._task: asyncio.Task[tuple[Place, list[Event | ErasedEvent]]] | None = None

    def begin(self, place: Place, stored: Sequence[StoredEvent]) -> None:
        """Open these events, read at a place, from now on."""
        self._task = asyncio.create_task(_opened(place, stored))

    async def opened(self) -> tuple[Place, list[Event | ErasedEvent]] | None:
        """Return what was opened, once it all is; None if nothing was begun."""
        return None if self._task is None else await self._task

    def end(self) -> None:
        """Open nothing more."""
        if self._task is not None:
            self._task.cancel()


async def _opened(place: Place, stored: Sequence[StoredEvent]) -> tuple[Place, list[Event | ErasedEvent]]:
    events: list[Event | ErasedEvent] = []
    size_bytes = 0
    for one in stored:
        try:
            events.append(open_event(place.keys, one))
        except IntegrityFault:
            # Whoever comes to fold it reads it again, and says so.
            break
        size_bytes += len(one.ciphertext)
        if size_bytes >= OPENED_BYTES:
            size_bytes = 0
            await asyncio.sleep(0)
    return place, events
