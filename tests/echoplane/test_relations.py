"""Relation contracts and typed values at the doors: routes, rights, refusals, and how values are shown."""

from __future__ import annotations

import json

import pytest

from contracts.events import EventDraft
from contracts.grants import ANY, Grant, Right
from contracts.relation_wire import ContractAnswer, ContractsAnswer
from contracts.wire import ResolveAnswer
from echoplane._cli_options import shown
from ledger._rendering import rendering

SINCE = {"since": "2026-01-01T00:00Z"}
RANGE = {"relation": "range", "value_type": "number", "unit": "km"}


def claim(value, **fields):
    return {
        "stream": "s", "kind": "observation", "actor": {"id": "r1", "class": "sensor"}, **fields,
        "claims": [{"entity": "box", "relation": "range", "value": value, "valid": SINCE}],
    }  # fmt: skip


@pytest.fixture
async def registered(client, folding):
    """A tenant in which the range is a number in km."""
    await client.put("/v1/lab")
    response = await client.post("/v1/lab/relations", json=RANGE)
    assert response.status_code == 201, response.text
    return response


async def test_the_same_contract_again_is_unchanged(client, registered):
    again = await client.post("/v1/lab/relations", json=RANGE)
    other = await client.post("/v1/lab/relations", json={"relation": "hops", "value_type": "number"})

    assert (registered.json()["unchanged"], other.json()["unchanged"]) == (False, False)
    assert (again.status_code, again.json()["unchanged"], other.status_code) == (200, True, 201)


async def test_a_contract_is_registered_listed_and_shown(client, registered):
    shown_one = ContractAnswer.model_validate_json((await client.get("/v1/lab/relations/range")).content)
    listed = ContractsAnswer.model_validate_json((await client.get("/v1/lab/relations")).content)

    assert registered.json()["unit"] == "km"
    assert (shown_one.registered, shown_one.value_type, shown_one.unit) == (True, "number", "km")
    assert listed.relations == [shown_one]
    other = (await client.get("/v1/lab/relations/lives_in")).json()
    assert (other["registered"], other["value_type"], other["unit"], other["schema"]) == (
        False,
        "any",
        None,
        None,
    )


async def test_a_schema_goes_in_and_comes_out_as_json(client, registered):
    schema = {"type": "object", "required": ["street"]}
    body = {"relation": "address", "value_type": "json", "schema": schema}

    response = await client.post("/v1/lab/relations", json=body)

    assert (response.status_code, response.json()["schema"]) == (201, schema)


BAD_CONTRACTS = [
    ({"unit": "EUR"}, "unit"),
    ({"unit": ""}, "unit"),
    ({"value_type": "colour"}, "value_type"),
    ({"value_type": "text"}, "unit"),
    ({"value_type": "json", "unit": None}, "schema"),
    ({"value_type": "json", "unit": None, "schema": {"pattern": "(a+)+"}}, "schema"),
    ({"value_type": "json", "unit": None, "schema": []}, "schema"),
    ({"normalizer": "casefold"}, "normalizer"),
    ({"conflict_window_seconds": -1}, "conflict_window_seconds"),
    ({"colour": 1}, "colour"),
]


async def test_a_bad_contract_is_refused_with_its_field(client, folding):
    for change, field in BAD_CONTRACTS:
        await client.put("/v1/lab")

        response = await client.post("/v1/lab/relations", json=RANGE | change)

        assert response.status_code == 422, change
        assert response.json()["error"]["details"]["field"].split(".")[0] == field, change
        assert (await client.get("/v1/lab/relations")).json() == {"relations": []}


