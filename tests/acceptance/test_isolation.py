"""
Issue 2, accepted when 4: two tenants never see each other.

The attacker has a token of one tenant with every right in it, and knows everything about the other
but its secrets: names, event ids, context hashes, trail ids, idempotency keys. What he gets has to be
what he would get were there no other tenant at all.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import httpx
import pytest

from contracts.errors import NotFound
from contracts.grants import Right
from contracts.proposals import (
    Candidate,
    KeyProposal,
    Operation,
    Plan,
    Proposal,
    RouteHit,
    RouteReport,
    RouteState,
)
from contracts.trails import Question
from contracts.views import ViewRequest
from echoplane._http import make_app
from ledger import log
from ledger.write import fold
from projection import RuleProjector
from tests.acceptance.conftest import OURS, THEIRS, Known, caller, leaked, token_of

NOBODY = "nobody"
EVENT = {"stream": "s", "kind": "turn", "actor": {"id": "Ann", "class": "user"}, "text": "Hello."}


# --- every route --------------------------------------------------------------------------------


def requests_of(document: dict[str, Any], tenant: str, known: Known) -> list[tuple[str, str, dict[str, Any]]]:
    """Return one valid request for each operation, with values of the other tenant wherever one is asked."""
    values = {
        "tenant": tenant, "event_id": known.events[0], "context_hash": known.context, "entity": "Xylia",
        "relation": "lives_in", "epoch": "1", "name": "monday", "other_entity": "Xylia",
        "other_relation": "works_at", "commit": "1", "old_size": "1", "position": "1", "limit": "1",
    }  # fmt: skip
    bodies = {
        "AppendRequest": {"events": [EVENT]},
        "AskRequest": {"question": "Where does Xylia live?"},
        "ContractRequest": {"relation": "motto"},
        "ErasureBody": {"subject": "nobody they know"},
        "PinRequest": {},
        "SkipBody": {"reason": "nobody they know"},
        "ReasonBody": {"reason": "nobody they know"},
        "QuotaBody": {"reason": "nobody they know", "events_max": 1},
        "RetentionBody": {"reason": "nobody they know", "days": 1},
    }
    found = []
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parameters = operation.get("parameters", [])
            unknown = {one["name"] for one in parameters if one["required"]} - set(values)
            assert not unknown, f"{method} {path}: say here what {unknown} is, so that it is attacked too"
            options: dict[str, Any] = {
                "params": {one["name"]: values[one["name"]] for one in parameters
                           if one["in"] == "query" and one["name"] in values},
            }  # fmt: skip
            if "requestBody" in operation:
                schema = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
                options["json"] = bodies[schema.rsplit("/", 1)[1]]
            names = set(re.findall(r"{(\w+)}", path))
            assert names <= set(values), f"{method} {path}: say here what {names - set(values)} is"
            found.append((method.upper(), path.format(**{name: values[name] for name in names}), options))
    return found


async def test_no_route_lets_a_token_into_another_tenant(plane, ours, theirs, everything):
    document = make_app(plane).openapi()
    inside = [one for one in requests_of(document, THEIRS, theirs) if THEIRS in one[1]]
    absent = [one for one in requests_of(document, NOBODY, theirs) if NOBODY in one[1]]
    assert len(inside) == len(absent) >= 8
    async with caller(plane, theirs.token) as they:
        for method, path, options in inside:
            own = await they.request(method, path, **options)
            # What serves is not dropped, nobody folds, nothing is stopped, no tenant lifts its own bounds,
            # and where it lives is no occurrence: to be told so is to have got through.
            told = (
                *("is serving", "stale.not_yet", "no such dead letter", "operators of the plane alone"),
                "only occurrences are counted",
            )
            got_through = any(words in own.text for words in told)
            assert own.is_success or got_through, f"{method} {path} is no valid request: {own.text}"
    before = everything(THEIRS)

    async with caller(plane, ours) as client, caller(plane, None) as stranger:
        for (method, path, options), (_, nowhere, _) in zip(inside, absent, strict=True):
            refused = await client.request(method, path, **options)
            assert refused.status_code == 404, f"{method} {path}: {refused.status_code} {refused.text}"
            assert leaked(refused.text) == [], path
            # As if there were no such tenant: not even its existence is told.
            same = await client.request(method, nowhere, **options)
            assert (same.status_code, same.text) == (refused.status_code, refused.text), path
            assert (await stranger.request(method, path, **options)).status_code == 401, path

    assert everything(THEIRS) == before


async def test_open_routes_tell_nothing_of_any_tenant(plane, ours, theirs):
    outside = [one for one in requests_of(make_app(plane).openapi(), THEIRS, theirs) if THEIRS not in one[1]]
    open_routes = [one for one in outside if one[1] != "/v1"]
    assert 3 <= len(open_routes) == len(outside) - 1

    async with caller(plane, None) as stranger:
        for method, path, options in [*open_routes, ("GET", "/openapi.json", {})]:
            answer = await stranger.request(method, path, **options)
            assert answer.status_code in {200, 503}, path
            assert leaked(answer.text) == [], path
            told = [word for word in (OURS, THEIRS, *theirs.ids) if re.search(rf"\b{word}\b", answer.text)]
            assert told == [], path
        # The list of tenants is open to nobody, and to a tenant as far as itself.
        assert (await stranger.get("/v1")).status_code == 401
    async with caller(plane, theirs.token) as they:
        assert [one["tenant"] for one in (await they.get("/v1")).json()["tenants"]] == [THEIRS]


SPELLINGS = [
    "/v1/ours/../theirs/events/{event}",
    "/v1/ours%2F..%2Ftheirs/events/{event}",
    "/v1/ours/events/..%2F..%2Ftheirs%2Fevents%2F{event}",
    "/v1/ours//events/{event}",
    "/v1/THEIRS/events/{event}",
    "/v1/theirs%00/events/{event}",
    "/v1/theirs%20/events/{event}",
    "/v1/ours,theirs/events/{event}",
    "/v1/%25/events/{event}",
    "/v1/*/events/{event}",
    "/v1//events/{event}",
]


async def test_no_spelling_of_a_path_leads_into_another_tenant(plane, we, theirs):
    for path in SPELLINGS:
        raw = path.format(event=theirs.events[0])
        answer = await we.get(httpx.URL("http://127.0.0.1:7415").copy_with(raw_path=raw.encode()))

        assert answer.status_code in {404, 422}, (path, answer.text)
        assert leaked(answer.text) == [], path


# --- by parameter, guessed id, hash and trail ---------------------------------------------------


async def test_ids_of_another_tenant_are_as_unknown_as_made_up_ones(we, theirs):
    made_up = Known(
        token="", events=("ev_" + "a" * (len(theirs.events[0]) - 3),), context="ab" * 32, trail="tr_a"
    )

    for event, other in [*((one, made_up.events[0]) for one in theirs.events)]:
        found, unknown = [await we.get(f"/v1/{OURS}/events/{one}") for one in (event, other)]
        assert (found.status_code, found.text) == (404, unknown.text)
    for suffix, method in (("", "GET"), ("/replay", "POST")):
        found, unknown = [
            await we.request(method, f"/v1/{OURS}/contexts/{one}{suffix}")
            for one in (theirs.context, made_up.context)
        ]
        assert (found.status_code, found.text) == (404, unknown.text)


async def test_names_of_another_tenant_are_unknown(we, theirs):
    for route in ("resolve", "history"):
        for relation in ("lives_in", "works_at", "likes", "hobby"):
            asked = {"entity": "Xylia", "relation": relation}
            answer = (await we.get(f"/v1/{OURS}/{route}", params=asked)).json()
            assert answer.get("reason", "never_known") == "never_known", answer
            assert (answer.get("claims") or answer.get("cells") or []) == [], answer

    for question in ("Where does Xylia live?", "What does Xylia like?", "Who lives anywhere?"):
        answer = await we.post(f"/v1/{OURS}/ask", json={"question": question, "disclose_conflicts": True})
        # The names that were asked for come back; what only they know does not.
        assert set(leaked(answer.text)) <= {"Xylia"}, answer.text
        assert not any(one in answer.text for one in theirs.ids)


async def test_a_trail_and_a_context_of_another_tenant_cannot_be_read(plane, ours, theirs):
    assert (await log.read_trail(plane.database, THEIRS, theirs.trail)).trail_id == theirs.trail
    for read, one in ((log.read_trail, theirs.trail), (log.read_context, theirs.context)):
        with pytest.raises(NotFound):
            await read(plane.database, OURS, one)
    listed = await log.list_trails(plane.database, OURS, after_number=0, limit=100)
    assert listed
    assert theirs.trail not in {one.trail_id for one in listed}


# --- by what is emitted -------------------------------------------------------------------------


def attacks(known: Known) -> dict[str, dict[str, Any]]:
    """Return events that reach for the other tenant's: each valid in its form."""
    key = {"entity": "Xylia", "relation": "works_at"}
    said = {"stream": "s-xylia", "kind": "claim", "actor": {"id": "Xylia", "class": "operator"}}
    target = {"event": known.events[1]}
    return {
        "retraction": said | {"kind": "retraction", "targets": [target], "claims": [key]},
        "correction": said | {
            "kind": "correction", "targets": [target], "claims": [key | {"value": "Nowhere"}],
        },
        "settlement": said | {"kind": "settlement", "targets": [target], "winner": target, "claims": [key]},
        "derivation": said | {
            "kind": "derivation",
            "claims": [{"entity": "Ann", "relation": "commute", "value": 1, "inputs": [target]}],
        },
        "retraction by source id": said | {
            "kind": "retraction", "targets": [{"source_event_id": "t-xylia-1"}],
        },
        "causation": said | {"text": "Hello.", "kind": "turn", "causation": known.events[0]},
        "same source id": said | {"text": "Bye.", "kind": "turn", "source_event_id": "t-xylia-1"},
        "same idempotency key": said | {"text": "Bye.", "kind": "turn", "idempotency_key": "t-xylia-key"},
        "merging names": said | {
            "claims": [{"entity": "Ann", "relation": "same_as", "value": "Xylia"}],
        },
    }  # fmt: skip


