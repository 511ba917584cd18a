"""
Who beats whom among claims of one rank: by the ends of sorted lists, not by comparing every pair.

It holds where comparability is a matter of sources alone: that is, where no end names a value that
another claim there has nothing to do with.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import TypeAlias

from ledger._entries import Entry

Key: TypeAlias = tuple[int, tuple[int, int]]
"""(start, place); of a contest by place alone, (0, place)."""


Beaters: TypeAlias = tuple[str | None, int]
"""Of what beats a claim: the value that all of it has, None if it has several; its first commit."""


def _joined(one: Beaters, other: Beaters | None) -> Beaters:
    if other is None:
        return one
    return one[0] if one[0] == other[0] else None, min(one[1], other[1])


class _Later:
    """A list in the order of keys, asked what stands after one."""

    def __init__(self, rows: Sequence[tuple[Key, str, int]]) -> None:
        self._keys = [key for key, _, _ in rows]
        self._after: list[Beaters] = []
        if not rows:
            return
        value: str | None = rows[-1][1]
        commit = rows[-1][2]
        for _, own, made in reversed(rows):
            if own != value:
                value = None
            commit = min(commit, made)
            self._after.append((value, commit))
        self._after.reverse()

    def after(self, key: Key) -> Beaters | None:
        at = bisect_right(self._keys, key)
        return self._after[at] if at < len(self._after) else None


class Rivals:
    """
    Claims that may beat others of their rank.

    Those of the same source with a later key; of other sources those that a rule `any` on either
    side lets, and, by order, only those that start `window_us` later at least.
    """

    def __init__(self, entries: Sequence[tuple[Entry, str]], *, by_place: bool, window_us: int) -> None:
        self._by_place = by_place
        self._window_us = 0 if by_place else window_us
        rows = sorted((self._key(entry), value, entry.claim.commit) for entry, value in entries)
        source = {self._key(entry): entry for entry, _ in entries}
        own: dict[str, list[tuple[Key, str, int]]] = defaultdict(list)
        free: list[tuple[Key, str, int]] = []
        for row in rows:
            entry = source[row[0]]
            own[entry.actor_id].append(row)
            if entry.replaces_any:
                free.append(row)
        self._own = {actor_id: _Later(found) for actor_id, found in own.items()}
        self._any = _Later(free)
        # Of all is asked for an entry that replaces anyone's, be it here or not.
        self._all = self._any if len(free) == len(rows) else _Later(rows)

    def beaters(self, entry: Entry) -> Beaters | None:
        """Return what beats the entry, None if nothing does."""
        key = self._key(entry)
        if entry.replaces_any and not self._window_us:
            return self._all.after(key)
        own = self._own.get(entry.actor_id)
        same = None if own is None else own.after(key)
        others = self._all if entry.replaces_any else self._any
        # No position is negative: from here on stands whatever starts a window later.
        far = key if not self._window_us else (entry.start + self._window_us, (-1, -1))
        found = others.after(far)
        return same if found is None else _joined(found, same)

    def _key(self, entry: Entry) -> Key:
        return (0, entry.place) if self._by_place else entry.order
