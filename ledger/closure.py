"""
Collect the evidence of an answer: the events that carry it, and those that exclude what is older.

Promises: every event is read anew from the log and checked; none is later than the view's cut, of
another tenant, or unknown to the log, whatever ids discovery proposed.
Does not promise: that the evidence fits in a budget. That is `packing`'s question.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.claims import Claim
from contracts.contexts import Closure, ClosureSet, Evidence, Mark
from contracts.errors import IntegrityFault
from contracts.events import Event
from contracts.limits import CLOSURE_EVENTS_MAX
from contracts.proposals import Candidate, Operation, Plan
from contracts.resolutions import Conflict, KeyResolution, Missing, Resolved, ResolvedSet
from contracts.views import View
from ledger._claims import NO_KEY, canonical, sealed_bytes
from ledger._decide import State
from ledger._deciding import Decided, decide
from ledger._keys import EventKey, TenantKeys
from ledger._marks import Marked, worst
from ledger._read import read_with_keys
from ledger._rendering import rendering
from ledger._world import Key, Reader

__all__ = ["close"]

_log = structlog.get_logger(__name__)

CARRYING_MAX: Final = 8
"""Events shown for one value: the first that carries it and the newest; the others repeat them."""
EXCLUDED_MAX: Final = 8
"""Events shown of what the answer superseded, of what was withdrawn, and of open disputes; the newest."""
_SPREAD: Final = 20
"""Of a session's units the second counts 20/21 of its score, the third 20/22: about two thirds and half
of its worth, since a closure is worth a high power of its score."""
_REQUIRED_PPM: Final = 1_000_000

# What carries, what it superseded, what has ended, what was withdrawn and by what: one closure holds it.
assert CARRYING_MAX + 4 * EXCLUDED_MAX <= CLOSURE_EVENTS_MAX

_WITHOUT_LINKS: Final = frozenset({Operation.SUMMARY})


async def close(
    conn: AsyncConnection,
    keys: TenantKeys,
    view: View,
    *,
    resolutions: Sequence[KeyResolution],
    answer_keys: Sequence[Key],
    candidates: Sequence[Candidate],
    plan: Plan,
    standing: Sequence[Claim] = (),
) -> ClosureSet:
    """
    Return the closures of one question, and the evidence that they share.

    Args:
        conn: A snapshot of the tenant.
        keys: The tenant's.
        view: The pinned view that the resolutions were made at.
        resolutions: What the ledger decided.
        answer_keys: Keys that the answer is taken from: what decided them is required.
        candidates: What discovery proposed; untrusted ids, of which only events at or before the
            cut are read.
        plan: How the question was read.
        standing: Claims that the answer stands on beside those of the resolutions, such as what was
            believed before: required too.

    Raises:
        IntegrityFault: Something that was read is not what was written.
    """
    reader = Reader(conn=conn, keys=keys, epoch=view.epoch, cut=view.cut)
    data_keys: dict[str, EventKey] = {}
    proposed = [event_id for unit in candidates for event_id in unit.event_ids]
    events = await _events(reader, proposed, data_keys)
    read = set(events)
    claims = await reader.of_events(read)
    resolved = [(resolution.entity, resolution.relation) for resolution in resolutions]
    decided = await _decided(reader, view, [*claims, *standing, *_claims_in(resolutions)], resolved)
    wanted = {*answer_keys, *((claim.entity, claim.relation) for claim in standing)}
    required = [
        closure
        for resolution in resolutions
        if (resolution.entity, resolution.relation) in wanted
        for closure in _required(resolution, decided)
    ]
    required += _chunks(["standing"], [claim.event_id for claim in standing])
    optional = _optional(candidates, events, claims, decided, plan.operation)
    members = {member for closure in (*required, *optional) for member in closure.members}
    events |= await _events(reader, members - events.keys(), data_keys)
    if lost := members - events.keys():
        # What claims name is there, unless its key was lost without an erasure taking its claims along.
        raise IntegrityFault(what=f"{len(lost)} events that claims stand on cannot be read")
    # What discovery proposed was read with all that it says.
    claims += await reader.of_events(members - read)
    named = {claim.claim_id for claim in [*standing, *_claims_in(resolutions)]}
    shown = {event_id: (events[event_id], data_keys[event_id]) for event_id in members}
    evidence = _evidence(shown, claims, wanted, decided, named=named, at=view.valid_at)
    return ClosureSet(closures=(*required, *optional), evidence=evidence)


async def _decided(reader: Reader, view: View, claims: Sequence[Claim], resolved: Sequence[Key]) -> Decided:
    """Decide every key that any of the claims is on or bears on."""
    every = {(claim.entity, claim.relation) for claim in claims if claim.relation != NO_KEY}
    every |= set(resolved)
    for reached in (await reader.reached(claims)).values():
        every |= reached
    return await decide(reader, view, sorted(await reader.graves.clear(every)), claims=claims)


async def _events(
    reader: Reader, event_ids: Iterable[str], data_keys: dict[str, EventKey]
) -> dict[str, Event]:
    """Read those events that are there, at or before the cut, and their keys; the rest was never proposed."""
    wanted = sorted(set(event_ids))
    if not wanted:
        return {}
    events: dict[str, Event] = {}
    for event_id, (event, key) in (await read_with_keys(reader.conn, reader.keys, wanted)).items():
        if isinstance(event, Event) and key is not None and event.commit <= reader.cut:
            events[event_id], data_keys[event_id] = event, key
    if ignored := len(wanted) - len(events):
        _log.info("closure_events_ignored", ignored_count=ignored, wanted_count=len(wanted))
    return events


# --- required ------------------------------------------------------------------------------------


def _required(resolution: KeyResolution, decided: Decided) -> list[Closure]:
    """Return what an answer stands on: closures that are all admitted, or the answer abstains."""
    groups = [_shown(claims) for claims in _carrying(resolution, decided)]
    excluded = [*_superseded(resolution), *_ended(resolution, decided), *_withdrawn(resolution, decided)]
    excluded += resolution.disputes[-EXCLUDED_MAX:]
    members: list[str] = []
    for group in (*groups, excluded):
        members += [claim.event_id for claim in group]
    return _chunks(["key", resolution.entity, resolution.relation], members)


def _chunks(name: Sequence[str], members: Sequence[str]) -> list[Closure]:
    """Return as many closures as hold these events, each once."""
    ordered = list(dict.fromkeys(members))
    return [
        Closure(
            closure_id=canonical([*name, start // CLOSURE_EVENTS_MAX]).decode("ascii"),
            members=tuple(ordered[start : start + CLOSURE_EVENTS_MAX]),
            utility_ppm=_REQUIRED_PPM,
            required=True,
        )
        for start in range(0, len(ordered), CLOSURE_EVENTS_MAX)
    ]


def _carrying(resolution: KeyResolution, decided: Decided) -> list[Sequence[Claim]]:
    """Return, for each value of the answer, the claims that carry it; of a rival, its latest."""
    match resolution.resolution:
        case Resolved(claims=claims):
            return [claims]
        case ResolvedSet(members=members, disputed=disputed):
            rivals = [(rival.claim,) for one in disputed for rival in one.rivals]
            return [*(member.claims for member in members), *rivals]
        case Conflict(rivals=rivals):
            return [(rival.claim,) for rival in rivals]
        case Missing():
            ends = decided.verdict((resolution.entity, resolution.relation))
            return [
                [entry.claim for entry in side.carriers]
                for _, verdict in ends.lines
                for side in verdict.sides
            ]


def _shown(claims: Sequence[Claim]) -> Sequence[Claim]:
    """Return the first and the newest claims: what lies between says the same once more."""
    if len(claims) <= CARRYING_MAX:
        return claims
    return [claims[0], *claims[1 - CARRYING_MAX :]]


def _superseded(resolution: KeyResolution) -> list[Claim]:
    found: list[Claim] = []
    match resolution.resolution:
        case ResolvedSet(members=members, disputed=disputed):
            found += [claim for member in members for claim in member.superseded]
            found += [claim for one in disputed for claim in one.superseded]
        case Resolved(superseded=superseded) | Conflict(superseded=superseded):
            found += superseded
        case Missing(superseded=superseded):
            found += superseded
    found.sort(key=lambda claim: claim.position)
    return found[-EXCLUDED_MAX:]


def _ended(resolution: KeyResolution, decided: Decided) -> list[Claim]:
    """Return what ended single values of several: the other side of "does she still have a dog?"."""
    match resolution.resolution:
        case ResolvedSet():
            verdict = decided.verdict((resolution.entity, resolution.relation))
            found = [
                entry.claim
                for _, line in verdict.lines
                if line.state == State.ENDED
                for side in line.sides
                for entry in side.carriers
            ]
            return sorted(found, key=lambda claim: claim.position)[-EXCLUDED_MAX:]
        case _:
            return []


def _withdrawn(resolution: KeyResolution, decided: Decided) -> list[Claim]:
    """Return claims that would cover the instant but were withdrawn, and what withdrew them."""
    found = decided.verdict((resolution.entity, resolution.relation))
    gone = sorted((entry.claim for entry in found.withdrawn), key=lambda claim: claim.position)
    gone = gone[-EXCLUDED_MAX:]
    return [*gone, *[by for claim in gone for by in decided.withdrawers(claim)][-EXCLUDED_MAX:]]


# --- optional ------------------------------------------------------------------------------------


def _optional(
    candidates: Sequence[Candidate],
    events: dict[str, Event],
    claims: Sequence[Claim],
    decided: Decided,
    operation: Operation,
) -> list[Closure]:
    """Return a closure for each unit whose events are all there, by its best score."""
    of_event: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        of_event[claim.event_id].append(claim)
    best: dict[str, Closure] = {}
    links = operation not in _WITHOUT_LINKS
    for unit in candidates:
        if not unit.event_ids or any(event_id not in events for event_id in unit.event_ids):
            continue
        members = list(dict.fromkeys(unit.event_ids))
        if links:
            members += [event_id for own in unit.event_ids for event_id in _linked(of_event[own], decided)]
        closure = Closure(
            closure_id=canonical(["unit", unit.unit_id]).decode("ascii"),
            members=tuple(dict.fromkeys(members))[:CLOSURE_EVENTS_MAX],
            utility_ppm=unit.score_ppm,
            required=False,
        )
        known = best.get(closure.closure_id)
        if known is None or known.utility_ppm < closure.utility_ppm:
            best[closure.closure_id] = closure
    found = list(best.values())
    return _spread(found, events) if operation == Operation.SUMMARY else found


def _spread(closures: Sequence[Closure], events: dict[str, Event]) -> list[Closure]:
    """Let a summary cover its sessions: the more units of one come before it, the less a unit counts."""
    told: dict[str, int] = defaultdict(int)
    spread = []
    for closure in sorted(closures, key=lambda closure: (-closure.utility_ppm, closure.closure_id)):
        stream = events[closure.members[0]].draft.stream
        told[stream] += 1
        spread.append(
            replace(closure, utility_ppm=closure.utility_ppm * _SPREAD // (_SPREAD - 1 + told[stream]))
        )
    return spread


def _linked(claims: Sequence[Claim], decided: Decided) -> Iterable[str]:
    """Yield the events without which a unit could be misread: what replaced it, what it was derived from."""
    for claim in claims:
        mark, _ = decided.mark(claim)
        if mark in {Mark.SUPERSEDED, Mark.WITHDRAWN, Mark.DISPUTED}:
            yield from (other.event_id for other in _shown(list(decided.replaced_by(claim))))
            yield from (by.event_id for by in decided.withdrawers(claim))
        yield from (source.event_id for source in decided.inputs(claim))


# --- evidence ------------------------------------------------------------------------------------


def _evidence(
    shown: Mapping[str, tuple[Event, EventKey]],
    claims: Sequence[Claim],
    answer_keys: set[Key],
    decided: Decided,
    *,
    named: set[str],
    at: datetime,
) -> tuple[Evidence, ...]:
    of_event: dict[str, list[Claim]] = defaultdict(list)
    for claim in sorted(claims, key=lambda claim: claim.position):
        of_event[claim.event_id].append(claim)
    evidence = []
    for event_id, (event, key) in sorted(shown.items(), key=lambda one: one[1][0].position):
        wanted = {
            claim.position.ordinal
            for claim in of_event[event_id]
            if claim.claim_id in named
            or ((claim.entity, claim.relation) in answer_keys and _covers(claim, at))
        }
        text = rendering(event.draft, wanted)
        mark, marked_commit = _mark(of_event[event_id], answer_keys, decided)
        evidence.append(
            Evidence(
                event_id=event_id,
                position=event.position,
                stream=event.draft.stream,
                actor_id=event.draft.actor.id,
                actor_class=event.draft.actor.class_,
                observed_at=event.recorded_at if event.observed is None else event.observed.first,
                offset_minutes=0 if event.observed is None else event.observed.offset_minutes,
                recorded_at=event.recorded_at,
                text=text,
                text_digest=key.digest(text.encode()).hex(),
                claim_digests=tuple(key.digest(sealed_bytes(claim)).hex() for claim in of_event[event_id]),
                mark=mark,
                marked_commit=marked_commit,
            )
        )
    return tuple(evidence)


def _covers(claim: Claim, at: datetime) -> bool:
    start, end = claim.validity.start, claim.validity.end
    return (start is None or start <= at) and (end is None or at < end)


def _mark(claims: Sequence[Claim], answer_keys: set[Key], decided: Decided) -> Marked:
    """Mark an event by its claims on the answer's keys, where it has any; else by all of them."""
    own = [claim for claim in claims if (claim.entity, claim.relation) in answer_keys]
    return worst(decided.mark(claim) for claim in own or claims)


def _claims_in(resolutions: Sequence[KeyResolution]) -> list[Claim]:
    """Return a claim on every key that was resolved, and whatever else the answers name."""
    found: list[Claim] = []
    for resolution in resolutions:
        found += resolution.disputes
        match resolution.resolution:
            case ResolvedSet(members=members, disputed=disputed):
                found += [claim for member in members for claim in (*member.claims, *member.superseded)]
                found += [rival.claim for one in disputed for rival in one.rivals]
                found += [claim for one in disputed for claim in one.superseded]
            case Resolved(claims=claims, superseded=superseded):
                found += [*claims, *superseded]
            case Conflict(rivals=rivals, superseded=superseded):
                found += [*(rival.claim for rival in rivals), *superseded]
            case Missing(superseded=superseded, withdrawn=withdrawn):
                found += [*superseded, *withdrawn]
    return found
