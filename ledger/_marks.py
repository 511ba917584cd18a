"""How the ledger stands to single claims and to whole events, at a view."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final, TypeAlias

from contracts.claims import Claim
from contracts.contexts import Mark
from contracts.events import Stance
from ledger._beaten import beaten_since
from ledger._court import Court
from ledger._decide import Side, State, Verdict
from ledger._entries import Entry, withdrawn_throughout
from ledger._intervals import covers
from ledger._relations import IDENTITY
from ledger._world import Key

Marked: TypeAlias = tuple[Mark, int | None]
"""A mark, and the commit from which it holds; None where it always did."""

# An event is marked by the worst that is true of any of its claims: nothing stale may look current.
_WORST_FIRST: Final = (Mark.DISPUTED, Mark.WITHDRAWN, Mark.SUPERSEDED, Mark.ACTIVE, Mark.PLAIN)
_ACTS: Final = frozenset({Stance.RETRACT, Stance.SETTLE, Stance.CORRECT})


class Marks:
    """Marks claims by what a court decides at one instant (microseconds)."""

    def __init__(self, court: Court, at: int) -> None:
        self._court = court
        self._at = at
        self._marks: dict[int, Marked] = {}
        self._judged: set[Key] = set()
        self._standing: dict[Key, list[Claim]] = {}
        self._disputes = {dispute.claim.claim_id for dispute in court.replay.disputes}

    def of(self, claim: Claim) -> Marked:
        """Return the mark of a claim; PLAIN where it says nothing about the instant."""
        entry = self._court.replay.entry_of(claim.claim_id)
        if entry is None:
            if claim.claim_id in self._disputes:
                return Mark.DISPUTED, None
            return (Mark.ACTIVE if claim.stance in _ACTS else Mark.PLAIN), None
        if entry.erased_in is not None:
            # What has its value from what was erased went with it.
            return Mark.WITHDRAWN, entry.erased_in
        if entry.relation in IDENTITY:
            return (Mark.WITHDRAWN, _left_at(entry)) if entry.withdrawn else (Mark.ACTIVE, None)
        self._judge((entry.entity, entry.relation))
        if id(entry) in self._marks:
            return self._marks[id(entry)]
        if withdrawn_throughout(entry):
            return Mark.WITHDRAWN, _left_at(entry)
        return Mark.PLAIN, None

    def standing(self, key: Key) -> Sequence[Claim]:
        """Return the claims that carry what the key has at the instant."""
        self._judge(key)
        return self._standing.get(key, ())

    def _judge(self, key: Key) -> None:
        if key in self._judged:
            return
        self._judged.add(key)
        window_us = self._court.contracts.of(key[1]).conflict_window // timedelta(microseconds=1)
        found = self._court.decide(*key, self._at)
        lines = self._court.lines(*key)
        self._standing[key] = [
            entry.claim for _, verdict in found.lines for side in verdict.sides for entry in side.carriers
        ]
        for part, verdict in found.lines:
            present = [standing.entry for standing in lines[part] if covers(standing.cover, self._at)]
            since = beaten_since(verdict.superseded, present, window_us=window_us)
            for entry in verdict.superseded:
                self._note(entry, (Mark.SUPERSEDED, since[id(entry)]))
            for side in verdict.sides:
                marked = _side_mark(side, verdict)
                for entry in side.carriers:
                    self._note(entry, marked)
        for entry in found.withdrawn:
            self._note(entry, (Mark.WITHDRAWN, _left_at(entry)))

    def _note(self, entry: Entry, marked: Marked) -> None:
        # A mention may support several occurrences: one that is in doubt is enough.
        known = self._marks.get(id(entry))
        self._marks[id(entry)] = marked if known is None else worst([known, marked])


def worst(marks: Iterable[Marked]) -> Marked:
    """Return the worst of several marks, with the earliest commit from which any of that kind holds."""
    found = list(marks)
    if not found:
        return Mark.PLAIN, None
    mark = min((mark for mark, _ in found), key=_WORST_FIRST.index)
    commits: Sequence[int | None] = [commit for kind, commit in found if kind == mark]
    if any(commit is None for commit in commits):
        return mark, None
    return mark, min(commit for commit in commits if commit is not None)


def _side_mark(side: Side, verdict: Verdict) -> Marked:
    if verdict.state != State.CONFLICT:
        return Mark.ACTIVE, None
    first = {other.normal: min(entry.claim.commit for entry in other.carriers) for other in verdict.sides}
    rivals = [commit for normal, commit in first.items() if normal != side.normal]
    return Mark.DISPUTED, max(first[side.normal], min(rivals))


def _left_at(entry: Entry) -> int | None:
    """Return the commit by which it, or anything it was derived from, first left; None if nothing did."""
    # A loop and a memory, not recursion: derivations build on one another for as long as a log is.
    commits: list[int] = []
    waiting = [entry]
    seen: set[int] = set()
    while waiting:
        source = waiting.pop()
        if id(source) not in seen:
            seen.add(id(source))
            commits += [claim.commit for claim in source.left_by]
            waiting += source.inputs
    return min(commits, default=None)
