"""
Tombstones: what is left of erased claims, in their place in the order of the log.

A tombstone takes part in every step of a decision as the claim did, and is struck from the answer.
It knows no name and no value: names are keyed digests, and a value is known by another claim that
has the same one, as long as there is such a claim.

Source: SEMANTICS, "Erasure".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from contracts.claims import Claim
from ledger._keys import TenantKeys

VEIL: Final = " "
"""What a name begins with that is known by its digest alone; no name that anybody gives does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """A value that nobody knows any more: equal to itself alone. `name` says which one it is."""

    name: str

    @property
    def normal(self) -> str:
        """Return what stands for its normal form; no value has such a one, for it is no JSON."""
        return f"erased {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone(Claim):
    """
    An erased claim. `erased_in` is the commit that erased it: nothing said from then on shares its value.

    Its names are veiled where nothing that is left says them. `value` is that of a claim that shares
    it, or `Erased`. `pair` are the two names of a claim about who is one with whom; its relation
    then says nothing about which of the two was claimed.
    """

    erased_in: int
    pair: tuple[str, str] | None


def veiled(keys: TenantKeys, name: str) -> str:
    """Return a name as it is kept where it may not be read: itself if it is veiled already, or empty."""
    if not name or name.startswith(VEIL):
        return name
    return VEIL + keys.digest_of("erased name", name.encode()).hex()


def is_veiled(*names: str) -> bool:
    """Return whether any of the names is known by its digest alone."""
    return any(name.startswith(VEIL) for name in names)
