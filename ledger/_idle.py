"""
What would be accepted and do nothing is refused when it is appended, with the field that is idle.

A log of before may hold such events: they are folded as ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from contracts.errors import BadRequest
from contracts.events import AIMED, COMMAND_KINDS, ClaimDraft, EventDraft, Stance, TargetDraft
from contracts.identity import IDENTITY
from contracts.names import spelt
from ledger._drafts import targets_of


def refuse_idle(drafts: Sequence[EventDraft]) -> None:
    """
    Refuse events of which a part can have no effect, whatever the log holds.

    Raises:
        BadRequest: With the place of the first such part and why it does nothing.
    """
    for index, draft in enumerate(drafts):
        if draft.kind in COMMAND_KINDS or _only_asserts(draft):
            continue
        for field, reason in _idle(draft):
            raise BadRequest(field=f"events[{index}].{field}", reason=reason)


def _only_asserts(draft: EventDraft) -> bool:
    """Return whether it has no part that could be idle, as most events: no target, no winner, no pair."""
    return not (draft.targets or draft.winner) and all(
        not (claim.targets or claim.winner or claim.inputs) and claim.relation not in IDENTITY
        for claim in draft.claims
    )


def _idle(draft: EventDraft) -> Iterator[tuple[str, str]]:
    for ordinal, claim in enumerate(draft.claims):
        for field, reason in _idle_in(claim, draft):
            yield f"claims[{ordinal}].{field}", reason
    # What is read out of a text may act on the targets of its event too.
    acts = any(claim.targets is None and draft.stance_of(claim) in AIMED for claim in draft.claims)
    if draft.targets and draft.claims and draft.text is None and not acts:
        yield "targets", "none of the claims acts on them"
    # Where there are no claims, the kind says what its targets imply.
    stated = draft.claims or [ClaimDraft()]
    settles = any(claim.winner is None and draft.stance_of(claim) == Stance.SETTLE for claim in stated)
    if draft.winner is not None and draft.text is None and not settles:
        yield "winner", "no settle takes it for its winner"
    for path, target in targets_of(draft):
        if target.event is None and target.source_event_id is None and _names_no_pair(target):
            yield f"{path}.value", f"a {target.relation} is of a pair: say the other name"


def _idle_in(claim: ClaimDraft, draft: EventDraft) -> Iterator[tuple[str, str]]:
    stance = draft.stance_of(claim)
    if claim.targets and stance not in AIMED:
        yield "targets", f"one that says {stance} acts on nothing: correct, retract, settle and dispute do"
    if claim.winner is not None and stance != Stance.SETTLE:
        yield "winner", f"goes with settle, not {stance}"
    if claim.relation not in IDENTITY:
        return
    if claim.valid is not None:
        yield "valid", f"{claim.relation} holds for all valid time"
    targets = draft.targets if claim.targets is None else claim.targets
    if claim.value is None and stance in AIMED and (stance == Stance.SETTLE or not targets):
        yield "value", f"a {claim.relation} is of a pair: say the other name"
    if isinstance(claim.value, str) and spelt(claim.value) == claim.entity:
        yield "value", "nobody is, or is not, one with himself"


def _names_no_pair(target: TargetDraft) -> bool:
    return target.relation in IDENTITY and target.value is None
