"""What comes in at the HTTP door is read as it was meant or refused, and what is read can be sent again."""

from __future__ import annotations

import json

from contracts.grants import Right
from tests.echoplane.test_http import code_of, token_of  # noqa: F401 - a fixture

ANN = {"id": "Ann", "class": "user"}
FIRST = {"source_event_id": "t0"}
KEY = {"entity": "Ann", "relation": "lives_in"}
OPEN = {"from": "2025", "to": None}
VALIDS = [
    {"since": "2025-06"},
    {"from": "2025-06-01", "to": None},
    {"from": None, "to": "2025-06-01"},
    {"from": None, "to": None},
    {"at": "2025-06-01"},
    {"at": "2025-06-01T12:30:00Z", "precision": "day"},
]
STANCES = [
    {"kind": "claim", "claims": [KEY | {"value": "Lyon", "stance": "assert"}]},
    {"kind": "claim", "claims": [KEY | {"stance": "end", "valid": {"since": "2025"}}]},
    {"kind": "correction", "claims": [KEY | {"value": "Genk"}], "targets": [FIRST]},
    {"kind": "retraction", "targets": [FIRST | {"ordinal": 0}]},
    {"kind": "claim", "claims": [{"stance": "dispute", "targets": [KEY | FIRST | {"value": "Lyon"}]}]},
    {"kind": "settlement", "targets": [FIRST], "winner": FIRST | {"ordinal": 0}},
    {
        "kind": "claim", "claims": [
            {"stance": "settle", "targets": [KEY | {"interval": OPEN}], "winner": FIRST}
        ],
    },
    {"kind": "turn", "text": "I live in Lyon.", "targets": [FIRST | {"span": [0, 4]}]},
    {
        "kind": "derivation", "actor": {"id": "Ann", "class": "derived"},
        "claims": [KEY | {"value": {"a": None}, "inputs": [FIRST]}],
    },
]  # fmt: skip


async def test_what_is_read_of_an_event_can_be_emitted_again_and_is_the_same_event(client):
    await client.put("/v1/home")
    said = [{"kind": "claim", "claims": [KEY | {"value": "Lyon", "valid": valid}]} for valid in VALIDS]
    said[0] |= {"subjects": ["Ann"], "correlation": "c", "causation": "b", "occurrence_id": "o"}
    said += STANCES
    said[-2] |= {"observed_at": "2025-01-01T00:00:00Z"}
    events = [
        {"stream": "s", "actor": ANN, "source_event_id": f"t{number}"} | one
        for number, one in enumerate(said)
    ]
    for event in events:
        sent = await client.post("/v1/home/events", json={"events": [event]})
        assert sent.status_code == 201, sent.text
    # A target is shown by the id of the event that it was found to be: said so, it is other content.
    by_id = json.dumps(events[1:]).replace(json.dumps(FIRST)[1:-1], f'"event": "{await id_of_first(client)}"')
    for event in json.loads(by_id):
        event["source_event_id"] += "-by-id"
        await client.post("/v1/home/events", json={"events": [event]})

    read = (await client.get("/v1/home/events")).json()["events"]

    assert len(read) == 2 * len(events) - 1
    for one in read:
        keyless = one["event"] | {"source_event_id": None}
        anew = await client.post("/v1/home/events", json={"events": [keyless]})
        assert anew.status_code == 201, anew.text
    for one in read[len(events) :]:
        again = await client.post("/v1/home/events", json={"events": [one["event"]]})
        assert (again.status_code, again.json().get("event_ids")) == (200, [one["event_id"]]), again.text


async def id_of_first(client):
    return (await client.get("/v1/home/events", params={"limit": 1})).json()["events"][0]["event_id"]