async def test_nothing_emitted_reaches_another_tenants_events(we, plane, theirs, everything):
    before = everything(THEIRS)
    unknown = replace(theirs, events=tuple("ev_" + "b" * (len(one) - 3) for one in theirs.events))

    for name, event in attacks(theirs).items():
        answer = await we.post(f"/v1/{OURS}/events", json={"events": [event]})
        assert leaked(answer.text) == [], name
        if answer.is_success:
            assert answer.json()["repeated"] is False, name
        else:
            # Refused in the very words in which an id that nobody has is refused.
            other = await we.post(f"/v1/{OURS}/events", json={"events": [attacks(unknown)[name]]})
            shown = [text.replace(two.events[1], "ID") for text, two in
                     ((answer.text, theirs), (other.text, unknown))]  # fmt: skip
            assert shown[0] == shown[1], name
    await fold(plane.database, OURS, RuleProjector(), events_max=1_000)

    assert everything(THEIRS) == before
    for relation in ("works_at", "lives_in"):
        key = {"entity": "Xylia", "relation": relation}
        answer = await we.get(f"/v1/{OURS}/resolve", params=key)
        assert leaked(answer.text.replace("Xylia", "").replace("s-xylia", "")) == []
    assert (await log.verify(plane.database, THEIRS)).intact


