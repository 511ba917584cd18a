"""
Claims as they are read: held against their seals at once, made objects when somebody looks at them.

A claim that is listed as superseded is seldom looked at, and its object takes longer to make than the
claim to read. Nothing is read later: an answer is bound to what was read for it.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, overload

from contracts.claims import Claim
from contracts.errors import IntegrityFault
from ledger._claims import COLUMNS, Told, claim_told, sealed_message, told_of
from ledger._keys import TenantKeys

_FIRST: Final = -len(COLUMNS) - 1


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


def told_in(rows: Iterable[Sequence[Any]], keys: TenantKeys, *, epoch: int) -> list[Told]:
    """
    Return the claims of rows whose last columns are `COLUMNS` and the seal, by position.

    Raises:
        IntegrityFault: A column does not match the seal.
    """
    found = []
    for row in rows:
        columns, seal = row[_FIRST:-1], row[-1]
        message = sealed_message(columns, tenant=keys.tenant, epoch=epoch)
        if not hmac.compare_digest(keys.digest(message), seal):
            raise IntegrityFault(what=f"the seal of claim {columns[1]}#{columns[2]}")
        found.append(told_of(columns))
    found.sort()
    return found
