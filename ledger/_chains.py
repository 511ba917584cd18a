"""
Structures that keep what a line knows in order, so that one more claim costs no pass over all.

A chain holds states that cover from their start on for ever; `Pieces` and `Coverage` hold intervals.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, Generic, TypeAlias, TypeVar

from ledger._decide import value_of
from ledger._entries import Entry
from ledger._intervals import FOREVER, NEVER

Item = TypeVar("Item")
Comparable = TypeVar("Comparable", tuple[int, tuple[int, int]], tuple[int, int, int])
Order: TypeAlias = tuple[int, tuple[int, int]]
"""(start, place)."""

LAST: Final = (2**63, 0)
"""After every place: `(at, LAST)` comes after all that starts up to an instant."""
FIRST: Final = (-1, -1)
"""Before every place: `(at, FIRST)` comes before all that starts at an instant or later."""


class Chain:
    """
    States that can all replace one another, by (start, place): at an instant the latest stands.

    A run is a stretch of neighbours with one value; its first claim is what a cell names.
    """

    def __init__(self) -> None:
        self._orders: list[Order] = []
        self._entries: dict[Order, Entry] = {}
        self._runs: list[Order] = []
        self._of_value: dict[str, list[Order]] = defaultdict(list)
        self._erased: list[Order] = []

    def __bool__(self) -> bool:
        return bool(self._orders)

    @property
    def first(self) -> Entry:
        """Return the first of its states."""
        return self._entries[self._orders[0]]

    @property
    def last(self) -> Entry:
        """Return the last of its states."""
        return self._entries[self._orders[-1]]

    def add(self, entry: Entry) -> None:
        """Take in a state."""
        order, value = entry.order, value_of(entry)
        at = bisect_left(self._orders, order)
        before, after = self._around(at, at)
        self._orders.insert(at, order)
        self._entries[order] = entry
        insort(self._of_value[value], order)
        if entry.erased_in is not None:
            insort(self._erased, order)
        if before != value:
            insort(self._runs, order)
        if after is not None:
            self._mark(self._orders[at + 1], first=after != value)

    def remove(self, entry: Entry) -> None:
        """Take a state out."""
        order, value = entry.order, value_of(entry)
        at = bisect_left(self._orders, order)
        before, after = self._around(at, at + 1)
        del self._orders[at], self._entries[order]
        _discard(self._of_value[value], order)
        if entry.erased_in is not None:
            _discard(self._erased, order)
        self._mark(order, first=False)
        if after is not None:
            self._mark(self._orders[at], first=after != before)

    def reach(self, entry: Entry, *, alone: bool) -> int:
        """
        Return the instant up to which the entry makes a difference, whether it is in the chain or not.

        Its own start where it makes none. `alone` says that no other rank is on the line.
        """
        order, value = entry.order, value_of(entry)
        at = bisect_left(self._orders, order)
        next_at = at + 1 if at < len(self._orders) and self._orders[at] == order else at
        before, after = self._around(at, next_at)
        if before == value:
            return entry.start
        if after is None:
            return FOREVER
        if after not in {value, before} and (alone or before is not None):
            return self._orders[next_at][0]
        run = bisect_right(self._runs, self._orders[next_at])
        return self._runs[run][0] if run < len(self._runs) else FOREVER

    def has_before(self, entry: Entry) -> bool:
        """Return whether a state of the same value comes before it."""
        orders = self._of_value.get(value_of(entry))
        return bool(orders) and orders is not None and orders[0] < entry.order

    def starts(self, start: int, end: int) -> Iterator[int]:
        """Yield where a state starts inside `(start, end)`."""
        first = bisect_right(self._orders, (start, LAST))
        for order in self._orders[first : bisect_left(self._orders, (end, FIRST))]:
            yield order[0]

    def present(self, at: int) -> list[Entry]:
        """Return all that cover an instant."""
        return [self._entries[order] for order in self._orders[: bisect_right(self._orders, (at, LAST))]]

    def kernel(self, at: int, values: Iterable[str] | None) -> list[Entry]:
        """
        Return those that decide an instant as well as all that cover it do.

        The latest, the first of its run and the one before it; with `values` given (other ranks are on
        the line) also what `told` returns. Of a run with erased states the first that is left carries it.
        """
        until = bisect_right(self._orders, (at, LAST))
        if not until:
            return []
        latest = self._orders[until - 1]
        first = self._runs[bisect_right(self._runs, latest) - 1]
        orders = {latest, first}
        begins = bisect_left(self._orders, first)
        if begins:
            orders.add(self._orders[begins - 1])
        if bisect_left(self._erased, first) < bisect_right(self._erased, latest):
            orders.add(next((each for each in self._orders[begins:until] if self._is_left(each)), latest))
        found = [self._entries[order] for order in orders]
        return found if values is None else found + self.told(at, values)

    def told(self, at: int, values: Iterable[str]) -> list[Entry]:
        """
        Return, of those that cover an instant, what other ranks there hang on.

        Enough to tell whether all are of one value, and the first of each of these values.
        """
        latest = self.latest(at)
        if latest is None:
            return []
        orders = {self._orders[0], *self._runs[1:2]}
        orders |= {self._of_value[value][0] for value in values if self._of_value.get(value)}
        return [self._entries[order] for order in orders if order <= latest.order]

    def latest(self, at: int) -> Entry | None:
        """Return the latest of those that cover an instant."""
        until = bisect_right(self._orders, (at, LAST))
        return self._entries[self._orders[until - 1]] if until else None

    def last_other(self, at: int, value: str) -> Entry | None:
        """Return the latest of those that cover an instant and have another value than this."""
        latest = self.latest(at)
        if latest is None or value_of(latest) != value:
            return latest
        begins = bisect_left(self._orders, self._runs[bisect_right(self._runs, latest.order) - 1])
        return self._entries[self._orders[begins - 1]] if begins else None

    def begins(self, after: Order | None, at: int) -> Iterator[Entry]:
        """Yield the first that covers an instant, after a place, and the first of these not erased."""
        first = 0 if after is None else bisect_right(self._orders, after)
        end = bisect_right(self._orders, (at, LAST))
        if first >= end:
            return
        yield self._entries[self._orders[first]]
        if bisect_left(self._erased, self._orders[first]) < bisect_right(self._erased, self._orders[end - 1]):
            orders = (self._orders[place] for place in range(first, end))
            yield from (self._entries[order] for order in islice(filter(self._is_left, orders), 1))

    def begun(self, after: int, until: int, *, count_max: int) -> list[Entry] | None:
        """Return those that begin after one instant and not after another; None if these are too many."""
        first, end = bisect_right(self._orders, (after, LAST)), bisect_right(self._orders, (until, LAST))
        if end - first > count_max:
            return None
        return [self._entries[order] for order in self._orders[first:end]]

    def after(self, order: Order) -> Entry | None:
        """Return the first state after a place, be there one or not."""
        at = bisect_right(self._orders, order)
        return self._entries[self._orders[at]] if at < len(self._orders) else None

    def other_after(self, order: Order, value: str) -> int:
        """Return where the first state after a place starts that has another value than this."""
        following = self.after(order)
        if following is None:
            return FOREVER
        if value_of(following) != value:
            return following.start
        run = bisect_right(self._runs, following.order)
        return self._runs[run][0] if run < len(self._runs) else FOREVER

    def _is_left(self, order: Order) -> bool:
        return self._entries[order].erased_in is None

    def _around(self, before: int, after: int) -> tuple[str | None, str | None]:
        """Return the values at the places before one and at another."""
        return (
            value_of(self._entries[self._orders[before - 1]]) if before else None,
            value_of(self._entries[self._orders[after]]) if after < len(self._orders) else None,
        )

    def _mark(self, order: Order, *, first: bool) -> None:
        at = bisect_left(self._runs, order)
        is_first = at < len(self._runs) and self._runs[at] == order
        if first and not is_first:
            self._runs.insert(at, order)
        elif is_first and not first:
            del self._runs[at]


class Pieces(Generic[Item]):
    """Intervals that belong to things, found by where they overlap: kept apart by size."""

    def __init__(self) -> None:
        self._of_size: dict[int, list[tuple[int, int, int]]] = {}
        self._items: dict[int, Item] = {}

    def __bool__(self) -> bool:
        return any(self._of_size.values())

    def add(self, start: int, end: int, item: Item) -> None:
        """Take in an interval of a thing."""
        self._items[id(item)] = item
        insort(self._of_size.setdefault((end - start).bit_length(), []), (start, end, id(item)))

    def remove(self, start: int, end: int, item: Item) -> None:
        """Take an interval out."""
        _discard(self._of_size[(end - start).bit_length()], (start, end, id(item)))

    def overlapping(self, start: int, end: int) -> Iterator[tuple[int, int, Item]]:
        """Yield what overlaps `[start, end)`."""
        for size, pieces in self._of_size.items():
            first = bisect_left(pieces, (start - (1 << size), NEVER, 0))
            for place in range(first, bisect_left(pieces, (end, NEVER, 0))):
                found = pieces[place]
                if found[1] > start:
                    yield found[0], found[1], self._items[found[2]]


class Coverage:
    """A growing set of instants: disjoint intervals in order."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, start: int, end: int) -> None:
        """Take in `[start, end)`."""
        first = bisect_left(self._ends, start)
        last = bisect_right(self._starts, end)
        if first < last:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]

    def holds(self, at: int) -> bool:
        """Return whether an instant is in the set."""
        place = bisect_right(self._starts, at)
        return place > 0 and at < self._ends[place - 1]

    def covers(self, start: int, end: int) -> bool:
        """Return whether all of `[start, end)` is in the set."""
        place = bisect_right(self._starts, start)
        return start >= end or (place > 0 and end <= self._ends[place - 1])

    def within(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield what is in the set of `[start, end)`."""
        for place in range(bisect_right(self._ends, start), bisect_left(self._starts, end)):
            yield max(start, self._starts[place]), min(end, self._ends[place])

    def missing(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield what is not in the set of `[start, end)`."""
        for from_, to in self.within(start, end):
            if start < from_:
                yield start, from_
            start = to
        if start < end:
            yield start, end


def _discard(ordered: list[Comparable], item: Comparable) -> None:
    at = bisect_left(ordered, item)
    assert ordered[at] == item
    del ordered[at]
