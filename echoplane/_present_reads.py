"""From what was read to what a door sends: claims, what stands on a key, histories, differences, joins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, TypeAlias

from contracts.claims import Claim
from contracts.histories import Withdrawn
from contracts.read_wire import (
    ChangeAnswer,
    ClaimAnswer,
    DiffAnswer,
    HistoryAnswer,
    HistoryCell,
    JoinAnswer,
    OccurrenceAnswer,
    OccurrencesAnswer,
    PairAnswer,
    PairSideAnswer,
    PinnedViewAnswer,
    ResolutionAnswer,
    ResolveAnswer,
    RivalAnswer,
    SourceAnswer,
    StandAnswer,
    UndeterminedAnswer,
    ValidityAnswer,
    ViewAnswer,
    WithdrawnAnswer,
)
from contracts.relations import RelationContract
from contracts.resolutions import (
    Conflict,
    Doubt,
    KeyResolution,
    Missing,
    Resolution,
    Resolved,
    ResolvedSet,
    Rival,
)
from contracts.times import format_instant
from contracts.values import with_unit
from contracts.views import View
from ledger.resolve import Change, Difference, Held, History, Joined, Pair, PinnedView, Rectangle, Stand

Shape: TypeAlias = Literal["rectangles", "timeline", "instant"]
_FIRST: Final = datetime.min.replace(tzinfo=UTC)


def view_answer(view: View) -> ViewAnswer:
    return ViewAnswer(
        valid_at=format_instant(view.valid_at),
        known_at=format_instant(view.known_at),
        cut=view.cut,
        epoch=view.epoch,
    )


def claim_answer(claim: Claim) -> ClaimAnswer:
    return ClaimAnswer(
        id=claim.claim_id,
        event=claim.event_id,
        ordinal=claim.position.ordinal,
        entity=claim.entity,
        relation=claim.relation,
        value=claim.value,
        stance=claim.stance.value,
        valid=ValidityAnswer(
            kind=claim.validity.kind.value,
            start=_instant(claim.validity.start),
            end=_instant(claim.validity.end),
            earliest=_instant(claim.validity.earliest),
            timeless=claim.validity.timeless,
        ),
        source=SourceAnswer(**{"id": claim.source.actor_id, "class": claim.source.actor_class}),
        commit=claim.commit,
        recorded_at=format_instant(claim.recorded_at),
        observed_at=_instant(claim.observed_at),
        spans=[(span.start, span.end) for span in claim.spans],
        occurrence_id=claim.occurrence_id,
    )


def resolve_answer(resolution: KeyResolution, doubt: Doubt | None) -> ResolveAnswer:
    return ResolveAnswer(
        undetermined=None if doubt is None else _undetermined(doubt),
        view=view_answer(resolution.view),
        **_outcome(resolution),
    )


def _undetermined(doubt: Doubt) -> UndeterminedAnswer:
    bounds = {"from": format_instant(doubt.start), "to": format_instant(doubt.end)}
    return UndeterminedAnswer(**bounds, claims=[claim_answer(claim) for claim in doubt.claims])


def resolution_answer(resolution: KeyResolution) -> ResolutionAnswer:
    return ResolutionAnswer(entity=resolution.entity, relation=resolution.relation, **_outcome(resolution))


def history_answer(
    found: History,
    unplaced: Iterable[Claim],
    withdrawn: tuple[Sequence[Withdrawn], bool],
    *,
    relation: str | None,
    shape: Shape,
    view: View,
) -> HistoryAnswer:
    return HistoryAnswer(
        entity=found.entity,
        relation=relation,
        shape=shape,
        epoch=view.epoch,
        cut=view.cut,
        truncated=found.truncated,
        cells=[_cell(rectangle) for rectangle in found.rectangles],
        claims=_once(
            [
                *(claim for rectangle in found.rectangles for claim in rectangle.claims),
                *(claim for one in withdrawn[0] for claim in (one.claim, *one.by)),
            ]
        ),
        unplaced=_once(unplaced),
        withdrawn=[
            WithdrawnAnswer(claim=one.claim.claim_id, by=[claim.claim_id for claim in one.by])
            for one in withdrawn[0]
        ],
        withdrawn_whole=withdrawn[1],
    )


def _cell(rectangle: Rectangle) -> HistoryCell:
    return HistoryCell(
        valid_from=_instant(rectangle.valid_from),
        valid_to=_instant(rectangle.valid_to),
        known_from=rectangle.known_from,
        known_to=rectangle.known_to,
        known_from_at=format_instant(rectangle.known_from_at),
        known_to_at=_instant(rectangle.known_to_at),
        relation=rectangle.relation,
        part=rectangle.part,
        state=rectangle.state,
        values=[claim.value for claim in rectangle.claims],
        claims=[claim.claim_id for claim in rectangle.claims],
    )


def diff_answer(found: Difference, *, before: View, after: View, instants: bool) -> DiffAnswer:
    return DiffAnswer(
        before=view_answer(before),
        after=view_answer(after),
        instants=instants,
        changes=[_change(change) for change in found.changes],
        next_line=found.next_line,
        truncated=found.truncated,
        claims=_once(
            claim
            for change in found.changes
            for claim in (*change.before.claims, *change.after.claims, *change.causes)
        ),
    )


def _change(change: Change) -> ChangeAnswer:
    return ChangeAnswer(
        entity=change.entity,
        relation=change.relation,
        part=change.part,
        valid_from=_instant(change.valid_from),
        valid_to=_instant(change.valid_to),
        before=_stand(change.before),
        after=_stand(change.after),
        commits=list(change.commits),
        events=list(dict.fromkeys(claim.event_id for claim in change.causes)),
        causes=[claim.claim_id for claim in change.causes],
    )


def _stand(stand: Stand) -> StandAnswer:
    return StandAnswer(
        state=stand.state,
        values=[claim.value for claim in stand.claims],
        claims=[claim.claim_id for claim in stand.claims],
    )


def occurrences_answer(
    found: ResolvedSet,
    *,
    view: View,
    key: tuple[str, str],
    window: tuple[datetime | None, datetime | None],
    contract: RelationContract,
) -> OccurrencesAnswer:
    rivals = [rival for conflict in found.disputed for rival in conflict.rivals]
    return OccurrencesAnswer(
        view=view_answer(view),
        entity=key[0],
        relation=key[1],
        valid_from=_instant(window[0]),
        valid_to=_instant(window[1]),
        count=found.members_count,
        disputed_count=found.disputed_count,
        occurrences=[
            OccurrenceAnswer(
                value=with_unit(member.value, contract),
                valid=claim_answer(told).valid,
                claims=[claim.claim_id for claim in member.claims],
            )
            for told, member in sorted(
                ((min(member.claims, key=_length), member) for member in found.members),
                key=lambda one: (one[0].validity.start or _FIRST, one[0].position),
            )
        ],
        disputed=[[_rival(rival, contract) for rival in conflict.rivals] for conflict in found.disputed],
        truncated=(found.members_count, found.disputed_count) != (len(found.members), len(found.disputed)),
        claims=_once(
            [*(claim for member in found.members for claim in member.claims), *(one.claim for one in rivals)]
        ),
    )


def _length(claim: Claim) -> timedelta:
    """Return how long the time is that a claim tells; that of one which restates no time is the longest."""
    start, end = claim.validity.start, claim.validity.end
    return timedelta.max if start is None or end is None else end - start


def join_answer(found: Joined, *, view: View, bitemporal: bool) -> JoinAnswer:
    sides = (side for pair in found.pairs for side in (pair.left, pair.right))
    return JoinAnswer(
        view=view_answer(view),
        bitemporal=bitemporal,
        pairs=[_pair(pair) for pair in found.pairs],
        truncated=found.truncated,
        claims=_once(claim for side in sides for claim in side.claims),
    )


def _pair(pair: Pair) -> PairAnswer:
    return PairAnswer(
        left=_side(pair.left),
        right=_side(pair.right),
        valid_from=_instant(pair.valid_from),
        valid_to=_instant(pair.valid_to),
        known_from=pair.known_from,
        known_to=pair.known_to,
        known_from_at=format_instant(pair.known_from_at),
        known_to_at=_instant(pair.known_to_at),
    )


def _side(held: Held) -> PairSideAnswer:
    return PairSideAnswer(value=held.value, claim=held.claims[0].claim_id)


def pinned_answer(tenant: str, pinned: PinnedView) -> PinnedViewAnswer:
    return PinnedViewAnswer(
        tenant=tenant,
        name=pinned.name,
        view=view_answer(pinned.view),
        pinned_at=format_instant(pinned.pinned_at),
    )


def _outcome(resolution: KeyResolution) -> dict[str, Any]:
    found = _stands(resolution.resolution, resolution.contract)
    found["disputes"] = [claim_answer(claim) for claim in resolution.disputes]
    found["unplaced"] = [claim_answer(claim) for claim in resolution.unplaced]
    found["truncated"] = resolution.truncated
    return found


def _stands(resolution: Resolution, contract: RelationContract) -> dict[str, Any]:
    match resolution:
        case Resolved() as one:
            found = _found("resolved", claims=one.claims, superseded=one.superseded)
            return found | {"value": with_unit(one.value, contract)}
        case ResolvedSet() as several:
            return _set(several, contract)
        case Missing() as missing:
            return _found("missing", superseded=missing.superseded, reason=missing.reason.value)
        case Conflict() as conflict:
            found = _found("conflict", superseded=conflict.superseded, reason=conflict.why)
            return found | {"conflict": [_rival(rival, contract) for rival in conflict.rivals]}


def _set(several: ResolvedSet, contract: RelationContract) -> dict[str, Any]:
    # A key whose every value is in dispute has none that stands: that is a conflict, not an empty set.
    outcome: Literal["resolved", "conflict"] = "resolved" if several.members else "conflict"
    found = _found(
        outcome,
        claims=[claim for member in several.members for claim in member.claims],
        superseded=[
            *(claim for member in several.members for claim in member.superseded),
            *(claim for conflict in several.disputed for claim in conflict.superseded),
        ],
        reason=None if several.members else several.disputed[0].why,
    )
    found["values"] = [with_unit(member.value, contract) for member in several.members]
    found["values_count"], found["disputed_count"] = several.members_count, several.disputed_count
    found["disputed"] = [with_unit(_disputed_value(conflict), contract) for conflict in several.disputed]
    found["conflict"] = [
        _rival(rival, contract) for conflict in several.disputed for rival in conflict.rivals
    ]
    return found


def _found(
    outcome: Literal["resolved", "missing", "conflict"],
    *,
    claims: Iterable[Claim] = (),
    superseded: Iterable[Claim] = (),
    reason: str | None = None,
) -> dict[str, Any]:
    return {
        "outcome": outcome,
        "disputed": [],
        "disputed_count": 0,
        "reason": reason,
        "conflict": [],
        "claims": [claim_answer(claim) for claim in claims],
        "superseded": [claim_answer(claim) for claim in superseded],
    }


def _disputed_value(conflict: Conflict) -> Any:  # noqa: ANN401 - a value is any JSON
    # On a line of a many-valued key the rivals are the value and its end.
    return next((rival.value for rival in conflict.rivals if not rival.ended), conflict.rivals[0].value)


def _rival(rival: Rival, contract: RelationContract) -> RivalAnswer:
    value = with_unit(rival.value, contract)
    return RivalAnswer(value=value, ended=rival.ended, claim=claim_answer(rival.claim))


def _once(claims: Iterable[Claim]) -> list[ClaimAnswer]:
    by_id = {claim.claim_id: claim for claim in claims}
    return [claim_answer(claim) for claim in sorted(by_id.values(), key=lambda claim: claim.position)]


def _instant(instant: datetime | None) -> str | None:
    return None if instant is None else format_instant(instant)
