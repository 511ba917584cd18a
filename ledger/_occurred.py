"""Occurrences within a window of valid time: told from claims, of a key with many from cells alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from contracts.limits import LISTED_VALUES_MAX
from contracts.relations import RelationContract
from contracts.resolutions import ResolvedSet
from ledger._answers import conflict, resolved
from ledger._cells import cell_of
from ledger._decide import State, Verdict
from ledger._deciding import court_over
from ledger._excerpt import Excerpt, NotSureError, Read
from ledger._found import Found
from ledger._intervals import NEVER, lower, upper
from ledger._lines import Cell
from ledger._piece import Pieces, pieces_of
from ledger._world import Key, Reader

# Of each line the last that touches the window: an occurrence is told once, however often it was moved.
# Listed are those that happened last.
_WITHIN: Final = sa.text(
    "SELECT l.part, c.*, count(*) OVER (PARTITION BY c.state) AS amount FROM line l CROSS JOIN LATERAL ("
    "SELECT lower(c.valid) AS valid_from, upper(c.valid) AS valid_to, lower(c.known) AS known_from, "
    "upper(c.known) AS known_to, c.state, c.claims, c.seal, c.starts FROM cell c "
    "WHERE c.tenant = :tenant AND c.line = l.line AND c.known @> CAST(:cut AS bigint) "
    "AND c.valid && tstzrange(CAST(:start AS timestamptz), CAST(:end AS timestamptz)) "
    "AND c.state IN ('value', 'conflict') ORDER BY c.starts DESC LIMIT 1) AS c "
    "WHERE l.tenant = :tenant AND l.epoch = :epoch AND l.entity = :entity AND l.relation = :relation "
    "ORDER BY c.starts DESC, l.part LIMIT :limit"
)


async def occurred(reader: Reader, key: Key, *, start: datetime | None, end: datetime | None) -> ResolvedSet:
    """
    Return the occurrences on a key that fall into `[start, end)`, None being an open bound.

    Raises:
        IntegrityFault: A claim, contract or cell that was read is not what was written.
    """
    pieces = await pieces_of(reader, [key], at=None)
    contract = pieces.ground.contracts.of(key[1])
    piece = pieces.whole(key)
    if piece is None:
        try:
            return await _from_cells(reader, key, pieces, start=start, end=end)
        except NotSureError:
            claims, _ = await reader.world([key], pieces.ground.merges)
    else:
        claims = [claim for one in piece for claim in pieces.found[one].claims]
    found = court_over(claims, pieces.ground).within(*key, lower(start), upper(end))
    return _set(sorted(found.items()), contract, counts=None)


async def _from_cells(
    reader: Reader, key: Key, pieces: Pieces, *, start: datetime | None, end: datetime | None
) -> ResolvedSet:
    if pieces.is_buried(key):
        raise NotSureError
    parameters: dict[str, Any] = {
        "tenant": reader.keys.tenant,
        "epoch": reader.epoch,
        "cut": reader.cut,
        "entity": key[0],
        "relation": key[1],
        "start": start,
        "end": end,
        "limit": LISTED_VALUES_MAX,
    }
    cells: dict[str, Cell] = {}
    counts: dict[str, int] = {}
    for row in await reader.conn.execute(_WITHIN, parameters):
        cells[row.part] = cell_of(row, None, key, reader.keys, reader.epoch)
        counts[row.state] = row.amount
    named = await reader.by_id(name for cell in cells.values() for name in cell.segment.claims)
    # What else was said of each is not listed: at no instant is any of it asked for.
    found = Found(cells=cells, counts=counts)
    further = [*named.values()]
    read = Read(key=key, names=frozenset({key}), at=NEVER, found=found, others=(), further=further)
    verdict = Excerpt(read, pieces.ground, reader.keys).verdict()
    return _set(verdict.lines, pieces.ground.contracts.of(key[1]), counts=counts)


def _set(
    lines: Iterable[tuple[str, Verdict]], contract: RelationContract, *, counts: Mapping[str, int] | None
) -> ResolvedSet:
    members, disputed = [], []
    for part, verdict in lines:
        if verdict.state == State.VALUE:
            members.append(resolved(part, verdict, contract))
        elif verdict.state == State.CONFLICT:
            disputed.append(conflict(verdict, contract))
    return ResolvedSet(
        members=tuple(members),
        disputed=tuple(disputed),
        members_count=len(members) if counts is None else counts.get(State.VALUE, 0),
        disputed_count=len(disputed) if counts is None else counts.get(State.CONFLICT, 0),
    )
