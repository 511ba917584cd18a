"""The worked scenarios, against the pure core and through a real ledger."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from contracts.claims import Claim
from contracts.errors import BadRequest
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from contracts.resolutions import Conflict, Missing, Resolved, ResolvedSet
from contracts.times import parse_instant
from contracts.views import ViewRequest
from ledger import log
from ledger._claims import micros
from ledger._court import Court, court_of
from ledger._decide import ENDED, State
from ledger.resolve import members_of, pin, resolve
from ledger.resolve import occurrences as ledger_occurrences
from ledger.write import fold, register_contract
from tests.ledger import scenario_logs as logs


def _scenarios(path: Path) -> list[Any]:
    if not path.exists():
        return [pytest.param(None, id="absent", marks=pytest.mark.skip(reason=f"{path.name} is not here"))]
    return [
        pytest.param(
            scenario,
            id=scenario["id"],
            marks=[pytest.mark.xfail(strict=True, reason="erasure is not built yet")]
            if logs.needs_erasure(scenario)
            else [],
        )
        for scenario in logs.load(path)
    ]


EVERY = [*_scenarios(logs.SHARED / "scenarios.json"), *_scenarios(logs.OWN)]


def name_of(claim: Claim) -> str:
    return f"{claim.event_id}#{claim.position.ordinal}"


def cut_of(query: dict[str, Any], recorded_at: list[datetime]) -> int:
    if "commit" in query:
        return query["commit"]
    if "known_at" in query:
        known_at = parse_instant(query["known_at"], field="known_at")
        return sum(recorded <= known_at for recorded in recorded_at)
    return len(recorded_at)


def pure_answer(court: Court, query: dict[str, Any], at: datetime | None) -> dict[str, Any]:
    entity, relation = query.get("state") or query["many"]
    found = court.decide(entity, relation, micros(at))
    answer: dict[str, Any] = {"disputes": [name_of(claim) for claim in found.disputes]}
    superseded = {name_of(entry.claim) for _, verdict in found.lines for entry in verdict.superseded}
    answer["superseded"] = sorted(superseded)
    resolved = [verdict.sides[0] for _, verdict in found.lines if verdict.state == State.VALUE]
    conflicts = [verdict for _, verdict in found.lines if verdict.state == State.CONFLICT]
    if "many" in query:
        answer["values"] = sorted(side.standing[0].value for side in resolved)
        answer["disputed"] = sorted(
            entry.value
            for verdict in conflicts
            for entry in [side.latest for side in verdict.sides if side.normal != ENDED]
        )
    if found.reason is not None:
        answer["missing"] = found.reason.value
    elif conflicts:
        answer["conflict"] = {
            "<ended>" if side.normal == ENDED else side.latest.value: name_of(side.latest.claim)
            for side in conflicts[0].sides
        }
    elif resolved:
        answer["resolved"] = resolved[0].standing[0].value
        answer["claims"] = [name_of(entry.claim) for entry in resolved[0].carriers]
    return answer


def assert_agrees(answer: dict[str, Any], expect: dict[str, Any], query: dict[str, Any]) -> None:
    for field, wanted in expect.items():
        got = answer.get(field)
        if isinstance(wanted, list) and isinstance(got, list):
            assert sorted(got) == sorted(wanted), (field, query, answer)
        else:
            assert got == wanted, (field, query, answer)


def occurrences(court: Court, query: dict[str, Any]) -> dict[str, Any]:
    entity, relation = query["occurrences"]
    window = query.get("window")
    timelines = court.timelines(entity, relation)
    counted = []
    for part, line in court.lines(entity, relation).items():
        segments = [segment for segment in timelines.get(part, []) if segment.state in {"value", "conflict"}]
        if window is not None:
            start, end = (micros(parse_instant(bound, field="window")) for bound in window)
            segments = [segment for segment in segments if segment.start < end and start < segment.end]
        if segments:
            counted.append(sorted(name_of(standing.entry.claim) for standing in line if standing.cover))
    return {"count": len(counted), "claims": counted}


def pure_query(log: Any, query: dict[str, Any]) -> dict[str, Any]:
    cut = cut_of(query, log.recorded_at)
    court = court_of([claim for claim in log.claims if claim.commit <= cut], log.contracts)
    if "occurrences" in query:
        return occurrences(court, query)
    if "entity" in query:
        name = query["entity"]
        identity = court.replay.identity
        names = {name, *(other for other in identity.root if identity.entity(other) == identity.entity(name))}
        return {"members": sorted(names)}
    return pure_answer(court, query, parse_instant(query["valid_at"], field="valid_at"))


@pytest.mark.parametrize("scenario", EVERY)
def test_pure_core_answers_as_the_scenario_says(scenario):
    log = logs.pure_log(scenario)

    assert log.refused == [commit.get("refused", False) for commit in scenario["commits"]]
    for query in scenario["queries"]:
        assert_agrees(pure_query(log, query), query["expect"], query)


class Replayed:
    """A scenario appended to a real ledger and folded; commits of its contracts come before its own."""

    def __init__(self, db, clock, scenario):
        self.db, self.clock, self.scenario = db, clock, scenario
        self.contracts = logs.contracts_of(scenario).registered
        self.names: dict[str, str] = {}
        self.refused: list[bool] = []

    async def run(self):
        first = parse_instant(self.scenario["commits"][0]["recorded_at"], field="recorded_at")
        self.clock.now = first - timedelta(days=1)
        for contract in self.contracts.values():
            await register_contract(
                self.db, "acme", contract, stream="contracts", actor_id="op", grant=LOCAL_GRANT
            )
        for commit in self.scenario["commits"]:
            self.clock.now = parse_instant(commit["recorded_at"], field="recorded_at")
            try:
                drafts = [EventDraft.model_validate(logs.event_form(event)) for event in commit["events"]]
                receipt = await log.append(self.db, "acme", drafts, grant=LOCAL_GRANT)
            except (ValueError, BadRequest):
                self.refused.append(True)
                continue
            self.refused.append(False)
            for event, event_id in zip(commit["events"], receipt.event_ids, strict=True):
                self.names[event_id] = event["id"]
        while not (await fold(self.db, "acme", logs.PlainProjector(), events_max=3)).is_at_head:
            pass

    def name(self, claim: Claim) -> str:
        return f"{self.names[claim.event_id]}#{claim.position.ordinal}"

    async def view(self, query):
        known_at = valid_at = None
        if "known_at" in query:
            known_at = parse_instant(query["known_at"], field="known_at")
        if "valid_at" in query:
            valid_at = parse_instant(query["valid_at"], field="valid_at")
        request = ViewRequest(valid_at=valid_at, known_at=known_at, generation=None, min_commit=None)
        view = await pin(self.db, "acme", request, wait_ms=0)
        if "commit" in query:
            view = replace(view, cut=query["commit"] + len(self.contracts))
        return view

    async def answer(self, query) -> dict[str, Any]:
        view = await self.view(query)
        async with self.db.snapshot("acme") as conn:
            keys = await log.tenant_keys(self.db, "acme", conn)
            if "entity" in query:
                return {"members": sorted(await members_of(conn, keys, view, query["entity"]))}
            if "occurrences" in query:
                window = query.get("window", [None, None])
                start, end = (
                    None if bound is None else parse_instant(bound, field="window") for bound in window
                )
                found = await ledger_occurrences(
                    conn, keys, view, *query["occurrences"], start=start, end=end
                )
                return {
                    "count": len(found.members) + len(found.disputed),
                    "claims": [
                        sorted(self.name(claim) for claim in member.claims) for member in found.members
                    ],
                }
            found = await resolve(conn, keys, view, *(query.get("state") or query["many"]))
        return self._form(found, query)

    def _form(self, found, query) -> dict[str, Any]:
        answer: dict[str, Any] = {"disputes": [self.name(claim) for claim in found.disputes]}
        if "many" in query:
            answer |= {"values": [], "disputed": []}
        match found.resolution:
            case Resolved(value=value, claims=claims, superseded=superseded):
                answer |= {"resolved": value, "claims": [self.name(claim) for claim in claims]}
                answer["superseded"] = [self.name(claim) for claim in superseded]
            case Missing(reason=reason):
                answer["missing"] = reason.value
            case Conflict(rivals=rivals):
                answer["conflict"] = {
                    "<ended>" if rival.ended else rival.value: self.name(rival.claim) for rival in rivals
                }
            case ResolvedSet(members=members, disputed=disputed):
                answer["values"] = [member.value for member in members]
                answer["disputed"] = [
                    rival.value for one in disputed for rival in one.rivals if not rival.ended
                ]
        return answer


@pytest.mark.parametrize("scenario", EVERY)
async def test_real_ledger_answers_as_the_scenario_says(db, clock, scenario):
    ledger = Replayed(db, clock, scenario)

    await ledger.run()

    assert ledger.refused == [commit.get("refused", False) for commit in scenario["commits"]]
    for query in scenario["queries"]:
        assert_agrees(await ledger.answer(query), query["expect"], query)