async def test_what_is_wrong_in_an_event_is_named_by_its_field(client):
    await client.put("/v1/home")
    right = {"stream": "s", "kind": "claim", "actor": ANN, "claims": [KEY | {"value": "Lyon"}]}

    async def field(**changes):
        refused = await client.post("/v1/home/events", json={"events": [right, right | changes]})
        assert await code_of(refused) == (422, "incorrect.bad_request")
        return refused.json()["error"]["details"]["field"].removeprefix("events[1].")

    async def of_valid(**valid):
        return await field(claims=[KEY | {"value": "Lyon", "valid": valid}])

    assert await of_valid(since="soon") == "claims[0].valid.since"
    assert await of_valid(**{"from": "2025", "to": "2025-02-30"}) == "claims[0].valid.to"
    assert await of_valid(**{"from": "2025", "to": "2024"}) == "claims[0].valid"
    assert await of_valid(at="2025", precision="week") == "claims[0].valid.precision"
    assert await of_valid(at="2025", to="2026") == "claims[0].valid"
    assert await of_valid(since=None, at=None) == "claims[0].valid"
    assert await field(observed_at="2025-01-01") == "observed_at"
    assert await field(targets=[KEY | {"interval": {"from": "x", "to": None}}]) == "targets[0].interval.from"
    assert await field(claims=[KEY]) == "claims[0].value"
    assert await field(actor=ANN | {"class": "self"}) == "actor.class"


async def test_streams_of_decisions_are_written_by_operators_alone(client, home, token_of, turn):  # noqa: F811
    emitter, operator = await token_of("home", Right.EMIT), await token_of("home", Right.EMIT, Right.OPERATOR)
    for stream in ("decisions", "erasures", "relations", "epochs", " decisions "):
        body = {"events": [turn("Skip it.") | {"stream": stream}]}

        refused = await client.post("/v1/home/events", json=body, headers=emitter)

        assert await code_of(refused) == (403, "incorrect.forbidden")
        assert f"the stream {stream.strip()} is reserved" in refused.json()["error"]["message"]
        assert (await client.post("/v1/home/events", json=body, headers=operator)).status_code == 201


async def test_what_is_no_text_is_refused_and_not_read_as_another_name(client, home):
    for path in (
        "/v1/home/resolve?entity=%FF&relation=lives_in",
        "/v1/home/resolve?entity=Ann%ED%A0%80&relation=lives_in",
        "/v1/home/resolve?entity=Ann&relation=lives_in%C3",
        "/v1/home/resolve?entity=Ann%00&relation=lives_in",
        "/v1/home/trails?status=%80",
        "/v1/home/views/%FF",
        "/v1/home/relations/%C0%AF",
        "/v1/home/relations/%00",
        "/v1/%FF",
    ):
        assert await code_of(await client.get(path)) == (422, "incorrect.bad_request"), path


async def test_a_body_that_is_no_text_or_says_a_thing_twice_is_refused(client, home):
    for body, field in (
        (rb'{"question": "\ud800 where?"}', "body"),
        (b'{"question": "\xff"}', "body"),
        (rb'{"question": "a\u0000b"}', "question"),
        (b'{"question": "x", "budget": 100, "budget": 200}', "body"),
        ('{"question": "x"}'.encode("utf-16"), "body"),
    ):
        refused = await client.post("/v1/home/ask", content=body)

        assert await code_of(refused) == (422, "incorrect.bad_request"), body
        assert refused.json()["error"]["details"]["field"] == field


async def test_a_member_that_stands_twice_anywhere_is_refused_and_nothing_is_written(client, turn):
    await client.put("/v1/home")
    event = turn("Hello.", claims=[KEY | {"value": {"amount": 1, "more": 2}}])
    twice = json.dumps({"events": [event]}).replace('"more"', '"amount"')

    refused = await client.post("/v1/home/events", content=twice)

    assert await code_of(refused) == (422, "incorrect.bad_request")
    assert "amount" not in refused.text
    assert (await client.get("/v1/home/events")).json()["events"] == []


async def test_headers_of_any_bytes_are_answered(client, home):
    for name, value, status in (
        ("authorization", "Bearer ép_\xff", 401),
        ("origin", "http://[", 403),
        ("host", "[::1", 422),
        ("content-type", "text/plain; charset=\xff", 200),
    ):
        headers = {name: value.encode("latin-1")}
        asked = await client.post("/v1/home/ask", json={"question": "Where?"}, headers=headers)

        assert asked.status_code == status, name
    for seen in ("é", "1\x80", "-1", "1" * 30):
        headers = {"last-event-id": seen.encode("latin-1")}

        refused = await client.get("/v1/home/live", headers=headers)

        assert await code_of(refused) == (422, "incorrect.bad_request"), seen
