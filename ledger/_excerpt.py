"""
A key of which only some claims were read: its cells decide, and what is listed is sure.

Read are its newest claims, those that act on it, and those that its cells name. Whatever else was
said, each claim listed here would be listed, in the same place, if all had been read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from contracts.claims import OPERATOR, Claim, TargetRef, ValidityKind
from contracts.contexts import Mark
from contracts.errors import IntegrityFault
from contracts.events import Stance
from contracts.relations import Cardinality
from contracts.resolutions import MissingReason
from ledger._cells import stored_part
from ledger._claims import ACTING
from ledger._court import Court, KeyVerdict, reason_of
from ledger._decide import ENDED, Side, Standing, State, Verdict, replaced_by_span, value_of
from ledger._entries import Entry
from ledger._found import Found
from ledger._ground import Ground
from ledger._intervals import covers
from ledger._keys import TenantKeys
from ledger._lines import Cell
from ledger._piece import in_order
from ledger._withdrawal import Replay
from ledger._world import Key, references_of

_STANDS = frozenset({State.VALUE, State.CONFLICT, State.ENDED})


class NotSureError(Exception):
    """What a cell says cannot be told from the claims that were read: read all of the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """
    What was read of a key, under all names of its entity, at an instant (microseconds).

    `found` is of the key as it was asked for, `others` of its other names, `further` claims beside.
    """

    key: Key
    names: frozenset[Key]
    at: int
    found: Found
    others: Sequence[Found]
    further: Sequence[Claim]


