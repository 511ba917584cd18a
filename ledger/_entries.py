"""
Entries: claims as they count, after corrections lent them another's place, source or value.

An entry is what SEMANTICS calls a claim that counts "with" a position, source and class. The
replay of a ledger (`_withdrawal`) makes and changes entries; everything after it only reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from contracts.claims import DERIVED, SELF, Claim, Source, Validity, ValidityKind
from contracts.identity import IDENTITY
from contracts.relations import Cardinality, RelationContract
from ledger._intervals import (
    ALWAYS,
    FOREVER,
    NEVER,
    Intervals,
    difference,
    interval,
    lower,
    union,
    upper,
)
from ledger._relations import rank_of, replaces_any
from ledger._tombstones import Tombstone

Place: TypeAlias = tuple[int, int]
"""(event position, ordinal): the total order of claims."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """
    Which entities are one at a cut.

    `root` maps an entity to the representative of those it is merged with (itself where absent);
    `self_root` each of these to the representative of those that it is one with by pairs that an
    operator states or that both state, save those whose own word alone joined them to others.
    """

    root: Mapping[str, str]
    self_root: Mapping[str, str]

    def entity(self, name: str) -> str:
        """Return the representative of the entity."""
        return self.root.get(name, name)

    def is_self(self, actor_id: str, entity: str) -> bool:
        """
        Return whether the actor is the entity that a claim names, and is heard as such.

        Judged by that name, not by all that it is merged with: whoever joins a name to Ann's, she
        is herself. But he who joined it is heard as nobody, or he would speak, under his own name,
        as her.
        """
        if entity not in self.root:
            return actor_id == entity
        own = self.self_root.get(entity)
        return own is not None and self.self_root.get(actor_id) == own


NOBODY = Identity(root={}, self_root={})
"""No two names are one."""


@dataclass(slots=True, kw_only=True, eq=False)
class Entry:
    """
    One claim as it counts. Times are whole microseconds, open bounds `NEVER` and `FOREVER`.

    `normal` is the normal form of its value (of the value it ends, for an end; None for an end
    that names none), `lineage` that and the forms of all it corrected. `withdrawn` is where it
    left, `left_by` the claims that made it leave, `heir` the entry that took its place. Before
    `start` and from `earliest` on it might cover. `inputs` are the entries a derived claim was
    derived from. `stated_class` is the class its source was granted, `source_class` the one
    computed for its key (`self`). `inherits_from` is the entry that it has its value from, if it
    does not state it; `erased_in` the commit that erased it, or that; None while it stands.
    """

    claim: Claim
    entity: str
    relation: str
    actor_id: str
    stated_class: str
    source_class: str
    rank: int
    replaces_any: bool
    place: Place
    is_end: bool
    value: Any
    normal: str | None
    lineage: frozenset[str]
    kind: ValidityKind
    start: int
    end: int
    earliest: int
    occurrence: tuple[str, str] | None
    withdrawn: Intervals
    inherits_from: Entry | None
    erased_in: int | None
    heir: Entry | None = None
    inputs: tuple[Entry, ...] = field(default=())
    left_by: list[Claim] = field(default_factory=list)

    @property
    def order(self) -> tuple[int, Place]:
        """Return (start, position): what the later state is told by."""
        return self.start, self.place

    @property
    def extent(self) -> Intervals:
        """Return where its validity covers, withdrawn or not."""
        return interval(self.start, self.end)

    @property
    def is_derived(self) -> bool:
        """Return whether it counts as derived."""
        return self.source_class == DERIVED

    def withdraw(self, where: Intervals, *, by: Claim) -> None:
        """Take it out of `where`, for good."""
        if not where:
            return
        self.left_by.append(by)
        self.withdrawn = ALWAYS if where == ALWAYS else union(self.withdrawn, where)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dispute:
    """A claim that was kept as a dispute, and the entries it is about."""

    claim: Claim
    about: tuple[Entry, ...]


def erasure_of(claim: Claim, inherits_from: Entry | None) -> int | None:
    """Return the commit that erased a claim: what has its value from what is erased goes with it."""
    own = claim.erased_in if isinstance(claim, Tombstone) else None
    other = None if inherits_from is None else inherits_from.erased_in
    return min((commit for commit in (own, other) if commit is not None), default=None)


def class_of(source: Source, *, entity: str, relation: str, identity: Identity) -> str:
    """Return the class a source has on a key: `self` is computed, and never for derived or identity."""
    if source.actor_class == DERIVED or relation in IDENTITY:
        return source.actor_class
    return SELF if identity.is_self(source.actor_id, entity) else source.actor_class


def extent_of(validity: Validity) -> tuple[int, int, int]:
    """Return (start, end, earliest) of a stated or default validity."""
    start = lower(validity.start)
    end = FOREVER if validity.kind == ValidityKind.SINCE else upper(validity.end)
    earliest = NEVER if validity.timeless else lower(validity.earliest)
    return start, end, earliest


def rank_and_rule(contract: RelationContract, *, actor_id: str, source_class: str) -> tuple[int, bool]:
    """Return the source's place in the contract's authority, and whether it replaces any other's."""
    return (
        rank_of(contract, actor_id=actor_id, source_class=source_class),
        replaces_any(contract, source_class),
    )


def loses_to(entry: Entry, winners: Sequence[Entry], cardinality: Cardinality) -> bool:
    """
    Return whether an entry says something else than the winners do, on a line that one of them is on.

    An end that names no value is on every line of a key: of a key with several lines it loses
    nothing here, for taking it back would bring up what it ended on the others.
    """
    stated = [winner for winner in winners if not winner.is_end]
    if not entry.is_end and entry.normal in {winner.normal for winner in stated}:
        return False
    if cardinality == Cardinality.ONE:
        return True
    by_id = cardinality == Cardinality.OCCURRENCE
    if by_id and entry.occurrence is not None and any(w.occurrence == entry.occurrence for w in winners):
        return True
    if entry.is_end:
        names_one = by_id and entry.occurrence is not None
        return (
            not names_one
            and entry.normal is not None
            and any(entry.normal in winner.lineage for winner in stated)
        )
    ends = [winner for winner in winners if winner.is_end and not (by_id and winner.occurrence is not None)]
    return any(end.normal is None or end.normal in entry.lineage for end in ends)


def withdrawn_throughout(entry: Entry) -> bool:
    """Return whether nothing of the entry is left: replaced, taken back everywhere, or derived from such."""
    if not difference(entry.extent, entry.withdrawn):
        return True
    return input_withdrawn(entry)


def input_withdrawn(entry: Entry) -> bool:
    """Return whether anything it is derived from was withdrawn, be it in part, however far back."""
    # A loop and a memory, not recursion: derivations build on one another for as long as a log is.
    waiting = list(entry.inputs)
    seen: set[int] = set()
    while waiting:
        source = waiting.pop()
        if id(source) in seen:
            continue
        seen.add(id(source))
        if difference(source.extent, source.withdrawn) != source.extent:
            return True
        waiting += source.inputs
    return False
