"""One rule for what every route says of what was erased: docs/erasure.md, "What is read afterwards"."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from contracts.audit_wire import TodayAnswer
from echoplane._cli_ask import _print_today

KEY = {"entity": "Ann", "relation": "lives_in"}


@pytest.fixture
async def gone(client, home, discovery):
    """The ids of what was erased: the event that Ann's home was answered from, the answer, its commit."""
    answer = (await client.post("/v1/home/ask", json={"question": "Where does Ann live?"})).json()
    assert answer["answer"] == "Ghent"
    event = home[1].event_ids[0]
    body = {"events": [event]}
    assert (await client.post("/v1/home/erasures", json=body)).json()["erased"] == [event]
    return {"event": event, "context": answer["context"]["hash"], "commit": home[1].commit, "body": body}


def own(events, event_id):
    """What a page says of one event."""
    (found,) = [one for one in events if one["event_id"] == event_id]
    return {name: found[name] for name in ("erased", "event", "kind", "commit")}


ERASED_EVENT = {"erased": True, "event": None, "kind": "turn", "commit": 2}

# A route, what is asked of it, and what of its answer the rule is about.
ROUTES = [
    ("GET", "/events/{event}", {}, lambda at, found: own([found], at["event"]) == ERASED_EVENT),
    ("GET", "/events", {}, lambda at, found: own(found["events"], at["event"]) == ERASED_EVENT),
    (
        "GET", "/events", {"commit": "{commit}"},
        lambda at, found: own(found["events"], at["event"]) == ERASED_EVENT,
    ),
    (
        "GET", "/events", {"stream": "s1"},
        lambda at, found: own(found["events"], at["event"]) == ERASED_EVENT,
    ),
    (
        "GET", "/events/{event}/without", {},
        lambda at, found: (found["erased"], found["keys"], found["answers"], found["erased_count"])
        == (True, [], [], 1),
    ),
    (
        "GET", "/contexts/{context}", {},
        lambda at, found: (found["erased"], found["form"], found["erased_events"])
        == (True, None, [at["event"]]),
    ),
    (
        "POST", "/contexts/{context}/replay", {},
        lambda at, found: (found["verdict"], found["erased"]) == ("redacted", [at["event"]]),
    ),
    (
        "POST", "/contexts/{context}/today", {},
        lambda at, found: (found["erased"], found["erased_events"]) == (True, [at["event"]])
        and found["then"] is found["now"] is found["same"] is None,
    ),
    *(
        (
            "GET", "/trails", wanted,
            lambda at, found: [(one["context"], one["erased"]) for one in found["trails"]]
            == [(at["context"], True)],
        )
        for wanted in ({}, {"event": "{event}"}, {"context": "{context}"}, {"status": "answered"})
    ),
    ("GET", "/trails", {"entity": "Ann"}, lambda at, found: found["trails"] == []),
    ("GET", "/resolve", KEY, lambda at, found: (found["outcome"], found["reason"]) == ("missing", "erased")),
    (
        "GET", "/history", {"entity": "Ann"},
        lambda at, found: found["cells"][-1]["state"] == "erased" and "Ghent" not in str(found),
    ),
    ("GET", "/diff", {"entity": "Ann"}, lambda at, found: found["changes"] and "Ghent" not in str(found)),
    (
        "GET", "/join", KEY | {"other_entity": "Ann", "other_relation": "lives_in", "on_value": "true"},
        lambda at, found: [pair["left"]["value"] for pair in found["pairs"]] == ["Lyon"],
    ),
    (
        "GET", "/occurrences", {"entity": "Ann", "relation": "visited"},
        lambda at, found: (found["count"], found["occurrences"]) == (0, []),
    ),
    ("GET", "/commits", {}, lambda at, found: [one["commit"] for one in found["commits"]] == [1, 2, 3]),
    ("GET", "/proofs/inclusion", {"commit": "{commit}", "size": "3"}, lambda at, found: bool(found)),
    (
        "POST", "/erasures", {},
        lambda at, found: (found["erased"], found["already_erased"]) == ([], [at["event"]]),
    ),
]  # fmt: skip


async def test_what_the_ledger_numbered_says_that_it_was_erased_and_no_route_says_it_was_never_there(
    client, gone
):
    for method, path, parameters, says in ROUTES:
        response = await client.request(
            method,
            "/v1/home" + path.format(**gone),
            params={name: value.format(**gone) for name, value in parameters.items()},
            json=gone["body"] if path == "/erasures" else None,
        )

        assert response.status_code == 200, (method, path, response.text)
        assert says(gone, response.json()), (method, path, parameters, response.text)


async def test_what_never_was_there_is_not_found_and_a_name_is_neither(client, gone):
    for method, path in (
        ("GET", "/events/ev_none"),
        ("GET", "/events/ev_none/without"),
        ("GET", "/contexts/" + "0" * 64),
        ("POST", f"/contexts/{'0' * 64}/replay"),
        ("POST", f"/contexts/{'0' * 64}/today"),
    ):
        response = await client.request(method, f"/v1/home{path}")
        assert (response.status_code, response.json()["error"]["code"]) == (404, "incorrect.not_found"), path
    await client.post("/v1/home/erasures", json={"subject": "Ann"})
    answers = [
        (await client.get("/v1/home/resolve", params=KEY | {"entity": who})).json()
        for who in ("Ann", "Nobody")
    ]
    assert [(one["outcome"], one["reason"]) for one in answers] == [("missing", "never_known")] * 2


@pytest.mark.parametrize("table", ["context_key", "trail_key"])
async def test_what_is_gone_without_an_erasure_is_an_incident(client, home, discovery, owner_engine, table):
    answer = (await client.post("/v1/home/ask", json={"question": "Where does Ann live?"})).json()
    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'home', true)"))
        await conn.execute(sa.text(f"DELETE FROM {table}"))
    path = f"/v1/home/contexts/{answer['context']['hash']}"

    lost = await (client.get(path) if table == "context_key" else client.post(f"{path}/today"))

    assert (lost.status_code, lost.json()["error"]["code"]) == (500, "fault.integrity")


async def test_the_command_line_says_it_too(client, gone, capsys):
    found = (await client.post(f"/v1/home/contexts/{gone['context']}/today")).json()

    _print_today(TodayAnswer.model_validate(found), as_json=False)

    assert capsys.readouterr().out.splitlines()[-2:] == ["erased", f"  with      {gone['event']}"]
