"""States told as structured claims, asked for in words: intervals, other names, other scripts."""

from __future__ import annotations

import pytest

HEARD = "2024-06-01T09:00:00Z"


def told(entity, relation, value, **valid):
    claim = {"entity": entity, "relation": relation, "value": value, **({"valid": valid} if valid else {})}
    return {
        "stream": "s", "kind": "claim", "actor": {"id": "Bob", "class": "user"}, "claims": [claim],
        "source_event_id": f"{relation} {value}", "observed_at": HEARD,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("start", "answer"),
    [
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        # An interval is told with its start, be it on the day of the telling or after it.
        (HEARD, HEARD),
        ("2025-01-01T00:00:00Z", "2025-01-01T00:00:00Z"),
    ],
)
async def test_the_start_of_an_interval_was_told(client, discovery, remember, start, answer):
    await remember("home", told("Ann", "lives_in", "Lyon", **{"from": start, "to": "2200-01-01T00:00:00Z"}))

    asked = {"question": "Since when does Ann live in Lyon?"}
    found = (await client.post("/v1/home/ask", json=asked)).json()

    assert (found["status"], found["answer"]) == ("answered", answer)


async def test_what_was_only_heard_once_has_no_start(client, discovery, remember):
    await remember("home", told("Ann", "lives_in", "Lyon"))

    asked = {"question": "Since when does Ann live in Lyon?"}
    found = (await client.post("/v1/home/ask", json=asked)).json()

    assert (found["status"], found["reason"]) == ("evidence", "start_not_told")


async def test_an_age_follows_from_a_day_of_birth_whatever_that_is_called(client, discovery, remember):
    born = told("Ann", "date_of_birth", "1990-05-03")
    await remember("home", told("Ann", "age", 20), born, told("Ann", "wedding", "2020-06-01"))

    async def answer(question):
        asked = {"question": question, "valid_at": "2026-01-01T00:00:00Z"}
        return (await client.post("/v1/home/ask", json=asked)).json()["answer"]

    assert await answer("How old is Ann?") == 35
    assert await answer("When is Ann's wedding?") == "2020-06-01"


async def test_a_value_is_named_in_any_script_and_with_its_entitys_name_in_it(client, discovery, remember):
    await remember(
        "home",
        told("田中", "lives_in", "大阪"),
        told("Ann", "likes", "Ann Arbor"),
        told("Ann", "likes", "Ann's garden"),
    )

    async def answer(question):
        return (await client.post("/v1/home/ask", json={"question": question})).json()["answer"]

    assert await answer("Does 田中 live in 大阪?") is True
    assert await answer("Who said that 田中 lives in 大阪?") == ["Bob"]
    assert await answer("Does Ann like Ann Arbor?") is True
    assert await answer("Does Ann like Ann's garden?") is True
    assert await answer("Does Ann like Ann's kitchen?") is None
