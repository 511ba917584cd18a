"""
Plain keys: all that was ever claimed on them are states that replace each other, and nothing acts on them.

Most keys are, and all that one's answer is made from comes with the pinning of the view, in one call:
`echoplane_read` in 0002_lookup.sql. It is decided like any other key. Of any other key nothing comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from contracts.claims import Claim
from contracts.errors import IntegrityFault, NotYet
from contracts.limits import LISTED_CLAIMS_MAX
from contracts.resolutions import KeyResolution
from contracts.views import View, ViewRequest
from ledger._cells import cell_of
from ledger._claims import claim_of, micros
from ledger._database import Database
from ledger._decide import State
from ledger._deciding import decide_alone
from ledger._excerpt import NotSureError
from ledger._found import Found
from ledger._glance import Row, glance, seen
from ledger._ground import Ground, contracts_kept
from ledger._identity import NO_MERGES
from ledger._intervals import lower
from ledger._keys import TenantKeys
from ledger._values import normal_form
from ledger._world import Key


async def read_plain(
    db: Database, keys: TenantKeys, request: ViewRequest, key: Key
) -> KeyResolution | View | NotYet:
    """
    Pin a view and answer a key at it, in one round trip; the view alone where the key is not plain.

    So too where its contracts are not in memory yet: which of the two ways an answer takes is no part of it.

    Raises:
        NotFound: No such tenant.
        EpochDropped: The epoch asked for is there no more.
        IntegrityFault: A claim or cell that was read is not what was written.
        Unavailable: The database is down or busy.
    """
    rows = await glance(db, keys.tenant, request, key, claims_max=LISTED_CLAIMS_MAX)
    view = seen(rows, request)
    if isinstance(view, NotYet):
        return view
    contracts = contracts_kept(keys, rows[0].claim_id)
    plain = [row for row in rows if row.kind == "plain" and row.state == State.VALUE]
    if contracts is None or not plain:
        return view
    ground = Ground(contracts=contracts, merges=NO_MERGES, has_tombstones=False)
    found = _found(plain[0], [row for row in rows if row.kind == "own"], keys, view, key)
    if found.is_long:
        _check_newest(found, ground, at=micros(view.valid_at))
    try:
        return decide_alone(keys, view, key, found, ground)
    except NotSureError:
        return view


def _found(plain: Row, own: Iterable[Row], keys: TenantKeys, view: View, key: Key) -> Found:
    """Return what was read in the form that other keys are read in."""
    cell = cell_of(plain, None, key, keys, view.epoch)
    claims = sorted((_claim(row, keys, view) for row in own), key=lambda claim: claim.position)
    found = Found(cells={plain.part: cell}, counts={cell.segment.state: 1}, own=claims)
    first = _claim(plain, keys, view)
    if cell.segment.claims != (first.claim_id,):
        raise IntegrityFault(what="a cell names a claim that is not there")
    if all(claim.claim_id != first.claim_id for claim in found.own):
        found.named.append(first)
    return found


def _claim(row: Row, keys: TenantKeys, view: View) -> Claim:
    columns = {
        "tenant": keys.tenant, "epoch": view.epoch, "claim_id": row.claim_id, "position": row.position,
        "ordinal": row.ordinal, "commit": row.commit, "event_id": row.event_id, "entity": row.entity,
        "relation": row.relation, "stance": row.stance, "body": row.body, "seal": row.claim_seal,
    }  # fmt: skip
    return claim_of(columns, keys=keys)


def _check_newest(found: Found, ground: Ground, *, at: int) -> None:
    """Refuse a cell that the newest claims contradict: one of before, that was put back."""
    [cell] = found.cells.values()
    named = next(claim for claim in found.claims if claim.claim_id in cell.segment.claims)
    standing = [claim for claim in found.claims if lower(claim.validity.start) <= at]
    later = [claim for claim in standing if _order(claim) > _order(named)]
    contract = ground.contracts.of(named.relation)
    value = normal_form(named.value, contract)
    if any(claim.value is None or normal_form(claim.value, contract) != value for claim in later):
        raise IntegrityFault(what="the cells of a key do not follow from its claims")


def _order(claim: Claim) -> tuple[int, Sequence[int]]:
    return lower(claim.validity.start), (claim.position.event, claim.position.ordinal)
