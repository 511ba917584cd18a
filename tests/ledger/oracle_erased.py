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
    """
    Which claims are erased, since when, and by which others their values are known.

    `groups` are, by claim id, the items whose value an erasure found to be one.
    """

    def __init__(
        self,
        erased: Mapping[str, int],
        *,
        subjects: Iterable[tuple[int, frozenset[str]]] = (),
        groups: Mapping[str, list[Item]] | None = None,
    ) -> None:
        self.erased = erased
        self.subjects = dict(subjects)
        self.groups = dict(groups or {})

    def join(self, commit: int, oracle: Any) -> None:
        """Write down what shares its value with what goes in a commit: on one key, as that is then."""
        known = [item for item in oracle.all_items if item.raw is not None and item.erased in {None, commit}]
        for one in [item for item in known if item.erased == commit]:
            for other in known:
                if other.raw == one.raw and oracle._same_key(other, one.entity, one.relation):
                    group, joined = (self.groups.get(i.claim.claim_id, [i]) for i in (one, other))
                    merged = group if joined is group else [*group, *joined]
                    self.groups.update((member.claim.claim_id, merged) for member in merged)

    def _group(self, item: Item) -> list[Item]:
        # A correction said later has the value of what it corrects, which is what was found to be shared.
        while item.said_by is not None and item.claim.claim_id not in self.groups:
            item = item.said_by
        return self.groups.get(item.claim.claim_id, [item])

    def erased_in(self, claim: Claim, said_by: Item | None) -> int | None:
        """The commit that erased a claim, or the one that it has its value from."""
        found = [self.erased.get(claim.event_id)]
        if said_by is not None:
            found.append(self.erased_in(said_by.claim, said_by.said_by))
        return min((commit for commit in found if commit is not None), default=None)

    def value(self, item: Item) -> Any:
        """The value by which an item is told from others: a token where nothing left says it."""
        if item.erased is None:
            return item.raw
        if item.alone is not None:
            return ("erased", item.alone.claim.claim_id)
        group = self._group(item)
        if any(self.erased_in(other.claim, other.said_by) is None for other in group):
            return item.raw
        return ("erased", min(other.claim.claim_id for other in group))

    def is_before(self, item: Item, claim: Claim) -> bool:
        """Whether an item was erased before a claim was made."""
        erased = self.erased_in(item.claim, item.said_by)
        return erased is not None and claim.commit >= erased

    def may_know(self, item: Item, claim: Claim) -> bool:
        """Whether a claim that says an item's value can mean the item by it."""
        if not self.is_before(item, claim):
            return True
        return any(
            other.claim.commit <= claim.commit and not self.is_before(other, claim)
            for other in self._group(item)
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
        found = Shared(dict(erased), subjects=shared.subjects.items(), groups=shared.groups)
        found.join(erasure.commit, oracle_of(before, found))
        shared = Shared(dict(erased), subjects=subjects, groups=found.groups)
    return shared


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
