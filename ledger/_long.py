"""
A key with more claims than an answer may list: its cell decides, and the newest claims are shown.

Only where the line's tail says that each claim can replace each other: then the claims between the
cell's own and the instant all say the same. Elsewhere the caller works the answer out from claims.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import sqlalchemy as sa

from contracts.claims import Claim
from contracts.contexts import Mark
from contracts.errors import IntegrityFault
from contracts.events import Stance
from contracts.limits import LISTED_CLAIMS_MAX
from contracts.relations import Cardinality, RelationContract
from contracts.resolutions import KeyResolution, Missing, MissingReason, Resolution, Resolved
from contracts.views import View
from ledger._answers import newest
from ledger._cells import Cells
from ledger._decide import State
from ledger._identity import Merges
from ledger._lines import Cell
from ledger._relations import Contracts
from ledger._values import Normals
from ledger._world import Key, Reader

SHOWN_MAX: Final = 100
"""Claims of such a key that are read for what carried and what was superseded."""

_NEWEST: Final = sa.text(
    "SELECT c.claim_id FROM claim c WHERE c.tenant = :tenant AND c.epoch = :epoch AND c.entity = :entity "
    "AND c.relation = :relation AND c.position <= (SELECT first_position + event_count - 1 FROM commit "
    "WHERE tenant = :tenant AND commit = :cut) ORDER BY c.position DESC, c.ordinal DESC LIMIT :limit"
)


_SIZES: Final = sa.text(
    "SELECT k.entity, k.relation, (SELECT count(*) FROM (SELECT FROM claim c WHERE c.tenant = :tenant "
    "AND c.epoch = :epoch AND c.entity = k.entity AND c.relation = k.relation AND c.commit <= :cut "
    "LIMIT :limit) AS counted) AS size "
    "FROM unnest(CAST(:entities AS text[]), CAST(:relations AS text[])) AS k(entity, relation)"
)


async def long_keys(
    reader: Reader, view: View, wanted: Iterable[Key], contracts: Contracts, merges: Merges
) -> dict[Key, KeyResolution]:
    """
    Return the answers of those keys that have too many claims to be listed and a cell that decides.

    Raises:
        IntegrityFault: A claim that was read is not what was written.
    """
    named = {*merges.identity.root, *merges.contested, *merges.doubted}
    ordered = sorted(key for key in set(wanted) if key[0] not in named)
    parameters: dict[str, Any] = {
        "tenant": reader.keys.tenant,
        "epoch": reader.epoch,
        "cut": reader.cut,
        "limit": LISTED_CLAIMS_MAX + 1,
        "entities": [entity for entity, _ in ordered],
        "relations": [relation for _, relation in ordered],
    }
    rows = await reader.conn.execute(_SIZES, parameters)
    long = [(row.entity, row.relation) for row in rows if row.size > LISTED_CLAIMS_MAX]
    found: dict[Key, KeyResolution] = {}
    for key in long:
        answer = await _long_answer(reader, view, key, contracts.of(key[1]))
        if answer is not None:
            found[key] = answer
    return found


def long_mark(answer: KeyResolution, claim: Claim) -> tuple[Mark, int | None]:
    """Return how the ledger stands to a claim on such a key."""
    if claim.validity.start is None or claim.validity.start > answer.view.valid_at:
        return Mark.PLAIN, None
    match answer.resolution:
        case Resolved(claims=claims):
            first = claims[0]
            if _order(claim) >= _order(first) and _says(claim, first, answer.contract):
                return Mark.ACTIVE, None
            return Mark.SUPERSEDED, max(first.commit, claim.commit)
        case _:
            return Mark.SUPERSEDED, None


async def _long_answer(
    reader: Reader, view: View, key: Key, contract: RelationContract
) -> KeyResolution | None:
    """Return the answer of a long key from its cell; None where the claims have to decide it."""
    # Which names are one entity is no matter of a tail.
    if contract.cardinality != Cardinality.ONE or contract.value_type == "entity":
        return None
    table = Cells(conn=reader.conn, tenant=reader.keys.tenant, epoch=reader.epoch)
    lines = await table.lines([key])
    if len(lines) != 1 or lines[0].tail is None:
        return None
    line_id = lines[0].line_id
    cells = (await table.cells_at([line_id], cut=view.cut, at=view.valid_at)).get(line_id, [])
    parameters = {
        "tenant": reader.keys.tenant,
        "epoch": reader.epoch,
        "entity": key[0],
        "relation": key[1],
        "cut": view.cut,
        "limit": SHOWN_MAX,
    }
    shown = [bytes(row.claim_id).hex() for row in await reader.conn.execute(_NEWEST, parameters)]
    named = [claim for cell in cells for claim in cell.segment.claims]
    claims = await reader.by_id([*shown, *named])
    if any(name not in claims for name in named):
        raise IntegrityFault(what="a cell names a claim that is not there")
    before = [
        claim
        for claim in claims.values()
        if claim.validity.start is not None and claim.validity.start <= view.valid_at
    ]
    return KeyResolution(
        entity=key[0],
        relation=key[1],
        view=view,
        contract=contract,
        resolution=_resolution(cells, claims, before, contract),
        disputes=(),
        unplaced=(),
    )


def _resolution(
    cells: Sequence[Cell], claims: dict[str, Claim], before: list[Claim], contract: RelationContract
) -> Resolution:
    state = cells[0].segment.state if cells else State.ABSENT.value
    match state:
        case State.VALUE.value | State.ENDED.value:
            first = claims[cells[0].segment.claims[0]]
        case State.UNDETERMINED.value:
            return Missing(reason=MissingReason.UNDETERMINED, superseded=(), withdrawn=())
        case State.ABSENT.value:
            return Missing(reason=MissingReason.NOT_VALID_THEN, superseded=(), withdrawn=())
        case _:
            raise IntegrityFault(what="a cell has a state that its line cannot have")
    carrying = [claim for claim in before if _order(claim) >= _order(first) and _says(claim, first, contract)]
    carried = {claim.claim_id for claim in carrying}
    superseded = [claim for claim in before if claim.claim_id not in carried]
    if state == State.ENDED.value:
        return Missing(reason=MissingReason.ENDED, superseded=newest(superseded), withdrawn=())
    latest = max(carrying, key=_order)
    return Resolved(
        value=latest.value, claims=newest(carrying), superseded=newest(superseded), count_identity=None
    )


def _order(claim: Claim) -> tuple[object, object]:
    return claim.validity.start, claim.position


def _says(claim: Claim, other: Claim, contract: RelationContract) -> bool:
    ends = (claim.stance == Stance.END, other.stance == Stance.END)
    if any(ends):
        return all(ends)
    normals = Normals({})
    return normals.of(claim.value, contract) == normals.of(other.value, contract)
