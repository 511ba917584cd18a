"""
Where a coarse start leaves open what held: who moved "in 2023" may have moved in January.

Such a state covers from the end of its span on, and until then what was said before is what a key has. An
answer that somebody relies on withholds it there: it may be the older of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.claims import Claim, ValidityKind
from contracts.identity import IDENTITY
from contracts.limits import LISTED_CLAIMS_MAX
from contracts.relations import Cardinality
from contracts.resolutions import Conflict, KeyResolution, Missing, MissingReason, Resolved, ResolvedSet
from contracts.times import ValidAt
from ledger._answers import newest
from ledger._claims import micros
from ledger._deciding import answers
from ledger._found import found_on
from ledger._ground import ground_of
from ledger._keys import TenantKeys
from ledger._tombstones import Tombstone
from ledger._world import Reader

STARTS_MAX: Final = 8
"""Coarse starts after an instant that are looked at."""
_INSTANT: Final = timedelta(microseconds=1)
_Said: TypeAlias = tuple[str, ...]


async def as_certain(
    conn: AsyncConnection, keys: TenantKeys, answer: KeyResolution, *, until: datetime
) -> KeyResolution:
    """
    Return an answer, or `undetermined` where a state with a coarse start might hold before `until`.

    Of those the next ones on the key are looked at that begin after the view's instant, and it is asked
    whether there is anything else where they do. `superseded` then holds what stands and what might.

    Raises:
        IntegrityFault: A claim, contract or cell that was read is not what was written.
    """
    view = answer.view
    if not isinstance(answer.resolution, Resolved | ResolvedSet) or answer.relation in IDENTITY:
        return answer
    # No coarse state begins later than it was told, and an occurrence has no start to be unsure of.
    if view.valid_at >= view.known_at or answer.contract.cardinality == Cardinality.OCCURRENCE:
        return answer
    reader = Reader(conn=conn, keys=keys, epoch=view.epoch, cut=view.cut)
    coarse = [claim for claim in await _after(reader, answer) if _might_hold(claim, view.valid_at, until)]
    for start in sorted({claim.validity.start for claim in coarse if claim.validity.start})[:STARTS_MAX]:
        before, then = [await _said_at(reader, answer, at) for at in (start - _INSTANT, start)]
        if then not in {before, _said(answer)}:
            might = [one for one in coarse if one.validity.start == start and not isinstance(one, Tombstone)]
            superseded = newest([*_carrying(answer), *might])
            missing = Missing(reason=MissingReason.UNDETERMINED, superseded=superseded, withdrawn=())
            return replace(answer, resolution=missing)
    return answer


async def _after(reader: Reader, answer: KeyResolution) -> list[Claim]:
    """Return claims that may begin after the instant on a key and those that it is one with."""
    stand, _ = await found_on(reader, [], at=None)
    names = (await ground_of(reader, stand)).merges.names_of(answer.entity)
    on = [(name, answer.relation) for name in names]
    _, read = await found_on(reader, on, at=None)
    # Newest first of those that correct; of states the next ones, where there are more than are read.
    found = [claim for one in read for claim in one.claims]
    if any(one.is_long for one in read):
        at = micros(answer.view.valid_at)
        states = await reader.states_after([(key, at, LISTED_CLAIMS_MAX) for key in on])
        found += [claim for own in states for claim in own]
    if await reader.graves.are_there():
        found += [*await reader.graves.on_keys(on), *await reader.graves.reaching(on)]
    return found


def _might_hold(claim: Claim, at: datetime, until: datetime) -> bool:
    """Return whether a state is told coarsely to begin: after an instant, though it may have before."""
    validity = claim.validity
    if validity.kind != ValidityKind.SINCE or validity.start is None or validity.earliest is None:
        return False
    return at < validity.start and validity.earliest < min(until, validity.start)


async def _said_at(reader: Reader, answer: KeyResolution, at: datetime) -> _Said:
    key = (answer.entity, answer.relation)
    found, _ = await answers(reader, replace(answer.view, valid_at=ValidAt(at)), [key])
    return _said(found[key])


def _said(answer: KeyResolution) -> _Said:
    """Return what an answer comes to, whoever says it."""
    match answer.resolution:
        case Resolved(form=form):
            return ("value", form)
        case ResolvedSet(members=members, disputed=disputed):
            return ("values", *sorted(member.form for member in members), *map(_rivals, disputed))
        case Conflict() as conflict:
            return ("conflict", _rivals(conflict))
        case Missing(reason=reason):
            return (reason.value,)


def _rivals(conflict: Conflict) -> str:
    return repr(sorted(rival.claim.claim_id for rival in conflict.rivals))


def _carrying(answer: KeyResolution) -> Sequence[Claim]:
    match answer.resolution:
        case Resolved(claims=claims):
            return claims
        case ResolvedSet(members=members):
            return [claim for member in members for claim in member.claims]
        case _:
            return ()
