"""Events as they were sent: what they have in common, what the sender's clock said, and too many at once."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta

import httpx
import pytest

from contracts.wire import EventAnswer
from echoplane import _following
from echoplane._cli import execute
from echoplane._http import make_app
from ledger import _follow
from ledger._combine import Combiner
from tests.echoplane.test_http import code_of


async def test_events_are_found_by_correlation_in_pages_and_by_one_tenant_alone(client, remember, turn):
    for tenant in ("home", "away"):
        await remember(
            tenant,
            *(turn(f"{tenant} {n}", correlation=f"run {n % 2}", causation=f"c{n}") for n in range(5)),
            turn("alone"),
            folded=False,
        )

    async def page(**parameters):
        answer = await client.get("/v1/home/events", params={"correlation": "run 0"} | parameters)
        found = [EventAnswer.model_validate(one) for one in answer.json()["events"]]
        return [(one.position, one.event.text, one.event.causation) for one in found]

    assert await page() == [(1, "home 0", "c0"), (3, "home 2", "c2"), (5, "home 4", "c4")]
    assert await page(limit=2) == [(1, "home 0", "c0"), (3, "home 2", "c2")]
    assert await page(limit=2, after_position=3) == [(5, "home 4", "c4")]
    assert await page(correlation="run") == []
    for more in ({"commit": 1}, {"stream": "s1"}, {"after_version": 1}, {"correlation": ""}):
        refused = await client.get("/v1/home/events", params={"correlation": "run 0"} | more)
        assert await code_of(refused) == (422, "incorrect.bad_request")


@pytest.mark.parametrize(
    "asked",
    [
        {"after_position": 0},
        {"after_position": 0, "correlation": "run"},
        {"after_version": 0, "stream": "s1"},
    ],
)
async def test_a_page_ends_where_its_bytes_do_and_the_next_goes_on(
    client, remember, turn, monkeypatch, asked
):
    for module in (_follow, _following):
        monkeypatch.setattr(module, "PAGE_BYTES_MAX", 1_500)
    texts = ["a", "b", "x" * 5_000, "c", "y" * 600, "z" * 600]
    await remember("home", *(turn(text, correlation="run") for text in texts), folded=False)

    pages = []
    while found := (await client.get("/v1/home/events", params=asked)).json()["events"]:
        pages.append([one["event"]["text"] for one in found])
        asked = asked | {next(iter(asked)): found[-1]["position"]}

    assert pages == [["a", "b"], ["x" * 5_000], ["c", "y" * 600], ["z" * 600]]


async def test_the_clock_of_the_sender_is_kept_and_changes_nothing(client, turn):
    await client.put("/v1/home")
    ahead = {"events": [turn("ahead", source_event_id="t1")], "sent_at": "2099-01-01T01:00:00.000001+01:00"}
    silent = {"events": [turn("silent", source_event_id="t2")]}

    first, second = [(await client.post("/v1/home/events", json=body)).json() for body in (ahead, silent)]
    again = await client.post("/v1/home/events", json=ahead | {"sent_at": "1999-01-01T00:00:00Z"})
    events = (await client.get("/v1/home/events")).json()["events"]

    assert datetime.fromisoformat(first["recorded_at"]) < datetime.fromisoformat(second["recorded_at"])
    assert (again.status_code, again.json()["event_ids"]) == (200, first["event_ids"])
    sent = datetime.fromisoformat("2099-01-01T00:00:00.000001+00:00")
    skew = (sent - datetime.fromisoformat(first["recorded_at"])) // timedelta(microseconds=1)
    assert [one["clock_skew_us"] for one in events] == [skew, None]
    assert "observed_at" not in {name for name, value in events[0]["event"].items() if value is not None}


async def test_a_clock_that_names_no_instant_is_refused_and_nothing_is_written(client, turn):
    for sent_at in ["2025-01-01", "2025-01-01T10:00", "10000-01-01T00:00Z", "now", 7]:
        await client.put("/v1/home")

        answer = await client.post("/v1/home/events", json={"events": [turn("x")], "sent_at": sent_at})

        assert (answer.status_code, answer.json()["error"]["details"]["field"]) == (422, "sent_at"), sent_at
        assert (await client.get("/v1/home/events")).json()["events"] == [], sent_at


async def test_an_append_that_finds_no_room_is_told_when_to_come_again(plane, turn):
    await plane.make_tenant("home")
    full = Combiner(weight_max=1, bytes_max=1, waiting_max=0, waiting_bytes_max=1)
    app = make_app(replace(plane, database=replace(plane.database, appends=full)))

    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app),
        base_url="http://127.0.0.1:7415",
        headers={"authorization": f"Bearer {plane.local_token}"},
    ) as client:
        answer = await client.post("/v1/home/events", json={"events": [turn("x")]})
        events = await client.get("/v1/home/events")

    assert await code_of(answer) == (503, "unavailable.busy")
    assert answer.headers["retry-after"] == "1"
    assert answer.json()["error"]["details"]["retry_after_seconds"] == 1
    assert events.json()["events"] == []


def test_the_command_line_lists_a_page(up, place, capsys, turn):
    lines = [turn(f"line\n{n}", correlation="run" if n else "other") for n in range(3)]
    (place / "events.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert execute(["emit", str(place / "events.jsonl"), "--tenant", "listed"]) == 0
    capsys.readouterr()

    def listed(*options):
        assert execute(["events", "--tenant", "listed", "--json", *options]) == 0
        return [json.loads(line)["position"] for line in capsys.readouterr().out.splitlines()]

    assert listed() == [1, 2, 3]
    assert listed("--correlation", "run", "--limit", "1") == [2]
    assert listed("--correlation", "run", "--after-position", "2") == [3]
    assert listed("--commit", "2") == [2]
    assert listed("--stream", "s1", "--after-version", "2") == [3]
    assert execute(["events", "--tenant", "listed", "--after-position", "2"]) == 0
    [line] = capsys.readouterr().out.splitlines()
    assert line.split()[0] == "3"
    assert line.endswith("s1  line 2")
    assert execute(["events", "--tenant", "listed", "--commit", "1", "--stream", "s1"]) == 2
    assert execute(["events", "--tenant", "nobody"]) == 2
