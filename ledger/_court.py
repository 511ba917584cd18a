"""
The ledger's one place of decision: from replayed claims to the answer of a key.

Pure: claims, contracts and the identity of entities in, verdicts out. The fold makes cells with
it, and the resolver reads them back; both are held against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from contracts.claims import Claim
from contracts.resolutions import MissingReason
from ledger._decide import Standing, State, Verdict, verdict_at
from ledger._derived import borne
from ledger._entries import Entry, Identity, input_withdrawn
from ledger._identity import identity_of
from ledger._intervals import (
    ALWAYS,
    EMPTY,
    Intervals,
    covers,
    difference,
    intersection,
    interval,
)
from ledger._live import timeline
from ledger._occurrences import WHOLE, parts_of
from ledger._relations import Contracts
from ledger._timeline import Segment, carried_by, verdicts
from ledger._tombstones import Tombstone
from ledger._withdrawal import Replay

_REASON = {
    State.ENDED: MissingReason.ENDED,
    State.ERASED: MissingReason.ERASED,
    State.WITHDRAWN: MissingReason.WITHDRAWN,
    State.UNDETERMINED: MissingReason.UNDETERMINED,
    State.ABSENT: MissingReason.NOT_VALID_THEN,
}

_ORDER = tuple(MissingReason)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeyVerdict:
    """
    What a key has at an instant: a verdict for each of its lines, by part.

    `reason` says why nothing stands, None where something does or is in conflict. `withdrawn` are
    entries that would cover the instant; `disputes` claims open there. `unheld` are the parts of
    lines that no cells are kept of.
    """

    lines: tuple[tuple[str, Verdict], ...]
    unheld: frozenset[str]
    reason: MissingReason | None
    withdrawn: tuple[Entry, ...]
    disputes: tuple[Claim, ...]


class Court:
    """
    Decides keys over one replay. Derived claims are judged by the answers of their inputs' keys.

    A court remembers what it worked out: make a new one when the replay has moved.
    """

    def __init__(self, replay: Replay) -> None:
        self.replay = replay
        self.contracts = replay.contracts
        self._cover: dict[int, Intervals] = {}
        self._carried: dict[int, Intervals] = {}
        self._lines: dict[tuple[str, str, bool], dict[str, list[Standing]]] = {}

    def lines(self, entity: str, relation: str, *, observed_only: bool = False) -> dict[str, list[Standing]]:
        """Return the key's lines by part."""
        name = (entity, relation, observed_only)
        if name not in self._lines:
            entries: Sequence[Entry] = self.replay.entries_of(entity, relation)
            if observed_only:
                entries = [entry for entry in entries if not entry.is_derived]
            cardinality = self.contracts.of(relation).cardinality
            self._lines[name] = parts_of(entries, cardinality, self.standing)
        return self._lines[name]

    def timelines(self, entity: str, relation: str) -> dict[str, list[Segment]]:
        """Return the segments of each of the key's lines that cells are kept of, where it has any."""
        window_us = self.window_us(relation)
        unheld = self.unheld(entity, relation)
        found = {
            part: timeline(line, window_us=window_us)
            for part, line in self.lines(entity, relation).items()
            if part not in unheld
        }
        return {part: segments for part, segments in found.items() if segments}

    def unheld(self, entity: str, relation: str) -> frozenset[str]:
        """
        Return the parts of the key's lines that no cells are kept of: nothing that is left is on them.

        A key that nothing names any more has none at all, for its name would stand in them.
        """
        if not self.replay.has_erased:
            return frozenset()
        lines = self.lines(entity, relation)
        if not self.replay.is_named(entity, relation):
            return frozenset(lines)
        return frozenset(
            part
            for part, line in lines.items()
            if all(standing.entry.erased_in is not None for standing in line)
        )

    def within(self, entity: str, relation: str, start: int, end: int) -> dict[str, Verdict]:
        """
        Return, for each line that has a value or a conflict anywhere in `[start, end)`, what it has there.

        Where it has several in turn, the last: an occurrence is told once, however often it was moved.
        """
        found: dict[str, Verdict] = {}
        for part, line in self.lines(entity, relation).items():
            for _, _, verdict in verdicts(line, window_us=self.window_us(relation), start=start, end=end):
                if verdict.state in {State.VALUE, State.CONFLICT}:
                    found[part] = verdict
        return found

    def decide(self, entity: str, relation: str, at: int) -> KeyVerdict:
        """Return what the key has at an instant (microseconds)."""
        window_us = self.window_us(relation)
        lines = self.lines(entity, relation)
        verdicts = tuple(
            (part, verdict_at(line, at, window_us=window_us)) for part, line in sorted(lines.items())
        )
        # A mention told vaguely is on several lines, and covers elsewhere on each.
        standings = [standing for line in lines.values() for standing in line]
        withdrawn = {
            id(standing.entry): standing.entry
            for standing in standings
            if covers(standing.gone, at) and standing.entry.erased_in is None
        }
        return KeyVerdict(
            lines=verdicts,
            unheld=self.unheld(entity, relation),
            reason=self._reason(verdicts, known=bool(lines)),
            withdrawn=tuple(sorted(withdrawn.values(), key=_said)),
            disputes=self._disputes(standings, at),
        )

    def standing(self, entry: Entry) -> Standing:
        """Return where an entry covers, where it was withdrawn, and where it might cover."""
        if input_withdrawn(entry):
            return Standing(entry=entry, cover=EMPTY, gone=entry.extent, doubt=EMPTY)
        if not entry.withdrawn and not entry.inputs:
            doubt = interval(entry.earliest, entry.start)
            return Standing(entry=entry, cover=entry.extent, gone=EMPTY, doubt=doubt)
        cover = difference(entry.extent, entry.withdrawn)
        if entry.inputs:
            cover = intersection(cover, self._borne(entry))
        doubt = EMPTY
        if entry.earliest < entry.start:
            doubt = difference(interval(entry.earliest, entry.start), entry.withdrawn)
        return Standing(
            entry=entry, cover=cover, gone=intersection(entry.extent, entry.withdrawn), doubt=doubt
        )

    def _reason(self, verdicts: tuple[tuple[str, Verdict], ...], *, known: bool) -> MissingReason | None:
        return reason_of({verdict.state for _, verdict in verdicts}) if known else MissingReason.NEVER_KNOWN

    def _disputes(self, standings: Sequence[Standing], at: int) -> tuple[Claim, ...]:
        """A dispute is open while an entry it is about stands: covers the instant, not withdrawn."""
        standing_here = {id(standing.entry) for standing in standings if covers(standing.cover, at)}
        return tuple(
            dispute.claim
            for dispute in self.replay.disputes
            if not isinstance(dispute.claim, Tombstone)
            and any(id(entry) in standing_here and entry.erased_in is None for entry in dispute.about)
        )

    def window_us(self, relation: str) -> int:
        """Return the conflict window of a relation."""
        return self.contracts.of(relation).conflict_window // timedelta(microseconds=1)

    def _borne(self, entry: Entry) -> Intervals:
        # Oldest first, so that each finds its own inputs worked out and no chain is too deep.
        for source in self._unknown_inputs(entry):
            self._covers(source)
        return borne(
            entry,
            carried=self._carries,
            cover=self._covers,
            cardinality_of=lambda relation: self.contracts.of(relation).cardinality,
        )

    def _unknown_inputs(self, entry: Entry) -> list[Entry]:
        found: dict[int, Entry] = {}
        waiting = list(entry.inputs)
        while waiting:
            source = waiting.pop()
            if source.is_derived and id(source) not in self._cover and id(source) not in found:
                found[id(source)] = source
                waiting += source.inputs
        return sorted(found.values(), key=_said)

    def _covers(self, entry: Entry) -> Intervals:
        if id(entry) not in self._cover:
            self._cover[id(entry)] = self.standing(entry).cover
        return self._cover[id(entry)]

    def _carries(self, entry: Entry) -> Intervals:
        if id(entry) not in self._carried:
            lines = self.lines(entry.entity, entry.relation, observed_only=True)
            window_us = self.window_us(entry.relation)
            # What ends every value is on every line, and has ended nothing where one of them stands.
            on = [line for line in lines.values() if any(one.entry is entry for one in line)]
            where: Intervals = ALWAYS if on else EMPTY
            for line in on:
                where = intersection(where, carried_by(entry, line, window_us=window_us))
            self._carried[id(entry)] = where
        return self._carried[id(entry)]


def court_of(claims: Iterable[Claim], contracts: Contracts) -> Court:
    """
    Return a court over all claims up to a cut, in the order of their positions.

    Who is one with whom is read from the same claims.
    """
    claims = list(claims)
    replay = Replay(contracts, identity_of(claims, contracts).identity)
    replay.extend(claims)
    return Court(replay)


def reason_of(states: Iterable[State]) -> MissingReason | None:
    """Return why nothing stands on a key whose lines have these states; None where something does."""
    reasons = {_REASON.get(state) for state in states}
    if None in reasons:
        return None
    return min((reason for reason in reasons if reason is not None), key=_ORDER.index)


def _said(entry: Entry) -> tuple[int, int]:
    return entry.claim.position.event, entry.claim.position.ordinal


__all__ = ["WHOLE", "Court", "Identity", "KeyVerdict", "court_of", "reason_of"]