FORGED = [
    (403, {"actor": {"id": "Bob", "class": "user"}}),
    (403, {"actor": {"id": "ann", "class": "user"}}),
    (403, {"actor": {"id": "Xylia", "class": "user"}}),
    (403, {"actor": {"id": "Ann", "class": "operator"}}),
    (403, {"actor": {"id": "Ann", "class": "sensor"}}),
    (403, {"actor": {"id": "Ann", "class": "assistant"}}),
    (422, {"actor": {"id": "Ann", "class": "derived"}}),
    (422, {"actor": {"id": "Ann", "class": "self"}}),
    (422, {"actor": {"id": "Ann", "class": "user", "tenant": "theirs"}}),
    (422, {"actor": {"id": "*", "class": "*"}, "tenant": "theirs"}),
    (403, {"actor": {"id": "*", "class": "user"}}),
    (403, {"actor": {"id": "Ann", "class": "*"}}),
    (422, {"tenant": "theirs"}),
    (422, {"recorded_at": "2020-01-01T00:00:00Z"}),
    (422, {"event_id": "ev_1"}),
    (422, {"kind": "relation"}),
    (422, {"kind": "decision"}),
    (422, {"kind": "erasure"}),
]


async def test_an_actor_or_class_that_was_not_granted_writes_nothing(plane, ours, everything):
    token = await token_of(
        plane, OURS, rights=frozenset({Right.EMIT}), actors=frozenset({"Ann"}), classes=frozenset({"user"})
    )
    before = everything(OURS)

    async with caller(plane, token) as client:
        for status, forged in FORGED:
            # Beside one that is granted: all or nothing.
            answer = await client.post(f"/v1/{OURS}/events", json={"events": [EVENT, EVENT | forged]})
            assert answer.status_code == status, (forged, answer.text)
        assert everything(OURS) == before

        assert (await client.post(f"/v1/{OURS}/events", json={"events": [EVENT]})).status_code == 201


