"""From verdicts to answers: the values and claims of a key's lines as `contracts.resolutions` has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from contracts.claims import Claim
from contracts.limits import LISTED_CLAIMS_MAX
from contracts.relations import Cardinality, RelationContract
from contracts.resolutions import (
    Conflict,
    KeyResolution,
    Missing,
    Resolution,
    Resolved,
    ResolvedSet,
    Rival,
)
from contracts.views import View
from ledger._court import KeyVerdict
from ledger._decide import ENDED, Side, State, Verdict
from ledger._entries import Entry


def answer_of(
    found: KeyVerdict,
    *,
    entity: str,
    relation: str,
    view: View,
    contract: RelationContract,
    unplaced: Sequence[Claim],
    counts: Mapping[str, int] | None = None,
) -> KeyResolution:
    """Return a key's answer at a view; `counts` are its lines by state, where not all were read."""
    return KeyResolution(
        entity=entity,
        relation=relation,
        view=view,
        contract=contract,
        resolution=_resolution(found, contract, counts),
        disputes=newest(found.disputes),
        unplaced=newest(unplaced),
        truncated=counts is not None or _is_cut(found, unplaced),
    )


def newest(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """Return claims once each by position, the newest `LISTED_CLAIMS_MAX` of them."""
    by_id = {claim.claim_id: claim for claim in claims}
    ordered = sorted(by_id.values(), key=lambda claim: claim.position)
    return tuple(ordered[-LISTED_CLAIMS_MAX:])


def _is_cut(found: KeyVerdict, unplaced: Sequence[Claim]) -> bool:
    lists: list[Sequence[object]] = [found.withdrawn, found.disputes, unplaced]
    lists += [side.carriers for _, verdict in found.lines for side in verdict.sides]
    lists.append([entry for _, verdict in found.lines for entry in verdict.superseded])
    return any(len(listed) > LISTED_CLAIMS_MAX for listed in lists)


def resolved(part: str, verdict: Verdict, contract: RelationContract) -> Resolved:
    """Return a line that has one value."""
    (side,) = verdict.sides
    return Resolved(
        value=side.latest.value,
        form=side.normal,
        claims=_carrying(side),
        superseded=_claims(verdict.superseded),
        count_identity=part if contract.cardinality == Cardinality.OCCURRENCE else None,
    )


def conflict(verdict: Verdict, contract: RelationContract) -> Conflict:
    """Return a line that has several values and cannot order them."""
    rivals = [_rival(side) for side in verdict.sides]
    first, second, *others = sorted(rivals, key=lambda rival: rival.claim.position)
    return Conflict(
        rivals=(first, second, *others),
        why=_why(verdict, contract),
        superseded=_claims(verdict.superseded),
    )


def _resolution(
    found: KeyVerdict, contract: RelationContract, counts: Mapping[str, int] | None
) -> Resolution:
    if found.reason is not None:
        return Missing(
            reason=found.reason,
            superseded=newest(entry.claim for _, verdict in found.lines for entry in verdict.superseded),
            withdrawn=_claims(found.withdrawn),
        )
    members = [(part, verdict) for part, verdict in found.lines if verdict.state == State.VALUE]
    disputed = [verdict for _, verdict in found.lines if verdict.state == State.CONFLICT]
    if contract.cardinality != Cardinality.ONE:
        return ResolvedSet(
            members=tuple(resolved(part, verdict, contract) for part, verdict in members),
            disputed=tuple(conflict(verdict, contract) for verdict in disputed),
            members_count=len(members) if counts is None else counts.get(State.VALUE, 0),
            disputed_count=len(disputed) if counts is None else counts.get(State.CONFLICT, 0),
        )
    if disputed:
        return conflict(disputed[0], contract)
    return resolved(*members[0], contract)


def _carrying(side: Side) -> tuple[Claim, ...]:
    """Return the newest claims that carry a value, and always the one that its cell names."""
    listed = _claims(side.carriers)
    first = side.representative.claim
    if any(claim.claim_id == first.claim_id for claim in listed):
        return listed
    return (first, *listed[1:])


def _claims(entries: Iterable[Entry]) -> tuple[Claim, ...]:
    return newest(entry.claim for entry in entries)


def _rival(side: Side) -> Rival:
    latest = side.latest
    ended = side.normal == ENDED
    return Rival(value=None if ended else latest.value, ended=ended, claim=latest.claim)


def _why(verdict: Verdict, contract: RelationContract) -> str:
    """Say in the contract's terms why it cannot order the values; never quotes one."""
    classes = sorted({side.latest.source_class for side in verdict.sides})
    peers = f"peers of class {classes[0]}" if len(classes) == 1 else f"peers of classes {', '.join(classes)}"
    latest = [side.latest for side in verdict.sides]
    if contract.conflict_window > timedelta(0) and any(entry.replaces_any for entry in latest):
        seconds = contract.conflict_window.total_seconds()
        return f"{peers}: their starts lie within the conflict window of {seconds:g} s"
    return f"{peers}: a claim replaces only claims of its own source (supersession same_source)"
