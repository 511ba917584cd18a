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
from contracts.identity import IDENTITY
from contracts.records import record
from ledger._keys import TenantKeys

VEIL: Final = " "
"""What a name begins with that is known by its digest alone; no name that anybody gives does."""

_DIGEST_CHARACTERS: Final = 64

Spot: TypeAlias = tuple[int, int, int]
"""Where a value was said: position and ordinal of the claim; 0, or which of its references, from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """
    A value that was erased where it was said, at `spot`; equal to itself alone.

    `like` is which claim of its key has the same one, and by way of which others down to the one
    that says it; nothing where there was no such.
    """

    spot: Spot
    like: tuple[Spot, ...] = ()

    @property
    def normal(self) -> str:
        """Return what stands for its normal form; no value has such a one, for it is no JSON."""
        return f"erased {self.spot[0]}#{self.spot[1]}.{self.spot[2]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """
    A value that a correction took to another key, known by what has it there; `said_at` as of a tombstone.

    `spot` is where the correction's own value would stand.
    """

    spot: Spot
    value: object
    said_at: tuple[Spot, ...]


@record
class Tombstone(Claim):
    """
    An erased claim. `erased_in` is the commit that erased it: nothing said from then on shares its value.

    As it is stored every name is veiled and every value `Erased`; as it takes part in a decision,
    names that something left says are in clear, and a value that a claim left shares is that
    claim's. `pair` are the two names of a claim about who is one with whom; its relation then says
    nothing about which of the two was claimed. `selves` are, of one about a subject that was erased,
    the names under which the subject spoke for itself, and `called` the keys (entity, relation) by
    which others named it without its event. `meant_by` is where those stand who named one such, or
    one of identity, by more than its event: nothing that is left of it tells that any more. `said_at` is
    where claims that carry no value said its own: they go on meaning it, and nobody shares it by them.
    `moved` are the values that it or corrections of it, which went with it, took to other keys.
    `is_wrong` says that it never counted: what it said was no value of its relation's type.
    """

    erased_in: int
    pair: tuple[str, str] | None
    selves: tuple[str, ...]
    meant_by: tuple[Spot, ...]
    called: tuple[tuple[str, str], ...]
    said_at: tuple[Spot, ...]
    moved: tuple[Moved, ...]
    is_wrong: bool


def veiled(keys: TenantKeys, name: str) -> str:
    """Return a name as it is kept where it may not be read: itself if it is veiled already, or empty."""
    if not name or name.startswith(VEIL):
        return name
    return VEIL + keys.digest_of("erased name", name.encode()).hex()


def is_veiled(*names: str) -> bool:
    """Return whether any of the names is known by its digest alone."""
    return any(name.startswith(VEIL) for name in names)


def nobody(commit: int) -> str:
    """Return what stands for a subject that this commit erased with all that was about it."""
    return f"{VEIL}{commit}"


def nobody_since(name: str) -> int | None:
    """Return the commit that made of a name what `nobody` returns; None of any other name."""
    is_one = name.startswith(VEIL) and name[1:].isdigit() and len(name) < _DIGEST_CHARACTERS
    return int(name[1:]) if is_one else None


def hide(
    tombstone: Tombstone,
    commit: int,
    *,
    selves: tuple[str, ...],
    meant_by: tuple[Spot, ...],
    called: tuple[tuple[str, str], ...],
) -> Tombstone:
    """Return a stored tombstone on a key that nobody can ask for: this commit erased its subject."""
    name = nobody(commit)
    return replace(
        tombstone,
        entity=name if tombstone.entity else tombstone.entity,
        pair=None if tombstone.pair is None else (name, name),
        selves=selves if tombstone.entity else (),
        meant_by=meant_by,
        called=called,
    )


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
        relation = None if target.relation is None else name_of(target.relation)
        value = any_value(target.value)
        if isinstance(value, str) and target.value is value:
            # What is named on identity is a name.
            value = name_of(value)
        return replace(
            target,
            entity=None if target.entity is None else name_of(target.entity),
            relation=relation,
            value=value,
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
        selves=tuple(map(name_of, tombstone.selves)),
        called=tuple((name_of(entity), name_of(relation)) for entity, relation in tombstone.called),
        moved=tuple(replace(moved, value=any_value(moved.value)) for moved in tombstone.moved),
    )


class Values:
    """
    What stands for erased values: the value said elsewhere that is the same, found by way of others.

    `said` are values that are left, `graves` those that are not, by where they were said.
    """

    def __init__(self, said: Mapping[Spot, object], graves: Mapping[Spot, Erased]) -> None:
        self._said = said
        self._graves = graves

    def of(self, erased: Erased) -> object:
        """Return the value, or the erased one that all which are the same come down to."""
        seen: set[Spot] = set()
        while erased.like and erased.like[0] not in seen:
            has_it, says_it = erased.like[0], erased.like[-1]
            seen.add(has_it)
            if has_it not in self._graves and says_it in self._said:
                return self._said[says_it]
            erased = self._graves.get(has_it, Erased(spot=has_it))
        return replace(erased, like=())


def names_in(claim: Claim) -> set[str]:
    """Return every name that a claim says as one: of entities, relations, actors and occurrences."""
    names = {claim.entity, claim.relation, claim.source.actor_id, claim.occurrence_id}
    if claim.relation in IDENTITY and isinstance(claim.value, str):
        names.add(claim.value)
    if isinstance(claim, Tombstone):
        names |= {*(claim.pair or ()), *claim.selves, *(name for key in claim.called for name in key)}
    for reference in references_in(claim):
        names |= {reference.entity, reference.relation}
        if reference.relation in IDENTITY and isinstance(reference.value, str):
            names.add(reference.value)
    return {name for name in names if name}


def references_in(claim: Claim) -> list[TargetRef]:
    """Return what a claim refers to, in the order in which its values are counted."""
    return [*claim.targets, *claim.inputs, *(() if claim.winner is None else (claim.winner,))]


def own_spot(claim: Claim) -> Spot:
    """Return where a claim's own value stands."""
    return claim.position.event, claim.position.ordinal, 0


def spot_of(reference: TargetRef, by: Claim) -> Spot:
    """Return where a reference stands that a claim makes."""
    number = next(number for number, one in enumerate(references_in(by), start=1) if one is reference)
    return by.position.event, by.position.ordinal, number


def values_in(claim: Claim) -> dict[Spot, object]:
    """Return the values that a claim says, by where; of identity the value is its relation."""
    position, ordinal = claim.position.event, claim.position.ordinal
    own = claim.relation if claim.relation in IDENTITY and claim.value is not None else claim.value
    moved: dict[Spot, object] = {}
    if isinstance(claim, Tombstone):
        own = claim.value
        moved = {one.spot: one.value for one in claim.moved}
    found = moved | {
        (position, ordinal, number): reference.value
        for number, reference in enumerate(references_in(claim), start=1)
    }
    if own is not None:
        found[position, ordinal, 0] = own
    return {spot: value for spot, value in found.items() if value is not None}
