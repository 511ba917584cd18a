"""
What leaves, and what takes its place: the claims of some keys, replayed in the order of the log.

A replay sees the claims up to one cut, under the identity of entities at that cut. Of a key it
must be given every claim on it, every claim that acts on it, and every claim those name; more does
no harm. Source: SEMANTICS, "Withdrawal" and "Fine print".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from contracts.claims import DERIVED, OPERATOR, SELF, Claim, Source, Validity, ValidityKind
from contracts.events import Stance
from contracts.identity import IDENTITY
from ledger._claims import NO_KEY, UNSTATED
from ledger._entries import (
    Dispute,
    Entry,
    Identity,
    class_of,
    erasure_of,
    extent_of,
    loses_to,
    rank_and_rule,
    withdrawn_throughout,
)
from ledger._intervals import (
    ALWAYS,
    EMPTY,
    FOREVER,
    NEVER,
    Intervals,
    difference,
    interval,
    lower,
    union,
    upper,
)
from ledger._mentions import Mentions
from ledger._register import Register, key_and_value, place_of
from ledger._relations import Contracts
from ledger._tombstones import Tombstone, own_spot
from ledger._validity import default_validity


class Replay:
    """
    Claims replayed in the order of their positions.

    `entries_of(entity, relation)` are all that ever counted on a key, in the order they came;
    `disputes` those still upheld by their source; `unplaced` claims that found no target.
    `wrong` are those of them, by id, that say no value of their relation's type. `has_erased` says that
    it saw tombstones: they play their part and are never among the unplaced.
    """

    def __init__(self, contracts: Contracts, identity: Identity) -> None:
        self.contracts = contracts
        self.identity = identity
        self.disputes: list[Dispute] = []
        self.unplaced: list[Claim] = []
        self.wrong: set[str] = set()
        self.has_erased = False
        self._said = Register(contracts, identity)
        self._moved: dict[int, Entry] = {}
        self._selves: dict[str, frozenset[str]] = {}
        self._mentions = Mentions(contracts, identity)

    def extend(self, claims: Iterable[Claim]) -> None:
        """Replay further claims, in the order of their positions."""
        for claim in claims:
            self._apply(claim)
            self._said.note(claim)

    def take_moved(self) -> list[Entry]:
        """Return the entries that came or left, be it in part, since this was last asked."""
        moved, self._moved = list(self._moved.values()), {}
        return moved

    def entries_of(self, entity: str, relation: str) -> Sequence[Entry]:
        """Return what ever counted on the key of this entity, or of those it is one with."""
        return self._said.entries_of(entity, relation)

    def entries_on(self, relation: str) -> dict[str, Sequence[Entry]]:
        """Return what ever counted on a relation, by entity."""
        return self._said.entries_on(relation)

    def entry_of(self, claim_id: str) -> Entry | None:
        """Return the entry that a claim made, whatever became of it."""
        return self._said.entry_of(claim_id)

    def is_named(self, entity: str, relation: str) -> bool:
        """Return whether anything that is left names the key, or one that it is one with."""
        return self._said.is_named(entity, relation)

    @property
    def register(self) -> Register:
        """Return what was said so far."""
        return self._said

    def _apply(self, claim: Claim) -> None:
        if isinstance(claim, Tombstone):
            self.has_erased = True
            if claim.selves:
                self._selves[claim.entity] = frozenset(claim.selves)
        if not self._said.takes(claim, claim.relation, claim.value):
            self._note_unplaced(claim, is_wrong=True)
            return
        match claim.stance:
            case Stance.ASSERT | Stance.END:
                self._enter(claim)
            case Stance.CORRECT:
                self._correct(claim)
            case Stance.RETRACT:
                self._retract(claim)
            case Stance.SETTLE:
                self._settle(claim)
            case Stance.DISPUTE:
                self._dispute(claim)

    # --- what enters ------------------------------------------------------------------------

    def _enter(self, claim: Claim) -> None:
        inputs: list[Entry] = []
        for reference in claim.inputs:
            found = self._said.entries_made(self._said.claims_named(reference, claim))
            made = [entry for entry in found if entry.erased_in is None or claim.commit < entry.erased_in]
            if not made:
                # An input that this epoch does not have, or has not projected either, or that was
                # erased before: nothing would ever withdraw what is derived from it.
                self._note_unplaced(claim)
                return
            inputs += made
        entity, relation, value = key_and_value(claim)
        entry = self._make(
            claim,
            entity=entity,
            relation=relation,
            # Whoever derives speaks as `derived`, whatever class was granted.
            source=Source(actor_id=claim.source.actor_id, actor_class=DERIVED)
            if claim.inputs
            else claim.source,
            place=place_of(claim),
            value=value,
            validity=self._own_validity(claim, relation),
            is_end=claim.stance == Stance.END,
            inherits_from=None,
        )
        entry.inputs = tuple(inputs)
        self._mentions.note(entry, leave=self._leave)

    def _own_validity(self, claim: Claim, relation: str) -> Validity:
        if claim.validity != UNSTATED:
            return claim.validity
        return default_validity(
            self.contracts.of(relation).validity,
            observed_at=claim.observed_at,
            recorded_at=claim.recorded_at,
        )

    def _make(
        self,
        claim: Claim,
        *,
        entity: str,
        relation: str,
        source: Source,
        place: tuple[int, int],
        value: object,
        validity: Validity | Entry,
        is_end: bool,
        inherits_from: Entry | None,
    ) -> Entry:
        source_class, rank, any_rule = self._ranked(source, entity, relation)
        normal = None if value is None else self._said.normal(value, self.contracts.of(relation))
        if relation in IDENTITY:
            # Who is one with whom holds for all valid time; only known time moves it.
            kind, start, end, earliest = ValidityKind.SPAN, NEVER, FOREVER, NEVER
        elif isinstance(validity, Entry):
            kind, start, end, earliest = validity.kind, validity.start, validity.end, validity.earliest
        else:
            kind = validity.kind
            start, end, earliest = extent_of(validity)
        entry = Entry(
            claim=claim,
            entity=entity,
            relation=relation,
            actor_id=source.actor_id,
            stated_class=source.actor_class,
            source_class=source_class,
            rank=rank,
            replaces_any=any_rule,
            place=place,
            is_end=is_end,
            value=value,
            normal=normal,
            lineage=frozenset() if normal is None else frozenset({normal}),
            kind=kind,
            start=start,
            end=end,
            earliest=earliest,
            occurrence=None if claim.occurrence_id is None else (source.actor_id, claim.occurrence_id),
            withdrawn=EMPTY,
            inherits_from=inherits_from,
            erased_in=erasure_of(claim, inherits_from),
        )
        self._said.add(entry)
        self._moved[id(entry)] = entry
        return entry

    def _leave(self, entry: Entry, where: Intervals, by: Claim) -> None:
        entry.withdraw(where, by=by)
        self._moved[id(entry)] = entry

    def _may(self, claim: Claim, entry: Entry) -> bool:
        """Only the same source, a higher class or an operator may withdraw."""
        if claim.source.actor_id == entry.actor_id or claim.source.actor_class == OPERATOR:
            return True
        return self._ranked(claim.source, entry.entity, entry.relation)[1] < entry.rank

    def _ranked(self, source: Source, entity: str, relation: str) -> tuple[str, int, bool]:
        contract, source_class = self.contracts.of(relation), self._class_of(source, entity, relation)
        return source_class, *rank_and_rule(contract, actor_id=source.actor_id, source_class=source_class)

    def _class_of(self, source: Source, entity: str, relation: str) -> str:
        found = class_of(source, entity=entity, relation=relation, identity=self.identity)
        # Who an erased subject was is not known any more; that it spoke for itself is.
        is_self = found != DERIVED and relation not in IDENTITY
        return SELF if is_self and source.actor_id in self._selves.get(entity, ()) else found

    # --- what leaves ------------------------------------------------------------------------

    def _retract(self, claim: Claim) -> None:
        # A coarse start is taken at its first instant: less may stand, nothing stale does.
        stated = interval(lower(claim.validity.earliest), upper(claim.validity.end))
        if not claim.targets:
            entity, relation, value = key_and_value(claim)
            for entry in self._said.own(claim, entity=entity, relation=relation, value=value):
                self._leave(entry, stated, claim)
            return
        if self._said.misses(claim.targets, claim, beside=self._disputes_of(claim)):
            self._note_unplaced(claim)
        refused = []
        for entry, where in self._said.targets(claim.targets, claim):
            if self._may(claim, entry):
                self._leave(entry, where if where != ALWAYS else stated, claim)
            else:
                refused.append(entry)
        self._keep_as_dispute(claim, refused)
        self._withdraw_disputes(claim)

    def _withdraw_disputes(self, claim: Claim) -> None:
        """A dispute that its own source takes back is no longer open."""
        found = (one for each in claim.targets for one in self._said.claims_named(each, claim))
        named = {one.claim_id for one in found} & self._disputes_of(claim)
        self.disputes = [dispute for dispute in self.disputes if dispute.claim.claim_id not in named]

    def _disputes_of(self, claim: Claim) -> set[str]:
        """Return the ids of the disputes that a claim's own source may take back."""
        own = claim.source.actor_id
        return {one.claim.claim_id for one in self.disputes if one.claim.source.actor_id == own}

    def _settle(self, claim: Claim) -> None:
        winners = [entry for entry, _ in self._said.targets([claim.winner] if claim.winner else [], claim)]
        if claim.relation != NO_KEY:
            key = self._said.key(*key_and_value(claim)[:2])
            winners = [entry for entry in winners if self._said.key_of(entry) == key]
        won = list(dict.fromkeys(map(self._said.key_of, winners)))
        on_key = {key: [entry for entry in winners if self._said.key_of(entry) == key] for key in won}
        losers = {key: self._losers(claim, on_key[key], key) for key in won}
        if not won or (claim.targets and not any(losers.values())) or self._said.misses(claim.targets, claim):
            self._note_unplaced(claim)
        refused: list[Entry] = []
        for key in won:
            where = union(*(difference(entry.extent, entry.withdrawn) for entry in on_key[key]))
            for entry in losers[key]:
                if self._may(claim, entry):
                    self._leave(entry, where, claim)
                else:
                    refused.append(entry)
        self._keep_as_dispute(claim, refused)

    def _losers(self, claim: Claim, winners: list[Entry], key: tuple[str, str]) -> list[Entry]:
        """Return the losers named; where none is, whatever else the winner's line was said to have."""
        if claim.targets:
            named = [entry for entry, _ in self._said.targets(claim.targets, claim)]
        else:
            cardinality = self.contracts.of(key[1]).cardinality
            named = [
                entry
                for entry in self._said.entries_of(*key)
                if entry.heir is None and loses_to(entry, winners, cardinality)
            ]
        return [entry for entry in named if entry not in winners and self._said.key_of(entry) == key]

    def _dispute(self, claim: Claim) -> None:
        if claim.targets:
            if self._said.misses(claim.targets, claim):
                self._note_unplaced(claim)
            about = [entry for entry, _ in self._said.targets(claim.targets, claim)]
        else:
            entity, relation, value = key_and_value(claim)
            normal = None if value is None else self._said.normal(value, self.contracts.of(relation))
            about = [
                entry
                for entry in self._said.entries_of(entity, relation)
                if entry.heir is None and self._said.is_said(entry.normal, normal, own_spot(claim))
            ]
        self._keep_as_dispute(claim, about)

    def _keep_as_dispute(self, claim: Claim, about: list[Entry]) -> None:
        if about:
            self.disputes.append(Dispute(claim=claim, about=tuple(about)))

    def _correct(self, claim: Claim) -> None:
        reached, placed = self._reached(claim)
        if not placed or self._said.misses(claim.targets, claim):
            self._note_unplaced(claim)
        if not reached:
            if claim.relation != NO_KEY and claim.value is not None:
                self._enter(claim)
            return
        standing = [entry for entry in reached if not withdrawn_throughout(entry)]
        allowed = [entry for entry in standing if self._may(claim, entry)]
        aimed_at = max(allowed or standing or reached, key=lambda entry: entry.place)
        _, relation, value, _ = self._said.restated(claim, aimed_at)
        if not self._said.takes(claim, relation, value, aimed_at):
            self._note_unplaced(claim, is_wrong=True)
            return
        self._keep_as_dispute(claim, [entry for entry in standing if entry not in allowed])
        if allowed:
            self._replace(claim, allowed)
        elif claim.value is not None:
            self._assert_instead(claim, aimed_at)

    def _reached(self, claim: Claim) -> tuple[list[Entry], bool]:
        """Return the entries that a correction reaches, and whether its targets let it reach any."""
        found = [entry for entry, _ in self._said.targets(claim.targets, claim)]
        if not found:
            return [], not claim.targets
        if claim.relation == NO_KEY:
            one_key = len({self._said.key_of(entry) for entry in found}) == 1
            return (found, True) if one_key else ([], False)
        key = self._said.key(*key_and_value(claim)[:2])
        own = [entry for entry in found if self._said.key_of(entry) == key]
        if own:
            return own, True
        # None is on its own key: then the key itself was wrong, if there is just one it can mean.
        return (found, True) if len(found) == 1 else ([], False)

    def _replace(self, claim: Claim, targets: list[Entry]) -> None:
        """The targets leave; the correction takes the latest's place and what it does not restate."""
        old = max(targets, key=lambda entry: entry.place)
        entity, relation, value, inherits = self._said.restated(claim, old)
        source = Source(actor_id=old.actor_id, actor_class=old.stated_class)
        own, lent = (self._ranked(one, entity, relation)[1] for one in (claim.source, source))
        inherits_validity = claim.validity == UNSTATED
        entry = self._make(
            claim,
            entity=entity,
            relation=relation,
            source=claim.source if own < lent or old.is_derived else source,
            place=old.place,
            value=value,
            validity=old if inherits_validity else claim.validity,
            is_end=old.is_end,
            inherits_from=old if inherits else None,
        )
        if claim.occurrence_id is None:
            entry.occurrence = old.occurrence
        if inherits_validity:
            entry.withdrawn = old.withdrawn
        for target in targets:
            entry.lineage |= target.lineage
            self._leave(target, ALWAYS, claim)
            target.heir = entry
        self._mentions.note(entry, leave=self._leave)

    def _assert_instead(self, claim: Claim, old: Entry) -> None:
        """A correction that may not, or of what is gone, speaks for itself: it may inherit validity."""
        entity, relation, value, inherits = self._said.restated(claim, old)
        entry = self._make(
            claim,
            entity=entity,
            relation=relation,
            source=claim.source,
            place=place_of(claim),
            value=value,
            validity=old if claim.validity == UNSTATED else claim.validity,
            is_end=old.is_end,
            inherits_from=old if inherits else None,
        )
        self._mentions.note(entry, leave=self._leave)

    def _note_unplaced(self, claim: Claim, *, is_wrong: bool = False) -> None:
        if is_wrong:
            self.wrong.add(claim.claim_id)
        if not isinstance(claim, Tombstone):
            self.unplaced.append(claim)
