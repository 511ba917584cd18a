"""
Who beats whom among claims of one rank: by the ends of sorted lists, not by comparing every pair.

Among those of one rank comparability is a matter of sources alone, save of ends that name a value:
`Contest` asks of each claim those that it competes with.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
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


class Contest:
    """
    Claims of one rank, of which those may beat others that these compete with.

    An end that names a value competes with claims of that value and of what corrected them, with other
    ends of it and with those that name none; all else competes with each other.
    """

    def __init__(
        self, entries: Iterable[Entry], value_of: Callable[[Entry], str], *, by_place: bool, window_us: int
    ) -> None:
        others: list[Entry] = []
        named: list[Entry] = []
        ends_of: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            if entry.is_end and entry.normal is not None:
                named.append(entry)
                ends_of[entry.normal].append(entry)
            else:
                others.append(entry)
        # Whoever is asked about need not be among the entries, so of every value.
        self._saying: dict[str, list[Entry]] = defaultdict(list)
        for entry in others:
            for normal in entry.lineage:
                self._saying[normal].append(entry)

        def rivals(found: Iterable[Entry]) -> Rivals:
            rows = [(entry, value_of(entry)) for entry in found]
            return Rivals(rows, by_place=by_place, window_us=window_us)

        self._others = rivals(others)
        self._unnamed = rivals(entry for entry in others if entry.is_end)
        self._named = rivals(named)
        self._rivals = rivals
        self._of_value: dict[str, Rivals] = {}
        self._ends_of = {normal: rivals(found) for normal, found in ends_of.items()}

    def beaters(self, entry: Entry) -> Beaters | None:
        """Return what beats the entry, None if nothing does."""
        beaten: Beaters | None = None
        for rivals in self._competing(entry):
            found = rivals.beaters(entry)
            if found is not None:
                beaten = _joined(found, beaten)
        return beaten

    def _competing(self, entry: Entry) -> list[Rivals]:
        if entry.is_end and entry.normal is None:
            return [self._others, self._named]
        if not entry.is_end:
            return [self._others, *(self._ends_of[name] for name in entry.lineage & self._ends_of.keys())]
        normal = entry.normal or ""
        if normal in self._saying and normal not in self._of_value:
            self._of_value[normal] = self._rivals(self._saying[normal])
        own = (found.get(normal) for found in (self._of_value, self._ends_of))
        return [self._unnamed, *(rivals for rivals in own if rivals is not None)]
