"""Tenants through the doors: listed by page, bounded, suspended, erased by age, deleted and moved."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest

from contracts.erasures import ErasureRequest
from contracts.errors import IntegrityFault
from contracts.grants import LOCAL_GRANT, Right
from contracts.relations import Cardinality, default_contract
from contracts.times import parse_instant
from contracts.wire import SCHEMAS
from echoplane import _retention
from echoplane._cli import execute
from echoplane._retention import retain, retain_all, retaining_meanwhile
from echoplane._tenants import delete
from ledger.log import create_token, overdue
from ledger.write import register_contract

WHY = {"reason": "ticket 7"}


async def decided(client, method: str, path: str, **body):
    answer = await client.request(method, f"/v1/home/{path}", json=WHY | body)
    assert answer.status_code == 200, answer.text
    return SCHEMAS["tenant-decided-answer"].model_validate_json(answer.content)


async def test_a_suspended_tenant_refuses_appends_and_the_answer_says_who_acts(client, home, turn):
    await decided(client, "POST", "suspend")

    refused = await client.post("/v1/home/events", json={"events": [turn("I live in Rome.")]})
    read = await client.get("/v1/home/resolve", params={"entity": "Ann", "relation": "lives_in"})

    assert refused.status_code == 403
    error = refused.json()["error"]
    assert (error["code"], "tenants resume" in error["act"]) == ("incorrect.tenant_suspended", True)
    assert read.json()["value"] == "Ghent"
    await decided(client, "POST", "resume")
    assert (await client.post("/v1/home/events", json={"events": [turn("Hello.")]})).status_code == 201


async def test_a_quota_and_a_rate_are_told_apart_and_a_rate_says_when_to_come_again(client, home, turn):
    append = {"events": [turn("One."), turn("Two.")]}
    assert (await decided(client, "PUT", "quota", events_max=4)).policy.events_max == 4
    full = await client.post("/v1/home/events", json=append)
    lifted = await decided(client, "PUT", "quota", events_max=None, events_per_minute=1)
    passed = await client.post("/v1/home/events", json=append)
    fast = await client.post("/v1/home/events", json=append)

    assert (full.status_code, full.json()["error"]["code"]) == (403, "incorrect.quota_exceeded")
    assert full.json()["error"]["details"] == {"quota": "events", "allowed": 4, "given": 5}
    assert (lifted.policy.events_max, lifted.policy.events_per_minute) == (None, 1)
    assert (passed.status_code, fast.status_code) == (201, 429)
    assert fast.json()["error"]["code"] == "unavailable.rate_exceeded"
    assert 0 < int(fast.headers["retry-after"]) <= 121


NO_BOUNDS = [
    ("quota", {}),
    ("quota", {"events_max": -1}),
    ("quota", {"events_per_minute": 0}),
    ("quota", {"retention_days": 1}),
    ("retention", {}),
    ("retention", {"days": 0}),
]


async def test_a_bound_that_no_policy_has_is_refused(client, home):
    for path, body in NO_BOUNDS:
        answer = await client.put(f"/v1/home/{path}", json=WHY | body)

        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "incorrect.bad_request"), body


async def test_a_tenants_token_sees_its_own_tenant_and_changes_nothing_of_it(client, plane, home):
    await plane.make_tenant("other")
    token = await create_token(
        plane.database, "home", rights=frozenset(Right), actors={"*"}, classes={"*"}, label="t"
    )
    own = {"authorization": f"Bearer {token}"}

    listed = await client.get("/v1", headers=own)
    everybody = await client.get("/v1")

    assert [one["tenant"] for one in listed.json()["tenants"]] == ["home"]
    assert [one["tenant"] for one in everybody.json()["tenants"]] == ["home", "other"]
    for method, path in (("POST", "/suspend"), ("POST", "/resume"), ("DELETE", "")):
        answer = await client.request(method, f"/v1/home{path}", json=WHY, headers=own)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "incorrect.forbidden")
    for path, body in (("quota", {"events_max": 1}), ("retention", {"days": 1})):
        assert (await client.put(f"/v1/home/{path}", json=WHY | body, headers=own)).status_code == 403
    assert (await client.get("/v1/other", headers=own)).status_code == 404


async def test_every_list_comes_in_pages(client, plane, home, remember):
    for name in ("alpha", "Beta", "gamma"):
        await plane.make_tenant(name)
        assert (await client.put(f"/v1/home/views/{name}", json={})).status_code == 200
        contract = default_contract(name, cardinality=Cardinality.MANY)
        await register_contract(
            plane.database, "home", contract, stream="contracts", actor_id="op", grant=LOCAL_GRANT
        )
        await remember("home")

    async def page(path: str, **given) -> list[str]:
        answer = (await client.get(path, params=given)).json()
        rows = answer if isinstance(answer, list) else next(v for v in answer.values() if isinstance(v, list))
        return [row.get("relation") or row.get("name") or row["tenant"] for row in rows]

    for path in ("/v1/home/views", "/v1/home/relations"):
        assert await page(path, limit=2) == ["Beta", "alpha"]
        assert await page(path, limit=2, after="alpha") == ["gamma"]
        assert await page(path, after="gamma") == []
    assert await page("/v1", limit=2, after="Beta") == ["alpha", "gamma"]
    epochs = await client.get("/v1/home/epochs", params={"after": 1})
    assert epochs.json()["epochs"] == []
    for path in ("/v1", "/v1/home/views", "/v1/home/relations", "/v1/home/epochs"):
        assert (await client.get(path, params={"limit": 1_001})).status_code == 422


async def test_what_is_too_old_is_erased_by_retention_and_what_is_not_stays(client, plane, home):
    await decided(client, "PUT", "retention", days=30)
    late = home[0].recorded_at
    later = replace(
        plane.database, clock=lambda: parse_instant(late, field="at") + timedelta(days=30, microseconds=1)
    )

    answer = await retain(replace(plane, database=later), "home")

    assert (answer.erased, answer.erasures) == (1, 1)
    first = await client.get(f"/v1/home/events/{home[0].event_ids[0]}")
    second = await client.get(f"/v1/home/events/{home[1].event_ids[0]}")
    assert (first.json()["erased"], second.json()["erased"]) == (True, False)
    assert await overdue(later, "home") is None


async def test_retention_takes_so_many_events_at_a_time_and_one_tenant_that_fails_keeps_no_other(
    client, plane, remember, turn, monkeypatch
):
    for tenant in ("a", "b"):
        receipts = await remember(tenant, *[turn(f"Word {n}.") for n in range(3)])
        answer = await client.put(f"/v1/{tenant}/retention", json=WHY | {"days": 1})
        assert answer.status_code == 200
    monkeypatch.setattr("ledger._tenancy.RETENTION_EVENTS_MAX", 2)
    later = replace(
        plane,
        database=replace(
            plane.database, clock=lambda: parse_instant(receipts[-1].recorded_at, field="at") + timedelta(2)
        ),
    )
    done = []

    async def first_fails(plane, tenant):
        if tenant == "a":
            raise IntegrityFault(what="a")
        done.append(await retain(plane, tenant))
        return done[-1]

    monkeypatch.setattr(_retention, "retain", first_fails)
    await retain_all(later)

    assert [(one.tenant, one.erased, one.erasures) for one in done] == [("b", 3, 2)]


async def test_each_erasure_of_retention_begins_where_the_one_before_it_ended_and_others_are_served_between(
    monkeypatch,
):
    """Of stand-ins that never wait: who else is served then is retention's own doing."""
    looks, turns = [], []

    async def found(_database, _tenant, *, after_event_id):
        looks.append(after_event_id)
        last = str(len(looks))
        return None if len(looks) > 2 else ErasureRequest(subject=None, event_ids=(f"{last}0", last))

    async def erased(_plane, _tenant, request, **_):
        assert len(turns) >= len(looks) - 1
        return SimpleNamespace(erased=request.event_ids)

    async def others():
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    monkeypatch.setattr(_retention, "overdue", found)
    monkeypatch.setattr(_retention, "erase", erased)
    serving = asyncio.create_task(others())
    answer = await retain(SimpleNamespace(database=None), "a")
    serving.cancel()

    assert (answer.erased, answer.erasures, looks) == (4, 2, [None, "1", "2"])


