"""Which keys a relation has, and which relations a tenant has, by an index of lines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.views import View
from ledger._keys import TenantKeys
from ledger._read import last_erasure
from ledger._world import Key, Reader

HOLDERS_LINES_MAX: Final = 256
"""Lines of one relation that are looked at where it is asked whose value something is."""
RELATIONS_READ_MAX: Final = 256
"""Relations of a tenant that are read; past them nothing is said of what is asked on those that it has."""

# By `line_of_relation`: as many steps as lines are asked for, however many the tenant has.
# Each line by itself: `OFFSET 0` keeps the planner from joining all cells to the lines.
_IS_KNOWN: Final = (
    "EXISTS (SELECT FROM cell AS c WHERE c.tenant = %(tenant)s AND c.line = l.line "
    "AND lower(c.known) <= %(cut)s OFFSET 0)"
)
_LINES: Final = (
    "SELECT l.entity FROM (SELECT line, entity FROM line WHERE tenant = %(tenant)s "  # noqa: S608
    "AND epoch = %(epoch)s AND relation = %(relation)s ORDER BY line LIMIT CAST(%(looked_at)s AS bigint)"
    f") AS l WHERE {_IS_KNOWN} ORDER BY l.line LIMIT %(limit)s"
)
_RELATIONS: Final = (
    "WITH RECURSIVE step(relation) AS ("  # noqa: S608
    "SELECT (SELECT l.relation FROM line l WHERE l.tenant = %(tenant)s AND l.epoch = %(epoch)s "
    "ORDER BY l.relation LIMIT 1) "
    "UNION ALL SELECT (SELECT l.relation FROM line l WHERE l.tenant = %(tenant)s AND l.epoch = %(epoch)s "
    "AND l.relation > s.relation ORDER BY l.relation LIMIT 1) FROM step s WHERE s.relation IS NOT NULL"
    ") SELECT s.relation FROM step AS s WHERE s.relation IS NOT NULL AND EXISTS ("
    "SELECT FROM (SELECT line FROM line WHERE tenant = %(tenant)s AND epoch = %(epoch)s "
    "AND relation = s.relation ORDER BY line LIMIT CAST(%(looked_at)s AS bigint)"
    f") AS l WHERE {_IS_KNOWN}) LIMIT %(limit)s"
)


async def keys_of_relation(
    conn: AsyncConnection, keys: TenantKeys, view: View, relation: str
) -> tuple[tuple[Key, ...], bool]:
    """
    Return the keys of a relation that were known by a view's cut, and whether these are all.

    At most `HOLDERS_LINES_MAX` lines are looked at, those that came first: what comes later changes no
    answer at an older view. A key of many values has a line for each. Of a view that is older than an
    erasure, lines that came after it are looked at too, until as many are found.
    """
    reader = Reader(conn=conn, keys=keys, epoch=view.epoch, cut=view.cut)
    bound = {
        "tenant": keys.tenant, "epoch": view.epoch, "cut": view.cut, "relation": relation,
        "looked_at": await _looked_at(conn, view, HOLDERS_LINES_MAX + 1), "limit": HOLDERS_LINES_MAX + 1,
    }  # fmt: skip
    known = [entity for (entity,) in await reader.rows(_LINES, bound)]
    found = tuple((entity, relation) for entity in dict.fromkeys(known[:HOLDERS_LINES_MAX]))
    return found, len(known) <= HOLDERS_LINES_MAX


async def erased_beside(
    conn: AsyncConnection, keys: TenantKeys, view: View, relation: str, entities: Iterable[str]
) -> bool:
    """
    Return whether something was said, by a view's cut, on a key of a relation that was erased since.

    Args:
        conn: A snapshot of the tenant.
        keys: The tenant's.
        view: What was said after its cut does not count.
        relation: Of which relation.
        entities: Those whose keys are left out.
    """
    graves = Reader(conn=conn, keys=keys, epoch=view.epoch, cut=view.cut).graves
    return await graves.are_there() and await graves.are_beside(relation, entities)


async def relations_of_tenant(
    conn: AsyncConnection, keys: TenantKeys, view: View
) -> tuple[tuple[str, ...], bool]:
    """
    Return the relations on which anything was decided by a view's cut, by name, and whether these are all.

    At most `RELATIONS_READ_MAX`.
    """
    reader = Reader(conn=conn, keys=keys, epoch=view.epoch, cut=view.cut)
    bound = {
        "tenant": keys.tenant, "epoch": view.epoch, "cut": view.cut,
        "looked_at": await _looked_at(conn, view, 1), "limit": RELATIONS_READ_MAX + 1,
    }  # fmt: skip
    found = tuple(relation for (relation,) in await reader.rows(_RELATIONS, bound))
    return found[:RELATIONS_READ_MAX], len(found) <= RELATIONS_READ_MAX


async def _looked_at(conn: AsyncConnection, view: View, lines: int) -> int | None:
    """Return how many lines suffice where the first `lines` are wanted by a cut; None where all may be."""
    # Lines are numbered as they came to be. An erasure makes some anew, behind those that came later.
    return lines if await last_erasure(conn) <= view.cut else None
