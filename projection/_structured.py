"""
Structured claims, projected exactly: what the event says, and nothing else.

An event's targets, winner and `occurrence_id` apply to a claim that has none of its own. A
correction, retraction or settlement with targets and no claims implies one claim of that stance.
"""

from __future__ import annotations

from typing import Final

from contracts.claims import ProjectedClaim
from contracts.events import AIMED, STANCES_OF_KIND, ClaimDraft, EventDraft, Kind, Stance

_WITH_WINNER: Final = frozenset({Stance.SETTLE})
_IMPLYING: Final = frozenset({Kind.CORRECTION, Kind.RETRACTION, Kind.SETTLEMENT})


def structured(draft: EventDraft) -> list[ProjectedClaim]:
    """Return the event's structured claims with ordinals 0, 1, 2 … in their order."""
    claims = draft.claims or _implied(draft)
    if draft.targets or draft.winner is not None or draft.occurrence_id is not None:
        claims = [_completed(claim, draft) for claim in claims]
    return [
        ProjectedClaim(ordinal=ordinal, draft=claim, stance=draft.stance_of(claim), spans=())
        for ordinal, claim in enumerate(claims)
    ]


def _implied(draft: EventDraft) -> list[ClaimDraft]:
    if not draft.targets or draft.kind not in _IMPLYING:
        return []
    # Where every target names one and the same key, the implied claim is about that key; else each
    # target's claims name their own.
    keys = {(target.entity, target.relation) for target in draft.targets}
    entity, relation = keys.pop() if len(keys) == 1 else (None, None)
    (stance,) = STANCES_OF_KIND[draft.kind]
    return [ClaimDraft(entity=entity, relation=relation, stance=stance)]


def _completed(claim: ClaimDraft, draft: EventDraft) -> ClaimDraft:
    stance = draft.stance_of(claim)
    changes: dict[str, object] = {}
    if claim.targets is None and draft.targets and stance in AIMED:
        changes["targets"] = draft.targets
    if claim.winner is None and draft.winner is not None and stance in _WITH_WINNER:
        changes["winner"] = draft.winner
    if claim.occurrence_id is None and draft.occurrence_id is not None:
        changes["occurrence_id"] = draft.occurrence_id
    return claim.model_copy(update=changes) if changes else claim
