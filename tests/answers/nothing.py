"""A discovery that proposes nothing: what is derived stands on the ledger alone, and on no candidate."""

from __future__ import annotations

from contracts.proposals import Operation, Plan, Proposal
from contracts.trails import Question
from contracts.views import View


class NoCandidates:
    """Implements `contracts.ports.Discovery`."""

    async def propose(self, *, tenant: str, question: Question, view: View) -> Proposal:
        plan = Plan(
            operation=Operation.FACT, entities=(), relations=(), times=(), surface="value", confidence_ppm=0
        )
        return Proposal(plan=plan, candidates=(), keys=(), routes=(), degraded=False)
