"""
The occurrences of a key as they stand, kept so that one more mention touches those it overlaps alone.

It says what `parts_of` says, of the parts that a mention can make a difference to: its own, and those
of mentions whose interval contains its own or lies within it. The others do not look at it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from ledger._chains import Pieces
from ledger._decide import Standing
from ledger._entries import Entry
from ledger._intervals import intersection, union
from ledger._live import timeline
from ledger._occurrences import contains, identity_of_mention, is_ended_by, is_witness
from ledger._timeline import Segment


class LiveOccurrences:
    """The lines of a key on an `occurrence` relation on which nothing was derived."""

    def __init__(self, *, window_us: int) -> None:
        self._window_us = window_us
        self._standings: dict[int, Standing] = {}
        self._part_of: dict[int, str] = {}
        self._mentions: dict[str, list[Entry]] = defaultdict(list)
        self._ends: list[Entry] = []
        self._parts_with: dict[str, set[str]] = defaultdict(set)
        # Mentions that still cover something, by what they say: only these are told more exactly.
        self._live: dict[str | None, Pieces[Entry]] = defaultdict(Pieces)
        self._touched: set[str] = set()

    def put(self, standing: Standing) -> None:
        """Take in an entry, or where it now covers."""
        entry = standing.entry
        old = self._standings.get(id(entry))
        self._standings[id(entry)] = standing
        if entry.is_end:
            if old is None:
                self._ends.append(entry)
            if entry.occurrence is not None:
                self._touched.update({identity_of_mention(entry)} & self._mentions.keys())
            elif entry.normal is None:
                self._touched.update(self._mentions)
            else:
                self._touched.update(self._parts_with.get(entry.normal, ()))
            return
        if old is None:
            part = self._part_of[id(entry)] = identity_of_mention(entry)
            self._mentions[part].append(entry)
            for name in entry.lineage:
                self._parts_with[name].add(part)
        self._touched.add(self._part_of[id(entry)])
        before = () if old is None else old.cover
        if before != standing.cover:
            self._touched.update(self._part_of[id(other)] for other in self._comparable(entry))
        if before and not standing.cover:
            self._live[entry.normal].remove(entry.start, entry.end, entry)
        elif standing.cover and not before:
            self._live[entry.normal].add(entry.start, entry.end, entry)

    def changed(self) -> list[tuple[str, list[Segment]]]:
        """Return what stands on each part that may have changed since this was last asked."""
        parts, self._touched = sorted(self._touched), set()
        return [(part, self._segments(part)) for part in parts]

    def _segments(self, part: str) -> list[Segment]:
        exact = [entry for entry in self._mentions[part] if not self._is_vague(entry)]
        if not exact:
            return []
        lineage = frozenset[str]().union(*(entry.lineage for entry in exact))
        ends = [end for end in self._ends if is_ended_by(end, part, lineage)]
        told = [self._standings[id(entry)] for entry in [*exact, *ends]]
        occurred = union(*(self._standings[id(entry)].cover for entry in exact))
        for teller in self._tellers(exact):
            standing = self._standings[id(teller)]
            told.append(replace(standing, cover=intersection(standing.cover, occurred)))
        return timeline(told, window_us=self._window_us)

    def _tellers(self, exact: list[Entry]) -> list[Entry]:
        """Return the mentions that tell less exactly of these."""
        found: dict[int, Entry] = {}
        for entry in exact:
            if self._standings[id(entry)].cover:
                for _, _, other in self._live[entry.normal].overlapping(entry.start, entry.end):
                    if contains(other, entry) and self._is_vague(other):
                        found[id(other)] = other
        return list(found.values())

    def _is_vague(self, entry: Entry) -> bool:
        """Return whether a mention is told more exactly by another, as `parts_of` has it."""
        return bool(self._standings[id(entry)].cover) and any(
            is_witness(other, against=entry) for other in self._within(entry)
        )

    def _within(self, entry: Entry) -> Iterator[Entry]:
        for _, _, other in self._live[entry.normal].overlapping(entry.start, entry.end):
            if contains(entry, other):
                yield other

    def _comparable(self, entry: Entry) -> Iterator[Entry]:
        """Yield the mentions whose interval contains this one's, or lies within it."""
        for _, _, other in self._live[entry.normal].overlapping(entry.start, entry.end):
            if contains(entry, other) or contains(other, entry):
                yield other
