"""Fidelity of export and import: a tenant that was moved answers, remembers and replays as it did."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import psycopg
import pytest

from contracts.grants import LOCAL_GRANT
from echoplane._embedded import Servers, ensure_database
from echoplane._folders import DataFolder
from echoplane._http import make_app
from echoplane._keys import load_master_key
from echoplane._postgres import SUPERUSER
from echoplane._settings import Settings
from echoplane._tenants import export, restore
from echoplane._wiring import Plane, open_plane
from tests.acceptance.door import Door


@pytest.fixture
async def elsewhere(postgres, template, database_numbers, redis_url, place) -> AsyncIterator[Plane]:
    """Another plane: an empty store, a master key of its own, no model and no vectors."""
    name = f"test_{next(database_numbers)}"
    database = await ensure_database(postgres, name, template=template)
    servers = Servers(database=database, redis_url=redis_url, postgres=None, redis=None)
    async with open_plane(Settings(data_dir=place / "elsewhere"), servers, wait_ms=500) as opened:
        yield opened
    with psycopg.connect(
        postgres.conninfo(role=SUPERUSER, database="postgres"), autocommit=True
    ) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def remembered(door: Door, turn: Any) -> dict[str, Any]:
    """Say, correct, erase, rebuild, ask and pin; return what a caller keeps of it."""
    said = await door.tell(
        turn("I live in Lyon.", at="2025-01-10T09:00:00Z"),
        turn("I moved to Ghent.", at="2025-06-02T09:00:00Z", source_event_id="t2"),
        turn("I work at Brightly.", at="2025-06-03T09:00:00Z"),
    )
    contexts = [(await door.ask("Where does Ann live?"))["context"]["hash"]]
    epoch = await door.rebuild()
    claims = [{"entity": "Ann", "relation": "lives_in", "value": "Bruges"}]
    correction = turn(
        "Bruges, not Ghent.", kind="correction", claims=claims, targets=[{"source_event_id": "t2"}]
    )
    said += await door.tell(correction, turn("I like chess.", at="2025-07-01T09:00:00Z"))
    contexts += [
        (await door.ask(question))["context"]["hash"]
        for question in ("Where does Ann live?", "What does Ann like?")
    ]
    await door.call("PUT", "/views/monday", json={})
    await door.call("POST", "/erasures", json={"events": said[-1]["event_ids"]})
    await door.fold()
    return {"receipts": said, "contexts": contexts, "epochs": [epoch - 1, epoch]}


async def test_times_commits_statuses_epochs_contexts_and_replays_are_those_of_the_origin(
    door: Door, elsewhere: Plane, discovery: None, turn: Any, tmp_path: Any
):
    """O22. No projection is run again: all that was known is known at the same commits."""
    kept = await remembered(door, turn)
    origin = door.plane

    moved = await export(origin, door.tenant, tmp_path / "export", grant=LOCAL_GRANT)
    key = load_master_key(origin.settings, DataFolder.at(origin.settings.data_dir))
    again = await restore(
        elsewhere, tmp_path / "export", tenant=door.tenant, master_key=key, grant=LOCAL_GRANT
    )

    assert again == moved
    client = httpx.AsyncClient(
        transport=httpx.ASGITransport(make_app(elsewhere)),
        base_url="http://127.0.0.1:7415",
        headers={"authorization": f"Bearer {elsewhere.local_token}"},
    )
    async with client:
        there = replace(door, client=client, plane=elsewhere)
        paths = ["/events", "/commits", "/epochs", "/views", "/relations", "/dead", ""]
        # As of five times, in each epoch that there was then, and now.
        for number, receipt in enumerate(kept["receipts"]):
            at = receipt["recorded_at"]
            paths += [
                f"/{route}?entity=Ann&relation=lives_in&known_at={at}&generation={epoch}:{receipt['commit']}"
                for route in ("resolve", "history")
                for epoch in (kept["epochs"] if number < 3 else kept["epochs"][1:])
            ]
            paths += [f"/resolve?entity=Ann&relation=lives_in&valid_at=2025-06-15T00:00:00Z&known_at={at}"]
        paths += [
            f"/history?entity=Ann&known_at={kept['receipts'][-1]['recorded_at']}",
            "/resolve?entity=Ann&relation=likes",
        ]
        paths += [f"/contexts/{one}" for one in kept["contexts"]]
        for path in paths:
            here, answer = await asyncio.gather(door.call("GET", path), there.call("GET", path))
            assert unasked(answer) == unasked(here), path
        verdicts = []
        for one in kept["contexts"]:
            replays = [await each.call("POST", f"/contexts/{one}/replay") for each in (door, there)]
            assert replays[0] == replays[1]
            verdicts.append(replays[1]["verdict"])
        assert (verdicts[0], verdicts[-1]) == ("identical", "redacted")
        (here, answer) = [await each.call("GET", "/checkpoint") for each in (door, there)]
        assert (answer["size"], answer["root"]) == (here["size"], here["root"])
        assert (await elsewhere.verify(door.tenant)).ok

        # It goes on by itself, at the next commit.
        receipts = [(await each.tell(turn("I moved to Rome.")))[0] for each in (door, there)]
        assert receipts[0]["commit"] == receipts[1]["commit"]
        found = await there.call(
            "GET", f"/resolve?entity=Ann&relation=lives_in&min_commit={receipts[1]['commit']}"
        )
        assert found["value"] == "Rome"


def unasked(answer: Any) -> Any:
    """Return an answer without the instant that was "now" when it was asked for; its cut is what counts."""
    if isinstance(answer, dict) and answer.get("view"):
        return answer | {"view": {"epoch": answer["view"]["epoch"], "cut": answer["view"]["cut"]}}
    return answer
