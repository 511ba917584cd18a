"""What is left when the service is down: the plan, the keys it names and what claims them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from contracts.claims import USER, Claim
from contracts.limits import PAGE_EVENTS_MAX
from contracts.proposals import Candidate, Proposal, RouteHit, RouteReport, RouteState
from contracts.trails import Question
from contracts.views import Generation, View
from discovery._names import NameBook
from discovery._planner import plan_question
from discovery._propose import KEYS_PROPOSED_MAX, PROPOSED_MAX
from discovery._record import ClaimBook
from ledger import log

CLAIMS_READ_MAX: Final = 50_000
"""Claims read for one question without an index; a longer record is read up to there."""


def typed_state_proposal(question: Question, *, view: View, claims: Iterable[Claim]) -> Proposal:
    """
    Return a proposal from typed state alone, marked `degraded`. Pure.

    Args:
        question: As it was put.
        view: Claims after its cut, or of another epoch, are not looked at.
        claims: The record, in order of position.
    """
    book, names = ClaimBook(), NameBook()
    commit = 0
    for claim in claims:
        if claim.epoch != view.epoch or claim.commit > view.cut:
            continue
        commit = claim.commit
        book.add(claim)
        names.add_entity(claim.source.actor_id, commit=claim.commit)
        if claim.source.actor_class == USER:
            names.add_user(claim.source.actor_id, commit=claim.commit)
        names.add_claim(claim)
    plan = plan_question(question.text, names.at(view.cut), valid_at=view.valid_at)
    match = book.match(plan, question.text, cut=view.cut)
    order = sorted(match.events.items(), key=lambda item: (-item[1], item[0]))[:PROPOSED_MAX]
    candidates = tuple(
        Candidate(
            unit_id=event_id,
            event_ids=(event_id,),
            score_ppm=round(score * 1_000_000),
            hits=(RouteHit(route="state", rank=rank, score_ppm=round(score * 1_000_000)),),
        )
        for rank, (event_id, score) in enumerate(order, 1)
    )
    generation = str(Generation(epoch=view.epoch, commit=commit))
    return Proposal(
        plan=plan,
        candidates=candidates,
        keys=match.keys[:KEYS_PROPOSED_MAX],
        routes=(
            RouteReport(
                route="state", state=RouteState.OK, generation=generation, count=len(order), duration_us=0
            ),
        ),
        degraded=True,
    )


async def propose_degraded(db: log.Database, *, tenant: str, question: Question, view: View) -> Proposal:
    """
    Read the record and return `typed_state_proposal` over it: for when `Client` raises Unavailable.

    Raises:
        NotFound: No such tenant.
        Unavailable: The database is down.
    """
    claims: list[Claim] = []
    async with db.snapshot(tenant) as conn:
        keys = await log.tenant_keys(db, tenant, conn)
        after = 0
        while len(claims) < CLAIMS_READ_MAX:
            page = await log.read_claims(
                conn, keys, epoch=view.epoch, after_position=after, limit=PAGE_EVENTS_MAX
            )
            if not page or page[0].commit > view.cut:
                break
            claims += page
            after = page[-1].position.event
    return typed_state_proposal(question, view=view, claims=claims)