async def test_registering_needs_admin_and_reading_needs_ask(client, plane, registered):
    async def call(right, method, path, **body):
        token = (
            await plane.make_token(
                "lab", Grant(tenant="lab", rights=frozenset({right}), actors=ANY, classes=ANY), label="t"
            )
        ).token
        headers = {"authorization": f"Bearer {token}"}
        return (await client.request(method, path, headers=headers, **body)).status_code

    for path in ("/v1/lab/relations", "/v1/lab/relations/range"):
        assert await call(Right.ASK, "GET", path) == 200
        assert await call(Right.EMIT, "GET", path) == 403
    assert await call(Right.ASK, "POST", "/v1/lab/relations", json=RANGE) == 403
    assert await call(Right.ADMIN, "POST", "/v1/lab/relations", json=RANGE | {"relation": "reach"}) == 201


async def test_a_wrong_value_is_refused_and_its_content_is_not_said(client, registered):
    events = [claim("5 km"), claim("7 secretons")]

    response = await client.post("/v1/lab/events", json={"events": events})

    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (422, "incorrect.wrong_value")
    assert error["details"]["field"] == "events[1].claims[0].value"
    assert error["details"]["expected"] == "a number in km"
    assert "secretons" not in response.text
    assert (await client.post("/v1/lab/events", json={"events": [claim("5 km")]})).json()["commit"] == 2


async def test_a_value_travels_as_it_was_said_and_a_plain_number_with_its_unit(client, registered):
    found = []
    for value in (5, "5000 m", 5.25, {"value": 5250, "unit": "m"}):
        said = await client.post("/v1/lab/events", json={"events": [claim(value)]})
        wanted = {"entity": "box", "relation": "range", "min_commit": said.json()["commit"]}
        response = await client.get("/v1/lab/resolve", params=wanted)
        found.append(ResolveAnswer.model_validate_json(response.content))

    assert [answer.value for answer in found] == [
        {"value": 5, "unit": "km"}, "5000 m", {"value": 5.25, "unit": "km"}, {"value": 5250, "unit": "m"},
    ]  # fmt: skip
    assert [answer.claims[-1].value for answer in found] == [5, "5000 m", 5.25, {"value": 5250, "unit": "m"}]
    assert [len(answer.claims) for answer in found] == [1, 2, 1, 2]
    assert '"value":5250}' in response.text.replace(" ", "")


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ({"value": 5, "unit": "km"}, "box range = 5 km (since 2026-01-01T00:00Z)"),
        ("5000 m", "box range = 5000 m (since 2026-01-01T00:00Z)"),
        ({"from": "2026-03-01", "to": None}, "box range = 2026-03-01 to open (since 2026-01-01T00:00Z)"),
        ({"b": 1, "a": "é"}, 'box range = {"a": "\\u00e9", "b": 1} (since 2026-01-01T00:00Z)'),
    ],
)
def test_evidence_says_a_value_as_a_person_writes_it(value, line):
    assert rendering(EventDraft.model_validate(claim(value))) == line


def test_a_text_that_says_the_number_with_its_unit_shows_the_claim():
    spoken = claim({"value": 5, "unit": "km"}, text="The box is 5 km away.")

    assert rendering(EventDraft.model_validate(spoken)) == "The box is 5 km away."


def test_the_command_line_shows_a_value_as_a_person_writes_it():
    assert [shown(value) for value in ("a", 5, {"value": 5, "unit": "km"}, ["a"], {"é": 1})] == [
        "a", "5", "5 km", '["a"]', '{"é": 1}',
    ]  # fmt: skip


async def test_a_question_is_answered_with_the_unit(client, plane, folding, discovery):
    await client.put("/v1/lab")
    await client.post("/v1/lab/relations", json={"relation": "height", "value_type": "number", "unit": "cm"})
    event = {
        "stream": "s", "kind": "claim", "actor": {"id": "Ann", "class": "user"},
        "claims": [{"entity": "Ann", "relation": "height", "value": 172}],
    }  # fmt: skip
    said = await client.post("/v1/lab/events", json={"events": [event]})

    body = {"question": "What is Ann's height?", "min_commit": said.json()["commit"]}
    answer = (await client.post("/v1/lab/ask", json=body)).json()

    assert json.dumps(answer["answer"]) == '{"value": 172, "unit": "cm"}', answer
