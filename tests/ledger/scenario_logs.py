"""Worked scenarios: small logs with questions, read from files, as drafts and as claims."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from contracts.claims import Claim, ProjectedClaim, ValidityKind
from contracts.errors import BadRequest
from contracts.events import ClaimDraft, Event, EventDraft, Kind
from contracts.relations import Cardinality, RelationContract, Supersession
from contracts.times import KnownAt, parse_instant, parse_term
from ledger._reading import claims_of
from ledger._relations import Contracts, unregistered

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


def contracts_of(scenario: dict[str, Any]) -> Contracts:
    return Contracts(
        registered={name: _contract(name, fields) for name, fields in scenario.get("relations", {}).items()}
    )


def _contract(name: str, fields: dict[str, Any]) -> RelationContract:
    contract = unregistered(name)
    for field, value in fields.items():
        match field:
            case "cardinality":
                contract = replace(contract, cardinality=Cardinality(value))
            case "validity":
                contract = replace(contract, validity=ValidityKind(value))
            case "conflict_window":
                contract = replace(contract, conflict_window=_duration(value))
            case "authority":
                places = tuple((place,) if isinstance(place, str) else tuple(place) for place in value)
                contract = replace(contract, authority=places)
            case "supersession":
                rules = tuple((source_class, Supersession(rule)) for source_class, rule in value.items())
                contract = replace(contract, supersession=rules)
            case "normalizer" | "value_type":
                contract = replace(contract, **{field: value})
            case _:
                raise ValueError(f"unknown contract field {field}")
    return contract


def _duration(text: str) -> timedelta:
    units = {"S": "seconds", "M": "minutes", "H": "hours"}
    assert text.startswith("PT")
    return timedelta(**{units[text[-1]]: int(text[2:-1])})


def event_form(event: dict[str, Any]) -> dict[str, Any]:
    """A scenario's event as a line of `echoplane emit`."""
    claims = [_claim_form(claim) for claim in event["claims"]]
    derived = any(claim.get("inputs") for claim in claims)
    form: dict[str, Any] = {
        "stream": "scenario",
        "kind": "derivation" if derived else "claim",
        "actor": {"id": event["source"], "class": event["class"]},
        "source_event_id": event["id"],
        "claims": claims,
    }
    if "observed_at" in event:
        form["observed_at"] = event["observed_at"]
    return form


def _claim_form(claim: dict[str, Any]) -> dict[str, Any]:
    form: dict[str, Any] = {}
    if "key" in claim:
        form["entity"], form["relation"] = claim["key"]
    for name, relation in (("same", "same_as"), ("not_same", "not_same_as")):
        if name in claim:
            form["entity"], form["value"] = claim[name]
            form["relation"] = relation
    for name in ("value", "stance"):
        if name in claim:
            form[name] = claim[name]
    form |= _validity_form(claim)
    if "id" in claim:
        form["occurrence_id"] = claim["id"]
    for name in ("targets", "inputs"):
        if name in claim:
            form[name] = [_target_form(target) for target in claim[name]]
    if "winner" in claim:
        form["winner"] = _target_form(claim["winner"])
    return form


def _validity_form(claim: dict[str, Any]) -> dict[str, Any]:
    if "since" in claim:
        return {"valid": {"since": claim["since"]}}
    if "span" in claim:
        return {"valid": {"from": claim["span"][0], "to": claim["span"][1]}}
    return {"valid": {"at": claim["at"]}} if "at" in claim else {}


def _target_form(target: dict[str, Any]) -> dict[str, Any]:
    form: dict[str, Any] = {"source_event_id": target["event"]}
    if "ordinal" in target:
        form["ordinal"] = target["ordinal"]
    if "key" in target:
        form["entity"], form["relation"] = target["key"]
    return form


def pure_log(scenario: dict[str, Any]) -> Log:
    """The scenario's claims, as the append and the fold would make them, without a database."""
    contracts = contracts_of(scenario)
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
    draft = EventDraft.model_validate(event_form(event))
    assert draft.kind in set(Kind)
    for claim in draft.claims:
        named = [*(claim.targets or ()), *claim.inputs, *([claim.winner] if claim.winner else [])]
        if any(target.source_event_id not in known for target in named):
            raise BadRequest(field="targets", reason="no earlier event")
    return draft
