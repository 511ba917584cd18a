"""Worked scenarios as claims, without a database: what the runner tells a ledger, told to the pure core."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from contracts.claims import Claim, ProjectedClaim
from contracts.errors import BadRequest
from contracts.events import ClaimDraft, Event, EventDraft
from contracts.times import KnownAt, parse_instant, parse_term
from echoplane._conformance_scenarios import contracts_of, draft_of
from ledger._reading import claims_of
from ledger._relations import Contracts

SHARED = Path(__file__).parents[3] / "shared" / "cases"
OWN = Path(__file__).parents[1] / "data" / "scenarios_own.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A scenario's log as accepted: claims in order, and when each commit was recorded."""

    claims: list[Claim]
    recorded_at: list[KnownAt]
    contracts: Contracts
    refused: list[bool]


class PlainProjector:
    """Reads structured claims exactly and no text."""

    version = "plain-1"

    def project(self, event: Event) -> Sequence[ProjectedClaim]:
        drafts = event.draft.claims
        if not drafts and event.draft.targets:
            drafts = [ClaimDraft()]
        return [
            ProjectedClaim(ordinal=ordinal, draft=draft, stance=event.draft.stance_of(draft), spans=())
            for ordinal, draft in enumerate(drafts)
        ]


def load(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))["scenarios"]


def needs_erasure(scenario: dict[str, Any]) -> bool:
    return any("erase" in event for commit in scenario["commits"] for event in commit["events"])


def pure_log(scenario: dict[str, Any]) -> Log:
    """The scenario's claims, as the append and the fold would make them, without a database."""
    contracts = Contracts(registered={one.relation: one for one in contracts_of(scenario)})
    projector = PlainProjector()
    claims: list[Claim] = []
    recorded: list[KnownAt] = []
    refused: list[bool] = []
    known: set[str] = set()
    position = 0
    for commit in scenario["commits"]:
        clock = parse_instant(commit["recorded_at"], field="recorded_at")
        last = recorded[-1] if recorded else None
        recorded_at = KnownAt(clock if last is None else max(clock, last + timedelta(microseconds=1)))
        try:
            drafts = [_checked(event, known) for event in commit["events"]]
        except (ValueError, BadRequest):
            refused.append(True)
            continue
        refused.append(False)
        recorded.append(recorded_at)
        for draft in drafts:
            position += 1
            known.add(draft.source_event_id or "")
            event = Event(
                backfilled=False,
                sent_at=None,
                event_id=draft.source_event_id or "",
                position=position,
                commit=len(recorded),
                recorded_at=recorded_at,
                observed=None
                if draft.observed_at is None
                else parse_term(draft.observed_at, field="observed_at"),
                draft=draft,
            )
            claims += claims_of(
                event,
                projector.project(event),
                epoch=1,
                contracts=contracts,
                claim_id=lambda ordinal, draft=draft: f"{draft.source_event_id}#{ordinal}",
                event_id_of=lambda name: name,
            )
    return Log(claims=claims, recorded_at=recorded, contracts=contracts, refused=refused)


def _checked(event: dict[str, Any], known: set[str]) -> EventDraft:
    draft = draft_of(event)
    for claim in draft.claims:
        named = [*(claim.targets or ()), *claim.inputs, *([claim.winner] if claim.winner else [])]
        if any(target.source_event_id not in known for target in named):
            raise BadRequest(field="targets", reason="no earlier event")
    return draft