# --- by a poisoned candidate --------------------------------------------------------------------


class Poisoned:
    """A discovery that proposes what it was told to, whoever asks."""

    def __init__(self, events: tuple[str, ...]) -> None:
        self.events = events

    async def propose(self, *, tenant, question, view) -> Proposal:
        hit = RouteHit(route="lexical", rank=1, score_ppm=999_999)
        units = [(one, (one,)) for one in self.events] + [("window", self.events)]
        return Proposal(
            plan=Plan(
                operation=Operation.FACT, entities=("Xylia",), relations=("works_at",), times=(),
                surface="value", confidence_ppm=1_000_000,
            ),
            candidates=tuple(
                Candidate(unit_id=unit, event_ids=events, score_ppm=999_999, hits=(hit,))
                for unit, events in sorted(units)
            ),
            keys=tuple(
                KeyProposal(entity="Xylia", relation=relation, score_ppm=999_999, named=True)
                for relation in ("lives_in", "works_at")
            ),
            routes=(
                RouteReport(
                    route="lexical", state=RouteState.OK, generation="1:99", count=len(units), duration_us=1
                ),
            ),
            degraded=False,
        )  # fmt: skip


async def test_a_poisoned_candidate_brings_nothing_of_another_tenant(plane, ours, theirs):
    unknown = tuple("ev_" + "c" * (len(one) - 4) + str(number) for number, one in enumerate(theirs.events))
    question = Question(text="Where does Xylia work?", budget_tokens=2_048, disclose_conflicts=True)
    request = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=None)

    async def told(tenant: str, events: tuple[str, ...]):
        path = replace(plane.path, discovery=Poisoned(events))
        asked = await path.ask(tenant, question, request, wait_ms=0)
        replayed = await replace(plane, path=path).replay(tenant, asked.pack.context_hash)
        return asked, replayed

    poisoned, replayed = await told(OURS, theirs.events)
    made_up, _ = await told(OURS, unknown)
    # The same poison works where the events are one's own: the test can fail.
    own, _ = await told(THEIRS, theirs.events)
    assert {"Quokkaville", "Zanzibar Mills"} <= set(leaked(repr((own.pack, own.answer))))

    assert (
        leaked(repr((poisoned.pack.lines, poisoned.answer, poisoned.resolutions)).replace("Xylia", "")) == []
    )
    assert poisoned.answer.status == made_up.answer.status
    assert poisoned.pack.content_hash == made_up.pack.content_hash
    assert replayed.verdict == "identical"
