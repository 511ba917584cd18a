"""
Many keys at one view on which states alone were said: most keys, and one row for all of them.

Of such a key as much is read as its answer is made of, and it comes column by column: so it is held
against its seals, and so little is made for each key that the answer takes longer to make than to read.
See `echoplane_plain` in 0002_lookup.sql for what the row is. Of any other key nothing comes.
"""

from __future__ import annotations

import hmac
import struct
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from contracts.errors import IntegrityFault
from contracts.resolutions import KeyResolution
from contracts.views import View
from ledger import _tables
from ledger._arrays import numbers, texts
from ledger._cells import framed_bounds, framed_line
from ledger._claims import Told
from ledger._decide import State
from ledger._found import Stand, claims_read_max
from ledger._garbage import uncollected
from ledger._ground import Ground, ground_kept, ground_of
from ledger._intervals import FOREVER, NEVER
from ledger._keys import TenantKeys
from ledger._occurrences import WHOLE
from ledger._piece import buried_of
from ledger._stated import Read, answer_of_states
from ledger._told import told_in
from ledger._world import Key, Reader

_PLAIN: Final = (
    "SELECT * FROM echoplane_plain(%(tenant)s, %(epoch)s, %(cut)s, %(at)s, %(entities)s, %(relations)s, "
    "%(firsts)s, %(lasts)s, %(claims_max)s)"
)
KEYS_A_ROW: Final = 16
"""Keys of which the server sends what it found before it looks for the next."""
_SERVER_EPOCH: Final = 946_684_800_000_000
"""2000 in microseconds since 1970: what the server counts from."""
_VALUE: Final = State.VALUE.value
_DIGEST_BYTES: Final = 32
"""Of an id of a claim, and of a seal."""
_BEFORE_ALL: Final = -(2**63)
_AFTER_ALL: Final = 2**63 - 1


class _Columns(NamedTuple):
    """The row of `echoplane_plain`; what is none of it is None."""

    contracts: bytes
    has_identity: bool
    has_tombstones: bool
    keys: list[int] | None
    starts: bytes
    ends: bytes
    known_from: list[int]
    known_to: list[int | None]
    named: list[bytes]
    cell_seals: bytes
    own: list[int] | None
    claims: bytes
    positions: list[int]
    ordinals: list[int]
    commits: list[int]
    event_ids: list[str]
    stances: list[str]
    bodies: list[bytes]
    seals: bytes
    later: list[int] | None
    later_positions: list[int]


async def answers_alike(
    reader: Reader, view: View, keys: Sequence[Key]
) -> tuple[dict[Key, KeyResolution], Ground]:
    """
    Return the answers of those keys that have a value at the view, and on which states alone were said.

    There is at least one key. The reader is in a snapshot. The server looks up the next of many keys while
    those before are decided.

    Raises:
        IntegrityFault: A claim, contract or cell that was read is not what was written.
    """
    deciding = _Deciding(keys=keys, view=view, tenant_keys=reader.keys)
    waiting: list[_Columns] = []
    stand: Stand | None = None
    ground: Ground | None = None
    async with aclosing(_columns_of(reader, view, keys)) as coming:
        async for columns in coming:
            if stand is None:
                stand = Stand(
                    contracts=columns.contracts,
                    has_identity=columns.has_identity,
                    has_tombstones=columns.has_tombstones,
                )
                ground = ground_kept(reader.keys, stand)
            if ground is None:
                waiting.append(columns)
            else:
                deciding.take(columns, ground, buried=set())
    assert stand is not None
    ground = await ground_of(reader, stand)
    buried = await buried_of(reader, keys, ground)
    for columns in waiting:
        deciding.take(columns, ground, buried=buried)
    return deciding.found, ground


