"""Which keys a relation has, and which relations a tenant has, by an index of lines."""

from __future__ import annotations

from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.views import View
from ledger._keys import TenantKeys
from ledger._world import Key, Reader

HOLDERS_LINES_MAX: Final = 256
"""Lines of one relation that are looked at where it is asked whose value something is."""
RELATIONS_READ_MAX: Final = 256
"""Relations of a tenant that are read, in the order of their names."""

# By `line_of_relation`: as many steps as lines are asked for, however many the tenant has.
_LINES: Final = (
    "SELECT l.entity, EXISTS (SELECT FROM cell AS c WHERE c.tenant = l.tenant AND c.line = l.line "
    "AND lower(c.known) <= %(cut)s) AS is_known FROM line AS l WHERE l.tenant = %(tenant)s "
    "AND l.epoch = %(epoch)s AND l.relation = %(relation)s ORDER BY l.line LIMIT %(limit)s"
)
_RELATIONS: Final = (
    "WITH RECURSIVE step(relation) AS ("
    "SELECT (SELECT l.relation FROM line l WHERE l.tenant = %(tenant)s AND l.epoch = %(epoch)s "
    "ORDER BY l.relation LIMIT 1) "
    "UNION ALL SELECT (SELECT l.relation FROM line l WHERE l.tenant = %(tenant)s AND l.epoch = %(epoch)s "
    "AND l.relation > s.relation ORDER BY l.relation LIMIT 1) FROM step s WHERE s.relation IS NOT NULL"
    ") SELECT relation FROM step WHERE relation IS NOT NULL LIMIT %(limit)s"
)


async def keys_of_relation(
    conn: AsyncConnection, keys: TenantKeys, view: View, relation: str
) -> tuple[tuple[Key, ...], bool]:
    """
    Return the keys of a relation that were known by a view's cut, and whether these are all.

    At most `HOLDERS_LINES_MAX` lines are looked at, those that came first: what comes later changes no
    answer at an older view. A key of many values has a line for each.
    """
    reader = Reader(conn=conn, keys=keys, epoch=view.epoch, cut=view.cut)
    bound = {
        "tenant": keys.tenant, "epoch": view.epoch, "cut": view.cut, "relation": relation,
        "limit": HOLDERS_LINES_MAX + 1,
    }  # fmt: skip
    lines = await reader.rows(_LINES, bound)
    known = [entity for entity, is_known in lines if is_known]
    found = tuple((entity, relation) for entity in dict.fromkeys(known[:HOLDERS_LINES_MAX]))
    return found, len(known) <= HOLDERS_LINES_MAX


async def relations_of_tenant(conn: AsyncConnection, keys: TenantKeys, view: View) -> tuple[str, ...]:
    """Return the relations on which anything was ever decided in an epoch, at most `RELATIONS_READ_MAX`."""
    reader = Reader(conn=conn, keys=keys, epoch=view.epoch, cut=view.cut)
    bound = {"tenant": keys.tenant, "epoch": view.epoch, "limit": RELATIONS_READ_MAX}
    return tuple(relation for (relation,) in await reader.rows(_RELATIONS, bound))
