"""
Decide what is current: the only door that does, and it takes no score, rank or similarity.

Promises: every answer is a pure function of (key, valid time, cut, epoch). It is looked up in sealed
cells, in as many steps however long the history is, and worked out again from the claims of the key
where an answer lists all of them; if the two differ, it is refused. `verify_cells` proves all cells.
Does not promise: that an answer is true; it is what the ledger was told, with who told it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import NotYet
from contracts.histories import Rectangle, Withdrawn
from contracts.identity import IDENTITY
from contracts.limits import WITHDRAWN_MAX
from contracts.resolutions import Doubt, KeyResolution, ResolvedSet
from contracts.times import MICROSECOND
from contracts.views import View, ViewRequest
from ledger._coarse import as_certain, doubt_of
from ledger._contracts_read import registered_contracts, usual_contract
from ledger._database import Database
from ledger._deciding import answers, decide
from ledger._found import found_on
from ledger._ground import ground_of
from ledger._history import EVERYTHING, History, Window, history, known_commits, timeline
from ledger._holders import erased_beside, keys_of_relation, relations_of_tenant
from ledger._identity_answers import identity_answer
from ledger._keys import TenantKeys
from ledger._names import claimed_on, first_agents, first_users
from ledger._occurred import occurred
from ledger._pin import pin
from ledger._plain import read_plain
from ledger._reads_diff import Change, Difference, Stand, diff
from ledger._reads_join import Held, Joined, Pair, join
from ledger._tenants import tenant_keys
from ledger._verify_cells import CellsReport, verify_cells
from ledger._views import PinnedView, pin_view, pinned_view, pinned_views, unpin_view
from ledger._world import Key, Reader

__all__ = [
    "EVERYTHING",
    "CellsReport",
    "Change",
    "Difference",
    "Held",
    "History",
    "Joined",
    "Pair",
    "PinnedView",
    "Rectangle",
    "Stand",
    "Window",
    "as_certain",
    "claimed_on",
    "diff",
    "erased_beside",
    "erased_from",
    "first_agents",
    "first_users",
    "history",
    "join",
    "keys_of_relation",
    "known_commits",
    "members_of",
    "occurrences",
    "pin",
    "pin_view",
    "pinned_view",
    "pinned_views",
    "registered_contracts",
    "relations_of_tenant",
    "resolve",
    "resolve_at",
    "resolve_many",
    "timeline",
    "unpin_view",
    "usual_contract",
    "verify_cells",
    "withdrawn_on",
]


async def resolve(
    conn: AsyncConnection, keys: TenantKeys, view: View, entity: str, relation: str
) -> KeyResolution:
    """
    Return what a key has at a view.

    Args:
        conn: A snapshot of the tenant.
        keys: The tenant's.
        view: Pinned by `pin`.
        entity: Whose key; if it is one with others at the cut, theirs counts as its own.
        relation: The relation.

    Raises:
        IntegrityFault: A claim, contract or cell that was read is not what was written.
    """
    return (await resolve_many(conn, keys, view, [(entity, relation)]))[0]


async def resolve_at(
    db: Database, tenant: str, request: ViewRequest, entity: str, relation: str, *, wait_ms: int
) -> tuple[KeyResolution, Doubt | None]:
    """
    Pin a view and return what a key has at it, and what a coarse start leaves open: mostly in one call.

    Raises:
        NotFound: No such tenant.
        NotYet: The generation or commit asked for is not folded within the wait.
        Poisoned: Nor will it be: an event that cannot be folded stops the epoch before it.
        EpochDropped: The epoch asked for is there no more.
        IntegrityFault: A claim, contract or cell that was read is not what was written.
    """
    keys = await tenant_keys(db, tenant)
    view = await read_plain(db, keys, request, (entity, relation))
    if isinstance(view, KeyResolution):
        # It is given in one call only where no coarse start leaves anything open.
        return view, None
    if isinstance(view, NotYet):
        view = await pin(db, tenant, request, wait_ms=wait_ms)
    async with db.snapshot(tenant) as conn:
        answer = (await _decided(conn, keys, view, [(entity, relation)]))[entity, relation]
        return answer, await doubt_of(conn, keys, answer, until=view.valid_at + MICROSECOND)


async def resolve_many(
    conn: AsyncConnection, keys: TenantKeys, view: View, wanted: Sequence[Key]
) -> list[KeyResolution]:
    """
    Return what several keys have at one view, in the order given.

    Raises:
        IntegrityFault: A claim, contract or cell that was read is not what was written.
    """
    found = await _decided(conn, keys, view, wanted)
    return [found[key] for key in wanted]


async def _decided(
    conn: AsyncConnection, keys: TenantKeys, view: View, wanted: Sequence[Key]
) -> dict[Key, KeyResolution]:
    reader = Reader(conn=conn, keys=keys, epoch=view.epoch, cut=view.cut)
    found, ground = await answers(reader, view, [key for key in wanted if key[1] not in IDENTITY])
    for key in wanted:
        if key[1] in IDENTITY:
            found[key] = identity_answer(
                ground.merges,
                view,
                entity=key[0],
                veil=reader.graves.veil(key)[0],
                relation=key[1],
                contract=ground.contracts.of(key[1]),
            )
    return found


async def occurrences(
    conn: AsyncConnection,
    keys: TenantKeys,
    view: View,
    entity: str,
    relation: str,
    *,
    start: datetime | None,
    end: datetime | None,
) -> ResolvedSet:
    """
    Return the occurrences on a key that fall into `[start, end)` as known at a view.

    None is an open bound. Each is one identity, with the claims that tell of it (SEMANTICS, "Many-valued
    relations and occurrences"); all are counted, listed or not. `view.valid_at` plays no part.

    Raises:
        IntegrityFault: A claim or contract that was read is not what was written.
    """
    reader = Reader(conn=conn, keys=keys, epoch=view.epoch, cut=view.cut)
    return await occurred(reader, (entity, relation), start=start, end=end)


async def withdrawn_on(
    conn: AsyncConnection, keys: TenantKeys, view: View, wanted: Sequence[Key]
) -> tuple[list[Withdrawn], bool]:
    """
    Return what was taken back on keys, as known at a view, by whom; and whether that is all of it.

    It is where no more than `LISTED_CLAIMS_MAX` claims act on a key, or all of its claims had to be read;
    and no more than `WITHDRAWN_MAX`, the newest, are returned. Of who is one with whom nothing is said here.

    Raises:
        IntegrityFault: A claim, contract or cell that was read is not what was written.
    """
    asked = [key for key in dict.fromkeys(wanted) if key[1] not in IDENTITY]
    decided = await decide(Reader(conn=conn, keys=keys, epoch=view.epoch, cut=view.cut), view, asked)
    found = [decided.withdrawn(key) for key in asked]
    every = {one.claim.claim_id: one for taken, _ in found for one in taken}
    listed = sorted(every.values(), key=lambda one: one.claim.position)[-WITHDRAWN_MAX:]
    return listed, len(listed) == len(every) and all(whole for _, whole in found)


async def erased_from(
    conn: AsyncConnection, keys: TenantKeys, view: View, entity: str, relation: str
) -> int | None:
    """
    Return the first commit in which something was said on a key that was erased since; None if nothing was.

    Of a subject that was erased with all about it nothing is left, and nothing is known of that here.

    Raises:
        IntegrityFault: What is left of it is not what was written.
    """
    graves = Reader(conn=conn, keys=keys, epoch=view.epoch, cut=view.cut).graves
    if not await graves.are_there():
        return None
    stones = [*await graves.on_keys([(entity, relation)]), *await graves.reaching([(entity, relation)])]
    return min((stone.commit for stone in stones), default=None)


async def members_of(conn: AsyncConnection, keys: TenantKeys, view: View, entity: str) -> tuple[str, ...]:
    """
    Return the names that are one entity at a view's cut, sorted; the entity alone if it is merged with none.

    Raises:
        IntegrityFault: A claim or contract that was read is not what was written.
    """
    reader = Reader(conn=conn, keys=keys, epoch=view.epoch, cut=view.cut)
    stand, _ = await found_on(reader, [], at=None)
    return (await ground_of(reader, stand)).merges.names_of(entity)
