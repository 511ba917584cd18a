"""The doors of erasing: who may, what is refused with its field, and what everything says afterwards."""

from __future__ import annotations

import httpx
import pytest
import sqlalchemy as sa

from contracts.erasure_wire import ErasureAnswer
from contracts.grants import ANY, Grant, Right
from echoplane import _scrub
from echoplane._folders import DataFolder
from echoplane._http import make_app
from echoplane._scrub import is_owed

LYON, GHENT = "I live in Lyon.", "I moved to Ghent."


@pytest.fixture
def folder_of_plane(plane):
    return DataFolder.at(plane.settings.data_dir)


async def erased(client, body, tenant="home"):
    response = await client.post(f"/v1/{tenant}/erasures", json=body)
    assert response.status_code == 200, response.text
    return ErasureAnswer.model_validate_json(response.content)


async def test_a_subject_is_erased_and_everything_says_so(client, home, folder_of_plane):
    events = [receipt.event_ids[0] for receipt in home]

    answer = await erased(client, {"subject": "Ann"})

    assert (answer.tenant, answer.erased, answer.already_erased) == ("home", events, [])
    assert (answer.commit, answer.event_id is not None) == (3, True)
    # The files are another matter, and nobody has seen to them yet.
    assert answer.scrub.state == "pending"
    assert is_owed(folder_of_plane)
    for event_id in events:
        event = (await client.get(f"/v1/home/events/{event_id}")).json()
        assert (event["erased"], event["event"]) == (True, None)
    resolved = (await client.get("/v1/home/resolve?entity=Ann&relation=lives_in")).json()
    assert resolved["outcome"] == "missing"
    history = (await client.get("/v1/home/history?entity=Ann")).json()
    assert history["claims"] == []
    assert "Ghent" not in str(history)


async def test_an_event_is_erased_and_no_older_value_comes_back(client, home):
    answer = await erased(client, {"events": [home[1].event_ids[0]]})

    assert answer.erased == home[1].event_ids
    assert answer.tombstones_count == 1
    resolved = (await client.get("/v1/home/resolve?entity=Ann&relation=lives_in")).json()
    assert (resolved["outcome"], resolved["reason"]) == ("missing", "erased")


async def test_erasing_again_takes_nothing_and_owes_nothing(client, home, folder_of_plane):
    body = {"events": [home[1].event_ids[0]]}
    first = await erased(client, body)
    for debt in _scrub._debts(folder_of_plane):
        debt.unlink()

    again = await erased(client, body)

    assert (again.event_id, again.commit, again.erased) == (None, None, [])
    assert again.already_erased == first.erased
    assert again.scrub.state == "done"
    assert not is_owed(folder_of_plane)


WRONG_REQUESTS = [
    ({}, "subject"),
    ({"subject": "Ann", "events": ["ev_1"]}, "subject"),
    ({"subject": ""}, "subject"),
    ({"subject": "A" * 2_000}, "subject"),
    ({"events": []}, "events"),
    ({"events": [""]}, "events[0]"),
    ({"events": "ev_1"}, "events"),
    ({"subject": "Ann", "why": "asked"}, "why"),
]


async def test_a_wrong_request_is_refused_with_its_field_and_erases_nothing(client, home, folder_of_plane):
    for body, field in WRONG_REQUESTS:
        response = await client.post("/v1/home/erasures", json=body)

        assert response.status_code == 422, body
        assert response.json()["error"]["details"]["field"] == field, body
        assert (await client.get(f"/v1/home/events/{home[0].event_ids[0]}")).json()["erased"] is False, body
        assert not is_owed(folder_of_plane), body


async def test_an_event_that_is_not_there_is_not_found_and_the_others_stay(client, home, folder_of_plane):
    response = await client.post("/v1/home/erasures", json={"events": [home[0].event_ids[0], "ev_none"]})

    assert (response.status_code, response.json()["error"]["code"]) == (404, "incorrect.not_found")
    assert (await client.get(f"/v1/home/events/{home[0].event_ids[0]}")).json()["erased"] is False
    assert not is_owed(folder_of_plane)


async def test_an_erasure_cannot_be_erased(client, home):
    first = await erased(client, {"events": [home[0].event_ids[0]]})

    response = await client.post("/v1/home/erasures", json={"events": [first.event_id]})

    assert response.status_code == 422


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (("home", set(Right) - {Right.ERASE}), 403),
        (("away", set(Right)), 404),
        (("home", {Right.ERASE}), 200),
    ],
)
async def test_only_who_may_erase_in_this_tenant_can(plane, client, home, given, status):
    tenant, rights = given
    await plane.make_tenant("away")
    grant = Grant(tenant=tenant, rights=frozenset(rights), actors=frozenset({ANY}), classes=frozenset({ANY}))
    token = (await plane.make_token(tenant, grant, label="t")).token
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(make_app(plane)),
        base_url="http://127.0.0.1:7415",
        headers={"authorization": f"Bearer {token}"},
    ) as caller:
        response = await caller.post("/v1/home/erasures", json={"subject": "Ann"})

    assert response.status_code == status
    event = (await client.get(f"/v1/home/events/{home[0].event_ids[0]}")).json()
    assert event["erased"] is (status == 200)


async def test_an_erasure_needs_a_body_and_no_parameters(client, home):
    assert (await client.post("/v1/home/erasures")).status_code == 422
    assert (await client.post("/v1/home/erasures?subject=Ann", json={"subject": "Ann"})).status_code == 422
    assert (await client.get("/v1/home/erasures")).status_code == 405


async def asked(client):
    answer = (await client.post("/v1/home/ask", json={"question": "Where does Ann live?"})).json()
    assert answer["answer"] == "Ghent"
    return answer["context"]["hash"]


async def test_a_replay_of_what_was_erased_names_it(client, home, discovery):
    context = await asked(client)
    await erased(client, {"events": [home[1].event_ids[0]]})

    replay = (await client.post(f"/v1/home/contexts/{context}/replay")).json()

    assert (replay["verdict"], replay["erased"]) == ("redacted", home[1].event_ids)
    stored = (await client.get(f"/v1/home/contexts/{context}")).json()
    assert (stored["erased"], stored["form"]) == (True, None)


@pytest.mark.parametrize("table", ["context_key", "trail_key"])
async def test_a_key_that_is_gone_without_an_erasure_is_an_incident(
    client, home, discovery, owner_engine, table
):
    context = await asked(client)
    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'home', true)"))
        await conn.execute(sa.text(f"DELETE FROM {table}"))

    replay = (await client.post(f"/v1/home/contexts/{context}/replay")).json()

    assert (replay["verdict"], replay["erased"]) == ("mismatch", [])


async def test_who_i_am_is_not_remembered_from_before_an_erasure(client, home, discovery, remember, turn):
    mine = {"question": "Where do I live?"}
    assert (await client.post("/v1/home/ask", json=mine)).json()["answer"] == "Ghent"
    await erased(client, {"subject": "Ann"})

    await remember("home", turn("I live in Oslo.", who="Bo"))
    after = (await client.post("/v1/home/ask", json=mine)).json()

    assert after["answer"] == "Oslo"
