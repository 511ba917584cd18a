"""What a question asks of a key: all that happened on it, or what it has at one instant for certain."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.proposals import Operation, Plan
from contracts.relations import Cardinality
from contracts.resolutions import KeyResolution
from contracts.times import MICROSECOND
from ledger.log import TenantKeys
from ledger.resolve import as_certain, occurrences

# Time is counted in microseconds: what covers the instant of the view has begun by then.


async def as_asked(
    conn: AsyncConnection, keys: TenantKeys, plan: Plan, resolution: KeyResolution
) -> KeyResolution:
    """
    Return the resolution of a named key with all occurrences up to the view's valid time.

    "How many places has Ann visited?" asks for every visit, not for those of this instant; what
    goes on now does not. One without an occurrence stays as it is. Of another cardinality a key has
    nothing where it may be that something else already held, which is told coarsely ("in 2023").

    Raises:
        IntegrityFault: A claim or contract that was read is not what was written.
    """
    view = resolution.view
    if resolution.contract.cardinality != Cardinality.OCCURRENCE:
        return await as_certain(conn, keys, resolution, until=view.valid_at + MICROSECOND)
    if plan.operation == Operation.CURRENT_STATE:
        return resolution
    found = await occurrences(
        conn,
        keys,
        view,
        resolution.entity,
        resolution.relation,
        start=None,
        end=view.valid_at + MICROSECOND,
    )
    return replace(resolution, resolution=found) if found.members or found.disputed else resolution
