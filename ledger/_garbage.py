"""The cycle collector, kept away from work that makes many things and no cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """
    Do something without the cycle collector looking on.

    A fold makes some fifty objects an event and keeps all of them until it ends: the collector walks
    over them again and again, a third of the fold's time, and finds nothing. Two at a time do no
    harm: the first that ends lets the collector in again.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
