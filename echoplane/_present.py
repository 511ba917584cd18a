"""From the plane's values to what a door sends. Decides nothing, leaves nothing out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from datetime import timedelta

from contracts.answers import Answer
from contracts.context_wire import (
    CandidateAnswer,
    ContextAnswer,
    DeferredAnswer,
    HitAnswer,
    LineAnswer,
    ReadingAnswer,
    RouteAnswer,
)
from contracts.contexts import ContextPack
from contracts.errors import IntegrityFault
from contracts.events import ErasedEvent, Event, Receipt
from contracts.models import Reading
from contracts.proposals import Candidate, Proposal
from contracts.resolutions import KeyResolution
from contracts.times import format_instant
from contracts.trails import ReplayReport, Trail
from contracts.wire import (
    AskAnswer,
    EventAnswer,
    ReceiptAnswer,
    ReplayAnswer,
    StoredContextAnswer,
    VerifyAnswer,
)
from echoplane._present_reads import resolution_answer, view_answer
from ledger.log import RecalledContext, StoredContext, VerifyReport
from ledger.resolve import CellsReport
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
        backfilled=event.backfilled,
        clock_skew_us=_skew_us(event) if isinstance(event, Event) else None,
        erased=draft is None,
        event=draft,
    )


def _skew_us(event: Event) -> int | None:
    if event.sent_at is None:
        return None
    return (event.sent_at - event.recorded_at) // timedelta(microseconds=1)


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
        reading=None if trail.reading is None else _reading(trail.reading),
    )


def _reading(reading: Reading) -> ReadingAnswer:
    lists = {"cites": list(reading.cites), "unknown_cites": list(reading.unknown_cites)}
    return ReadingAnswer.model_validate(asdict(reading) | lists)


def context_answer(pack: ContextPack) -> ContextAnswer:
    return ContextAnswer(
        hash=pack.context_hash,
        content_hash=pack.content_hash,
        tokens=pack.tokens,
        budget=pack.budget_tokens,
        bytes=pack.bytes_,
        budget_bytes=pack.budget_bytes,
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
                closure=deferred.closure_id,
                cost_tokens=deferred.cost_tokens,
                cost_bytes=deferred.cost_bytes,
                required=deferred.required,
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


def context_form_answer(stored: RecalledContext) -> StoredContextAnswer:
    """
    Return what a stored context is shown as.

    Raises:
        IntegrityFault: Its key is gone, and no erasure took it.
    """
    if isinstance(stored, StoredContext):
        erased_events, form = [], json.loads(stored.form)
    elif stored.erased_by is None:
        raise IntegrityFault(what="context: its key is gone")
    else:
        erased_events, form = list(stored.erased_event_ids), None
    return StoredContextAnswer(
        hash=stored.context_hash,
        content_hash=stored.content_hash,
        erased=not isinstance(stored, StoredContext),
        erased_events=erased_events,
        form=form,
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
