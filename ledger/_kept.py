"""
A connected piece of the ledger, kept in memory through a fold: its claims replayed, its lines live.

After each commit its live lines stand where the claims say, and it knows where they changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from contracts.claims import Claim
from contracts.relations import Cardinality
from ledger._court import Court
from ledger._decide import Standing
from ledger._entries import Entry
from ledger._live import LiveLine, Open
from ledger._live_occurrences import LiveOccurrences
from ledger._occurrences import WHOLE
from ledger._relations import IDENTITY
from ledger._tombstones import is_veiled
from ledger._withdrawal import Replay
from ledger._world import Key


class LiveKey:
    """
    The lines of a key that is one-valued or many-valued and on which nothing was derived.

    `touched` are the parts in which something came or left, `held` those that cells were kept of when
    they were last settled, None where all of them were.
    """

    def __init__(self, cardinality: Cardinality, *, window_us: int) -> None:
        assert cardinality != Cardinality.OCCURRENCE
        self.lines: dict[str, LiveLine] = {}
        self.touched: set[str] = set()
        self.held: set[str] | None = None
        self._is_many = cardinality == Cardinality.MANY
        self._window_us = window_us
        self._parts_of: dict[int, set[str]] = {}
        self._ends: dict[str | None, dict[int, Standing]] = {}
        self._parts_with: dict[str, set[str]] = {}

    def has(self, entry: Entry) -> bool:
        """Return whether the entry was taken in."""
        return id(entry) in self._parts_of

    def put(self, standing: Standing, *, is_open: Callable[[str], Open]) -> None:
        """Take in an entry, or where it now covers."""
        entry = standing.entry
        parts = self._parts_of.get(id(entry))
        if self._is_many and entry.is_end:
            # Also of an end that is on no line yet: the next line must find it where it now covers.
            self._ends.setdefault(entry.normal, {})[id(entry)] = standing
        if parts is not None:
            for part in parts:
                self._put(part, standing, is_open)
        elif self._is_many:
            self._enter(standing, is_open)
        else:
            self._put(WHOLE, standing, is_open)

    def _enter(self, standing: Standing, is_open: Callable[[str], Open]) -> None:
        """Find the lines of a new entry: its value's; of an end also those of what corrected that."""
        entry = standing.entry
        self._parts_of[id(entry)] = set()
        if entry.is_end:
            if entry.normal is None:
                parts = set(self.lines)
            else:
                parts = {entry.normal} | self._parts_with.get(entry.normal, set())
            for part in sorted(parts):
                self._put(part, standing, is_open)
        elif entry.normal is not None:
            self._put(entry.normal, standing, is_open)
            for name in sorted(entry.lineage):
                with_name = self._parts_with.setdefault(name, set())
                if entry.normal not in with_name:
                    with_name.add(entry.normal)
                    self._put_ends(name, entry.normal, is_open)

    def _put(self, part: str, standing: Standing, is_open: Callable[[str], Open]) -> None:
        line = self.lines.get(part)
        is_new = line is None
        if line is None:
            line = LiveLine(window_us=self._window_us, value=part if self._is_many else None)
            self.lines[part] = line
        line.put(standing, is_open=is_open(part))
        self._parts_of.setdefault(id(standing.entry), set()).add(part)
        self.touched.add(part)
        if is_new:
            self._put_ends(None, part, is_open)

    def _put_ends(self, name: str | None, part: str, is_open: Callable[[str], Open]) -> None:
        """An end counts on lines that came after it too."""
        for end in list(self._ends.get(name, {}).values()):
            if part not in self._parts_of.get(id(end.entry), ()):
                self._put(part, end, is_open)


