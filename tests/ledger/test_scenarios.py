"""The worked scenarios against the pure core; tests/echoplane/test_conformance.py tells them to a ledger."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from contracts.claims import Claim
from contracts.times import parse_instant
from ledger._claims import micros
from ledger._court import Court, court_of
from ledger._decide import ENDED, State
from tests.ledger import scenario_logs as logs


def _scenarios(path: Path) -> list[Any]:
    if not path.exists():
        return [pytest.param(None, id="absent", marks=pytest.mark.skip(reason=f"{path.name} is not here"))]
    # An erasure is no claim: those that have one are told to a ledger alone.
    told = [scenario for scenario in logs.load(path) if not logs.needs_erasure(scenario)]
    return [pytest.param(scenario, id=scenario["id"]) for scenario in told]


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
