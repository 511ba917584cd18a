"""Reading relation contracts for people: which ones decide at a view."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.relations import RelationContract
from contracts.views import View
from ledger._keys import TenantKeys
from ledger._relations import unregistered
from ledger._world import Reader


async def registered_contracts(
    conn: AsyncConnection, keys: TenantKeys, view: View
) -> Mapping[str, RelationContract]:
    """
    Return the contracts that were registered up to a view's cut, by relation.

    Raises:
        IntegrityFault: One of them is not what was written.
    """
    reader = Reader(conn=conn, keys=keys, epoch=view.epoch, cut=view.cut)
    return (await reader.contracts()).registered


def usual_contract(relation: str) -> RelationContract:
    """Return the contract of a relation that nobody registered."""
    return unregistered(relation)