class Excerpt:
    """Decides a key from its cells, and lists of its claims what is sure."""

    def __init__(self, read: Read, ground: Ground, keys: TenantKeys) -> None:
        self._read = read
        self._keys = keys
        self._contract = ground.contracts.of(read.key[1])
        every = [read.found, *read.others]
        self._claims = in_order([*read.further, *(claim for found in every for claim in found.claims)])
        self._own_from = max(found.own_from for found in every)
        self._acting_from = max(found.acting_from for found in every)
        self._of_event: dict[str, list[Claim]] = {}
        for claim in self._claims:
            self._of_event.setdefault(claim.event_id, []).append(claim)
        self._acting = [claim for found in every for claim in found.acting_claims]
        self._doubtful = {
            name
            for claim in self._acting
            if self._acting_from and claim.stance in {Stance.CORRECT, Stance.SETTLE}
            for name in references_of(claim)
        }
        self._all_doubtful = self._acting_from > 0 and any(
            claim.stance == Stance.SETTLE and not claim.targets for claim in self._acting
        )
        replay = Replay(ground.contracts, ground.merges.identity)
        replay.extend(self._claims)
        self.court = Court(replay)
        self._window_us = self.court.window_us(read.key[1])

    def verdict(self) -> KeyVerdict:
        """
        Return what the key has at the instant: verdicts by part, of the lines whose cells were read.

        Raises:
            NotSureError: A value, or what acts on the key, cannot be told from what was read.
            IntegrityFault: A cell has a state that no line can have.
        """
        if not self._acting_from and not all(map(self._is_known, self._acting)):
            raise NotSureError
        lines = self._lines()
        verdicts = tuple(
            (part, self._verdict(cell, lines.get(part, [])))
            for part, cell in sorted(self._read.found.cells.items())
        )
        standings = {id(one.entry): one for line in lines.values() for one in line}
        withdrawn = [one.entry for one in standings.values() if covers(one.gone, self._read.at)]
        return KeyVerdict(
            lines=verdicts,
            unheld=frozenset(),
            reason=self._reason(is_known=bool(standings)),
            withdrawn=tuple(entry for entry in withdrawn if self._is_sure(entry)),
            disputes=self._disputes(),
        )

    @property
    def has_all_acting(self) -> bool:
        """Return whether everything that acts on the key was read."""
        return not self._acting_from

    @property
    def unplaced(self) -> list[Claim]:
        """Return what found nothing to act on, of claims that act; none where not all of those were read."""
        if self._acting_from:
            return []
        found = [claim for claim in self.court.replay.unplaced if claim.stance in ACTING]
        # What a source said on a key is named without an event: it may be among what was not read.
        return [claim for claim in found if not (self._own_from and _names_keys(claim))]

    def mark(self, claim: Claim, verdict: KeyVerdict) -> tuple[Mark, int | None]:
        """Return how the ledger stands to a claim on the key; what is not sure to stand is superseded."""
        entry = self.court.replay.entry_of(claim.claim_id)
        if entry is None:
            disputes = {dispute.claim.claim_id for dispute in self.court.replay.disputes}
            if claim.claim_id in disputes:
                return Mark.DISPUTED, None
            return (Mark.ACTIVE if claim.stance in ACTING else Mark.PLAIN), None
        for _, one in verdict.lines:
            for side in one.sides:
                if any(carrier.claim.claim_id == claim.claim_id for carrier in side.carriers):
                    return (Mark.DISPUTED if one.state == State.CONFLICT else Mark.ACTIVE), None
        if not covers(entry.extent, self._read.at):
            return Mark.PLAIN, None
        if covers(entry.withdrawn, self._read.at):
            return Mark.WITHDRAWN, min((by.commit for by in entry.left_by), default=None)
        first = [side.carriers[0].claim.commit for _, one in verdict.lines for side in one.sides]
        return Mark.SUPERSEDED, max(min(first), claim.commit) if first else None

    # --- what is sure -----------------------------------------------------------------------

    def _is_sure(self, entry: Entry) -> bool:
        """Return whether an entry is as it would be if all claims had been read."""
        claim = entry.claim
        if claim.inputs or claim.position.event < self._acting_from:
            return False
        if not self._acting_from:
            return True
        # What a correction or settlement found may itself have been changed by what was not read.
        doubtful = self._all_doubtful or claim.event_id in self._doubtful
        return not doubtful and claim.stance != Stance.CORRECT

    def _is_known(self, claim: Claim) -> bool:
        """
        Return whether what an acting claim does to the key follows from what was read.

        All claims that it names were read, and what they count as is plain: they act on nothing, or
        on this key alone.
        """
        if claim.stance == Stance.SETTLE and not claim.targets and claim.source.actor_class != OPERATOR:
            # Whether it may settle is a matter of each claim that it settles against.
            return False
        if self._own_from and claim.stance != Stance.RETRACT and _names_keys(claim):
            return False
        named = [one for name in references_of(claim) for one in self._of_event.get(name, ())]
        if any(one.inputs or (one.stance in ACTING and not self._is_on(one)) for one in named):
            return False
        if claim.stance != Stance.CORRECT or not self._is_on(claim) or all(map(self._is_on, named)):
            return True
        # One that names nothing on its own key would bring something of another key here.
        return any(
            self._is_on(one)
            for reference in claim.targets
            if reference.event_id is not None and not _is_picky(reference)
            for one in self._of_event.get(reference.event_id, ())
        )

    def _is_on(self, claim: Claim) -> bool:
        return (claim.entity, claim.relation) in self._read.names

    def _lines(self) -> dict[str, list[Standing]]:
        """Return the key's lines by stored part, as far as they were read."""
        if self._contract.cardinality == Cardinality.OCCURRENCE:
            # Which mention tells of which occurrence is a matter of all of them.
            return {}
        lines = self.court.lines(*self._read.key)
        return {stored_part(part, self._keys): line for part, line in lines.items()}

    # --- one line ---------------------------------------------------------------------------

    def _verdict(self, cell: Cell, line: Sequence[Standing]) -> Verdict:
        state = _state(cell.segment.state)
        if state not in _STANDS:
            return Verdict(state=state, sides=(), superseded=())
        named = [self._named(name, index, state) for index, name in enumerate(cell.segment.claims)]
        sure = [one.entry for one in line if covers(one.cover, self._read.at) and self._is_sure(one.entry)]
        if state != State.CONFLICT and any(self._is_contradicted(entry, sure) for _, entry in named):
            raise NotSureError
        carriers: dict[str, list[Entry]] = {value: [entry] for value, entry in named}
        superseded = []
        clean = all(self._is_sure(one.entry) for one in line if _is_recent(one.entry, self._own_from))
        for entry in sure:
            if any(entry is own for _, own in named):
                continue
            first = next((own for value, own in named if value == value_of(entry)), None)
            if first is None:
                # An end of a value may be no rival of the one that stands.
                if not entry.is_end or entry.normal is None:
                    superseded.append(entry)
            elif (carries := self._carries(entry, first, sure, clean=clean)) is not None:
                (carriers[value_of(entry)] if carries else superseded).append(entry)
        sides = tuple(
            Side(normal=value, carriers=tuple(sorted(own, key=_place)), standing=tuple(own))
            for value, own in carriers.items()
        )
        return Verdict(state=state, sides=sides, superseded=tuple(sorted(superseded, key=_place)))

    def _named(self, claim_id: str, index: int, state: State) -> tuple[str, Entry]:
        """Return the value that a cell names a claim for, and the claim's entry."""
        entry = self.court.replay.entry_of(claim_id)
        if entry is None:
            raise NotSureError
        claim = entry.claim
        restates = claim.stance != Stance.CORRECT or not self._acting_from
        if state == State.ENDED or (state == State.CONFLICT and index == 0 and claim.stance == Stance.END):
            return ENDED, entry
        # A correction that was not followed may be one of an end, or have its value from elsewhere.
        if not restates and (claim.value is None or (state == State.CONFLICT and index == 0)):
            raise NotSureError
        return value_of(entry), entry

    def _is_contradicted(self, first: Entry, sure: Sequence[Entry]) -> bool:
        """
        Return whether what a cell names would have left to a later state of another value.

        It stands all the same where a higher rank says its value, which may not have been read; else the
        cell is one of before, that was put back.
        """
        if self._acting or not self._is_sure(first):
            return False
        if any(other.rank < first.rank for other in sure):
            return False
        return any(
            other.rank == first.rank
            and other.order > first.order
            and value_of(other) != value_of(first)
            and self._are_alike(other, first)
            and not (other.is_end and other.normal is not None)
            for other in sure
        )

    def _carries(self, entry: Entry, first: Entry, sure: Sequence[Entry], *, clean: bool) -> bool | None:
        """
        Return whether an entry carries the value of one that does, or was superseded; None if unsure.

        `first` is what the cell names: the first state that carries it, or the latest interval.
        Whatever replaces the entry by its place stands behind it, so it was read if the entry is
        among the newest. What follows a state follows the first too, if both have one source or rule;
        and one that begins and was said after the first was replaced by nothing else than the first.
        """
        if entry.rank != first.rank or not self._is_sure(first):
            return None
        if self._are_alike(entry, first) and entry.order > first.order and entry.place > first.place:
            return True
        if not clean or not _is_recent(entry, self._own_from) or entry.place != _own_place(entry):
            return None
        over = [other for other in sure if other.rank == entry.rank and replaced_by_span(entry, other)]
        if over:
            return all(value_of(other) == value_of(entry) for other in over)
        return True if self._are_alike(entry, first) and entry.order > first.order else None

    def _are_alike(self, one: Entry, other: Entry) -> bool:
        """Return whether two states are comparable with the same others."""
        if one.kind != ValidityKind.SINCE or other.kind != ValidityKind.SINCE:
            return False
        if one.actor_id == other.actor_id and one.replaces_any == other.replaces_any:
            return True
        return one.replaces_any and other.replaces_any and not self._window_us

    # --- the key ----------------------------------------------------------------------------

    def _reason(self, *, is_known: bool) -> MissingReason | None:
        states = {_state(name) for name in self._read.found.counts}
        if not states and not is_known:
            raise NotSureError
        return reason_of(states or {State.ABSENT})

    def _disputes(self) -> tuple[Claim, ...]:
        """Return the disputes that are open, as far as it can be told: rather more of them than fewer."""
        found = [
            dispute.claim
            for dispute in self.court.replay.disputes
            if dispute.claim.targets and any(self._is_open(entry) for entry in dispute.about)
        ]
        if any(_state(name) in _STANDS for name in self._read.found.counts):
            # Who disputes a key without saying which claim disputes whatever stands, read or not.
            found += [claim for claim in self._acting if self._is_of_all(claim)]
        return tuple(in_order(found))

    def _is_of_all(self, claim: Claim) -> bool:
        if claim.stance != Stance.DISPUTE or claim.targets or not self._is_on(claim):
            return False
        return not any(
            other.stance == Stance.RETRACT
            and other.source.actor_id == claim.source.actor_id
            and claim.event_id in references_of(other)
            for other in self._acting
        )

    def _is_open(self, entry: Entry) -> bool:
        key = (self.court.replay.identity.entity(entry.entity), entry.relation)
        own = (self.court.replay.identity.entity(self._read.key[0]), self._read.key[1])
        return key == own and covers(self.court.standing(entry).cover, self._read.at)


def _state(name: str) -> State:
    try:
        state = State(name)
    except ValueError as error:
        raise IntegrityFault(what="a cell has a state that no line can have") from error
    return state


def _names_keys(claim: Claim) -> bool:
    """Return whether a claim names what its own source said on a key, and no event."""
    return any(reference.event_id is None for reference in claim.targets)


def _is_picky(reference: TargetRef) -> bool:
    """Return whether a reference to an event means some of its claims alone."""
    picks = (reference.ordinal, reference.entity, reference.relation, reference.value, reference.span)
    return any(pick is not None for pick in picks)


def _is_recent(entry: Entry, own_from: int) -> bool:
    return entry.claim.position.event >= own_from


def _own_place(entry: Entry) -> tuple[int, int]:
    return entry.claim.position.event, entry.claim.position.ordinal


def _place(entry: Entry) -> tuple[int, int]:
    return entry.place


def events_named(found: Iterable[Found]) -> list[str]:
    """Return the events whose claims have to be read too: those that claims which act on others name."""
    claims = in_order(claim for one in found for claim in one.claims)
    return sorted({name for claim in claims if claim.stance in ACTING for name in references_of(claim)})
