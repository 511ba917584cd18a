"""
Claims as they are read: held against their seals at once, made objects when somebody looks at them.

A claim that is listed as superseded is seldom looked at, and its object takes longer to make than the
claim to read. Nothing is read later: an answer is bound to what was read for it.
"""

from __future__ import annotations

import functools
import hmac
import operator
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import accumulate, chain
from typing import Any, Final, NamedTuple, TypeAlias, overload

from contracts.claims import Claim
from contracts.errors import IntegrityFault
from ledger._claims import Told, claim_told, said_in, sealed_messages
from ledger._keys import TenantKeys

Key: TypeAlias = tuple[str, str]

_COLUMNS: Final = tuple(
    map(
        operator.attrgetter,
        ("claims", "positions", "ordinals", "commits", "event_ids", "stances", "bodies", "seals"),
    )
)

# Of a tuple of as many: its own `_make` takes longer than all else that is made of a claim here.
_TOLD: Final = functools.partial(tuple.__new__, Told)


class Row(NamedTuple):
    """
    A row of `echoplane_found` or `echoplane_read`: their columns are the same, and so in order.

    `amount` is what `echoplane_read` calls `epoch`.
    """

    kind: str
    key: int
    part: str
    valid_from: datetime | None
    valid_to: datetime | None
    known_from: int
    known_to: int
    state: str | None
    seal: bytes
    amount: int
    claims: list[bytes]
    positions: list[int]
    ordinals: list[int]
    commits: list[int]
    event_ids: list[str]
    entities: list[str] | None
    relations: list[str] | None
    stances: list[str]
    bodies: list[bytes]
    seals: list[bytes]


class Claims(Sequence[Claim]):
    """Claims of one epoch by position. They are equal to the tuple of them, and hashed like it."""

    __slots__ = ("_epoch", "_made", "told")

    def __init__(self, told: Sequence[Told], *, epoch: int) -> None:
        self.told = told
        self._epoch = epoch
        self._made: tuple[Claim, ...] | None = None

    def _all(self) -> tuple[Claim, ...]:
        if self._made is None:
            self._made = tuple([claim_told(one, epoch=self._epoch) for one in self.told])
        return self._made

    def __len__(self) -> int:
        return len(self.told)

    @overload
    def __getitem__(self, index: int) -> Claim: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Claim]: ...

    def __getitem__(self, index: int | slice) -> Claim | Sequence[Claim]:
        if self._made is None and isinstance(index, int):
            return claim_told(self.told[index], epoch=self._epoch)
        return self._all()[index]

    def __iter__(self) -> Iterator[Claim]:
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        return self._all() == (other._all() if isinstance(other, Claims) else other)

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return repr(self._all())


NONE: Final = Claims((), epoch=0)
"""No claims."""


def claims_in(rows: Sequence[Row], on: Sequence[Key], keys: TenantKeys, *, epoch: int) -> list[Claims]:
    """
    Return the claims of rows that have each of their columns as an array.

    All are taken together: to begin takes longer than the few claims of a row.

    Args:
        rows: `claims`, `positions` … `seals` of each; without `entities` and `relations` all are on its key.
        on: The key of each.
        keys: The tenant's.
        epoch: Theirs.

    Raises:
        IntegrityFault: A column does not match the seal.
    """
    if len(rows) == 1:
        # As of most keys that are read alone: nothing is joined, nor taken apart again.
        return [_claims_in_one(rows[0], on[0], keys, epoch=epoch)]
    counts = [len(row.claims) for row in rows]
    entities, relations = [], []
    for row, (entity, relation), count in zip(rows, on, counts, strict=True):
        entities += row.entities or [entity] * count
        relations += row.relations or [relation] * count
    claim_ids, positions, ordinals, commits, event_ids, stances, bodies, seals = (
        list(chain.from_iterable(map(column, rows))) for column in _COLUMNS
    )
    names = list(zip(entities, relations, stances, strict=True))
    told = told_in(
        names, (claim_ids, positions, ordinals, commits, event_ids, bodies), seals, keys, epoch=epoch
    )
    ends = list(accumulate(counts))
    return [
        Claims(sorted(told[end - count : end]), epoch=epoch) for count, end in zip(counts, ends, strict=True)
    ]


def _claims_in_one(row: Row, on: Key, keys: TenantKeys, *, epoch: int) -> Claims:
    count = len(row.claims)
    entities = row.entities or [on[0]] * count
    relations = row.relations or [on[1]] * count
    told = told_in(
        list(zip(entities, relations, row.stances, strict=True)),
        (row.claims, row.positions, row.ordinals, row.commits, row.event_ids, row.bodies),
        row.seals, keys, epoch=epoch,
    )  # fmt: skip
    told.sort()
    return Claims(told, epoch=epoch)


def claims_of(rows: Sequence[Sequence[Any]], keys: TenantKeys, *, epoch: int) -> list[Claim]:
    """
    Return the claims of rows, by position.

    Args:
        rows: Of each what `COLUMNS` names, in order, and its seal.
        keys: The tenant's.
        epoch: Theirs.

    Raises:
        IntegrityFault: A column does not match the seal.
    """
    if not rows:
        return []
    *numbers, event_ids, entities, relations, stances, bodies, seals = map(list, zip(*rows, strict=True))
    names = list(zip(entities, relations, stances, strict=True))
    told = told_in(names, (*numbers, event_ids, bodies), seals, keys, epoch=epoch)
    return [claim_told(one, epoch=epoch) for one in sorted(told)]


def told_in(
    names: Sequence[tuple[str, str, str]],
    columns: Sequence[list[Any]],
    seals: Sequence[bytes],
    keys: TenantKeys,
    *,
    epoch: int,
) -> list[Told]:
    """
    Return claims in the order given; `names` and `columns` are those of `sealed_messages`.

    Raises:
        IntegrityFault: A column does not match the seal.
    """
    claim_ids, positions, ordinals, commits, event_ids, bodies = columns
    messages = sealed_messages(names, columns, tenant=keys.tenant, epoch=epoch)
    same = list(map(hmac.compare_digest, keys.digests(messages), seals))
    if len(seals) != len(claim_ids) or not all(same):
        wrong = same.index(False) if False in same else -1
        raise IntegrityFault(what=f"the seal of claim {positions[wrong]}#{ordinals[wrong]}")
    rows = zip(
        positions, ordinals, claim_ids, commits, event_ids, *zip(*names, strict=True), said_in(bodies),
        strict=True,
    )  # fmt: skip
    return list(map(_TOLD, rows))
