"""
What erasures leave, for the oracle (SEMANTICS §9): it goes on knowing everything, and strikes at the end.

"As if nothing were erased" is taken at its word: erased claims stay where they were, with a value
that only what was said before the erasure shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from contracts.claims import Claim
from tests.ledger.oracle_ranks import PAIR, Item


@dataclass(frozen=True)
class Erasure:
    """An erasure of events, or of a subject, in a commit of its own."""

    commit: int
    events: frozenset[str] = frozenset()
    subject: str | None = None


class Shared:
    """Which claims are erased, since when, and by which others their values are known."""

    def __init__(
        self,
        erased: Mapping[str, int],
        *,
        subjects: Iterable[tuple[int, frozenset[str]]] = (),
        items: Iterable[Item] = (),
        is_one_key: Any = None,
    ) -> None:
        self.erased = erased
        self.subjects = dict(subjects)
        self._is_one_key = is_one_key
        self._group: dict[str, list[Item]] = {}
        known = [item for item in items if item.raw is not None and item.alone is None]
        for one in known:
            group = self._group.setdefault(one.claim.claim_id, [one])
            for other in known:
                if other is one or other.raw != one.raw or other.relation != one.relation:
                    continue
                if not is_one_key(other, one.entity, one.relation):
                    continue
                if self._is_after(one, other) or self._is_after(other, one):
                    continue
                joined = self._group.setdefault(other.claim.claim_id, [other])
                if joined is not group:
                    group += joined
                    for member in joined:
                        self._group[member.claim.claim_id] = group

    def _is_after(self, one: Item, other: Item) -> bool:
        # A value that is not restated was said where it is taken from; on its key, and on no other.
        while one.said_by is not None and self._is_one_key(one.said_by, one.entity, one.relation):
            one = one.said_by
        return other.erased is not None and one.claim.commit >= other.erased

    def erased_in(self, claim: Claim, said_by: Item | None) -> int | None:
        """The commit that erased a claim, or the one that it has its value from."""
        found = [self.erased.get(claim.event_id), None if said_by is None else said_by.erased]
        return min((commit for commit in found if commit is not None), default=None)

    def value(self, item: Item) -> Any:
        """The value by which an item is told from others: a token where nothing left says it."""
        if item.erased is None:
            return item.raw
        if item.alone is not None:
            return ("erased", item.alone.claim.claim_id)
        group = self._group.get(item.claim.claim_id, [item])
        if any(other.erased is None for other in group):
            return item.raw
        return ("erased", min(other.claim.claim_id for other in group))

    def groups(self) -> set[frozenset[str]]:
        """The claims that share a value, by id."""
        return {frozenset(item.claim.claim_id for item in group) for group in self._group.values()}

    def is_before(self, item: Item, claim: Claim) -> bool:
        """Whether an item was erased before a claim was made."""
        return item.erased is not None and claim.commit >= item.erased

    def may_know(self, item: Item, claim: Claim) -> bool:
        """Whether a claim that says an item's value can mean the item by it."""
        if not self.is_before(item, claim):
            return True
        return any(
            other.claim.commit <= claim.commit and not self.is_before(other, claim)
            for other in self._group.get(item.claim.claim_id, ())
        )

    def hidden_in(self, item: Item) -> int | None:
        """The first erasure of a subject that an erased item was about: no tombstone is left of it there."""
        return self._hidden_in(item.entity, item.relation, item.claim, item.erased)

    def is_silent_unknown(self, entity: Any, relation: str, claim: Claim, by: Claim) -> bool:
        """The same as `is_unknown` of a claim that made no item."""
        hidden = self._hidden_in(entity, relation, claim, None)
        return hidden is not None and by.commit >= hidden

    def _hidden_in(self, entity: Any, relation: str, claim: Claim, also: int | None) -> int | None:
        about = entity if relation == PAIR else {entity}
        times = [also, self.erased.get(claim.event_id)]
        for commit, names in sorted(self.subjects.items()):
            is_gone = any(erased is not None and erased <= commit for erased in times)
            if is_gone and claim.commit < commit and not names.isdisjoint(about):
                return commit
        return None

    def is_unknown(self, item: Item, by: Claim) -> bool:
        """Whether an item is there for nothing that a claim says: all about its subject was erased before."""
        hidden = self.hidden_in(item)
        return hidden is not None and by.commit >= hidden


def shared_after(
    oracle_of: Any, claims: list[Claim], erasures: list[Erasure], subjects_of: Mapping[str, set[str]]
) -> Shared:
    """
    What is erased after all of these erasures, and what is left known of it.

    Args:
        oracle_of: Makes an oracle of some claims and what is shared among them.
        claims: All claims of the log.
        erasures: In the order of the log.
        subjects_of: By event, the entities that it names as its subjects.
    """
    erased: dict[str, int] = {}
    subjects: list[tuple[int, frozenset[str]]] = []
    shared = Shared(erased)
    for erasure in erasures:
        before = [claim for claim in claims if claim.commit < erasure.commit]
        oracle = oracle_of(before, shared)
        going = set(erasure.events)
        if erasure.subject is not None:
            names = frozenset(oracle._names(erasure.subject))
            subjects.append((erasure.commit, names))
            going |= _about(names, before, oracle) - erased.keys()
            going |= {event for event, named in subjects_of.items() if named & names}
        present = {claim.event_id for claim in before} | set(subjects_of)
        while True:
            derived = {
                claim.event_id
                for claim in before
                if any(reference.event_id in going for reference in claim.inputs)
            }
            if derived <= going:
                break
            going |= derived
        for event in going & present:
            erased.setdefault(event, erasure.commit)
        shared = _sharing(oracle_of, claims, erased, subjects)
    return shared


def _sharing(
    oracle_of: Any, claims: list[Claim], erased: Mapping[str, int], subjects: list[tuple[int, frozenset[str]]]
) -> Shared:
    """Which values are shared: by what is named by a value that is itself known by another, too."""
    known = Shared(dict(erased))
    for _ in claims:
        head = oracle_of(claims, known)
        items = {"items": head.all_items, "is_one_key": head._same_key}
        found = Shared(dict(erased), **items)
        if found.groups() == known.groups():
            break
        known = found
    return Shared(dict(erased), subjects=subjects, **items)


def _about(names: frozenset[str], claims: list[Claim], oracle: Any) -> set[str]:
    """Events with a claim about any of these, by its own key or by what it acts on."""
    found = set()
    # Also what was hidden before, so that nobody who says it later is taken to mean it.
    oracle.items = oracle.all_items
    for claim in claims:
        entity, relation, _ = oracle._key(claim)
        if relation:
            about = entity if relation == PAIR else {entity}
        else:
            named = [c for r in [*claim.targets, *([claim.winner] if claim.winner else [])]
                     for c in oracle._named(r, claim)]  # fmt: skip
            items = [i for i in oracle.all_items if i.claim in named or i.claim is claim]
            # What made no item (a dispute, a retraction) is about its key all the same.
            silent = [c for c in named if all(i.claim is not c for i in items)]
            silent = [c for c in silent if not oracle.shared.is_silent_unknown(*oracle._key(c)[:2], c, claim)]
            # A key that is named without an event is what it acts on, whatever stands there.
            keys = [oracle._key(r)[:2] for r in claim.targets if r.event_id is None]
            keys += [(i.entity, i.relation) for i in items] + [oracle._key(c)[:2] for c in silent]
            about = set()
            for one, its_relation in keys:
                about |= one if its_relation == PAIR else {one}
        if names & set(about):
            found.add(claim.event_id)
    return found