@dataclass(slots=True, kw_only=True, eq=False)
class World:
    """
    A connected piece of the ledger: its keys, its claims, and what they come to so far.

    `waiting` are claims not replayed yet, in order. `derived` are keys (by representative) that a
    derived claim is on; they are judged as a whole. `has_derived` says that any claim names inputs.
    """

    keys: set[Key]
    claims: dict[str, Claim]
    replay: Replay
    waiting: list[Claim]
    live: dict[Key, LiveKey] = field(default_factory=dict)
    occurrences: dict[Key, LiveOccurrences] = field(default_factory=dict)
    derived: set[Key] = field(default_factory=set)
    unplaced_seen: int = 0
    has_derived: bool = False
    _names: dict[Key, list[Key]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.has_derived = any(claim.inputs for claim in self.claims.values())
        for key in sorted(self.keys):
            if key[1] not in IDENTITY and not is_veiled(*key):
                self._names.setdefault(self.root(key), []).append(key)

    def names(self, root: Key) -> list[Key]:
        """Return the key of a representative under each name, sorted; none of what has no lines."""
        return self._names.get(root, [])

    def take(self, claim: Claim) -> None:
        """Take in a claim, in order."""
        if claim.claim_id not in self.claims:
            self.claims[claim.claim_id] = claim
            self.waiting.append(claim)
            self.has_derived = self.has_derived or bool(claim.inputs)

    def catch_up(self, commit: int) -> None:
        """Replay what waits from before a commit: the open cells stand there already."""
        before = [claim for claim in self.waiting if claim.commit < commit]
        self.waiting = [claim for claim in self.waiting if claim.commit >= commit]
        if before:
            for key, entries in self._moved(before).items():
                self.put(key, entries, is_open=_nowhere)
                if key in self.occurrences:
                    self.occurrences[key].changed()
                live = self.live.get(key)
                if live is not None:
                    for part in live.touched:
                        live.lines[part].changed()
                    live.touched.clear()
                    live.held = self.holds(key)

    def advance(self) -> dict[Key, list[Entry]]:
        """Replay what waits; return what came or left, by key (of the representative)."""
        claims, self.waiting = self.waiting, []
        return self._moved(claims)

    def root(self, key: Key) -> Key:
        """Return the key of the representative."""
        return self.replay.identity.entity(key[0]), key[1]

    def is_live(self, key: Key) -> bool:
        """Return whether the key (of a representative) is kept line by line."""
        contract = self.replay.contracts.of(key[1])
        return key not in self.derived and contract.cardinality != Cardinality.OCCURRENCE

    def holds(self, key: Key) -> set[str] | None:
        """
        Return the parts of a live key (of a representative) that cells are kept of, None where it is all.

        As in `Court.unheld`.
        """
        if not self.replay.has_erased:
            return None
        if not self.replay.is_named(*key):
            return set()
        return {part for part, line in self.live[key].lines.items() if line.has_left}

    def put(self, key: Key, entries: Iterable[Entry], *, is_open: Callable[[str], Open]) -> None:
        """Let entries of a live key, or of one that has occurrences, stand where they now do."""
        court = Court(self.replay)
        if not self.is_live(key):
            self.live.pop(key, None)
            self._put_mentions(key, entries, court)
            return
        live = self.live.get(key)
        if live is None:
            contract = self.replay.contracts.of(key[1])
            live = LiveKey(contract.cardinality, window_us=court.window_us(key[1]))
            self.live[key] = live
        # What leaves goes first: a correction takes the very place of what it corrects.
        for entry in sorted(entries, key=lambda entry: not live.has(entry)):
            live.put(court.standing(entry), is_open=is_open)

    def _put_mentions(self, key: Key, entries: Iterable[Entry], court: Court) -> None:
        if key in self.derived or self.replay.has_erased:
            # Judged as a whole: a mention may come or go by what stands elsewhere.
            self.occurrences.pop(key, None)
            return
        live = self.occurrences.get(key)
        if live is None:
            live = self.occurrences[key] = LiveOccurrences(window_us=court.window_us(key[1]))
        for entry in entries:
            live.put(court.standing(entry))

    def new_unplaced(self) -> list[Claim]:
        """Return the claims that found nothing to act on since this was last asked."""
        found = self.replay.unplaced[self.unplaced_seen :]
        self.unplaced_seen = len(self.replay.unplaced)
        return found

    def _moved(self, claims: Iterable[Claim]) -> dict[Key, list[Entry]]:
        self.replay.extend(claims)
        moved: dict[Key, list[Entry]] = {}
        for entry in self.replay.take_moved():
            if entry.relation in IDENTITY:
                continue
            key = self.root((entry.entity, entry.relation))
            moved.setdefault(key, []).append(entry)
            if entry.inputs:
                self.derived.add(key)
        return moved


def _nowhere(part: str) -> Open:  # noqa: ARG001 — no line is asked
    return lambda start, end: ()  # noqa: ARG005 — where it changed is not asked either
