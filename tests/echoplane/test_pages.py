"""Lists by page, while rows come and go between two pages: each that stays is listed once."""

from __future__ import annotations

import pytest

from contracts.grants import LOCAL_GRANT
from echoplane import _requests
from echoplane._epochs import drop, rebuild
from ledger.log import list_epochs
from ledger.write import fold
from projection import RuleProjector

REASON = {"reason": "it was enough"}


async def page(client, path: str, **given) -> list[str]:
    answer = (await client.get(path, params=given)).json()
    rows = answer if isinstance(answer, list) else next(v for v in answer.values() if isinstance(v, list))
    return [row.get("name") or row.get("epoch") or row.get("relation") or row["tenant"] for row in rows]


@pytest.mark.parametrize(("path", "each"), [("/v1", "/v1/{}"), ("/v1/home/views", "/v1/home/views/{}")])
async def test_what_comes_and_goes_between_pages_of_names_moves_no_other(client, home, path, each):
    async def put(name: str) -> None:
        assert (await client.put(each.format(name), json={})).status_code == 200

    for name in ("a", "c", "e"):
        await put(name)
    assert await page(client, path, limit=2) == ["a", "c"]

    gone = await client.request("DELETE", each.format("a"), json=REASON if path == "/v1" else None)
    assert gone.status_code == 200
    for name in ("b", "d"):
        await put(name)

    assert await page(client, path, limit=2, after="c") == ["d", "e"]
    # Those before where it goes on are behind it, and the last name may itself be gone.
    assert (await client.request("DELETE", each.format("d"), json=REASON)).status_code == 200
    assert [name for name in await page(client, path, after="d") if name != "home"] == ["e"]


async def test_what_comes_and_changes_between_pages_of_relations_moves_no_other(client, home, folding):
    async def register(relation: str, **more) -> None:
        body = {"relation": relation, "value_type": "number"} | more
        assert (await client.post("/v1/home/relations", json=body)).status_code == 201

    path = "/v1/home/relations"
    for name in ("a", "c", "e"):
        await register(name)
    assert await page(client, path, limit=2) == ["a", "c"]

    for name in ("b", "d"):
        await register(name)
    # Contracts do not go; one that is replaced stays where it is, behind the cursor and before it.
    for name in ("c", "e"):
        await register(name, unit="km")

    assert await page(client, path, limit=2, after="c") == ["d", "e"]
    assert await page(client, path, after="e") == []
    assert await page(client, path) == ["a", "b", "c", "d", "e"]
    # No contract is called so: what comes after is told by the name alone.
    assert await page(client, path, limit=1, after="cc") == ["d"]


async def test_a_page_of_contracts_ends_where_its_bytes_do(client, home, folding, monkeypatch):
    path = "/v1/home/relations"
    for name, large in (("a", 0), ("b", 0), ("c", 3_000), ("d", 0)):
        body = {"relation": name, "value_type": "json", "schema": {"description": "x" * large}}
        assert (await client.post(path, json=body)).status_code == 201
    monkeypatch.setattr(_requests, "PAGE_BYTES_MAX", 2_000)

    pages, after = [], {}
    while found := await page(client, path, **after):
        pages.append(found)
        after = {"after": found[-1]}

    assert pages == [["a", "b"], ["c"], ["d"]]


async def test_what_comes_and_goes_between_pages_of_epochs_moves_no_other(client, plane, home):
    async def renew() -> None:
        await rebuild(plane, "home", grant=LOCAL_GRANT, actor_id="operator")
        while [one.state for one in await list_epochs(plane.database, "home")].count("building"):
            await fold(plane.database, "home", RuleProjector(), events_max=1_000)

    for _ in range(2):
        await renew()
    assert await page(client, "/v1/home/epochs", limit=2) == [1, 2]

    await drop(plane, "home", 1, grant=LOCAL_GRANT)
    await renew()

    assert await page(client, "/v1/home/epochs", limit=1, after=2) == [3]
    assert await page(client, "/v1/home/epochs", after=3) == [4]
    assert [one.number for one in await list_epochs(plane.database, "home", after=1, limit=2)] == [2, 3]