async def test_whatever_goes_wrong_with_one_tenant_or_one_look_retention_goes_on(monkeypatch):
    """Not only what is expected: a full disk, a driver's error."""
    looked, at_work = [], asyncio.Event()

    async def some(_database):
        looked.append("policies")
        if len(looked) == 1:
            raise OSError(28, "no space left")
        return ["a", "b"]

    async def none(_database):
        return []

    async def fails(_plane, tenant):
        looked.append(tenant)
        if tenant == "b":
            at_work.set()
        raise OSError(28, "no space left")

    monkeypatch.setattr(_retention, "RETENTION_SECONDS", 0)
    monkeypatch.setattr(_retention, "retaining", some)
    monkeypatch.setattr(_retention, "half_deleted", none)
    monkeypatch.setattr(_retention, "retain", fails)
    async with asyncio.timeout(10), retaining_meanwhile(SimpleNamespace(database=None)):
        await at_work.wait()

    assert looked[:4] == ["policies", "policies", "a", "b"]
    looks = len(looked)
    await asyncio.sleep(0)
    assert len(looked) == looks


async def test_retention_that_ended_by_a_bug_leaves_the_plane_to_end_in_order(monkeypatch):
    async def ends(_plane):
        raise OSError(28, "no space left")

    monkeypatch.setattr(_retention, "keep_retained", ends)
    async with retaining_meanwhile(SimpleNamespace(database=None)):
        await asyncio.sleep(0)


