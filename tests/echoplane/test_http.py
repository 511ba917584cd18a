"""The HTTP door: shapes, errors that change nothing, isolation, and silence about content."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from contracts import limits
from contracts.grants import ANY, Grant, Right
from contracts.wire import (
    AskAnswer,
    EventAnswer,
    HistoryAnswer,
    ReceiptAnswer,
    ReplayAnswer,
    ResolveAnswer,
    StoredContextAnswer,
)
from echoplane._cli_ask import print_resolution
from ledger.log import list_tokens as all_tokens
from ledger.log import revoke_token

LYON = "I live in Lyon."


async def code_of(response):
    return response.status_code, response.json()["error"]["code"]


@pytest.fixture
async def away(remember, turn):
    """Another tenant."""
    return await remember("away", turn("I live in Oslo."))


async def test_append_answers_a_receipt_and_the_event_can_be_read(client, turn):
    await client.put("/v1/home")

    response = await client.post("/v1/home/events", json={"events": [turn(LYON), turn("Hello.")]})

    receipt = ReceiptAnswer.model_validate_json(response.content)
    assert (response.status_code, receipt.commit, receipt.positions) == (201, 1, [1, 2])
    event = EventAnswer.model_validate_json(
        (await client.get(f"/v1/home/events/{receipt.event_ids[0]}")).content
    )
    assert (event.event.text, event.position, event.erased) == (LYON, 1, False)


async def test_a_repeat_answers_the_same_receipt_with_200(client, turn):
    await client.put("/v1/home")
    body = {"events": [turn(LYON, source_event_id="t1")]}

    first, second = [await client.post("/v1/home/events", json=body) for _ in range(2)]

    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json() == first.json() | {"repeated": True}


async def test_the_same_key_for_other_content_is_a_conflict_and_writes_nothing(client, turn):
    await client.put("/v1/home")
    await client.post("/v1/home/events", json={"events": [turn(LYON, source_event_id="t1")]})

    response = await client.post("/v1/home/events", json={"events": [turn("Other.", source_event_id="t1")]})

    assert await code_of(response) == (409, "incorrect.idempotency_conflict")
    assert (await client.post("/v1/home/events", json={"events": [turn("Next.")]})).json()["commit"] == 2


WRONG_BODIES = [
    (b"not json", "body"),
    (b"[]", "body"),
    (b'{"events": []}', "events"),
    (b'{"events": [{"stream": "s"}]}', "events[0].kind"),
    (
        b'{"events": [{"stream":"s","kind":"turn","actor":{"id":"a","class":"user"},"text":"x"}],"x":1}',
        "x",
    ),
    (
        b'{"events": [{"stream":"s","kind":"turn","actor":{"id":"a","class":"user","x":1},"text":"x"}]}',
        "events[0].actor.x",
    ),
]


async def test_a_wrong_body_names_its_field_and_writes_nothing(client, plane):
    for body, field in WRONG_BODIES:
        await client.put("/v1/home")

        response = await client.post("/v1/home/events", content=body)

        assert await code_of(response) == (422, "incorrect.bad_request"), (body, field)
        assert response.json()["error"]["details"]["field"] == field, (body, field)
        assert [one.head for one in await plane.standing()] == [0], (body, field)


async def test_naive_instants_are_refused(client, home, turn):
    event = turn(LYON, at="2025-01-10T09:00:00")
    responses = [
        await client.post("/v1/home/events", json={"events": [event]}),
        await client.get("/v1/home/resolve?entity=Ann&relation=lives_in&valid_at=2025-01-10T09:00:00"),
        await client.get("/v1/home/history?entity=Ann&known_at=2025-01-10T09:00:00"),
        await client.post("/v1/home/ask", json={"question": "Where?", "known_at": "2025-01-10"}),
    ]

    assert [await code_of(response) for response in responses] == [(422, "incorrect.bad_request")] * 4


WRONG_PARAMETERS = [
    ("GET", "/healthz?x=1"),
    ("GET", "/metrics?x=1"),
    ("PUT", "/v1/home?x=1"),
    ("POST", "/v1/home/events?x=1"),
    ("POST", "/v1/home/ask?x=1"),
    ("GET", "/v1/home/resolve?entity=Ann&relation=lives_in&x=1"),
    ("GET", "/v1/home/resolve?entity=Ann&relation=lives_in&relation=likes"),
    ("GET", "/v1/home/resolve?entity=Ann"),
    ("GET", "/v1/home/resolve?entity=Ann&relation=lives_in&min_commit=-1"),
    ("GET", "/v1/home/resolve?entity=Ann&relation=lives_in&generation=1"),
    ("GET", "/v1/home/history?entity=Ann&valid_at=2025-01-10T09:00:00Z"),
]


async def test_unknown_repeated_missing_and_wrong_parameters_are_errors(client, home):
    for method, path in WRONG_PARAMETERS:
        answer = await client.request(method, path, json={})
        assert await code_of(answer) == (422, "incorrect.bad_request"), (method, path)


UNSTORABLE = ["A\x00nn", "A\ud800nn", "A" * (limits.NAME_CHARACTERS_MAX + 1), " "]


@pytest.mark.parametrize("name", UNSTORABLE)
async def test_names_that_no_event_can_carry_are_refused(client, home, name):
    quoted = quote(name, errors="surrogatepass")
    responses = [
        await client.get(f"/v1/home/resolve?entity={quoted}&relation=lives_in"),
        await client.get(f"/v1/home/resolve?entity=Ann&relation={quoted}"),
        await client.get(f"/v1/home/history?entity={quoted}"),
        await client.get(f"/v1/home/history?entity=Ann&relation={quoted}"),
    ]
    # Bytes that are no UTF-8 reach us as U+FFFD: a name, though nobody's.
    if "\ud800" not in name:
        assert [await code_of(response) for response in responses] == [(422, "incorrect.bad_request")] * 4
    assert all(response.status_code < 500 for response in responses)


@pytest.mark.parametrize("question", ["Where\\u0000?", "Where\\ud800?", "  "])
async def test_questions_that_no_trail_can_hold_are_refused(client, home, question):
    body = f'{{"question": "{question}"}}'.encode()

    response = await client.post("/v1/home/ask", content=body)

    assert await code_of(response) == (422, "incorrect.bad_request")


@pytest.mark.parametrize("path", ["events/a%00b", "contexts/a%00b"])
async def test_ids_that_no_row_can_have_are_refused(client, home, path):
    assert await code_of(await client.get(f"/v1/home/{path}")) == (422, "incorrect.bad_request")


async def test_a_tenant_that_nobody_can_be_called_is_not_found(client):
    assert await code_of(await client.get("/v1/a%00b/history?entity=Ann")) == (404, "incorrect.not_found")


async def test_a_name_is_found_however_its_letters_are_composed(client, remember, turn):
    await remember(
        "home", turn("Hi.", claims=[{"entity": "Caf\u00e9", "relation": "lives_in", "value": "Lyon"}])
    )

    response = await client.get("/v1/home/resolve", params={"entity": " Cafe\u0301 ", "relation": "lives_in"})

    assert response.json()["value"] == "Lyon"


async def test_a_body_past_its_bound_is_refused(client):
    await client.put("/v1/home")

    response = await client.post("/v1/home/ask", content=b" " * 70_000)

    assert await code_of(response) == (413, "incorrect.limit_exceeded")


async def test_resolve_at_several_valid_times(client, home):
    async def value(**parameters):
        response = await client.get(
            "/v1/home/resolve", params={"entity": "Ann", "relation": "lives_in", **parameters}
        )
        answer = ResolveAnswer.model_validate_json(response.content)
        return answer.outcome, answer.value, answer.view.cut

    assert await value() == ("resolved", "Ghent", 2)
    assert await value(valid_at="2025-03-01T00:00:00Z") == ("resolved", "Lyon", 2)
    assert await value(generation="1:1") == ("resolved", "Lyon", 1)
    assert await value(known_at=home[0].recorded_at) == ("resolved", "Lyon", 1)


async def test_resolve_says_from_when_to_when_a_coarse_start_leaves_it_open(client, home, remember, capsys):
    claimed = {"entity": "Ann", "relation": "lives_in", "value": "Paris", "valid": {"since": "2025-02"}}
    actor = {"id": "Ann", "class": "user"}
    await remember("home", {"stream": "s1", "kind": "claim", "actor": actor, "claims": [claimed]})

    async def resolved(valid_at):
        parameters = {"entity": "Ann", "relation": "lives_in", "valid_at": valid_at}
        response = await client.get("/v1/home/resolve", params=parameters)
        return ResolveAnswer.model_validate_json(response.content)

    inside, after = await resolved("2025-02-10T00:00:00Z"), await resolved("2025-03-01T00:00:00Z")

    assert (inside.value, after.value, after.undetermined) == ("Lyon", "Paris", None)
    assert (inside.undetermined.from_, inside.undetermined.to) == (
        "2025-02-01T00:00:00Z",
        "2025-03-01T00:00:00Z",
    )
    assert [claim.value for claim in inside.undetermined.claims] == ["Paris"]
    print_resolution(inside)
    lines = capsys.readouterr().out
    assert "undetermined from 2025-02-01T00:00:00Z to 2025-03-01T00:00:00Z" in lines
    assert "may be     Paris" in lines


async def test_resolve_of_a_one_valued_key_has_value_and_of_a_many_valued_values(client, remember, turn):
    await remember("home", turn("I live in Lyon."), turn("I have a dog named Rex."))

    one = await client.get("/v1/home/resolve?entity=Ann&relation=lives_in")
    many = await client.get("/v1/home/resolve?entity=Ann&relation=has_pet")

    assert "value" in one.json()
    assert "values" not in one.json()
    assert "values" in many.json() or many.json()["outcome"] == "missing"


async def test_a_read_waits_for_its_commit_within_a_bound(client, remember, turn):
    await remember("home", turn(LYON), folded=False)

    response = await client.get("/v1/home/resolve?entity=Ann&relation=lives_in&min_commit=1")

    assert await code_of(response) == (409, "stale.not_yet")


async def test_history_shows_both_places(client, home):
    answer = HistoryAnswer.model_validate_json((await client.get("/v1/home/history?entity=Ann")).content)

    assert {value for cell in answer.cells for value in cell.values} >= {"Lyon", "Ghent"}
    assert {claim.value for claim in answer.claims} >= {"Lyon", "Ghent"}


async def test_a_question_is_answered_stored_and_replayed(client, home, discovery):
    response = await client.post("/v1/home/ask", json={"question": "Where does Ann live?"})

    answer = AskAnswer.model_validate_json(response.content)
    assert (answer.status, answer.answer, answer.degraded) == ("answered", "Ghent", False)
    assert answer.cites
    path = f"/v1/home/contexts/{answer.context.hash}"
    stored = StoredContextAnswer.model_validate_json((await client.get(path)).content)
    assert stored.content_hash == answer.context.content_hash
    assert LYON not in json.dumps(stored.form)
    replayed = ReplayAnswer.model_validate_json((await client.post(f"{path}/replay")).content)
    assert (replayed.verdict, replayed.replayed) == ("identical", answer.context.hash)


async def test_without_discovery_typed_state_answers_degraded(client, home):
    response = await client.post("/v1/home/ask", json={"question": "Where does Ann live?"})

    assert (response.json()["answer"], response.json()["degraded"]) == ("Ghent", True)


# --- who may ---------------------------------------------------------------------------------


@pytest.fixture
async def token_of(plane):
    async def make(tenant, *rights, actors=(ANY,), classes=("user",)):
        grant = Grant(
            tenant=tenant, rights=frozenset(rights), actors=frozenset(actors), classes=frozenset(classes)
        )
        made = await plane.make_token(tenant, grant, label="test")
        return {"authorization": f"Bearer {made.token}"}

    return make


async def test_no_valid_token_is_refused(client, home):
    for header in ["", "Bearer", "Bearer nonsense", "Basic abc", "Bearer ep_home_" + "a" * 52]:
        response = await client.get("/v1/home/history?entity=Ann", headers={"authorization": header})

        assert await code_of(response) == (401, "incorrect.unauthenticated"), header


async def test_a_missing_tenant_is_not_made_by_use(client, plane, turn):
    response = await client.post("/v1/nowhere/events", json={"events": [turn(LYON)]})

    assert await code_of(response) == (404, "incorrect.not_found")
    assert await plane.standing() == []


async def test_a_right_that_is_missing_is_refused(client, home, token_of, turn):
    asks, emits = await token_of("home", Right.ASK), await token_of("home", Right.EMIT)

    refused = [
        await client.post("/v1/home/events", json={"events": [turn("x")]}, headers=asks),
        await client.get("/v1/home/history?entity=Ann", headers=emits),
        await client.put("/v1/home", headers=asks),
    ]

    assert [await code_of(response) for response in refused] == [(403, "incorrect.forbidden")] * 3


async def test_a_token_speaks_only_for_its_actors_and_classes(client, home, token_of, turn):
    ann = await token_of("home", Right.EMIT, actors=("Ann",))

    as_bob = await client.post("/v1/home/events", json={"events": [turn("x", who="Bob")]}, headers=ann)
    as_operator = turn("x") | {"actor": {"id": "Ann", "class": "operator"}}
    operator = await client.post("/v1/home/events", json={"events": [as_operator]}, headers=ann)
    own = await client.post("/v1/home/events", json={"events": [turn("x")]}, headers=ann)

    assert await code_of(as_bob) == (403, "incorrect.forbidden")
    assert await code_of(operator) == (403, "incorrect.forbidden")
    assert own.status_code == 201


async def test_a_foreign_tenant_looks_like_a_missing_one_on_every_route(client, home, away, token_of, turn):
    foreign = await token_of("away", *Right)
    event_id = home[0].event_ids[0]
    calls = [
        ("PUT", "", None),
        ("POST", "/events", {"events": [turn("x")]}),
        ("GET", f"/events/{event_id}", None),
        ("POST", "/ask", {"question": "Where does Ann live?"}),
        ("GET", "/resolve?entity=Ann&relation=lives_in", None),
        ("GET", "/history?entity=Ann", None),
        ("GET", f"/contexts/{'0' * 64}", None),
        ("POST", f"/contexts/{'0' * 64}/replay", None),
    ]

    for method, path, body in calls:
        answers = [
            await client.request(method, f"/v1/{tenant}{path}", json=body, headers=foreign)
            for tenant in ("home", "missing")
        ]
        assert [answer.status_code for answer in answers] == [404, 404], path
        assert answers[0].content == answers[1].content


async def test_ids_and_hashes_of_another_tenant_find_nothing(client, home, away, token_of):
    asked = (await client.post("/v1/home/ask", json={"question": "Where does Ann live?"})).json()
    own = await token_of("away", Right.ASK)

    guesses = [
        await client.get(f"/v1/away/events/{home[0].event_ids[0]}", headers=own),
        await client.get(f"/v1/away/contexts/{asked['context']['hash']}", headers=own),
        await client.post(f"/v1/away/contexts/{asked['context']['hash']}/replay", headers=own),
        await client.post(f"/v1/away/contexts/{asked['trail']}/replay", headers=own),
    ]

    assert [await code_of(response) for response in guesses] == [(404, "incorrect.not_found")] * 4


async def test_a_revoked_token_grants_nothing(client, home, plane, token_of):
    asks = await token_of("home", Right.ASK)
    (record,) = await all_tokens(plane.database, "home")

    await revoke_token(plane.database, "home", record.token_id)

    response = await client.get("/v1/home/history?entity=Ann", headers=asks)
    assert await code_of(response) == (401, "incorrect.unauthenticated")


STRANGERS = [
    ({"host": "evil.example"}, (422, "incorrect.bad_request")),
    ({"host": "127.0.0.1.evil.example"}, (422, "incorrect.bad_request")),
    ({"origin": "http://evil.example"}, (403, "incorrect.forbidden")),
    ({"origin": "null"}, (403, "incorrect.forbidden")),
]


async def test_other_hosts_and_origins_are_refused(client):
    for headers, expected in STRANGERS:
        assert await code_of(await client.get("/healthz", headers=headers)) == expected, (headers, expected)


async def test_our_own_names_are_let_in(client):
    for headers in [{"host": "localhost:1"}, {"host": "[::1]:7415"}, {"origin": "http://127.0.0.1:7415"}]:
        assert (await client.get("/healthz", headers=headers)).status_code == 200, headers


# --- how it stands ---------------------------------------------------------------------------


async def test_ready_says_what_is_only_degraded(client, home):
    response = await client.get("/readyz")

    assert response.status_code == 200
    assert response.json()["parts"]["database"] == "ok"
    assert response.json()["parts"]["discovery"].startswith("down")
