"""What was known of a key, and when: rectangles of valid time and known commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from contracts.claims import Claim
from contracts.relations import RelationContract
from contracts.times import KnownAt


@dataclass(frozen=True, slots=True, kw_only=True)
class Rectangle:
    """
    What stood in `[valid_from, valid_to)` as known in commits `[known_from, known_to)`.

    None is an open bound. `state` is value, conflict, ended, withdrawn, undetermined or erased;
    `claims` has one for each value. `part` tells the lines of a many-valued key or occurrences apart, and
    is the pair of names where it is told who is one with whom.
    """

    relation: str
    part: str
    valid_from: datetime | None
    valid_to: datetime | None
    known_from: int
    known_to: int | None
    known_from_at: KnownAt
    known_to_at: KnownAt | None
    state: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """A claim that was taken back, be it in part, and the claims that did; none where those were erased."""

    claim: Claim
    by: tuple[Claim, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyHistory:
    """
    The rectangles of one key that touch `[start, end)` of valid time, by commit and valid time.

    `whole` says that none is left out and that the key is no other's as well: whoever is one with
    others has a history that is not only his own.
    """

    entity: str
    relation: str
    contract: RelationContract
    start: datetime | None
    end: datetime | None
    rectangles: Sequence[Rectangle]
    whole: bool
