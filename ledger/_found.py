"""
What the answers of some keys are made from, in one call: cells, the newest claims, what acts on them.

However long a key's history is, as much is read of it: see `echoplane_found` in 0002_lookup.sql.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from contracts.claims import Claim
from contracts.errors import IntegrityFault
from contracts.limits import LISTED_CLAIMS_MAX, LISTED_VALUES_MAX
from ledger._arrays import texts
from ledger._cells import cell_of
from ledger._claims import ACTING
from ledger._garbage import uncollected
from ledger._keys import TenantKeys
from ledger._lines import Cell
from ledger._told import NONE, Claims, Row, claims_in
from ledger._world import Key, Reader

_FOUND: Final = (
    "SELECT * FROM echoplane_found(%(tenant)s, %(epoch)s, %(cut)s, %(at)s, %(entities)s, %(relations)s, "
    "%(cells_max)s, %(claims_max)s)"
)
KEYS_FIRST: Final = 16
KEYS_AT_ONCE: Final = 64
"""Keys in the first call, and in one at most: neither the server nor what reads its rows waits for long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """
    What every key hangs on at the cut.

    `contracts` is a digest of their rows. Beside it: whether there are claims about who is one with
    whom, and whether anything was erased that left a tombstone.
    """

    contracts: bytes
    has_identity: bool
    has_tombstones: bool


@dataclass(slots=True, kw_only=True)
class Found:
    """
    What was found of one key up to a cut.

    `cells` are what its lines have at the instant, by stored part, `counts` all its lines that have
    anything there, by state. `own` are its newest claims, `acting` older ones that act on
    others, `reach` the newest that act on it from elsewhere; `named` are further claims that its
    cells name. All by position. `newest` says how many its newest claims are and where the first
    is, where those that begin after the instant are not here.
    """

    cells: dict[str, Cell] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    own: Claims = NONE
    newest: tuple[int, int] | None = None
    acting: Claims = NONE
    reach: Claims = NONE
    named: Claims = NONE

    @property
    def is_long(self) -> bool:
        """Return whether there is more of it than is read."""
        return (
            max(len(self.own) if self.newest is None else self.newest[0], len(self.reach)) > LISTED_CLAIMS_MAX
            or sum(self.counts.values()) > LISTED_VALUES_MAX
        )

    @property
    def own_from(self) -> int:
        """Return the position from which every claim on the key is here that may bear on the instant."""
        if self.newest is None:
            return _first_of(self.own)
        count, first = self.newest
        return first + 1 if count > LISTED_CLAIMS_MAX else 0

    @property
    def acting_from(self) -> int:
        """Return the position from which everything that acts on the key is here."""
        own = [claim for claim in (*self.acting, *self.own) if claim.stance in ACTING]
        return max(_first_of(own), _first_of(self.reach))

    @property
    def acting_claims(self) -> list[Claim]:
        """Return those that act on the key, as far as they are here."""
        return [claim for claim in (*self.own, *self.acting, *self.reach) if claim.stance in ACTING]

    @property
    def claims(self) -> list[Claim]:
        """Return all claims that are here."""
        return [*self.own, *self.acting, *self.reach, *self.named]


def claims_read_max() -> int:
    """Return how many claims of a key are read at most, beside one that tells of more."""
    return LISTED_CLAIMS_MAX


async def found_on(reader: Reader, keys: Sequence[Key], *, at: datetime | None) -> tuple[Stand, list[Found]]:
    """
    Return what there is of keys up to the reader's cut; without an instant, no cells.

    The reader is in a snapshot: many keys are read in several calls, and the server looks up the next
    while those before are held against their seals.

    Raises:
        IntegrityFault: A claim or cell is not what was written, or a cell names one that is not there.
    """
    parts = list(_parts(keys))
    found: list[Found] = []
    rows: list[Row] = []
    coming = asyncio.create_task(_rows_of(reader, parts[0], at))
    try:
        for number, part in enumerate(parts, start=1):
            rows = await coming
            if number < len(parts):
                coming = asyncio.create_task(_rows_of(reader, parts[number], at))
                # Let it leave, before the thread is taken.
                await asyncio.sleep(0)
            with uncollected():
                found += _taken(rows[1:], part, reader)
    finally:
        # A transaction can only be given up when its last statement has ended, however it did.
        await asyncio.gather(coming, return_exceptions=True)
    stand = rows[0]
    return (
        Stand(contracts=stand.seal, has_identity=bool(stand.amount), has_tombstones=bool(stand.known_to)),
        found,
    )


def _parts(keys: Sequence[Key]) -> Iterator[Sequence[Key]]:
    """Yield keys in parts: few at first, that there is soon something to do, then more, for each costs."""
    first, size = 0, KEYS_FIRST
    while len(keys) > first + size:
        yield keys[first : first + size]
        first, size = first + size, min(2 * size, KEYS_AT_ONCE)
    yield keys[first:]


async def _rows_of(reader: Reader, keys: Sequence[Key], at: datetime | None) -> list[Row]:
    parameters: dict[str, Any] = {
        "tenant": reader.keys.tenant,
        "epoch": reader.epoch,
        "cut": reader.cut,
        "at": at,
        "entities": texts(entity for entity, _ in keys),
        "relations": texts(relation for _, relation in keys),
        "cells_max": LISTED_VALUES_MAX,
        "claims_max": claims_read_max(),
    }
    return list(map(Row._make, await reader.rows(_FOUND, parameters)))


def _taken(rows: Sequence[Row], keys: Sequence[Key], reader: Reader) -> list[Found]:
    """Return what rows say of keys, held against their seals."""
    found = [Found() for _ in keys]
    telling: list[Row] = []
    for row in rows:
        key, one = keys[row.key - 1], found[row.key - 1]
        match row.kind:
            case "count":
                assert row.state is not None
                one.counts[row.state] = row.amount
            case "cell":
                one.cells[row.part] = cell_of(row, None, key, reader.keys, reader.epoch)
            case _:
                telling.append(row)
    take_claims(
        [found[row.key - 1] for row in telling], telling, [keys[row.key - 1] for row in telling],
        reader.keys, epoch=reader.epoch,
    )  # fmt: skip
    for one in found:
        if not one.counts:
            for cell in one.cells.values():
                one.counts[cell.segment.state] = one.counts.get(cell.segment.state, 0) + 1
        check_named(one)
    return found


def take_claims(
    found: Iterable[Found], rows: Sequence[Row], on: Sequence[Key], keys: TenantKeys, *, epoch: int
) -> None:
    """
    Take in the claims of rows, each of what was found on its key.

    Raises:
        IntegrityFault: One is not what was written.
    """
    for one, row, claims in zip(found, rows, claims_in(rows, on, keys, epoch=epoch), strict=True):
        setattr(one, row.kind, claims)
        if row.kind == "own" and row.known_to > len(claims):
            one.newest = row.known_to, row.known_from


def check_named(found: Found) -> None:
    """
    Refuse cells that name a claim which was not found.

    Raises:
        IntegrityFault: One does.
    """
    missing = {bytes.fromhex(name) for cell in found.cells.values() for name in cell.segment.claims}
    for claims in (found.own, found.acting, found.reach, found.named):
        # Nearly always it is one of the newest.
        for one in reversed(claims.told):
            if not missing:
                return
            missing.discard(one.claim_id)
    if missing:
        raise IntegrityFault(what="a cell names a claim that is not there")


def _first_of(claims: Sequence[Claim]) -> int:
    """Return from where on a list is whole: 0 if nothing was cut off, else past its first event."""
    return claims[0].position.event + 1 if len(claims) > LISTED_CLAIMS_MAX else 0
