"""Dead letters through the doors: seen, tried again, skipped; other tenants go on."""

from __future__ import annotations

import json

import pytest

from contracts.errors import Poisoned
from contracts.wire import SCHEMAS
from echoplane._cli import execute
from ledger.write import fold
from tests.projection.choking import Choking


@pytest.fixture
async def stopped(plane, remember, turn):
    """A tenant that the second of its three events stops."""
    receipts = await remember(
        "shop", turn("I live in Lyon."), turn("poison"), turn("I moved to Ghent."), folded=False
    )
    with pytest.raises(Poisoned):
        await fold(plane.database, "shop", Choking(), events_max=100)
    return receipts


async def test_what_stops_a_tenant_is_listed_and_no_content_is(client, stopped):
    answer = await client.get("/v1/shop/dead")

    [found] = SCHEMAS["dead-letters-answer"].model_validate_json(answer.content).dead
    assert (found.position, found.error, found.attempts) == (2, "ValueError", 1)
    assert found.event_id == stopped[1].event_ids[0]
    assert b"cannot" not in answer.content


async def test_a_read_that_waits_says_what_stops_it(client, stopped):
    waiting = await client.get(
        "/v1/shop/resolve", params={"entity": "Ann", "relation": "lives_in", "min_commit": 3}
    )
    asked = await client.post("/v1/shop/ask", json={"question": "Where does Ann live?", "min_commit": 3})

    for answer in (waiting, asked):
        assert answer.status_code == 500
        error = answer.json()["error"]
        assert (error["code"], error["details"]["position"]) == ("fault.poisoned", 2)


async def test_a_retry_folds_the_event_at_once_where_it_can_be(client, stopped):
    answer = await client.post("/v1/shop/dead/2/retry")

    assert answer.json() == {"tenant": "shop", "position": 2, "passed": True, "dead": None}
    assert (await client.get("/v1/shop/dead")).json()["dead"] == []
    assert (await client.post("/v1/shop/dead/2/retry")).status_code == 404


async def test_a_skip_lets_the_rest_be_folded_and_is_made_once(client, plane, stopped):
    answer = await client.post("/v1/shop/dead/2/skip", json={"reason": "ticket 4711"})

    assert answer.status_code == 201
    assert answer.json() == {
        "tenant": "shop", "position": 2, "event_id": stopped[1].event_ids[0], "epoch": 1, "commit": 4,
        "decided": True,
    }  # fmt: skip
    while not (await fold(plane.database, "shop", Choking(), events_max=100)).is_at_head:
        pass
    found = await client.get(
        "/v1/shop/resolve", params={"entity": "Ann", "relation": "lives_in", "min_commit": 4}
    )
    assert found.json()["value"] == "Ghent"
    again = await client.post("/v1/shop/dead/2/skip", json={"reason": "again"})
    assert (again.status_code, again.json()["decided"], again.json()["commit"]) == (200, False, 4)


async def test_a_decision_names_a_position_and_its_reason(client, stopped):
    for position, body, status in (
        ("2", {}, 422), ("2", {"reason": ""}, 422), ("two", {"reason": "x"}, 422),
        ("1", {"reason": "x"}, 404),
    ):  # fmt: skip
        answer = await client.post(f"/v1/shop/dead/{position}/skip", json=body)
        assert answer.status_code == status, (position, body)


def test_the_commands_say_whether_something_is_stopped(up, capsys):
    assert execute(["token", "--tenant", "shop", "--actor", "ann"]) == 0
    capsys.readouterr()

    assert execute(["dead", "list", "--tenant", "shop", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"tenant": "shop", "dead": []}
    assert execute(["dead", "skip", "2", "--tenant", "shop", "--reason", "x", "--yes"]) == 2
    assert "no such dead letter" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ["dead", "skip", "2", "--reason", "x"],
        ["epochs", "drop", "1"],
        ["erase", "--subject", "Ann"],
    ],
)
def test_nobody_is_asked_where_a_program_reads(command, capsys, monkeypatch):
    monkeypatch.setattr("typer.confirm", lambda *_, **__: pytest.fail("somebody was asked"))

    assert execute([*command, "--tenant", "shop", "--json"]) == 2
    assert json.loads(capsys.readouterr().err)["error"]["details"]["field"] == "--yes"
