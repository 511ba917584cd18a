"""
The claims of a pair of names that are left, kept so that its verdict is found from a few of them.

Claims of identity hold for all valid time. Of those that no end or erased one is among, each source's
last stands, or the last of all where the contract lets any replace another; and a cell names, of each
value, the first since which the source of the last one says it. The verdict on these is that on all.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Sequence

from ledger._decide import value_of
from ledger._entries import Entry, Place


class PairClaims:
    """The claims of one pair that count at a commit; they come and go, and none comes back."""

    def __init__(self) -> None:
        self._present: dict[int, Entry] = {}
        self._ranks: dict[int, _Rank] = defaultdict(_Rank)
        # Ends and erased claims: of them nothing is known from the ranks.
        self._odd: set[int] = set()
        self._ends_count = 0

    def put(self, entry: Entry) -> None:
        """Take in a claim that counts."""
        number = id(entry)
        if number in self._present:
            return
        self._present[number] = entry
        self._ends_count += entry.is_end
        if _is_odd(entry):
            self._odd.add(number)
        else:
            self._ranks[entry.rank].put(entry)

    def drop(self, entry: Entry) -> None:
        """Let a claim go that counts no more."""
        number = id(entry)
        if self._present.pop(number, None) is None:
            return
        self._ends_count -= entry.is_end
        if _is_odd(entry):
            self._odd.remove(number)
            return
        rank = self._ranks[entry.rank]
        rank.drop(entry)
        if not rank.is_left:
            del self._ranks[entry.rank]

    def deciding(self) -> Sequence[Entry] | None:
        """Return the few claims on which the verdict is that on all; None where it takes all of them."""
        if self._odd:
            return None
        return self._ranks[min(self._ranks)].deciding() if self._ranks else []

    def all(self) -> list[Entry]:
        """Return all of them."""
        return list(self._present.values())

    @property
    def comparisons_count(self) -> int:
        """Return how many comparisons a verdict on all of them takes: an end is held against each."""
        count = len(self._present)
        return count * count if self._ends_count else count


class _Rank:
    """Claims of one rank, in groups in which a later one replaces the earlier."""

    def __init__(self) -> None:
        self._groups: dict[str | None, _Group] = defaultdict(_Group)
        self._last: dict[str, list[Entry]] = defaultdict(list)

    @property
    def is_left(self) -> bool:
        return bool(self._groups)

    def put(self, entry: Entry) -> None:
        group = self._groups[_group_of(entry)]
        before = group.last
        group.put(entry)
        self._changed(before, group.last)

    def drop(self, entry: Entry) -> None:
        key = _group_of(entry)
        group = self._groups[key]
        before = group.last
        group.drop(entry)
        self._changed(before, group.last)
        if group.last is None:
            del self._groups[key]

    def deciding(self) -> list[Entry] | None:
        if None in self._groups and len(self._groups) > 1:
            return None
        latest = [entries[-1] for entries in self._last.values() if entries]
        return [entry for last in latest for entry in self._groups[_group_of(last)].deciding()]

    def _changed(self, before: Entry | None, after: Entry | None) -> None:
        if before is after:
            return
        if before is not None:
            _remove(self._last[value_of(before)], before)
        if after is not None:
            insort(self._last[value_of(after)], after, key=_place)


class _Group:
    """Claims of which each later one replaces the earlier, in the order of their places."""

    def __init__(self) -> None:
        self._by_value: dict[str, list[Entry]] = defaultdict(list)
        self._by_source: dict[tuple[str, str], list[Entry]] = defaultdict(list)

    @property
    def last(self) -> Entry | None:
        return max((own[-1] for own in self._by_value.values() if own), key=_place, default=None)

    def put(self, entry: Entry) -> None:
        insort(self._by_value[value_of(entry)], entry, key=_place)
        insort(self._by_source[value_of(entry), entry.actor_id], entry, key=_place)

    def drop(self, entry: Entry) -> None:
        _remove(self._by_value[value_of(entry)], entry)
        _remove(self._by_source[value_of(entry), entry.actor_id], entry)

    def deciding(self) -> list[Entry]:
        """Return the last, and the first of its source since which nothing else was said."""
        last = self.last
        if last is None:
            return []
        value = value_of(last)
        others = [own[-1].place for other, own in self._by_value.items() if own and other != value]
        same = self._by_source[value, last.actor_id]
        first = same[bisect_right(same, max(others), key=_place) if others else 0]
        return [last] if first is last else [first, last]


def _is_odd(entry: Entry) -> bool:
    return entry.is_end or entry.erased_in is not None


def _group_of(entry: Entry) -> str | None:
    return None if entry.replaces_any else entry.actor_id


def _place(entry: Entry) -> Place:
    return entry.place


def _remove(entries: list[Entry], entry: Entry) -> None:
    at = bisect_left(entries, entry.place, key=_place)
    while entries[at] is not entry:
        at += 1
    del entries[at]
