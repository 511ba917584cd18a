"""
Numbers that were said without a unit, where a contract would give them another than they had.

A plain number is in the unit of the contract under which it was said. A rebuild reads every claim by
the contract of its epoch: a five that was said in km would be one in m.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import BadRequest, Unavailable
from contracts.events import Event
from contracts.limits import APPEND_EVENTS_MAX
from contracts.relations import RelationContract
from contracts.values import NotOfType, read_number
from ledger._keys import TenantKeys
from ledger._read import read_events_by_id

# A row's body is canonical JSON and begins with its value: a number, be it as text or under "value".
_NUMBER: Final = r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?"
_PLAIN: Final = rf'\[({_NUMBER}|"\s*{_NUMBER}\s*"|\{{"value":{_NUMBER}\}}),'
# A correction without a key of its own may be of any relation that it bears on.
_SAID: Final = sa.text(
    "SELECT EXISTS (SELECT FROM claim c WHERE c.tenant = :tenant "
    "AND c.epoch = ANY(CAST(:epochs AS integer[])) "
    "AND (c.relation = :relation OR (c.relation = '' AND EXISTS (SELECT FROM reach r "
    "WHERE r.tenant = c.tenant AND r.epoch = c.epoch AND r.claim_id = c.claim_id "
    "AND r.relation = :relation))) "
    "AND encode(c.body, 'escape') ~ ('^' || :plain))"
)
_WAITING: Final = sa.text(
    "SELECT e.event_id FROM event e JOIN epoch p ON p.tenant = e.tenant AND p.state = 'serving' "
    "WHERE e.tenant = :tenant AND e.position > p.position ORDER BY e.position LIMIT :limit"
)


async def check_unit_change(
    conn: AsyncConnection,
    keys: TenantKeys,
    before: RelationContract,
    contract: RelationContract,
    *,
    epochs: Sequence[int],
) -> None:
    """
    Refuse a contract that would read plain numbers of its relation in another unit than they were said in.

    Raises:
        BadRequest: There are such numbers.
        Unavailable: Too much of the log waits to be folded to tell.
        IntegrityFault: An event is not what was written.
    """
    if before.unit == contract.unit:
        return
    bound = {"tenant": keys.tenant, "epochs": list(epochs), "relation": contract.relation, "plain": _PLAIN}
    if await conn.scalar(_SAID, bound) or await _is_waiting(conn, keys, contract.relation):
        had = "no unit" if before.unit is None else f"the unit {before.unit}"
        raise BadRequest(
            field="unit",
            reason=f"numbers were said on {contract.relation} without a unit, and had {had}: they would "
            "be read in another; register another relation",
        )


async def _is_waiting(conn: AsyncConnection, keys: TenantKeys, relation: str) -> bool:
    """Return whether such a number stands in the log behind what is folded."""
    bound = {"tenant": keys.tenant, "limit": APPEND_EVENTS_MAX + 1}
    names = list(await conn.scalars(_WAITING, bound))
    if len(names) > APPEND_EVENTS_MAX:
        raise Unavailable(part="relations", reason="too many events are not folded yet")
    events = await read_events_by_id(conn, keys, names)
    return any(
        claim.relation in {relation, None} and claim.value is not None and _is_plain(claim.value)
        for event in events.values()
        if isinstance(event, Event)
        for claim in event.draft.claims
    )


def _is_plain(value: object) -> bool:
    try:
        return read_number(value).unit is None
    except NotOfType:
        return False
