"""Epochs through the doors: a contract changed in use, a rebuild, the old generation, replay, dropping."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from contracts.errors import BadRequest, RelationInUse
from contracts.grants import ANY, LOCAL_GRANT, Grant, Right
from contracts.relations import Cardinality, default_contract
from contracts.views import Generation
from contracts.wire import SCHEMAS
from echoplane._epochs import rebuild
from echoplane._wiring import NEWEST
from ledger.log import EpochState, list_epochs
from ledger.write import fold
from projection import RuleProjector
from tests.acceptance.planes import own_plane, wait_until

LIVES_MANY = {"relation": "lives_in", "cardinality": "many"}


async def fold_all(plane, tenant="home"):
    while not (await fold(plane.database, tenant, RuleProjector(), events_max=100)).is_at_head:
        pass


async def asked(client, **more):
    answer = await client.post(
        "/v1/home/ask",
        json={"question": "Where does Ann live?", "valid_at": "2025-07-01T00:00:00Z"} | more,
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


async def resolved(client, **more):
    parameters = {"entity": "Ann", "relation": "lives_in", "valid_at": "2025-07-01T00:00:00Z"} | more
    answer = await client.get("/v1/home/resolve", params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.content


async def test_a_change_in_use_is_refused_with_what_it_means_then_done_beside_the_old_answers(
    client, plane, home
):
    refused = await client.post("/v1/home/relations", json=LIVES_MANY)
    assert refused.status_code == 409
    error = refused.json()["error"]
    assert error["code"] == "incorrect.relation_in_use"
    assert error["details"] == {"relation": "lives_in", "claims": 2, "events": 2, "epoch": 2}
    assert "new_epoch" in error["message"]

    old = await resolved(client)
    accepted = await client.post("/v1/home/relations", json=LIVES_MANY | {"new_epoch": True})

    assert accepted.status_code == 201
    assert (accepted.json()["epoch"], accepted.json()["building"]) == (2, True)
    meanwhile = json.loads(await resolved(client))
    assert (meanwhile["view"]["epoch"], meanwhile["outcome"]) == (1, json.loads(old)["outcome"])
    states = (await client.get("/v1/home/epochs")).json()["epochs"]
    assert [(one["epoch"], one["state"], one["lag"]) for one in states] == [
        (1, "serving", 1),
        (2, "building", 3),
    ]
    await fold_all(plane)

    now = json.loads(await resolved(client, generation="2:2"))
    assert now["view"]["epoch"] == 2
    assert sorted(now["values"]) == ["Ghent", "Lyon"]
    again = await client.post("/v1/home/relations", json=LIVES_MANY)
    assert (again.json()["epoch"], again.json()["building"]) == (2, False)


async def test_the_old_generation_answers_byte_for_byte_as_before(client, plane, home):
    view = {"generation": "1:2", "known_at": "2030-01-01T00:00:00Z"}
    before = await resolved(client, **view)
    await client.post("/v1/home/relations", json=LIVES_MANY | {"new_epoch": True})
    await fold_all(plane)

    assert await resolved(client, **view) == before
    assert json.loads(before)["view"] | {"epoch": 1, "cut": 2} == json.loads(before)["view"]


@pytest.mark.usefixtures("home")
async def test_a_read_of_an_old_generation_waits_for_nothing_later(client, plane, remember, turn):
    await client.post("/v1/home/epochs")
    await fold_all(plane)
    await remember("home", turn("I moved to Oslo."))
    old = replace(NEWEST, generation=Generation(epoch=1, commit=2))

    request = await plane.after_last_commit("home", old)

    assert request == old
    found = await plane.resolve("home", "Ann", "lives_in", request)
    assert (found.view.epoch, found.view.cut) == (1, 2)
    assert (await plane.after_last_commit("home", NEWEST)).min_commit == 4


async def test_a_read_that_waits_for_its_write_is_answered_across_the_switch(client, plane, home, remember):
    await client.post("/v1/home/relations", json=LIVES_MANY | {"new_epoch": True})
    (receipt,) = await remember(
        "home", {"stream": "s1", "kind": "turn", "actor": {"id": "Ann", "class": "user"},
                 "text": "I moved to Oslo.", "observed_at": "2025-06-20T10:00:00Z"}, folded=False,
    )  # fmt: skip
    await fold_all(plane)

    found = json.loads(await resolved(client, min_commit=receipt.commit))

    assert found["view"]["epoch"] == 2
    assert "Oslo" in found["values"]


async def test_a_context_of_the_old_epoch_is_replayed_there_until_that_is_dropped(
    client, plane, discovery, home
):
    old = await asked(client)
    await client.post("/v1/home/relations", json=LIVES_MANY | {"new_epoch": True})
    await fold_all(plane)
    new = await asked(client)
    assert (old["view"]["epoch"], new["view"]["epoch"]) == (1, 2)

    for answer in (old, new):
        replayed = await client.post(f"/v1/home/contexts/{answer['context']['hash']}/replay")
        assert replayed.json()["verdict"] == "identical", replayed.text
    dropped = await client.delete("/v1/home/epochs/1")

    assert dropped.status_code == 200
    assert dropped.json()["rows_count"] > 0
    replayed = await client.post(f"/v1/home/contexts/{old['context']['hash']}/replay")
    assert (replayed.status_code, replayed.json()["error"]["code"]) == (410, "incorrect.epoch_dropped")
    replayed = await client.post(f"/v1/home/contexts/{new['context']['hash']}/replay")
    assert replayed.json()["verdict"] == "identical"
    gone = await client.get(
        "/v1/home/resolve", params={"entity": "Ann", "relation": "lives_in", "generation": "1:2"}
    )
    assert gone.status_code == 410
    assert (await plane.verify("home")).ok


@pytest.mark.usefixtures("discovery", "home")
async def test_discovery_follows_the_switch(client, plane, remember, turn):
    assert (await asked(client))["answer"] == "Ghent"
    await client.post("/v1/home/relations", json=LIVES_MANY | {"new_epoch": True})
    await fold_all(plane)
    await remember("home", turn("I like olives.", at="2025-06-03T18:30:00+02:00"))

    answer = await client.post("/v1/home/ask", json={"question": "What does Ann like?"})

    found = answer.json()
    assert (found["view"]["epoch"], found["degraded"]) == (2, False)
    assert found["answer"] == ["olives"]


async def test_a_rebuild_changes_the_epoch_and_no_evidence(client, plane, discovery, home):
    before = await asked(client)
    begun = await client.post("/v1/home/epochs")
    again = await client.post("/v1/home/epochs")
    assert (begun.status_code, begun.json()) == (202, {"tenant": "home", "epoch": 2, "begun": True})
    assert (again.status_code, again.json()["begun"]) == (200, False)

    await fold_all(plane)
    after = await asked(client)

    assert after["view"]["epoch"] == 2
    assert after["answer"] == before["answer"] == "Ghent"
    assert after["context"]["content_hash"] == before["context"]["content_hash"]
    assert after["context"]["hash"] != before["context"]["hash"]


async def test_rights_and_bad_numbers(client, plane, home):
    made = await plane.make_token(
        "home",
        Grant(
            tenant="home",
            rights=frozenset({Right.ASK, Right.EMIT}),
            actors=frozenset({ANY}),
            classes=frozenset({ANY}),
        ),
        label="t",
    )
    headers = {"authorization": f"Bearer {made.token}"}

    assert (await client.get("/v1/home/epochs", headers=headers)).status_code == 200
    assert (await client.post("/v1/home/epochs", headers=headers)).status_code == 403
    assert (await client.delete("/v1/home/epochs/1", headers=headers)).status_code == 403
    assert (await client.delete("/v1/home/epochs/x")).status_code == 422
    assert (await client.delete("/v1/home/epochs/7")).status_code == 404
    assert (await client.delete("/v1/home/epochs/1")).status_code == 422
    assert (await client.post("/v1/none/epochs")).status_code == 404


async def test_values_that_a_new_contract_does_not_take_stop_no_epoch(client, plane, home):
    """The log is what it is: a claim whose value is of another type must not be able to stop a rebuild."""
    number = {"relation": "lives_in", "value_type": "number", "new_epoch": True}
    assert (await client.post("/v1/home/relations", json=number)).status_code == 201

    await fold_all(plane)

    states = [epoch.state for epoch in await list_epochs(plane.database, "home")]
    assert states == [EpochState.RETIRED, EpochState.SERVING]
    await resolved(client)
    assert (await plane.verify("home")).ok


async def test_the_shapes_are_those_that_are_published(client, plane, home):
    listed = await client.get("/v1/home/epochs")
    SCHEMAS["epochs-answer"].model_validate_json(listed.content)
    begun = await client.post("/v1/home/epochs")
    SCHEMAS["rebuild-answer"].model_validate_json(begun.content)


async def test_registering_through_the_use_case_keeps_its_errors(plane, home):
    contract = replace(default_contract("lives_in"), cardinality=Cardinality.MANY)

    with pytest.raises(RelationInUse):
        await plane.register_contract("home", contract, new_epoch=False)
    with pytest.raises(BadRequest):
        await plane.register_contract("home", replace(contract, normalizer="guess"), new_epoch=True)
    assert len(await list_epochs(plane.database, "home")) == 1
    await rebuild(plane, "home", grant=LOCAL_GRANT, actor_id="operator")


# --- with processes ------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_line_changes_a_contract_in_use_while_the_worker_is_killed(tmp_path):
    contract = tmp_path / "contract.json"
    contract.write_text(json.dumps(LIVES_MANY), encoding="utf-8")
    ann = {"id": "Ann", "class": "user"}
    lines = [
        {"stream": "s", "kind": "turn", "actor": ann, "text": f"I live in {place}."}
        for place in ("Lyon", "Ghent", "Oslo", "Turin") * 150
    ]
    with own_plane() as plane:
        plane.run("emit", "-", "--tenant", "t", "--atomic", given="\n".join(map(json.dumps, lines)))
        plane.wait_folded()
        refused = plane.run("relations", "register", str(contract), "--tenant", "t", "--json", code=2)
        assert refused == ""
        before = plane.say("resolve", "Ann", "lives_in", "--tenant", "t", "--generation", "1:1")

        registering = plane.begin(
            "relations", "register", str(contract), "--tenant", "t", "--new-epoch", output=tmp_path / "out"
        )
        wait_until(lambda: len(epochs(plane)) == 2 or registering.poll() is not None, what="it is begun")
        plane.kill("worker")
        assert registering.wait(timeout=120) == 0, (tmp_path / "out").read_text(encoding="utf-8")

        assert [one["state"] for one in epochs(plane)] == ["retired", "serving"]
        (after,) = plane.say("resolve", "Ann", "lives_in", "--tenant", "t")
        assert after["values_count"] == 4
        again = plane.say("resolve", "Ann", "lives_in", "--tenant", "t", "--generation", "1:1")
        assert pinned(again) == pinned(before)
        plane.run("rebuild", "--tenant", "t")
        plane.run("epochs", "drop", "1", "--tenant", "t", "--yes")
        assert [one["state"] for one in epochs(plane)] == ["dropped", "retired", "serving"]
        plane.run("verify", "--tenant", "t")
        assert "serves" in plane.run("rebuild", "--tenant", "t")
        assert "ok" in plane.run("doctor")


def epochs(plane):
    return plane.say("epochs", "list", "--tenant", "t")[0]["epochs"]


def pinned(answers):
    """Return answers without what "now" was turned into."""
    return [answer | {"view": answer["view"] | {"valid_at": "", "known_at": ""}} for answer in answers]
