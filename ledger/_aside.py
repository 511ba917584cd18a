"""
Work that is Python alone and takes long: in a thread beside the event loop, one piece at a time.

The loop takes its turn from the thread after every switch interval, where it would have waited for
the whole piece. More threads would share one interpreter with it, and each take from its turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

Made = TypeVar("Made")

ASIDE_ITEMS_MIN: Final = 100
"""Rows, or what is made of as many, that are worth a thread: some milliseconds. Fewer are done at once."""

_THREAD: Final = ThreadPoolExecutor(1, thread_name_prefix="aside")


async def aside(work: Callable[[], Made], *, items: int) -> Made:
    """
    Return what a piece of work comes to; whatever it raises comes too.

    Whoever is cancelled leaves at once: a piece that has begun is done, and nobody hears of it.

    Args:
        work: Touches no connection, and nothing that anybody else changes meanwhile.
        items: How much it is.
    """
    if items < ASIDE_ITEMS_MIN:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_THREAD, work)
