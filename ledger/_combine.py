"""Work that arrives together is done together: one transaction, and one flush to disk, for many."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from contracts.errors import Busy

RETRY_AFTER_SECONDS: Final = 1.0
"""When whoever was turned away may come again: what waits is written by then."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(slots=True, kw_only=True)
class _Waiting(Generic[Item, Result]):
    item: Item
    weight: int
    bytes: int
    future: asyncio.Future[Result]


@dataclass(slots=True, kw_only=True)
class Combiner(Generic[Item, Result]):
    """
    Runs one batch at a time for each key; what arrives meanwhile forms the next batch.

    `part` names what waits, for whoever is turned away. A batch weighs at most `weight_max` and
    `bytes_max`, unless its only item alone weighs more. Of one key `waiting_max` items wait at most, of
    all together `waiting_bytes_max`, and of one key half of that: one that is slow leaves room to
    others. The next is turned away.
    """

    part: str = "appends"
    weight_max: int
    bytes_max: int
    waiting_max: int
    waiting_bytes_max: int
    _queues: dict[str, list[_Waiting[Any, Any]]] = field(default_factory=dict)
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _held: Counter[str] = field(default_factory=Counter)
    _held_bytes: Counter[str] = field(default_factory=Counter)

    async def submit(
        self,
        key: str,
        item: Item,
        *,
        weight: int,
        size_bytes: int,
        run: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
    ) -> Result:
        """
        Return the item's own result of a `run` over the batch it came to be in.

        A caller that is cancelled before its batch started takes its item with it; after that the
        batch goes on, and whether it was done is unknown to that caller.

        Raises:
            Busy: Too much waits already; the item was not taken.
        """
        self._make_room(key, size_bytes)
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        waiting = _Waiting(item=item, weight=weight, bytes=size_bytes, future=future)
        self._queues.setdefault(key, []).append(waiting)
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._drain(key, run), name=f"combine {key}")
        self._held[key] += 1
        self._held_bytes[key] += size_bytes
        try:
            return await future
        finally:
            self._held[key] -= 1
            self._held_bytes[key] -= size_bytes
            if not self._held[key]:
                del self._held[key], self._held_bytes[key]

    def _make_room(self, key: str, size_bytes: int) -> None:
        if self._held.get(key, 0) >= self.waiting_max:
            reason = f"{self.waiting_max} {self.part} of the tenant wait already"
        elif self._held_bytes.get(key, 0) + size_bytes > self.waiting_bytes_max // 2:
            reason = f"{self.waiting_bytes_max // 2} bytes of the tenant wait already"
        elif self._held_bytes.total() + size_bytes > self.waiting_bytes_max:
            reason = f"{self.waiting_bytes_max} bytes wait already"
        else:
            return
        raise Busy(part=self.part, reason=reason, retry_after_seconds=RETRY_AFTER_SECONDS)

    async def close(self) -> None:
        """Wait for what was submitted."""
        while self._tasks:
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _drain(self, key: str, run: Callable[[Sequence[Any]], Awaitable[Sequence[Any]]]) -> None:
        try:
            while batch := self._take(key):
                await _run_batch(batch, run)
                if sum(waiting.weight for waiting in self._queues[key]) < self.weight_max // 2:
                    # Whoever was answered and has more to say says it now, and is in the next batch. Where
                    # that is half full already it goes first: it is written while they make ready theirs.
                    await asyncio.sleep(0)
        finally:
            # No await stands between the empty queue and this: nobody can be left waiting.
            self._queues.pop(key, None)
            self._tasks.pop(key, None)

    def _take(self, key: str) -> list[_Waiting[Any, Any]]:
        queue = [waiting for waiting in self._queues[key] if not waiting.future.cancelled()]
        weight = size_bytes = taken = 0
        for waiting in queue:
            weight, size_bytes = weight + waiting.weight, size_bytes + waiting.bytes
            if taken and (weight > self.weight_max or size_bytes > self.bytes_max):
                break
            taken += 1
        self._queues[key] = queue[taken:]
        return queue[:taken]


async def _run_batch(
    batch: Sequence[_Waiting[Any, Any]], run: Callable[[Sequence[Any]], Awaitable[Sequence[Any]]]
) -> None:
    try:
        results = await run([waiting.item for waiting in batch])
    except BaseException as error:
        for waiting in batch:
            if not waiting.future.done():
                waiting.future.set_exception(error)
        if not isinstance(error, Exception):
            raise
        return
    for waiting, result in zip(batch, results, strict=True):
        if not waiting.future.done():
            waiting.future.set_result(result)
