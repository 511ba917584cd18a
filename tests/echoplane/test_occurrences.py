"""The door that counts occurrences: within a window, told by several, in dispute, listed in part."""

from __future__ import annotations

import pytest

from contracts.read_wire import OccurrencesAnswer


def visit(who, where, valid, *, stance="assert", number=0, **more):
    claim = {"entity": "Ann", "relation": "visited", "value": where, "valid": valid, "stance": stance, **more}
    return {
        "stream": "s", "kind": "claim", "actor": {"id": who, "class": "user"}, "claims": [claim],
        "source_event_id": f"e{number}",
    }  # fmt: skip


@pytest.fixture
async def visits(remember):
    return await remember(
        "home",
        visit("Bob", "Oslo", {"at": "2025-01"}, number=1),
        visit("Ann", "Oslo", {"at": "2025-01-03"}, number=2),
        visit("Cy", "Rome", {"at": "2025-05-09"}, number=3),
        visit("Cy", "Rome", {"at": "2024-05-09"}, number=4),
    )


async def counted(client, **given):
    response = await client.get(
        "/v1/home/occurrences", params={"entity": "Ann", "relation": "visited", **given}
    )
    assert response.status_code == 200, response.text
    return OccurrencesAnswer.model_validate_json(response.content)


async def test_what_happened_is_counted_and_listed_in_the_order_of_time(client, visits):
    found = await counted(client)

    assert (found.count, found.disputed_count, found.truncated) == (3, 0, False)
    assert [(one.value, one.valid.start) for one in found.occurrences] == [
        ("Rome", "2024-05-09T00:00:00Z"),
        ("Oslo", "2025-01-03T00:00:00Z"),
        ("Rome", "2025-05-09T00:00:00Z"),
    ]
    # Told twice, once exactly: one occurrence with both claims.
    assert len(found.occurrences[1].claims) == 2


async def test_only_what_touches_the_window_counts_as_known_then(client, visits):
    window = {"valid_from": "2025-01-01T00:00:00Z", "valid_to": "2025-05-09T00:00:00Z"}

    assert [one.value for one in (await counted(client, **window)).occurrences] == ["Oslo"]
    early = await counted(client, generation="1:1")
    assert [(one.value, one.valid.start) for one in early.occurrences] == [("Oslo", "2025-01-01T00:00:00Z")]
    assert (await counted(client, valid_from="2026-01-01T00:00:00Z")).count == 0


async def test_what_one_says_and_another_ends_is_counted_apart(client, visits, remember):
    ended = {"since": "2024-05-09T00:00:00Z"}
    await remember("home", visit("Dan", "Rome", ended, stance="end", number=5))

    found = await counted(client, valid_to="2024-06-01T00:00:00Z")

    assert (found.count, found.disputed_count, found.occurrences) == (0, 1, [])
    assert {(rival.ended, rival.claim.source.id) for rival in found.disputed[0]} == {
        (False, "Cy"),
        (True, "Dan"),
    }


async def test_all_are_counted_though_not_all_are_listed(client, visits, monkeypatch):
    monkeypatch.setattr("ledger._found.LISTED_CLAIMS_MAX", 1)
    monkeypatch.setattr("ledger._occurred.LISTED_VALUES_MAX", 1)

    found = await counted(client)

    assert (found.count, len(found.occurrences), found.truncated) == (3, 1, True)


async def test_what_holds_is_not_counted(client, visits):
    response = await client.get("/v1/home/occurrences", params={"entity": "Ann", "relation": "lives_in"})

    assert (response.status_code, response.json()["error"]["details"]["field"]) == (422, "relation")
