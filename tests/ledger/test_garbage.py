"""The cycle collector comes back when the work is done, and not before."""

from __future__ import annotations

import gc

from ledger._garbage import uncollected


def test_what_is_done_inside_another_lets_the_collector_in_with_the_outer_one_alone():
    assert gc.isenabled()

    with uncollected():
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()

    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
