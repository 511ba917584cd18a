"""
What decides an instant of a rank on which all replace anyone, but not who starts within the conflict window.

A state leaves to the next of its own source, and to whatever starts a window later. So who is left begins
less than a window before the last; and who carries the value of the last, less than one before the last
that has another: whatever begins earlier has left to both.
"""

from __future__ import annotations

from collections.abc import Iterable

from ledger._chains import Chain
from ledger._decide import value_of
from ledger._entries import Entry
from ledger._intervals import FOREVER


def kernel(chain: Chain, at: int, values: Iterable[str] | None, *, window_us: int) -> list[Entry]:
    """
    Return those that decide an instant as well as all that cover it do; `values` as in `Chain.kernel`.

    Of what begins after the last other value the first carries that of the last: a cell names no other.
    """
    last = chain.latest(at)
    if last is None:
        return []
    other = chain.last_other(at, value_of(last))
    found = [*chain.begun(last.start - window_us, at), *chain.begins(other, at)]
    if other is not None:
        found += chain.begun(other.start - window_us, other.start)
    if values is not None:
        found += chain.told(at, values)
    return list({id(entry): entry for entry in found}.values())


def reach(entry: Entry, chain: Chain, *, window_us: int) -> int:
    """
    Return the instant up to which a state makes a difference where nothing else is on the line.

    From there on two values begin a window after it, or later.
    """
    far = chain.next_from(entry.start + window_us)
    return FOREVER if far is None else chain.other_after(far, value_of(far))
