"""From the plane's values to what a door sends. Decides nothing, leaves nothing out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

from contracts.answers import Answer
from contracts.claims import Claim
from contracts.contexts import ContextPack
from contracts.events import ErasedEvent, Event, Receipt
from contracts.proposals import Candidate, Proposal
from contracts.resolutions import Conflict, KeyResolution, Missing, Resolution, Resolved, ResolvedSet, Rival
from contracts.times import format_instant
from contracts.trails import ReplayReport, Trail
from contracts.views import View
from contracts.wire import (
    AskAnswer,
    CandidateAnswer,
    ClaimAnswer,
    ContextAnswer,
    DeferredAnswer,
    EventAnswer,
    HistoryAnswer,
    HistoryCell,
    HitAnswer,
    LineAnswer,
    ReceiptAnswer,
    ReplayAnswer,
    ResolutionAnswer,
    ResolveAnswer,
    RivalAnswer,
    RouteAnswer,
    SourceAnswer,
    StoredContextAnswer,
    ValidityAnswer,
    VerifyAnswer,
    ViewAnswer,
)
from ledger.log import RecalledContext, StoredContext, VerifyReport
from ledger.resolve import CellsReport, History, Rectangle
from ledger.write import ClaimsReport


def receipt_answer(receipt: Receipt) -> ReceiptAnswer:
    return ReceiptAnswer(
        tenant=receipt.tenant,
        commit=receipt.commit,
        recorded_at=format_instant(receipt.recorded_at),
        event_ids=list(receipt.event_ids),
        positions=list(receipt.positions),
        event_hashes=list(receipt.event_hashes),
        commit_hash=receipt.commit_hash,
        repeated=receipt.repeated,
    )


def event_answer(tenant: str, event: Event | ErasedEvent) -> EventAnswer:
    draft = event.draft if isinstance(event, Event) else None
    return EventAnswer(
        tenant=tenant,
        event_id=event.event_id,
        kind=event.kind.value if isinstance(event, ErasedEvent) else event.draft.kind.value,
        position=event.position,
        commit=event.commit,
        recorded_at=format_instant(event.recorded_at),
        erased=draft is None,
        event=draft,
    )


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


def resolve_answer(resolution: KeyResolution) -> ResolveAnswer:
    return ResolveAnswer(view=view_answer(resolution.view), **_outcome(resolution))


def resolution_answer(resolution: KeyResolution) -> ResolutionAnswer:
    return ResolutionAnswer(entity=resolution.entity, relation=resolution.relation, **_outcome(resolution))


def ask_answer(
    *,
    answer: Answer,
    pack: ContextPack,
    proposal: Proposal,
    resolutions: Iterable[KeyResolution],
    trail: Trail,
) -> AskAnswer:
    return AskAnswer(
        status=answer.status.value,
        answer=answer.value,
        reason=answer.reason,
        cites=list(answer.cites),
        view=view_answer(trail.view),
        context=context_answer(pack),
        resolutions=[resolution_answer(resolution) for resolution in resolutions],
        routes=[
            RouteAnswer(
                route=report.route,
                state=report.state.value,
                generation=report.generation,
                count=report.count,
                duration_us=report.duration_us,
            )
            for report in proposal.routes
        ],
        candidates=[_candidate(candidate) for candidate in proposal.candidates],
        degraded=proposal.degraded,
        configuration_hash=trail.configuration_hash,
        trail=trail.trail_id,
    )


def context_answer(pack: ContextPack) -> ContextAnswer:
    return ContextAnswer(
        hash=pack.context_hash,
        content_hash=pack.content_hash,
        tokens=pack.tokens,
        budget=pack.budget_tokens,
        lines=[
            LineAnswer(
                id=line.line_id,
                text=line.text,
                event=line.event_id,
                observed_at=line.observed_at,
                mark=line.mark.value,
            )
            for line in pack.lines
        ],
        admitted=list(pack.admitted),
        deferred=[
            DeferredAnswer(
                closure=deferred.closure_id, cost_tokens=deferred.cost_tokens, required=deferred.required
            )
            for deferred in pack.deferred
        ],
    )


def replay_answer(report: ReplayReport) -> ReplayAnswer:
    return ReplayAnswer(
        verdict=report.verdict.value,
        context=report.context_hash,
        replayed=report.replayed_hash,
        differences=list(report.differences),
        erased=list(report.erased_event_ids),
    )


def history_answer(found: History, *, relation: str | None, view: View) -> HistoryAnswer:
    once = {claim.claim_id: claim for rectangle in found.rectangles for claim in rectangle.claims}
    return HistoryAnswer(
        entity=found.entity,
        relation=relation,
        epoch=view.epoch,
        cut=view.cut,
        truncated=found.truncated,
        cells=[_cell(rectangle) for rectangle in found.rectangles],
        claims=[claim_answer(claim) for claim in sorted(once.values(), key=lambda claim: claim.position)],
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


def context_form_answer(stored: RecalledContext) -> StoredContextAnswer:
    return StoredContextAnswer(
        hash=stored.context_hash,
        content_hash=stored.content_hash,
        form=json.loads(stored.form) if isinstance(stored, StoredContext) else None,
    )


def verify_answer(report: VerifyReport, claims: ClaimsReport, cells: CellsReport) -> VerifyAnswer:
    return VerifyAnswer(
        tenant=report.tenant,
        ok=report.intact and claims.intact and cells.intact,
        commits=report.commits,
        events=report.events,
        erased=report.erased,
        claims=report.claims,
        cells=cells.cells,
        cuts=cells.cuts,
        changes=cells.commits,
        trails=report.trails,
        head=report.head.hash.hex(),
        problems=[str(problem) for problem in (*report.problems, *claims.problems, *cells.problems)],
        problems_count=report.problems_count + claims.problems_count + cells.problems_count,
    )


def _candidate(candidate: Candidate) -> CandidateAnswer:
    return CandidateAnswer(
        unit=candidate.unit_id,
        events=list(candidate.event_ids),
        score_ppm=candidate.score_ppm,
        hits=[HitAnswer(route=hit.route, rank=hit.rank, score_ppm=hit.score_ppm) for hit in candidate.hits],
    )


def _outcome(resolution: KeyResolution) -> dict[str, Any]:
    found = _stands(resolution.resolution)
    found["disputes"] = [claim_answer(claim) for claim in resolution.disputes]
    return found


def _stands(resolution: Resolution) -> dict[str, Any]:
    match resolution:
        case Resolved() as one:
            found = _found("resolved", claims=one.claims, superseded=one.superseded)
            return found | {"value": one.value}
        case ResolvedSet() as several:
            return _set(several)
        case Missing() as missing:
            return _found("missing", superseded=missing.superseded, reason=missing.reason.value)
        case Conflict() as conflict:
            found = _found("conflict", superseded=conflict.superseded, reason=conflict.why)
            return found | {"conflict": [_rival(rival) for rival in conflict.rivals]}


def _set(several: ResolvedSet) -> dict[str, Any]:
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
    found["values"] = [member.value for member in several.members]
    found["disputed"] = [_disputed_value(conflict) for conflict in several.disputed]
    found["conflict"] = [_rival(rival) for conflict in several.disputed for rival in conflict.rivals]
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
        "reason": reason,
        "conflict": [],
        "claims": [claim_answer(claim) for claim in claims],
        "superseded": [claim_answer(claim) for claim in superseded],
    }


def _disputed_value(conflict: Conflict) -> Any:  # noqa: ANN401 - a value is any JSON
    # On a line of a many-valued key the rivals are the value and its end.
    return next((rival.value for rival in conflict.rivals if not rival.ended), conflict.rivals[0].value)


def _rival(rival: Rival) -> RivalAnswer:
    return RivalAnswer(value=rival.value, ended=rival.ended, claim=claim_answer(rival.claim))


def _instant(instant: datetime | None) -> str | None:
    return None if instant is None else format_instant(instant)
