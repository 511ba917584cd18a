"""Structured claims as plain text, for events that carry no text of their own."""

from __future__ import annotations

import json
from collections.abc import Iterable

from contracts.events import ClaimDraft, EventDraft, Stance, TargetDraft, ValidDraft


def rendering(draft: EventDraft) -> str:
    """Return the event's structured claims in words: the same for the same draft for ever."""
    parts = [_claim(claim, draft.stance_of(claim)) for claim in draft.claims]
    if draft.targets:
        parts.append(f"{draft.kind.value} of {_targets(draft.targets)}")
    return "; ".join(parts)


def _claim(claim: ClaimDraft, stance: Stance) -> str:
    words = [] if stance == Stance.ASSERT else [stance.value]
    if claim.entity is not None:
        words.append(f"{claim.entity} {claim.relation}")
    if claim.value is not None:
        value = claim.value if isinstance(claim.value, str) else json.dumps(claim.value, sort_keys=True)
        words.append(f"= {value}" if words else value)
    if claim.valid is not None:
        words.append(f"({_valid(claim.valid)})")
    if claim.targets:
        words.append(f"of {_targets(claim.targets)}")
    if claim.inputs:
        words.append(f"from {_targets(claim.inputs)}")
    return " ".join(words)


def _valid(valid: ValidDraft) -> str:
    if valid.since is not None:
        return f"since {valid.since}"
    if valid.at is not None:
        return f"at {valid.at}"
    return f"from {valid.from_ or 'ever'} to {valid.to or 'open'}"


def _targets(targets: Iterable[TargetDraft]) -> str:
    return ", ".join(_target(target) for target in targets)


def _target(target: TargetDraft) -> str:
    named = target.event or target.source_event_id
    words = [f"event {named}"] if named is not None else []
    if target.ordinal is not None:
        words.append(f"claim {target.ordinal}")
    if target.entity is not None:
        words.append(f"{target.entity} {target.relation}")
    return " ".join(words)
