"""The first and the last of what happened: answered where it can be told, and withheld where it cannot."""

from __future__ import annotations

import pytest

from contracts.erasures import ErasureRequest
from contracts.grants import LOCAL_GRANT
from ledger.erase import erase
from projection import RuleProjector

HEARD = "2025-09-01T00:00:00Z"


def told(entity, relation, value, number, *, heard=HEARD, **valid):
    claim = {"entity": entity, "relation": relation, "value": value, **({"valid": valid} if valid else {})}
    return {
        "stream": "s", "kind": "claim", "actor": {"id": "Bob", "class": "user"}, "claims": [claim],
        "source_event_id": f"e{number}", "observed_at": heard,
    }  # fmt: skip


@pytest.fixture
async def answer(client, discovery, remember):
    times = ("2024-01-05T10:00:00Z", "2024-02-01T10:00:00Z", "2024-01-01T10:00:00Z")
    await remember(
        "home",
        told("Ann", "visited", "Rome", 1, at="2024-05-09"),
        # Told twice, once less exactly: one visit.
        told("Ann", "visited", "Oslo", 2, at="2025-01"),
        told("Ann", "visited", "Oslo", 3, at="2025-01-03"),
        told("Ann", "visited", "Turin", 12, at="2025-02-01"),
        told("Ann", "visited", "Rome", 4, at="2025-05-09T08:00:00Z"),
        told("Ann", "visited", "Ghent, Belgium", 5, at="2025-06-01"),
        told("Bea", "visited", "Rome", 6, at="2024"),
        told("Bea", "visited", "Lyon", 7, at="2024-05-09"),
        told("Bea", "visited", "Lyon, France", 11, at="2025-02-01"),
        *(told("mug", "last_seen", at, 8 + number, heard=at) for number, at in enumerate(times)),
    )

    async def answer(question):
        found = (await client.post("/v1/home/ask", json={"question": question})).json()
        return found["answer"] if found["status"] == "answered" else found["reason"]

    return answer


async def test_the_first_and_the_last_time_are_told(answer):
    oslo = {"earliest": "2025-01-03T00:00:00Z", "latest": "2025-01-04T00:00:00Z"}

    assert await answer("When did Ann last visit Rome?") == "2025-05-09T08:00:00Z"
    assert await answer("When did Ann first visit Oslo?") == oslo
    assert await answer("When did Ann first visit Rome in 2025?") == "2025-05-09T08:00:00Z"
    assert await answer("When did Ann last visit Rome in 2024?") == {
        "earliest": "2024-05-09T00:00:00Z",
        "latest": "2024-05-10T00:00:00Z",
    }
    # The newest of many times, told late or in order: the first of them is the earliest.
    assert await answer("When did you first see the mug?") == "2024-01-01T10:00:00Z"
    assert await answer("When did you last see the mug?") == "2024-02-01T10:00:00Z"


async def test_what_was_last_and_what_came_next_are_told(answer):
    assert await answer("Where did Ann last travel?") == "Ghent, Belgium"
    assert await answer("What did Ann visit first?") == "Rome"
    assert await answer("Where did Ann travel after Oslo?") == "Turin"
    assert await answer("What did Ann visit before Oslo?") == "Rome"


async def test_what_cannot_be_told_apart_is_withheld(answer):
    # A longer name may mean the same; Rome was twice; Bea's year in Rome holds her day in Lyon.
    assert await answer("When did Ann last visit Ghent?") == "not_the_value"
    assert await answer("When did Bea first visit Lyon?") == "not_the_value"
    assert await answer("What did Ann visit before Rome?") == "several_times"
    assert await answer("What did Bea visit first?") == "several_times"
    assert await answer("Where did Bea travel after Rome?") == "several_times"
    assert await answer("Where did Bea last travel?") == "Lyon, France"
    assert await answer("When did Bea last visit Rome in May 2024?") == "time_or_scope_not_resolved"
    assert await answer("Which museum did Ann visit last?") == "time_or_scope_not_resolved"


@pytest.mark.usefixtures("discovery")
@pytest.mark.parametrize(
    ("gone", "question"), [(0, "What did Ann visit first?"), (2, "What did Ann visit last?")]
)
async def test_after_an_erasure_no_other_visit_takes_its_place(client, remember, plane, gone, question):
    visits = [
        told("Ann", "visited", at, n, at=f"2024-05-0{n}") for n, at in enumerate(["Rome", "Oslo", "Bern"], 1)
    ]
    receipts = await remember("home", *visits)
    request = ErasureRequest(subject=None, event_ids=receipts[gone].event_ids)
    await erase(plane.database, "home", RuleProjector(), request, grant=LOCAL_GRANT)

    found = (await client.post("/v1/home/ask", json={"question": question})).json()

    assert (found["status"], found["answer"], found["reason"]) == ("insufficient_evidence", None, "erased")


async def test_a_visit_that_was_told_without_a_time_may_have_been_at_any(client, discovery, remember):
    await remember(
        "home",
        told("Ann", "visited", "Oslo", 1, at="2024-05-09"),
        told("Ann", "visited", "Rome", 2, heard=None),
    )

    found = (await client.post("/v1/home/ask", json={"question": "What did Ann visit last?"})).json()

    assert (found["status"], found["answer"]) == ("evidence", None)


async def test_the_clock_of_a_telling_is_not_the_time_of_what_it_tells(client, discovery, remember):
    seen = {"actor": {"id": "cam", "class": "sensor"}}
    await remember(
        "home",
        told("Ann", "visited", "Oslo", 1, heard="2025-05-09T18:30:00Z"),
        {**told("Rob", "visited", "kitchen", 2, heard="2025-05-09T18:30:00Z"), **seen},
        told("Bea", "visited", "Oslo", 3, heard="2025-05-09T18:30:00Z"),
        told("Bea", "visited", "Rome", 4, at="2025-02-01"),
    )

    async def reason(question):
        found = (await client.post("/v1/home/ask", json={"question": question})).json()
        return found["answer"] if found["status"] == "answered" else found["reason"]

    assert await reason("When did Ann last visit Oslo?") == "time_or_scope_not_resolved"
    assert await reason("What did Bea visit last?") == "time_or_scope_not_resolved"
    # A sensor tells what happens when it does.
    assert await reason("When did Rob last visit the kitchen?") == "2025-05-09T18:30:00Z"
