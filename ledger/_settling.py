"""From what a connected piece of the ledger comes to after a commit to the lines that it is on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ledger._cells import stored_part
from ledger._court import Court
from ledger._entries import Entry
from ledger._intervals import FOREVER, NEVER, interval
from ledger._kept import LiveKey, World
from ledger._keys import TenantKeys
from ledger._lines import Line
from ledger._live import LiveLine, Open
from ledger._live_occurrences import LiveOccurrences
from ledger._shelf import Shelf
from ledger._tails import Tail
from ledger._world import Key


class Settler:
    """Makes the lines on a shelf what the claims of a world say; `digest` keys what a tail remembers."""

    def __init__(self, shelf: Shelf, keys: TenantKeys, digest: Callable[[str], str]) -> None:
        self._shelf = shelf
        self._keys = keys
        self._digest = digest

    def settle(
        self,
        world: World,
        members: Sequence[Key],
        moved: Sequence[Entry],
        commit: int,
        *,
        is_whole: bool,
        paired: set[str],
    ) -> None:
        """
        Settle one key, under each name of its entity.

        Args:
            world: The piece of the ledger that the key is in.
            members: The key under each name.
            moved: What came or left on it.
            commit: The commit's number.
            is_whole: Whether the lines may be others than they were, and not only changed in places.
            paired: Names of which some are one, or said to be.
        """
        root = world.root(members[0])

        def is_open(part: str) -> Open:
            line = self._shelf.get(members[0], stored_part(part, self._keys))
            return interval if line is None else line.undecided

        world.put(root, moved, is_open=is_open)
        live, occurrences = world.live.get(root), world.occurrences.get(root)
        if occurrences is not None and not is_whole:
            self._settle_occurrences(occurrences, members, commit)
        elif live is None or is_whole or live.held != world.holds(root):
            self._settle_whole(world, members, commit, paired)
        else:
            self._settle_places(world, live, members, commit, paired=paired)
        self._forget_tails(world, members)

    def _settle_places(
        self,
        world: World,
        live: LiveKey,
        members: Sequence[Key],
        commit: int,
        *,
        paired: set[str],
    ) -> None:
        """Change the lines where something may have changed."""
        touched = live.touched if live.held is None else live.touched & live.held
        for part in sorted(touched):
            line_now = live.lines[part]
            for start, end in line_now.changed():
                segments = line_now.segments(start, end)
                for key in members:
                    self._line(key, part).splice(start, end, segments, commit)
            for key in members:
                self._line(key, part).tail = self._tail(world, key, live.lines[part], paired)
        live.touched.clear()

    def _settle_occurrences(self, live: LiveOccurrences, members: Sequence[Key], commit: int) -> None:
        for part, segments in live.changed():
            stored = stored_part(part, self._keys)
            for key in members:
                if segments or self._shelf.get(key, stored) is not None:
                    self._shelf.line(key, stored).become(segments, commit)

    def _settle_whole(self, world: World, members: Sequence[Key], commit: int, paired: set[str]) -> None:
        root = world.root(members[0])
        live = world.live.get(root)
        if live is None:
            if root in world.occurrences:
                world.occurrences[root].changed()
            timelines = Court(world.replay).timelines(*root)
        else:
            for line_now in live.lines.values():
                line_now.changed()
            live.touched.clear()
            live.held = world.holds(root)
            parts = live.lines if live.held is None else live.held
            timelines = {part: live.lines[part].segments(NEVER, FOREVER) for part in parts}
        named = {stored_part(part, self._keys): part for part in timelines}
        for key in members:
            for part in timelines:
                self._line(key, part)
            for stored, line in self._shelf.of(key).items():
                found = named.get(stored)
                line.become([] if found is None else timelines[found], commit)
                line.tail = None
                if found is not None and live is not None:
                    line.tail = self._tail(world, key, live.lines[found], paired)

    def _line(self, key: Key, part: str) -> Line:
        return self._shelf.line(key, stored_part(part, self._keys))

    def _tail(self, world: World, key: Key, line: LiveLine, paired: set[str]) -> Tail | None:
        # What is derived from a claim on the key has to be judged again with each one more.
        if world.has_derived or key[0] in paired:
            return None
        if paired and any(standing.entry.actor_id in paired for standing in line.standings.values()):
            return None
        return line.tail(self._digest)

    def _forget_tails(self, world: World, members: Sequence[Key]) -> None:
        if world.has_derived:
            for key in members:
                for line in self._shelf.of(key).values():
                    line.tail = None
