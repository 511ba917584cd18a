"""
Cases of another bitemporal database, against the pure core: later known intervals overwrite.

Told to the core as `echoplane._conformance_bitemporal` tells them to a ledger.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from contracts.claims import Claim
from contracts.events import Event
from contracts.times import KnownAt, format_instant, parse_instant
from echoplane._conformance_bitemporal import CONTRACT, RELATION, drafts_of
from ledger._claims import micros
from ledger._court import court_of
from ledger._decide import State
from ledger._intervals import bound
from ledger._reading import claims_of
from ledger._relations import Contracts
from tests.ledger.scenario_logs import SHARED, PlainProjector

CONTRACTS = Contracts(registered={RELATION: CONTRACT})
CLAIMS = {"put", "delete"}
"""Operations that are claims; cases with others are told to a ledger alone, or are not applicable."""


def _cases() -> list[Any]:
    path = SHARED / "bitemporal.json"
    if not path.exists():
        return [pytest.param(None, id="absent", marks=pytest.mark.skip(reason=f"{path.name} is not here"))]
    cases = json.loads(path.read_text(encoding="utf-8"))["cases"]
    return [pytest.param(case, id=case["id"]) for case in cases if _ops(case) <= CLAIMS]


def _ops(case: dict[str, Any]) -> set[str]:
    return {op["op"] for transaction in case["transactions"] for op in transaction["ops"]}


def _claims(case: dict[str, Any]) -> tuple[list[Claim], list[datetime]]:
    claims: list[Claim] = []
    recorded: list[datetime] = []
    position = 0
    for transaction in case["transactions"]:
        if transaction["status"] == "rejected":
            continue
        clock = parse_instant(transaction.get("system") or transaction["clock"], field="clock")
        recorded_at = max(clock, recorded[-1] + timedelta(microseconds=1)) if recorded else clock
        recorded.append(recorded_at)
        drafts = drafts_of(transaction["ops"], known_at=recorded_at)
        for op, draft in zip(transaction["ops"], drafts, strict=True):
            position += 1
            event = Event(
                backfilled=False,
                sent_at=None,
                event_id=op["id"],
                position=position,
                commit=len(recorded),
                recorded_at=KnownAt(recorded_at),
                observed=None,
                draft=draft,
            )
            claims += claims_of(
                event,
                PlainProjector().project(event),
                epoch=1,
                contracts=CONTRACTS,
                claim_id=lambda _, name=op["id"]: name,
                event_id_of=lambda name: name,
            )
    return claims, recorded


def _cut(query: dict[str, Any], recorded: list[datetime]) -> int:
    if query.get("known_at", "latest") == "latest":
        return len(recorded)
    known_at = parse_instant(query["known_at"], field="known_at")
    return sum(at <= known_at for at in recorded)


def _wording(value: int) -> str | None:
    instant = bound(value)
    return None if instant is None else format_instant(instant)


def _answer(case_claims: list[Claim], recorded: list[datetime], query: dict[str, Any]) -> Any:
    cut = _cut(query, recorded)
    court = court_of([claim for claim in case_claims if claim.commit <= cut], CONTRACTS)
    if query["kind"] == "point":
        at = micros(parse_instant(query["valid_at"], field="valid_at"))
        answers = {}
        for key in sorted({claim.entity for claim in case_claims}):
            for _, verdict in court.decide(key, RELATION, at).lines:
                if verdict.state == State.VALUE:
                    answers[key] = verdict.sides[0].latest.value
        return answers
    values = {claim.claim_id: claim.value for claim in case_claims}
    return [
        {
            "value": values[segment.claims[0]],
            "valid_from": _wording(segment.start) or "-infinity",
            "valid_to": _wording(segment.end),
            "by": segment.claims[0],
        }
        for segment in court.timelines(query["key"], RELATION).get("", [])
        if segment.state == State.VALUE.value
    ]


@pytest.mark.parametrize("case", _cases())
def test_points_and_timelines_are_those_of_the_other_database(case):
    claims, recorded = _claims(case)
    queries = [query for query in case["queries"] if query["kind"] in {"point", "timeline"}]
    for query in queries:
        assert _answer(claims, recorded, query) == query["expect"], query
