"""
What decides an instant of a rank on which some replace anyone and others only themselves.

`free` are the states of those whose rule is `any`, each of `own` those of one source that replaces only
itself. A state leaves to whatever is later in its own chain or in the free one; a free one to whatever
is later in any. So who is left, and who carries it, follows from the last of each chain and from where
the last stretch of one value begins: in a chain joined with the free one, and in all of them together.
Whoever comes before that has left to two values at least, and carries neither.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ledger._chains import Chain
from ledger._decide import value_of
from ledger._entries import Entry
from ledger._intervals import FOREVER


def kernel(free: Chain, own: Collection[Chain], at: int, values: Iterable[str] | None) -> list[Entry]:
    """
    Return those that decide an instant as well as all that cover it do; `values` as in `Chain.kernel`.

    Whatever else covers it may be judged beside them: each is beaten here by as many values as there.
    """
    values = None if values is None else tuple(values)
    found = list(_stretch([free, *own], free, at))
    for chain in own:
        found += _stretch([free, chain], chain, at)
    if values is not None:
        for chain in (free, *own):
            found += chain.told(at, values)
    return list({id(entry): entry for entry in found}.values())


def reach(entry: Entry, chain: Chain, free: Chain, own: Iterable[Chain]) -> int:
    """
    Return the instant up to which a state of a chain makes a difference where nothing else is on the line.

    From there on two values stand after it, with whatever chain it and what it beats are joined.
    """
    if chain is not free:
        return _second_value((free, chain), entry)
    return max((_second_value((free, other), entry) for other in own), default=FOREVER)


def _stretch(chains: Collection[Chain], of: Chain, at: int) -> Iterator[Entry]:
    """
    Yield of one chain the last, and the first of the last stretch of one value that the chains have.

    And who stands before that stretch, in whichever of them.
    """
    last = of.latest(at)
    if last is None:
        return
    yield last
    newest = max((found for chain in chains if (found := chain.latest(at)) is not None), key=_order)
    others = [found for chain in chains if (found := chain.last_other(at, value_of(newest))) is not None]
    before = max(others, key=_order, default=None)
    yield newest
    if before is not None:
        yield before
    yield from of.begins(None if before is None else before.order, at)


def _second_value(chains: Collection[Chain], entry: Entry) -> int:
    """Return the instant by which two values stand after a state, in these chains taken together."""
    nexts = [found for chain in chains if (found := chain.after(entry.order)) is not None]
    if not nexts:
        return FOREVER
    value = value_of(min(nexts, key=_order))
    return min(chain.other_after(entry.order, value) for chain in chains)


def _order(entry: Entry) -> tuple[int, tuple[int, int]]:
    return entry.order
