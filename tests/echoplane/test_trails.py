"""The doors of audit: what was asked, under today's epoch, without an event; gates from the command line."""

from __future__ import annotations

import json

import pytest

from contracts.audit_wire import GateAnswer, TodayAnswer, TrailsAnswer, WithoutAnswer
from echoplane._cli import execute
from tests.echoplane.test_http import code_of


@pytest.fixture
async def asked(client, home):
    """Two questions to a tenant that knows where Ann lives, and where she lived before."""
    answers = [
        (await client.post("/v1/home/ask", json={"question": text})).json()
        for text in ("Where does Ann live?", "What is the weather?")
    ]
    (citing,) = [
        line["event"] for line in answers[0]["context"]["lines"] if line["id"] in answers[0]["cites"]
    ]
    return answers, citing


async def test_recalls_are_found_by_what_they_used_in_pages(client, asked):
    answers, event = asked

    async def found(**parameters):
        answer = await client.get("/v1/home/trails", params=parameters)
        return [one.context for one in TrailsAnswer.model_validate(answer.json()).trails]

    hashes = [one["context"]["hash"] for one in answers]
    assert await found() == hashes
    assert await found(limit=1) == hashes[:1]
    assert await found(after_number=1) == hashes[1:]
    assert await found(entity="Ann", event=event, status="answered") == hashes[:1]
    assert await found(entity="Ann", status="conflict") == []
    assert await found(context=hashes[1], asked_from="2020-01-01T00:00:00Z") == hashes[1:]
    for wrong in (
        {"status": "right"}, {"asked_from": "yesterday"}, {"limit": 0}, {"who": "Ann"},
        {"asked_from": "2026-01-02T00:00:00Z", "asked_to": "2026-01-01T00:00:00Z"},
    ):  # fmt: skip
        refused = await client.get("/v1/home/trails", params=wrong)
        assert await code_of(refused) == (422, "incorrect.bad_request")


async def test_a_stored_question_is_asked_under_todays_epoch(client, asked):
    context_hash = asked[0][0]["context"]["hash"]

    answer = await client.post(f"/v1/home/contexts/{context_hash}/today")
    missing = await client.post(f"/v1/home/contexts/{'0' * 64}/today")

    found = TodayAnswer.model_validate(answer.json())
    assert (found.same, found.differences, found.epoch_then, found.epoch_now) == (True, [], 1, 1)
    assert await code_of(missing) == (404, "incorrect.not_found")


async def test_what_hangs_on_an_event_is_told_and_nothing_is_written(client, asked):
    answers, event = asked
    before = (await client.get("/v1/home/events")).json()

    answer = await client.get(f"/v1/home/events/{event}/without")

    found = WithoutAnswer.model_validate(answer.json())
    (key,) = found.keys
    assert key.startswith("Ann lives_in: ")
    changes = {one.context: one.changes for one in found.answers}
    assert changes[answers[0]["context"]["hash"]] is True
    assert (await client.get("/v1/home/events")).json() == before
    again = (await client.post("/v1/home/ask", json={"question": "Where does Ann live?"})).json()
    assert again["answer"] == answers[0]["answer"]
    assert await code_of(await client.get("/v1/home/events/ev_0/without")) == (404, "incorrect.not_found")


def test_gates_are_written_registered_and_shown_from_the_command_line(tmp_path, capsys):
    given = ["--artifacts", str(tmp_path)]
    new = [
        "gate", "new", "small", *given, "--question", "Do the invariants hold?", "--require", "holds >= 1",
        "--questions", "7", "--with-gold", "0", "--runner", "ledger-invariants", "--size", "100",
    ]  # fmt: skip

    assert execute(new) == 0
    assert execute(new) == 2
    assert execute(["gate", "register", "small", *given]) == 0
    assert execute(["gate", "register", "small", *given]) == 2
    capsys.readouterr()
    assert execute(["gate", "verify", *given, "--json"]) == 0
    shown = GateAnswer.model_validate_json(capsys.readouterr().out)
    assert (shown.gate, shown.state, shown.same_code, shown.problems) == ("small", "registered", True, ())
    assert execute(["gate", "claim", "small", *given]) == 1
    assert "Missing:\n- an outcome" in capsys.readouterr().out


@pytest.mark.parametrize("require", ["hit@10", "hit@10 > 1", "speed >= 1", "hit@10 >= much"])
def test_a_threshold_that_cannot_be_read_is_refused(tmp_path, capsys, require):
    code = execute(
        ["gate", "new", "g", "--artifacts", str(tmp_path), "--question", "?", "--require", require,
         "--questions", "1", "--with-gold", "1", "--runner", "ledger-invariants"]
    )  # fmt: skip

    assert code == 2
    assert "--require" in capsys.readouterr().err
    assert not (tmp_path / "gates").exists()


def test_a_bundle_that_is_none_fails_its_check(tmp_path, capsys):
    assert execute(["audit", "verify", str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["problems"] == [
        "no bundle: it has no manifest.json; name a folder that a finished run left behind"
    ]
