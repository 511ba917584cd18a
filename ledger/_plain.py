"""
Plain keys: all that was ever claimed on them are states that replace each other, and nothing acts on them.

Most keys are, and all that one's answer is made from comes with the pinning of the view, in one call:
`echoplane_read` in 0002_lookup.sql. It is decided like any other key. Of any other key nothing comes.
"""

from __future__ import annotations

from collections.abc import Iterable

from contracts.errors import NotYet
from contracts.resolutions import KeyResolution
from contracts.views import View, ViewRequest
from ledger._cells import cell_of
from ledger._database import Database
from ledger._decide import State
from ledger._found import Found, check_named, claims_read_max, take_claims
from ledger._glance import glance, seen
from ledger._ground import Ground, contracts_kept
from ledger._identity import NO_MERGES
from ledger._keys import TenantKeys
from ledger._stated import states_answer
from ledger._told import Row
from ledger._world import Key


async def read_plain(
    db: Database, keys: TenantKeys, request: ViewRequest, key: Key
) -> KeyResolution | View | NotYet:
    """
    Pin a view and answer a key at it, in one round trip; the view alone where the key is not plain.

    So too where its contracts are not in memory yet: which of the two ways an answer takes is no part of it.
    And so where a state with a coarse start may hold already: what that leaves open is read in other calls.

    Raises:
        NotFound: No such tenant.
        EpochDropped: The epoch asked for is there no more.
        IntegrityFault: A claim or cell that was read is not what was written.
        Unavailable: The database is down or busy.
    """
    rows = await glance(db, keys.tenant, request, key, claims_max=claims_read_max())
    view = seen(rows, request)
    if isinstance(view, NotYet):
        return view
    contracts = contracts_kept(keys, rows[0].seal)
    plain = next((row for row in rows if row.kind == "plain"), None)
    if contracts is None or plain is None or plain.state != State.VALUE or plain.key:
        return view
    ground = Ground(contracts=contracts, merges=NO_MERGES, has_tombstones=False)
    answer = states_answer(_found(plain, rows, keys, view, key), key, view, ground)
    return view if answer is None else answer


def _found(plain: Row, rows: Iterable[Row], keys: TenantKeys, view: View, key: Key) -> Found:
    """Return what was read in the form that other keys are read in."""
    cell = cell_of(plain, None, key, keys, view.epoch)
    found = Found(cells={plain.part: cell}, counts={cell.segment.state: 1})
    telling = [row for row in rows if row.kind in {"own", "named"}]
    count = len(telling)
    take_claims([found] * count, telling, [key] * count, keys, epoch=view.epoch)
    check_named(found)
    return found
