"""
By which claim that is left the value of one that goes is known.

A value is shared on one key. What a correction took to another key is known there by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Final, TypeAlias

from contracts.claims import Claim
from contracts.events import Stance
from ledger._claims import NO_KEY
from ledger._entries import Entry
from ledger._register import Register, key_and_value
from ledger._tombstones import Erased, Spot, own_spot, references_in, values_in
from ledger._withdrawal import Replay

_COUNTING: Final = frozenset({Stance.ASSERT, Stance.END, Stance.CORRECT})
_Form: TypeAlias = tuple[str, str, str]
"""Entity, relation and a value's normal form."""


class Likes:
    """
    Finds which claim has a value too: first of all of what is left, else of what goes.

    Those of earlier erasures know their values by one of these. Who only names a value, to act on
    it, does not have it: nothing said later has it from there.

    Args:
        replay: Over all that the claims are connected with.
        claims: Those that are not erased yet.
        erased_ids: The events that go.
        fallen: Ids of the claims that go, or that have their value from such a one.
    """

    def __init__(
        self,
        replay: Replay,
        claims: Sequence[Claim],
        *,
        erased_ids: frozenset[str],
        fallen: Collection[str],
    ) -> None:
        self._replay = replay
        self._first: dict[_Form, Spot] = {}
        self._forms: dict[Spot, set[_Form]] = defaultdict(set)
        self._named: dict[_Form, list[Spot]] = defaultdict(list)
        self._moved: dict[Spot, Entry] = {}
        erased = {claim.position.event for claim in claims if claim.event_id in erased_ids}
        found = [
            (claim.event_id in erased_ids or claim.claim_id in fallen, *said)
            for claim in claims
            for said in self._said(claim)
        ]
        for _, spot, form, has_it in sorted(found):
            self._forms[spot].add(form)
            if has_it:
                self._first.setdefault(form, spot)
            elif spot[0] not in erased:
                self._named[form].append(spot)

    def erased(self, spot: Spot) -> Erased:
        """Return a value as erased."""
        forms = self._forms.get(spot, set()) & self._first.keys()
        found = {self._first[form] for form in forms} - {spot}
        return Erased(spot=spot, like=self._line(min(found)) if found else ())

    def said_at(self, spot: Spot) -> tuple[Spot, ...]:
        """Return where else a value is only named, if no other claim has it by which it is known."""
        if spot not in self._forms or self.erased(spot).like:
            return ()
        return tuple(sorted({where for form in self._forms[spot] for where in self._named[form]}))

    def _line(self, spot: Spot) -> tuple[Spot, ...]:
        """Return where a value stands and, if it was taken there from another key, by way of which."""
        entry = self._moved.get(spot)
        line = [spot]
        while entry is not None and entry.inherits_from is not None:
            entry = entry.inherits_from
            line.append(own_spot(entry.claim))
        return tuple(line)

    def _said(self, claim: Claim) -> Iterable[tuple[Spot, _Form, bool]]:
        register = self._replay.register
        entry = self._replay.entry_of(claim.claim_id)
        if entry is not None and entry.erased_in is None and is_moved(entry, register):
            self._moved[own_spot(claim)] = entry
            yield own_spot(claim), (*register.key_of(entry), entry.normal or ""), True
        for spot, value in values_in(claim).items():
            if spot[2] == 0:
                if entry is None and claim.stance in _COUNTING:
                    # It was not projected: nobody is told its value.
                    continue
                keys = {key_and_value(claim)[:2] if entry is None else (entry.entity, entry.relation)}
            else:
                reference = references_in(claim)[spot[2] - 1]
                keys = register.keys_of_event(reference, claim)
                if reference.entity is not None and reference.relation is not None:
                    keys = {(reference.entity, reference.relation)}
            for entity, relation in keys:
                if relation != NO_KEY:
                    normal = register.normal(value, self._replay.contracts.of(relation))
                    form = (self._replay.identity.entity(entity), relation, normal)
                    yield spot, form, spot[2] == 0 and entry is not None


def is_moved(entry: Entry, register: Register) -> bool:
    """Return whether an entry took its value from another key."""
    old = entry.inherits_from
    return old is not None and old.value is not None and register.key_of(old) != register.key_of(entry)
