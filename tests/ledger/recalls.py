"""Recalls for the tests of trails."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from contracts.answers import AnswerStatus
from contracts.contexts import ContextPack
from contracts.proposals import (
    Candidate,
    KeyProposal,
    Operation,
    Plan,
    Proposal,
    RouteHit,
    RouteReport,
    RouteState,
    TimeExpression,
)
from contracts.times import KnownAt, ValidAt
from contracts.trails import Question, Trail
from contracts.views import View
from ledger import log

NOW = datetime(2026, 2, 3, 4, 5, 6, 789, tzinfo=UTC)
PROPOSAL = Proposal(
    plan=Plan(
        operation=Operation.CURRENT_STATE,
        entities=("ann",),
        relations=("lives_in",),
        times=(TimeExpression(wording="in May", start=NOW, end=None),),
        surface="value",
        confidence_ppm=900_000,
    ),
    candidates=(
        Candidate(
            unit_id="ev_1",
            event_ids=("ev_1", "ev_2"),
            score_ppm=5,
            hits=(RouteHit(route="lexical", rank=1, score_ppm=5),),
        ),
    ),
    keys=(KeyProposal(entity="ann", relation="lives_in", score_ppm=7, named=True),),
    routes=(RouteReport(route="lexical", state=RouteState.OK, generation="1:2", count=1, duration_us=12),),
    degraded=False,
)


def pack_of(form: bytes) -> ContextPack:
    return ContextPack(
        lines=(),
        admitted=(),
        deferred=(),
        tokens=0,
        budget_tokens=100,
        bytes_=0,
        budget_bytes=None,
        counter="approximate",
        content_hash=hashlib.sha256(b"content" + form).hexdigest(),
        context_hash=hashlib.sha256(form).hexdigest(),
        form=form,
    )


def trail_of(db: log.Database, pack: ContextPack, **changes: Any) -> Trail:
    fields = {
        "trail_id": log.new_trail_id(db),
        "tenant": "acme",
        "question": Question(text="Where does SECRET live?", budget_tokens=100, disclose_conflicts=False),
        "view": View(valid_at=ValidAt(NOW), known_at=KnownAt(NOW), cut=3, epoch=1),
        "proposal": PROPOSAL,
        "configuration_hash": "c" * 64,
        "context_hash": pack.context_hash,
        "content_hash": pack.content_hash,
        "answer_digest": "a" * 64,
        "status": AnswerStatus.ANSWERED,
    }
    return Trail(**(fields | changes))


async def store(db: log.Database, form: bytes = b'{"form":1}', **changes: Any) -> Trail:
    pack = pack_of(form)
    trail = trail_of(db, pack, **changes)
    await log.store_recall(db, trail.tenant, trail, pack)
    return trail
