"""What stays is looked at once; what was dropped later is found all the same."""

from __future__ import annotations

import gc
import weakref

from echoplane._survivors import survivors_spared


class Linked:
    """Refers to itself: the cycle collector alone frees it."""

    def __init__(self) -> None:
        self.me = self


def is_looked_at(thing: object) -> bool:
    return any(one is thing for one in gc.get_objects())


def test_what_outlived_a_full_collection_is_spared_the_next_one():
    with survivors_spared():
        kept = Linked()
        assert is_looked_at(kept)

        gc.collect()
        assert not is_looked_at(kept)

    assert is_looked_at(kept)


def test_a_cycle_that_was_dropped_after_it_was_spared_is_freed_when_as_much_has_come_again():
    with survivors_spared():
        dropped = Linked()
        gc.collect()
        gone = weakref.ref(dropped)
        del dropped
        gc.collect()
        assert gone() is not None

        grown = [[] for _ in range(gc.get_freeze_count() + 10_000)]
        gc.collect()
        gc.collect()
        assert gone() is None
        assert not is_looked_at(grown)


def test_the_collector_is_left_as_it_was():
    before = gc.get_threshold(), list(gc.callbacks), gc.get_freeze_count()

    with survivors_spared():
        assert gc.get_threshold()[0] > before[0][0]

    assert (gc.get_threshold(), gc.callbacks, gc.get_freeze_count()) == before
