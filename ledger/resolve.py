"""
Decide what is current: the only door that does, and it takes no score, rank or similarity.

Promises: every answer is a pure function of (key, valid time, cut, epoch). It is looked up in cells
by one indexed probe, worked out again from the claims that it lists, and refused if the two differ;
a key with more claims than an answer lists is answered from its cell, which `verify_cells` proves.
Does not promise: that an answer is true; it is what the ledger was told, with who told it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.claims import Claim
from contracts.errors import IntegrityFault
from contracts.identity import IDENTITY
from contracts.resolutions import KeyResolution, ResolvedSet
from contracts.views import View
from ledger._answers import answer_of, conflict, newest, resolved
from ledger._cells import Cells, stored_part
from ledger._claims import micros
from ledger._contracts_read import registered_contracts, usual_contract
from ledger._court import Court, KeyVerdict
from ledger._decide import State, Verdict
from ledger._entries import Identity
from ledger._history import EVERYTHING, History, Rectangle, Window, history, known_commits, timeline
from ledger._identity import Merges, identity_of
from ledger._identity_answers import identity_answer
from ledger._intervals import lower, upper
from ledger._keys import TenantKeys
from ledger._lines import Cell
from ledger._long import long_keys
from ledger._names import claimed_on, first_users
from ledger._pin import pin
from ledger._reads_join import Joined, Pair, join
from ledger._relations import Contracts
from ledger._timeline import claims_of_cell
from ledger._verify_cells import CellsReport, verify_cells
from ledger._views import PinnedView, pin_view, pinned_view, pinned_views, unpin_view
from ledger._withdrawal import Replay
from ledger._world import Key, Reader

__all__ = [
    "EVERYTHING",
    "CellsReport",
    "History",
    "Joined",
    "Pair",
    "PinnedView",
    "Rectangle",
    "Window",
    "claimed_on",
    "first_users",
    "history",
    "join",
    "known_commits",
    "members_of",
    "occurrences",
    "pin",
    "pin_view",
    "pinned_view",
    "pinned_views",
    "registered_contracts",
    "resolve",
    "resolve_many",
    "timeline",
    "unpin_view",
    "usual_contract",
    "verify_cells",
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


async def resolve_many(
    conn: AsyncConnection, keys: TenantKeys, view: View, wanted: Sequence[Key]
) -> list[KeyResolution]:
    """
    Return what several keys have at one view, in the order given.

    Raises:
        IntegrityFault: A claim, contract or cell that was read is not what was written.
    """
    if not wanted:
        return []
    reader = Reader(conn=conn, keys=keys, epoch=view.epoch, cut=view.cut)
    contracts = await reader.contracts()
    merges = identity_of(await reader.identity_claims(), contracts)
    answers = {
        key: identity_answer(merges, view, entity=key[0], relation=key[1], contract=contracts.of(key[1]))
        for key in wanted
        if key[1] in IDENTITY
    }
    cells = await _cells_of(conn, keys, view, wanted)
    answers |= await long_keys(reader, view, [key for key in wanted if key not in answers], contracts, merges)
    short = [key for key in dict.fromkeys(wanted) if key not in answers]
    court = await court_on(reader, contracts, merges, short)
    for key in short:
        answer = _decided(court, keys, view, key, cells.get(key, {}))
        # Who the entity is may be open: that is shown with whatever is said of it.
        open_claims = merges.questions(key[0])
        answers[key] = replace(answer, disputes=newest([*answer.disputes, *open_claims]))
    return [answers[key] for key in wanted]


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

    None is an open bound. Count the members: each is one identity, with the claims that tell of it
    (SEMANTICS, "Many-valued relations and occurrences"). `view.valid_at` plays no part.

    Raises:
        IntegrityFault: A claim or contract that was read is not what was written.
    """
    reader = Reader(conn=conn, keys=keys, epoch=view.epoch, cut=view.cut)
    contracts = await reader.contracts()
    merges = identity_of(await reader.identity_claims(), contracts)
    court = await court_on(reader, contracts, merges, [(entity, relation)])
    contract = contracts.of(relation)
    members, disputed = [], []
    for part, verdict in sorted(court.within(entity, relation, lower(start), upper(end)).items()):
        if verdict.state == State.VALUE:
            members.append(resolved(part, verdict, contract))
        else:
            disputed.append(conflict(verdict, contract))
    return ResolvedSet(members=tuple(members), disputed=tuple(disputed))


async def members_of(conn: AsyncConnection, keys: TenantKeys, view: View, entity: str) -> tuple[str, ...]:
    """
    Return the names that are one entity at a view's cut, sorted; the entity alone if it is merged with none.

    Raises:
        IntegrityFault: A claim or contract that was read is not what was written.
    """
    reader = Reader(conn=conn, keys=keys, epoch=view.epoch, cut=view.cut)
    merges = identity_of(await reader.identity_claims(), await reader.contracts())
    return merges.names_of(entity)


async def court_on(reader: Reader, contracts: Contracts, merges: Merges, keys: Sequence[Key]) -> Court:
    """Return a court over everything that the decision of these keys needs."""
    claims, _ = await reader.world(keys, merges)
    replay = Replay(contracts, merges.identity)
    replay.extend(claims)
    return Court(replay)


def _decided(
    court: Court, keys: TenantKeys, view: View, key: Key, cells: dict[str, Sequence[Cell]]
) -> KeyResolution:
    found = court.decide(*key, micros(view.valid_at))
    _check(found, keys, cells)
    return answer_of(
        found,
        entity=key[0],
        relation=key[1],
        view=view,
        contract=court.contracts.of(key[1]),
        unplaced=[claim for claim in court.replay.unplaced if _is_on(claim, key, court.replay.identity)],
    )


def _check(found: KeyVerdict, keys: TenantKeys, cells: dict[str, Sequence[Cell]]) -> None:
    """Hold the cells against what follows from the claims: a cell that was changed must not pass."""
    expected = {
        stored_part(part, keys): _form(verdict)
        for part, verdict in found.lines
        if verdict.state != State.ABSENT
    }
    stored = {part: (cell.segment.state, cell.segment.claims) for part, own in cells.items() for cell in own}
    if expected != stored:
        raise IntegrityFault(what="the cells of a key do not follow from its claims")


def _form(verdict: Verdict) -> tuple[str, tuple[str, ...]]:
    return verdict.state.value, claims_of_cell(verdict)


def _is_on(claim: Claim, key: Key, identity: Identity) -> bool:
    return claim.relation == key[1] and identity.entity(claim.entity) == identity.entity(key[0])


async def _cells_of(
    conn: AsyncConnection, keys: TenantKeys, view: View, wanted: Sequence[Key]
) -> dict[Key, dict[str, Sequence[Cell]]]:
    cells = Cells(conn=conn, tenant=keys.tenant, epoch=view.epoch)
    lines = await cells.lines(wanted)
    at = await cells.cells_at([line.line_id for line in lines], cut=view.cut, at=view.valid_at)
    found: dict[Key, dict[str, Sequence[Cell]]] = {}
    for line in lines:
        own = found.setdefault((line.entity, line.relation), {})
        if line.line_id in at:
            own[line.part] = at[line.line_id]
    return found