async def _columns_of(reader: Reader, view: View, keys: Sequence[Key]) -> AsyncGenerator[_Columns, None]:
    firsts = range(1, len(keys) + 1, KEYS_A_ROW)
    parameters = {
        "tenant": reader.keys.tenant,
        "epoch": reader.epoch,
        "cut": reader.cut,
        "at": view.valid_at,
        "entities": texts(entity for entity, _ in keys),
        "relations": texts(relation for _, relation in keys),
        "firsts": numbers(firsts),
        "lasts": numbers(first + KEYS_A_ROW - 1 for first in firsts),
        "claims_max": claims_read_max(),
    }
    async with aclosing(reader.streamed(_PLAIN, parameters)) as rows:
        async for row in rows:
            yield _Columns._make(row)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deciding:
    """Decides keys at a view as their columns come; `found` are the answers."""

    keys: Sequence[Key]
    view: View
    tenant_keys: TenantKeys
    found: dict[Key, KeyResolution] = field(default_factory=dict)

    def take(self, columns: _Columns, ground: Ground, *, buried: AbstractSet[Key]) -> None:
        """
        Decide keys, but for those on which something was erased.

        Raises:
            IntegrityFault: What is read of them is not what was written.
        """
        if columns.keys is None or columns.own is None:
            return
        with uncollected():
            self._check_cells(columns)
            for key, read in self._read(columns):
                answer = None if key in buried else answer_of_states(read, key, self.view, ground)
                if answer is not None:
                    self.found[key] = answer

    def _read(self, columns: _Columns) -> Iterator[tuple[Key, Read]]:
        """Yield what was read of each key; nothing of one whose first claim is not here."""
        numbers, owners = columns.keys or (), columns.own or ()
        told = self._told(columns, owners)
        own: dict[int, list[Told]] = {number: [] for number in numbers}
        for owner, one in zip(owners, told, strict=True):
            own[owner].append(one)
        by_id = {one.claim_id: one for one in told}
        later, claims_max = Counter(columns.later or ()), claims_read_max()
        is_any_long = any(len(some) + later[number] > claims_max for number, some in own.items())
        least = _least(columns) if is_any_long else {}
        for number, named in zip(numbers, columns.named, strict=True):
            first = by_id.get(named)
            if first is None:
                continue
            here = sorted(own[number])
            is_long = len(here) + later[number] > claims_max
            own_from = least[number] + 1 if is_long else 0
            yield self.keys[number - 1], Read(here, first, is_long, own_from, number in later)

    def _told(self, columns: _Columns, owners: Sequence[int]) -> list[Told]:
        keys, ids, seals = self.keys, columns.claims, columns.seals
        if len(ids) != len(owners) * _DIGEST_BYTES:
            raise IntegrityFault(what="the id of a claim")
        names = [(*keys[number - 1], stance) for number, stance in zip(owners, columns.stances, strict=True)]
        places = range(0, len(ids), _DIGEST_BYTES)
        return told_in(
            names,
            (
                [ids[at : at + _DIGEST_BYTES] for at in places], columns.positions, columns.ordinals,
                columns.commits, columns.event_ids, columns.bodies,
            ),
            [seals[at : at + _DIGEST_BYTES] for at in places], self.tenant_keys, epoch=self.view.epoch,
        )  # fmt: skip

    def _check_cells(self, columns: _Columns) -> None:
        numbers, keys, epoch = columns.keys or (), self.keys, self.view.epoch
        starts, ends = (struct.unpack(f">{len(numbers)}q", both) for both in (columns.starts, columns.ends))
        known = zip(columns.known_from, columns.known_to, strict=True)
        rows = [
            framed_line(keys[number - 1], WHOLE)
            + framed_bounds((epoch, _micros(start), _micros(end), since, until, _VALUE), [claim_id.hex()])
            for number, start, end, (since, until), claim_id in zip(
                numbers, starts, ends, known, columns.named, strict=True
            )
        ]
        seals = self.tenant_keys.seals(_tables.cell.name, rows)
        if not hmac.compare_digest(b"".join(seals), columns.cell_seals):
            raise IntegrityFault(what="the seal of a cell")


def _least(columns: _Columns) -> dict[int, int]:
    """Return the least position of what was found of each key, here or not."""
    least: dict[int, int] = {}
    for number, position in (
        *zip(columns.own or (), columns.positions or (), strict=True),
        *zip(columns.later or (), columns.later_positions or (), strict=True),
    ):
        least[number] = min(position, least.get(number, position))
    return least


def _micros(bound: int) -> int:
    """Return a bound in microseconds since 1970, from what the server writes of an instant."""
    if bound == _BEFORE_ALL:
        return NEVER
    return FOREVER if bound == _AFTER_ALL else bound + _SERVER_EPOCH
