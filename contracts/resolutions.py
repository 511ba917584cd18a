"""
What the resolver answers: one of three, and nothing else decides what is current.

`Resolved` (with `ResolvedSet` for relations of many values), `Missing` with its reason, or
`Conflict`. Match all of them; there is no flag and no None for "don't know".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from contracts.claims import Claim
from contracts.relations import RelationContract
from contracts.views import View


class MissingReason(StrEnum):
    """Why nothing stands; where several apply, the first in this order."""

    ENDED = "ended"
    ERASED = "erased"
    WITHDRAWN = "withdrawn"
    UNDETERMINED = "undetermined"
    NOT_VALID_THEN = "not_valid_then"
    NEVER_KNOWN = "never_known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """
    One value stands, with the claims that carry it and those it superseded.

    `form` is the value's normal form: values are the same where theirs are, however they are written.
    For an occurrence, `count_identity` tells it from others of the same value; else None.
    """

    value: Any
    form: str
    claims: Sequence[Claim]
    superseded: Sequence[Claim]
    count_identity: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """One value in dispute and its latest claim; `ended` where the rival says that nothing holds."""

    value: Any
    ended: bool
    claim: Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """At least two values stand and disagree; none is preferred. `why` names the contract's gap."""

    rivals: tuple[Rival, Rival, *tuple[Rival, ...]]
    why: str
    superseded: tuple[Claim, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSet:
    """
    The values of a many-valued key, or the occurrences of one; those in dispute stand apart.

    `members_count` and `disputed_count` are how many there are, listed or not.
    """

    members: tuple[Resolved, ...]
    disputed: tuple[Conflict, ...]
    members_count: int
    disputed_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """No value stands, and why. This is not the same as "false"."""

    reason: MissingReason
    superseded: tuple[Claim, ...]
    withdrawn: tuple[Claim, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """
    Where states with a coarse start leave open what a key had: `[start, end)`, around the instant asked for.

    `claims` are those that may have held there already, and after it do; empty where all were erased.
    They decide nothing there: see SEMANTICS, "Events and claims".
    """

    start: datetime
    end: datetime
    claims: tuple[Claim, ...]


Resolution: TypeAlias = Resolved | ResolvedSet | Missing | Conflict


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyResolution:
    """
    A key's answer at a view, the contract that decided it, and its open disputes.

    `truncated` says that some list in it may hold less than there is: what stands is decided all the same.
    """

    entity: str
    relation: str
    view: View
    contract: RelationContract
    resolution: Resolution
    disputes: tuple[Claim, ...]
    unplaced: tuple[Claim, ...]
    """Claims whose target was not found in this epoch: they withdraw nothing and are reported."""
    truncated: bool
