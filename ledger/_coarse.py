"""
Where a coarse start leaves open what held: who moved "in 2023" may have moved in January.

Such a state covers from the end of its span on, and until then what was said before is what a key has. An
answer that somebody relies on withholds it there: it may be the older of the two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, TypeAlias

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.claims import Claim, ValidityKind
from contracts.events import Stance
from contracts.identity import IDENTITY
from contracts.relations import Cardinality
from contracts.resolutions import (
    Conflict,
    Doubt,
    KeyResolution,
    Missing,
    MissingReason,
    Resolution,
    Resolved,
    ResolvedSet,
)
from contracts.times import MICROSECOND, ValidAt
from ledger._answers import newest
from ledger._claims import UNSTATED, micros
from ledger._deciding import answers
from ledger._found import found_on
from ledger._ground import ground_of
from ledger._keys import TenantKeys
from ledger._tombstones import Tombstone
from ledger._values import normal_form, takes
from ledger._world import Reader, references_of

STARTS_MAX: Final = 8
"""Coarse starts of other values after an instant that are looked at; more leave the answer in doubt."""
UNSURE_MAX: Final = 256
"""Coarse states of a key that may hold at an instant and are read for it; of more, likewise."""
_GONE: Final = frozenset({MissingReason.ENDED, MissingReason.WITHDRAWN})
_Said: TypeAlias = tuple[str, ...]


async def as_certain(
    conn: AsyncConnection, keys: TenantKeys, answer: KeyResolution, *, until: datetime
) -> KeyResolution:
    """
    Return an answer, or `undetermined` where a state with a coarse start might hold before `until`.

    `superseded` then holds what stands and what might. A conflict stays one, and so does what was erased.

    Raises:
        IntegrityFault: A claim, contract or cell that was read is not what was written.
    """
    stands: Sequence[Claim] = _standing(answer.resolution)
    withdrawn: tuple[Claim, ...] = ()
    match answer.resolution:
        case Resolved() | ResolvedSet():
            pass
        case Missing(reason=reason, superseded=superseded, withdrawn=withdrawn) if reason in _GONE:
            stands = superseded
        case _:
            return answer
    doubt = await doubt_of(conn, keys, answer, until=until)
    if doubt is None:
        return answer
    missing = Missing(
        reason=MissingReason.UNDETERMINED, superseded=newest([*stands, *doubt.claims]), withdrawn=withdrawn
    )
    return replace(answer, resolution=missing)


async def doubt_of(
    conn: AsyncConnection, keys: TenantKeys, answer: KeyResolution, *, until: datetime
) -> Doubt | None:
    """
    Return what may have held before `until` instead of what a key has at an instant; None where nothing may.

    Of all coarse states that begin after the view's instant and may have begun by then, it is asked whether
    there is anything else where they do.

    Raises:
        IntegrityFault: A claim, contract or cell that was read is not what was written.
    """
    view = answer.view
    # No coarse state begins later than it was told, and an occurrence has no start to be unsure of.
    if view.valid_at >= view.known_at or answer.contract.cardinality == Cardinality.OCCURRENCE:
        return None
    if answer.relation in IDENTITY:
        return None
    reader = Reader(conn=conn, keys=keys, epoch=view.epoch, cut=view.cut)
    unsure, all_read = await _unsure(reader, answer, until)
    by_start: dict[datetime, list[Claim]] = defaultdict(list)
    for claim in unsure:
        if claim.validity.start is not None and not _says_the_same(claim, answer):
            by_start[claim.validity.start].append(claim)
    told: list[Claim] = []
    might: list[Claim] = []
    starts = sorted(by_start)
    for start in starts[:STARTS_MAX]:
        before, then = [await _at(reader, answer, at) for at in (start - MICROSECOND, start)]
        if _said(then) not in {_said(before), _said(answer.resolution)}:
            told += by_start[start]
            might += _begun(answer.resolution, then, by_start[start])
    if not told and (len(starts) > STARTS_MAX or not all_read):
        told = [claim for start in starts for claim in by_start[start]] or unsure
        might = [claim for claim in told if not isinstance(claim, Tombstone)]
    return _doubt(told, might)


def _doubt(told: Sequence[Claim], might: Sequence[Claim]) -> Doubt | None:
    first = [claim.validity.earliest for claim in told if claim.validity.earliest is not None]
    last = [claim.validity.start for claim in told if claim.validity.start is not None]
    if not told:
        return None
    return Doubt(start=min(first), end=max(last), claims=newest(might))


async def _unsure(reader: Reader, answer: KeyResolution, until: datetime) -> tuple[list[Claim], bool]:
    """Return states with a coarse start on a key and those that it is one with, and whether these are all."""
    stand, _ = await found_on(reader, [], at=None)
    names = (await ground_of(reader, stand)).merges.names_of(answer.entity)
    on = [(name, answer.relation) for name in names]
    at = micros(answer.view.valid_at)
    found = await reader.unsure_on(on, after=at, before=micros(until), most=UNSURE_MAX)
    is_all = len(found) < UNSURE_MAX
    # A correction that moves a claim to this key, and gives no time, has that of what it was told of.
    _, read = await found_on(reader, on, at=None)
    moved = [claim for one in read for claim in one.claims if claim.validity == UNSTATED]
    named: set[str] = set()
    while events := {event for claim in moved for event in references_of(claim)} - named:
        named |= events
        moved = await reader.of_events(events)
        found += moved
        moved = [claim for claim in moved if claim.validity == UNSTATED]
    if await reader.graves.are_there():
        found += [*await reader.graves.on_keys(on), *await reader.graves.reaching(on)]
    once = {claim.claim_id: claim for claim in found if _might_hold(claim, answer.view.valid_at, until)}
    return list(once.values()), is_all


def _might_hold(claim: Claim, at: datetime, until: datetime) -> bool:
    """Return whether a state is told coarsely to begin: after an instant, though it may have before."""
    validity = claim.validity
    if validity.kind != ValidityKind.SINCE or validity.start is None or validity.earliest is None:
        return False
    return at < validity.start and validity.earliest < min(until, validity.start)


def _says_the_same(claim: Claim, answer: KeyResolution) -> bool:
    """Return whether a state says the value that the key has: be it so from before, that is no doubt."""
    if not isinstance(answer.resolution, Resolved) or isinstance(claim, Tombstone):
        return False
    if claim.stance != Stance.ASSERT or not takes(claim.value, answer.contract):
        return False
    return normal_form(claim.value, answer.contract) == answer.resolution.form


async def _at(reader: Reader, answer: KeyResolution, at: datetime) -> Resolution:
    key = (answer.entity, answer.relation)
    found, _ = await answers(reader, replace(answer.view, valid_at=ValidAt(at)), [key])
    return found[key].resolution


def _said(resolution: Resolution) -> _Said:
    """Return what an answer comes to, whoever says it."""
    match resolution:
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


def _begun(now: Resolution, then: Resolution, coarse: Sequence[Claim]) -> list[Claim]:
    """Return what stands where coarse states begin and did not before; of an end, what says it."""
    before = {claim.claim_id for claim in _standing(now)}
    begun = [claim for claim in _standing(then) if claim.claim_id not in before]
    return begun or [claim for claim in coarse if not isinstance(claim, Tombstone)]


def _standing(resolution: Resolution) -> list[Claim]:
    match resolution:
        case Resolved(claims=claims):
            return list(claims)
        case ResolvedSet(members=members, disputed=disputed):
            rivals = [rival.claim for conflict in disputed for rival in conflict.rivals]
            return [*(claim for member in members for claim in member.claims), *rivals]
        case Conflict(rivals=rivals):
            return [rival.claim for rival in rivals]
        case Missing():
            return []
