"""What happened on a key, where a question asks for it as a whole and not for one instant."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.proposals import Operation, Plan
from contracts.relations import Cardinality
from contracts.resolutions import KeyResolution
from ledger.log import TenantKeys
from ledger.resolve import occurrences

# Time is counted in microseconds: what covers the instant of the view has begun by then.
_INSTANT: Final = timedelta(microseconds=1)


async def as_asked(
    conn: AsyncConnection, keys: TenantKeys, plan: Plan, resolution: KeyResolution
) -> KeyResolution:
    """
    Return the resolution of a named key with all occurrences up to the view's valid time.

    "How many places has Ann visited?" asks for every visit, not for those of this instant; what
    goes on now does not. A key of another cardinality, or without an occurrence, stays as it is.

    Raises:
        IntegrityFault: A claim or contract that was read is not what was written.
    """
    if resolution.contract.cardinality != Cardinality.OCCURRENCE or plan.operation == Operation.CURRENT_STATE:
        return resolution
    view = resolution.view
    found = await occurrences(
        conn,
        keys,
        view,
        resolution.entity,
        resolution.relation,
        start=None,
        end=view.valid_at + _INSTANT,
    )
    return replace(resolution, resolution=found) if found.members or found.disputed else resolution