async def test_a_deleted_tenant_is_gone_from_every_route_and_its_name_is_not_given_again(
    client, plane, home, discovery
):
    asked = await client.post("/v1/home/ask", json={"question": "Where does Ann live?"})
    assert asked.json()["answer"] == "Ghent"

    deleted = await client.request("DELETE", "/v1/home", json=WHY)

    assert deleted.status_code == 200, deleted.text
    left = SCHEMAS["tenant-deleted-answer"].model_validate_json(deleted.content)
    assert (left.state, left.events, left.reason, left.scrub.state) == ("deleted", 2, "ticket 7", "pending")
    for path in ("/events", "/resolve?entity=Ann&relation=lives_in", "/epochs", "/views"):
        assert (await client.get(f"/v1/home{path}")).status_code == 404
    assert (await client.post("/v1/home/ask", json={"question": "Where does Ann live?"})).status_code == 404
    assert (await client.put("/v1/home")).json()["error"]["code"] == "incorrect.tenant_taken"
    shown = await client.get("/v1/home")
    assert shown.json()["state"] == "deleted"
    assert (await client.request("DELETE", "/v1/home", json=WHY)).status_code == 200
    assert (await client.request("DELETE", "/v1/never", json=WHY)).status_code == 404


async def test_the_plane_goes_on_with_deleting_that_was_cut_off(client, plane, home, monkeypatch):
    async def cut(*_):
        raise ConnectionError

    with monkeypatch.context() as patch:
        patch.setattr("ledger._ending._delete_rows", cut)
        with pytest.raises(ConnectionError):
            await delete(plane, "home", reason="ticket 7", grant=LOCAL_GRANT)
    assert (await client.get("/v1/home")).json()["state"] == "deleting"

    await retain_all(plane)

    left = (await client.get("/v1/home")).json()
    assert (left["state"], left["reason"]) == ("deleted", "ticket 7")


def test_the_command_line_knows_bounds_by_name(capsys):
    assert execute(["tenants", "quota", "home", "--events", "many", "--reason", "r", "--json"]) == 2
    error = json.loads(capsys.readouterr().err)["error"]

    assert error["details"] == {"field": "events_max", "reason": "a number, or `none`"}
    assert execute(["tenants", "delete", "home", "--reason", "r", "--json"]) == 2
    assert execute(["tenants", "retention", "home", "--days", "0", "--reason", "r", "--json"]) == 2
