"""
What decides an instant of a rank on which it counts how far apart two sources start.

A state leaves to whatever is later of its own source, and to what starts a window later where either's rule
is `any`: a state of those who replace anyone to any other, one of those who replace only themselves to a
state of the former. So of each source its last may be left, and what carries its value begins after the
source's own last other value, and less than a window before the last other value among what the state
leaves to. Of the sources that replace anyone only those can matter that begin something so late.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from ledger._chains import FIRST, LAST, Chain, Order
from ledger._decide import value_of
from ledger._entries import Entry
from ledger._intervals import FOREVER


class Sources(NamedTuple):
    """
    The states of a rank: of all whose rule is `any` together, and of each source by either rule.

    A source may speak by both: a person whom the contract names, through a sensor of the same name.
    """

    free: Chain
    own: Mapping[str, Chain]
    free_of: Mapping[str, Chain]

    def of(self, actor_id: str) -> list[Chain]:
        """Return what a source said, by either rule."""
        found = (self.own.get(actor_id), self.free_of.get(actor_id))
        return [chain for chain in found if chain is not None]


class _Last(NamedTuple):
    """The last state of some chains, and the last that has another value."""

    newest: Entry
    other: Entry | None

    def unlike(self, value: str) -> Entry | None:
        """Return the last that has another value than this."""
        return self.newest if value_of(self.newest) != value else self.other


def kernel(by: Sources, at: int, values: Iterable[str] | None, *, window_us: int) -> list[Entry]:
    """
    Return those that decide an instant as well as all that cover it do; `values` as in `Chain.kernel`.

    Whatever they leave to is among them, or something of as many values.
    """
    everything = [by.free, *by.own.values()]
    last = _last(everything, at)
    if last is None:
        return []
    free = _last([by.free], at)
    found = [entry for each in (last, free) if each is not None for entry in each if entry is not None]
    for actor_id, chain in by.own.items():
        found += _carrying(by.of(actor_id), chain, free, at, window_us)
    for actor_id in _late(by, last, at, window_us):
        found += _carrying(by.of(actor_id), by.free_of[actor_id], last, at, window_us)
    # After the last other value anything carries that of the last: a cell names the first alone.
    found += by.free.begins(None if last.other is None else last.other.order, at)
    if values is not None:
        values = tuple(values)
        for chain in everything:
            found += chain.told(at, values)
    return list({id(entry): entry for entry in found}.values())


def reach(entry: Entry, by: Sources, *, window_us: int) -> int:
    """
    Return the instant up to which a state makes a difference where nothing else is on the line.

    From there on two values beat it, and whatever it beats: of its own source what is later, and of others
    what is a window later; what it beats of another source began a window before it.
    """
    after = entry.order
    far = (entry.start + window_us, FIRST)
    nearest = _second_value([*((chain, after) for chain in by.of(entry.actor_id)), (by.free, far)])
    if not entry.replaces_any:
        return nearest
    others = (_second_value([(by.free, after), (chain, after)]) for chain in by.own.values())
    return max(nearest, max(others, default=_second_value([(by.free, after)])))


def _last(chains: Collection[Chain], at: int) -> _Last | None:
    newest = max(
        (found for chain in chains if (found := chain.latest(at)) is not None), key=_order, default=None
    )
    if newest is None:
        return None
    value = value_of(newest)
    others = (found for chain in chains if (found := chain.last_other(at, value)) is not None)
    return _Last(newest, max(others, key=_order, default=None))


def _carrying(
    said: Collection[Chain], chain: Chain, beats: _Last | None, at: int, window_us: int
) -> Iterator[Entry]:
    """Yield the last of a source, what it said before of another value, and the first that carries it."""
    last = _last(said, at)
    if last is None:
        return
    yield from (entry for entry in last if entry is not None)
    after = None if last.other is None else last.other.order
    far = None if beats is None else beats.unlike(value_of(last.newest))
    if far is not None:
        near: Order = (far.start - window_us, LAST)
        after = near if after is None else max(after, near)
    yield from chain.begins(after, at)


def _late(by: Sources, last: _Last, at: int, window_us: int) -> Collection[str]:
    """Return the sources whose rule is `any` of which something may be left, or carry what is."""
    few = len(by.free_of)
    found = by.free.begun(last.newest.start - window_us, at, count_max=few)
    before: list[Entry] | None = []
    if last.other is not None:
        before = by.free.begun(last.other.start - window_us, last.other.start, count_max=few)
    if found is None or before is None:
        return by.free_of.keys()
    return {entry.actor_id for entry in (*found, *before)}


def _second_value(chains: Collection[tuple[Chain, Order]]) -> int:
    """Return the instant by which two values stand after a place in each of these chains."""
    nexts = [found for chain, after in chains if (found := chain.after(after)) is not None]
    if not nexts:
        return FOREVER
    value = value_of(min(nexts, key=_order))
    return min(chain.other_after(after, value) for chain, after in chains)


def _order(entry: Entry) -> Order:
    return entry.order
