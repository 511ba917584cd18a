"""
Tombstones: what is left of erased claims, in their place in the order of the log.

A tombstone takes part in every step of a decision as the claim did, and is struck from the answer.
It knows no name and no value: names are keyed digests, and a value is known by another claim that
has the same one, as long as there is such a claim.

Source: SEMANTICS, "Erasure".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from contracts.claims import Claim, TargetRef
from ledger._keys import TenantKeys

VEIL: Final = " "
"""What a name begins with that is known by its digest alone; no name that anybody gives does."""

Place: TypeAlias = tuple[int, int]
"""(event position, ordinal) of a claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """
    A value that was erased, that of the claim at `place`; equal to itself alone.

    `like` is another claim that has the same one, None where none was left.
    """

    place: Place
    like: Place | None

    @property
    def normal(self) -> str:
        """Return what stands for its normal form; no value has such a one, for it is no JSON."""
        return f"erased {self.place[0]}#{self.place[1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone(Claim):
    """
    An erased claim. `erased_in` is the commit that erased it: nothing said from then on shares its value.

    As it is stored every name is veiled and every value `Erased`; as it takes part in a decision,
    names that something left says are in clear, and a value that a claim left shares is that
    claim's. `pair` are the two names of a claim about who is one with whom; its relation then says
    nothing about which of the two was claimed.
    """

    erased_in: int
    pair: tuple[str, str] | None

    @property
    def place(self) -> Place:
        """Return where it stands in the order of the log."""
        return self.position.event, self.position.ordinal


def veiled(keys: TenantKeys, name: str) -> str:
    """Return a name as it is kept where it may not be read: itself if it is veiled already, or empty."""
    if not name or name.startswith(VEIL):
        return name
    return VEIL + keys.digest_of("erased name", name.encode()).hex()


def is_veiled(*names: str) -> bool:
    """Return whether any of the names is known by its digest alone."""
    return any(name.startswith(VEIL) for name in names)


def named(tombstone: Tombstone, names: Mapping[str, str], value_of: Callable[[Erased], object]) -> Tombstone:
    """
    Return a stored tombstone as it takes part in a decision.

    Args:
        tombstone: As it is stored.
        names: Names by their veiled form, as far as anything left says them.
        value_of: The value that stands for an erased one.
    """

    def name_of(name: str) -> str:
        return names.get(name, name)

    def any_value(value: Any) -> Any:  # noqa: ANN401 — any JSON value, or an erased one
        return value_of(value) if isinstance(value, Erased) else value

    def reference(target: TargetRef) -> TargetRef:
        return replace(
            target,
            entity=None if target.entity is None else name_of(target.entity),
            relation=None if target.relation is None else name_of(target.relation),
            value=any_value(target.value),
        )

    occurrence_id = tombstone.occurrence_id
    pair = tombstone.pair
    return replace(
        tombstone,
        entity=name_of(tombstone.entity),
        relation=name_of(tombstone.relation),
        value=any_value(tombstone.value),
        source=replace(tombstone.source, actor_id=name_of(tombstone.source.actor_id)),
        occurrence_id=None if occurrence_id is None else name_of(occurrence_id),
        targets=tuple(map(reference, tombstone.targets)),
        winner=None if tombstone.winner is None else reference(tombstone.winner),
        inputs=tuple(map(reference, tombstone.inputs)),
        pair=None if pair is None else (name_of(pair[0]), name_of(pair[1])),
    )


class Values:
    """
    What stands for erased values: the value of a claim that shares it, found by way of others.

    `stored` are the values of claims that are left, `graves` those of tombstones, by place.
    """

    def __init__(self, stored: Mapping[Place, object], graves: Mapping[Place, object]) -> None:
        self._stored = stored
        self._graves = graves

    def of(self, erased: Erased) -> object:
        """Return the value, or the erased one that all who share it come down to."""
        seen: set[Place] = set()
        while erased.like is not None and erased.like not in seen:
            seen.add(erased.like)
            if erased.like in self._stored:
                return self._stored[erased.like]
            further = self._graves.get(erased.like)
            if not isinstance(further, Erased):
                return Erased(place=erased.like, like=None)
            erased = further
        return replace(erased, like=None)


def names_in(claim: Claim) -> set[str]:
    """Return every name that a claim says as one: of entities, relations, actors and occurrences."""
    names = {claim.entity, claim.relation, claim.source.actor_id, claim.occurrence_id}
    for reference in (*claim.targets, *claim.inputs, *(() if claim.winner is None else (claim.winner,))):
        names |= {reference.entity, reference.relation}
    return {name for name in names if name}
