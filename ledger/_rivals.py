"""
Who beats whom among claims of one rank: by the ends of sorted lists, not by comparing every pair.

It holds where comparability is a matter of sources alone: that is, where no end names a value that
another claim there has nothing to do with.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ledger._entries import Entry

Key: TypeAlias = tuple[int, tuple[int, int]]
"""(start, place); of a contest by place alone, (0, place)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beaters:
    """What beats a claim: the value that all of it has, None if it has several, and its first commit."""

    value: str | None
    commit: int

    def joined(self, other: Beaters | None) -> Beaters:
        """Return both taken together."""
        if other is None:
            return self
        return Beaters(
            value=self.value if self.value == other.value else None, commit=min(self.commit, other.commit)
        )


class _Later:
    """A list in the order of keys, asked what stands after one."""

    def __init__(self, ordered: Iterable[tuple[Key, str, int]]) -> None:
        self._keys: list[Key] = []
        rows = list(ordered)
        self._keys = [key for key, _, _ in rows]
        self._after: list[Beaters] = []
        found: Beaters | None = None
        for _, value, commit in reversed(rows):
            found = Beaters(value=value, commit=commit).joined(found)
            self._after.append(found)
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
        rows = sorted(
            ((self._key(entry), value, entry.claim.commit), entry.actor_id, entry.replaces_any)
            for entry, value in entries
        )
        own: dict[str, list[tuple[Key, str, int]]] = defaultdict(list)
        for row, actor_id, _ in rows:
            own[actor_id].append(row)
        self._own = {actor_id: _Later(found) for actor_id, found in own.items()}
        self._all = _Later(row for row, _, _ in rows)
        self._any = _Later(row for row, _, replaces_any in rows if replaces_any)

    def beaters(self, entry: Entry) -> Beaters | None:
        """Return what beats the entry, None if nothing does."""
        key = self._key(entry)
        own = self._own.get(entry.actor_id)
        same = None if own is None else own.after(key)
        others = self._all if entry.replaces_any else self._any
        # No position is negative: from here on stands whatever starts a window later.
        far = key if not self._window_us else (entry.start + self._window_us, (-1, -1))
        found = others.after(far)
        return same if found is None else found.joined(same)

    def _key(self, entry: Entry) -> Key:
        return (0, entry.place) if self._by_place else entry.order
