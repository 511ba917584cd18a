"""The cycle collector in a process that runs for long: it looks at what is new, and seldom at all."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

_YOUNG_MAX: Final = 10_000
"""So many objects are made before any is looked at: most that a request makes are gone by then."""
_OLDEST: Final = 2


@contextmanager
def survivors_spared() -> Iterator[None]:
    """
    Spare what outlived a full collection from the next ones.

    Modules, indexes and caches are hundreds of thousands of objects that stay: a full collection walks over
    all of them, and whoever is being answered waits as long. What is dropped is freed at once all the same,
    but for cycles; those among the spared are looked for whenever as much was spared as at the last time.
    """
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    spared_count, is_whole = gc.get_freeze_count(), False

    def spare(phase: str, info: Mapping[str, Any]) -> None:
        nonlocal spared_count, is_whole
        if phase != "stop" or info["generation"] != _OLDEST:
            return
        gc.freeze()
        count = gc.get_freeze_count()
        if is_whole:
            spared_count, is_whole = count, False
        elif count > 2 * spared_count:
            gc.unfreeze()
            is_whole = True

    gc.callbacks.append(spare)
    gc.set_threshold(_YOUNG_MAX, *before[1:])
    try:
        yield
    finally:
        gc.callbacks.remove(spare)
        gc.set_threshold(*before)
        gc.unfreeze()
