"""Epochs as doors show them: which one serves, which one is being built and how far it is."""

from __future__ import annotations

from typing import Literal, Self

from contracts._wire import Wire
from contracts.relation_wire import ContractAnswer
from contracts.relations import RelationContract


class EpochAnswer(Wire):
    """
    One projection of a tenant's log. `lag` is in commits; one that is retired does not move any more.

    `stopped_at` is the position of the event that it cannot fold and waits before. `projector` is
    empty until something is folded.
    """

    epoch: int
    state: Literal["building", "serving", "retired", "dropped"]
    commit: int
    head: int
    lag: int
    projector: str
    stopped_at: int | None


class EpochsAnswer(Wire):
    """All epochs of a tenant, the first one first."""

    tenant: str
    epochs: list[EpochAnswer]


class RebuildAnswer(Wire):
    """The epoch that is being built; `begun` is false where it was already."""

    tenant: str
    epoch: int
    begun: bool


class DropAnswer(Wire):
    """How many rows a dropped epoch had left."""

    tenant: str
    epoch: int
    rows_count: int


class RegisteredAnswer(ContractAnswer):
    """
    The contract that decides a relation from then on, in which epoch.

    `building` says that this one is to come: until it serves, the contract of before decides. `unchanged`
    that it was the relation's contract already, and nothing was written.
    """

    epoch: int
    building: bool
    unchanged: bool

    @classmethod
    def of_epoch(cls, contract: ContractAnswer, *, epoch: int, building: bool, unchanged: bool) -> Self:
        """Return a contract with its epoch."""
        return cls(**dict(contract), epoch=epoch, building=building, unchanged=unchanged)

    def is_of(self, contract: RelationContract) -> bool:
        """Whether this is that contract, registered."""
        wanted = dict(ContractAnswer.of(contract, registered=True))
        return {name: getattr(self, name) for name in wanted} == wanted
