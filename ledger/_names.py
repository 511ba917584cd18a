"""Which names the record holds: entities, what is claimed on them, and who speaks as a user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.claims import ASSISTANT, SENSOR, USER
from contracts.views import View
from ledger._identity import identity_of
from ledger._keys import TenantKeys
from ledger._world import Reader

RELATIONS_OF_ENTITY_MAX: Final = 256
"""Relations of one entity that are read, in the order of their names."""

# One probe of the index a name, and one a relation: what a name has many claims of is not read through.
_ENTITIES: Final = (
    # In order, for else a name that is not there is looked for in every claim, where there are few names.
    "SELECT k.entity FROM unnest(CAST(%(names)s AS text[])) AS k(entity) WHERE (SELECT c.relation "
    "FROM claim c WHERE c.tenant = %(tenant)s AND c.epoch = %(epoch)s AND c.entity = k.entity "
    "AND c.commit <= %(cut)s ORDER BY c.relation LIMIT 1) IS NOT NULL"
)
_RELATIONS: Final = (
    "WITH RECURSIVE step(entity, relation) AS ("
    "SELECT k.entity, (SELECT c.relation FROM claim c WHERE c.tenant = %(tenant)s AND c.epoch = %(epoch)s "
    "AND c.entity = k.entity AND c.commit <= %(cut)s ORDER BY c.relation LIMIT 1) "
    "FROM unnest(CAST(%(names)s AS text[])) AS k(entity) "
    "UNION ALL SELECT s.entity, (SELECT c.relation FROM claim c WHERE c.tenant = %(tenant)s "
    "AND c.epoch = %(epoch)s AND c.entity = s.entity AND c.relation > s.relation AND c.commit <= %(cut)s "
    "ORDER BY c.relation LIMIT 1) FROM step s WHERE s.relation IS NOT NULL"
    ") SELECT entity, relation FROM step WHERE relation IS NOT NULL LIMIT %(limit)s"
)
_USERS: Final = (
    "SELECT u.actor, min(u.commit) AS commit FROM (SELECT c.commit, "
    "convert_from(c.body, 'UTF8')::json #>> '{2,0}' AS actor, "
    "convert_from(c.body, 'UTF8')::json #>> '{2,1}' AS class "
    "FROM claim c WHERE c.tenant = %(tenant)s AND c.epoch = %(epoch)s AND c.commit > %(after)s "
    "AND c.commit <= %(cut)s) AS u WHERE u.class = %(user)s GROUP BY u.actor ORDER BY 2, 1 LIMIT 2"
)
# Who speaks of itself, and is no person: the agent whose memory it is.
_AGENTS: Final = (
    "SELECT u.actor, min(u.commit) AS commit FROM (SELECT c.commit, c.entity, "
    "convert_from(c.body, 'UTF8')::json #>> '{2,0}' AS actor, "
    "convert_from(c.body, 'UTF8')::json #>> '{2,1}' AS class "
    "FROM claim c WHERE c.tenant = %(tenant)s AND c.epoch = %(epoch)s AND c.commit > %(after)s "
    "AND c.commit <= %(cut)s) AS u WHERE u.class = ANY(CAST(%(classes)s AS text[])) AND u.actor = u.entity "
    "GROUP BY u.actor ORDER BY 2, 1 LIMIT 2"
)


async def claimed_on(
    conn: AsyncConnection, keys: TenantKeys, view: View, names: Iterable[str]
) -> Mapping[str, frozenset[str]]:
    """
    Return those of some names that the record knows by the view's cut, each with its relations.

    Known is what something is claimed on, and either name of a `same_as`. Relations are those of
    the entity and of all that it is one with. It says nothing about what is current.

    Raises:
        IntegrityFault: A claim or contract about who is one with whom is not what was written.
    """
    reader = Reader(conn=conn, keys=keys, epoch=view.epoch, cut=view.cut)
    bound = {"tenant": keys.tenant, "epoch": view.epoch, "cut": view.cut}
    wanted = sorted(set(names))
    if not wanted:
        return {}
    identities = await reader.identity_claims()
    found = {entity for (entity,) in await reader.rows(_ENTITIES, {**bound, "names": wanted})}
    found |= {claim.value for claim in identities if isinstance(claim.value, str)} & set(wanted)
    merges = identity_of(identities, await reader.contracts())
    members = {name: merges.members.get(merges.identity.entity(name), (name,)) for name in found}
    every = sorted({member for names in members.values() for member in names})
    limit = RELATIONS_OF_ENTITY_MAX * max(1, len(every))
    relations: dict[str, set[str]] = {}
    for entity, relation in await reader.rows(_RELATIONS, {**bound, "names": every, "limit": limit}):
        relations.setdefault(entity, set()).add(relation)
    return {
        name: frozenset(relation for member in own for relation in relations.get(member, ()))
        for name, own in members.items()
    }


async def first_users(
    conn: AsyncConnection, keys: TenantKeys, *, epoch: int, after: int, cut: int
) -> list[tuple[str, int]]:
    """
    Return the two actors of class `user` that claimed something first, each with its first commit.

    Only commits in `(after, cut]` are read. Two are enough to know whether a tenant has one only.
    """
    bound = {"tenant": keys.tenant, "epoch": epoch, "after": after, "cut": cut, "user": USER}
    reader = Reader(conn=conn, keys=keys, epoch=epoch, cut=cut)
    return [(actor, commit) for actor, commit in await reader.rows(_USERS, bound)]


async def first_agents(
    conn: AsyncConnection, keys: TenantKeys, *, epoch: int, after: int, cut: int
) -> list[tuple[str, int]]:
    """
    Return the two sensors or assistants that claimed something of themselves first, each with its commit.

    Only commits in `(after, cut]` are read. Two are enough to know whether a tenant has one only.
    """
    bound = {"tenant": keys.tenant, "epoch": epoch, "after": after, "cut": cut}
    reader = Reader(conn=conn, keys=keys, epoch=epoch, cut=cut)
    rows = await reader.rows(_AGENTS, {**bound, "classes": [SENSOR, ASSISTANT]})
    return [(actor, commit) for actor, commit in rows]
