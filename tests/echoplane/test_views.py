"""Views by name, and the reads over both times, at the doors."""

from __future__ import annotations

import asyncio
import json

import pytest
import sqlalchemy as sa

from contracts.erasures import ErasureRequest
from contracts.errors import BadRequest, LimitExceeded, NotFound, ViewTaken
from contracts.grants import LOCAL_GRANT, Right
from contracts.read_wire import DiffAnswer, HistoryAnswer, JoinAnswer, PinnedViewAnswer
from contracts.resolutions import MissingReason
from contracts.views import ViewRequest
from echoplane._cli import execute
from echoplane._cli_reads import _print_history
from ledger import log
from ledger import resolve as reads
from ledger.erase import erase
from projection import RuleProjector

NEWEST = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=None)


@pytest.fixture
async def view(plane, home):
    """What is known now of a tenant that knows where Ann lives."""
    return await reads.pin(plane.database, "home", NEWEST, wait_ms=0)


# --- the record of a view -------------------------------------------------------------------------


async def test_the_same_view_under_the_same_name_is_the_same_receipt(plane, view):
    first = await reads.pin_view(plane.database, "home", "monday", view)

    assert await reads.pin_view(plane.database, "home", "monday", view) == first
    assert await reads.pinned_views(plane.database, "home") == [first]


async def test_another_view_under_the_same_name_is_refused_and_moves_nothing(plane, view, remember, turn):
    first = await reads.pin_view(plane.database, "home", "monday", view)
    await remember("home", turn("I moved to Oslo.", at="2025-07-01T00:00:00Z"))
    later = await reads.pin(plane.database, "home", NEWEST, wait_ms=0)

    with pytest.raises(ViewTaken):
        await reads.pin_view(plane.database, "home", "monday", later)
    assert await reads.pinned_view(plane.database, "home", "monday") == first


async def test_a_name_that_was_taken_away_may_be_given_anew(plane, view):
    gone = await reads.pin_view(plane.database, "home", "monday", view)

    assert await reads.unpin_view(plane.database, "home", "monday") == gone
    with pytest.raises(NotFound):
        await reads.pinned_view(plane.database, "home", "monday")
    with pytest.raises(NotFound):
        await reads.unpin_view(plane.database, "home", "monday")
    assert (await reads.pin_view(plane.database, "home", "monday", view)).view == view


async def test_a_view_is_named_by_a_handle(plane, view):
    for name in ["", ".hidden", "two words", "a" * 64, "a/b", "ä"]:
        with pytest.raises(BadRequest):
            await reads.pin_view(plane.database, "home", name, view)


async def test_a_tenant_has_a_bounded_number_of_views_however_many_pin_at_once(plane, view, monkeypatch):
    monkeypatch.setattr("ledger._views.VIEWS_MAX", 3)

    pinned = await asyncio.gather(
        *(reads.pin_view(plane.database, "home", f"v{number}", view) for number in range(6)),
        return_exceptions=True,
    )

    assert sum(isinstance(one, LimitExceeded) for one in pinned) == 3
    kept = await reads.pinned_views(plane.database, "home")
    assert len(kept) == 3
    # One that is there is still the same receipt.
    assert await reads.pin_view(plane.database, "home", kept[0].name, view) == kept[0]


async def test_a_pinned_view_is_seen_by_its_tenant_alone_and_changed_by_nobody(plane, view, remember, turn):
    await reads.pin_view(plane.database, "home", "monday", view)
    await remember("other", turn("I live in Rome."))

    assert await reads.pinned_views(plane.database, "other") == []
    async with plane.database.tenant("home") as conn:
        with pytest.raises(sa.exc.ProgrammingError, match="permission denied"):
            await conn.execute(sa.text("UPDATE pinned_view SET cut = 0"))


async def test_an_erasure_alone_takes_something_from_a_pinned_view(plane, view, home):
    async def stands():
        async with plane.database.snapshot("home") as conn:
            keys = await log.tenant_keys(plane.database, "home", conn)
            return (await reads.resolve(conn, keys, pinned.view, "Ann", "lives_in")).resolution

    pinned = await reads.pin_view(plane.database, "home", "monday", view)
    assert (await stands()).value == "Ghent"

    request = ErasureRequest(subject=None, event_ids=(home[1].event_ids[0],))
    await erase(plane.database, "home", RuleProjector(), request, grant=LOCAL_GRANT)

    assert (await stands()).reason == MissingReason.ERASED
    assert await reads.pinned_view(plane.database, "home", "monday") == pinned


# --- over HTTP ------------------------------------------------------------------------------------


async def pin(client, name, **body):
    response = await client.put(f"/v1/home/views/{name}", json=body)
    return response, None if response.is_error else PinnedViewAnswer.model_validate_json(response.content)


async def test_asking_at_a_pinned_view_gives_the_same_answer_whatever_came_after(
    client, discovery, home, remember, turn
):
    await pin(client, "monday")
    question = {"question": "Where does Ann live?", "view": "monday"}
    key = "/v1/home/resolve?entity=Ann&relation=lives_in&view=monday"
    before = [(await client.post("/v1/home/ask", json=question)).json(), (await client.get(key)).json()]
    await remember("home", turn("I moved to Oslo.", at="2025-06-01T00:00:00Z"))
    after = [(await client.post("/v1/home/ask", json=question)).json(), (await client.get(key)).json()]
    now = (await client.get("/v1/home/resolve?entity=Ann&relation=lives_in")).json()

    assert before[0]["answer"] == "Ghent"
    for name in ("status", "answer", "view", "resolutions"):
        assert after[0][name] == before[0][name], name
    assert after[1] == before[1]
    assert now["view"]["cut"] == before[1]["view"]["cut"] + 1
    assert len(now["claims"]) + len(now["superseded"]) > len(after[1]["claims"]) + len(after[1]["superseded"])


async def test_views_are_pinned_listed_shown_and_taken_away(client, home):
    _, pinned = await pin(client, "then", known_at="2020-01-01T00:00:00Z", valid_at="2020-01-01T00:00:00Z")

    assert pinned.view.cut == 0
    assert (await client.get("/v1/home/views")).json() == [pinned.model_dump()]
    assert (await client.get("/v1/home/views/then")).json() == pinned.model_dump()
    assert (await client.delete("/v1/home/views/then")).json() == pinned.model_dump()
    assert (await client.get("/v1/home/views/then")).status_code == 404


async def test_a_name_that_is_taken_is_a_conflict_and_a_view_is_said_once(client, home):
    await pin(client, "v", generation="1:1", valid_at="2025-03-01T00:00:00Z", known_at="2030-01-01T00:00:00Z")
    again, _ = await pin(
        client, "v", generation="1:1", valid_at="2025-03-01T00:00:00Z", known_at="2030-01-01T00:00:00Z"
    )
    other, _ = await pin(client, "v", generation="1:2", valid_at="2025-03-01T00:00:00Z")
    twice = await client.get(
        "/v1/home/resolve?entity=Ann&relation=lives_in&view=v&valid_at=2025-01-01T00:00:00Z"
    )

    assert again.status_code == 200
    assert (other.status_code, other.json()["error"]["code"]) == (409, "incorrect.view_taken")
    assert (twice.status_code, twice.json()["error"]["details"]["field"]) == (422, "view")
    unknown = await client.get("/v1/home/history?entity=Ann&view=nobody")
    assert (unknown.status_code, unknown.json()["error"]["message"]) == (404, "no such view")


async def test_taking_a_name_away_needs_more_than_asking(client, plane, home):
    grant = LOCAL_GRANT.__class__(
        tenant="home", rights=frozenset({Right.ASK}), actors=frozenset(), classes=frozenset()
    )
    token = (await plane.make_token("home", grant, label="asks")).token
    headers = {"authorization": f"Bearer {token}"}

    assert (await client.put("/v1/home/views/mine", json={}, headers=headers)).status_code == 200
    assert (await client.delete("/v1/home/views/mine", headers=headers)).status_code == 403


async def test_a_difference_from_nothing_is_all_that_came(client, home):
    response = await client.get("/v1/home/diff?entity=Ann&relation=lives_in")

    answer = DiffAnswer.model_validate_json(response.content)
    assert answer.before.cut == 0
    assert [change.before.state for change in answer.changes] == ["nothing"] * len(answer.changes)
    assert {value for change in answer.changes for value in change.after.values} == {"Lyon", "Ghent"}


async def test_a_history_in_its_three_shapes(client, home):
    async def read(more):
        response = await client.get(f"/v1/home/history?entity=Ann&relation=lives_in{more}")
        answer = HistoryAnswer.model_validate_json(response.content)
        return answer.shape, [(cell.values, cell.known_from, cell.known_to) for cell in answer.cells]

    assert await read("") == ("rectangles", [(["Lyon"], 1, None), (["Lyon"], 1, 2), (["Ghent"], 2, None)])
    assert await read("&timeline=true") == ("timeline", [(["Lyon"], 2, None), (["Ghent"], 2, None)])
    at = "&at=2025-08-01T00:00:00Z"
    assert await read(at) == ("instant", [(["Lyon"], 1, 2), (["Ghent"], 2, None)])
    assert await read("&known_to=2") == ("rectangles", [(["Lyon"], 1, None), (["Lyon"], 1, 2)])
    assert await read("&valid_to=2025-02-01T00:00:00Z") == ("rectangles", [(["Lyon"], 1, None)])


CONTRADICTIONS = [
    ("valid_from=2025-02-01T00:00:00Z&valid_to=2025-02-01T00:00:00Z", "valid_to"),
    ("at=2025-02-01T00:00:00Z&timeline=true", "at"),
    ("timeline=true&known_from=1", "timeline"),
    ("known_from=soon", "known_from"),
    ("valid_from=2025-02-01T00:00:00", "valid_from"),
    ("view=a&known_at=2025-02-01T00:00:00Z", "view"),
]


async def test_a_window_that_contradicts_itself_is_refused(client, home):
    for query, field in CONTRADICTIONS:
        response = await client.get(f"/v1/home/history?entity=Ann&{query}")

        assert (response.status_code, response.json()["error"]["details"]["field"]) == (422, field), query


async def test_difference_and_join_over_http(client, home, remember, turn):
    (receipt,) = await remember("home", turn("I work at Brightly.", at="2025-06-03T00:00:00Z"))
    found = await client.get("/v1/home/diff?before_generation=1:1&entity=Ann&relation=lives_in")
    difference = DiffAnswer.model_validate_json(found.content)
    (change,) = difference.changes

    assert (change.before.values, change.after.values, change.commits) == (["Lyon"], ["Ghent"], [2])
    assert change.events == home[1].event_ids
    assert {claim.id for claim in difference.claims} >= {*change.causes, *change.before.claims}
    assert difference.next_line is None

    instants = await client.get(
        "/v1/home/diff?entity=Ann&relation=lives_in&before_valid_at=2025-02-01T00:00:00Z"
        "&after_valid_at=2025-07-01T00:00:00Z&before_generation=1:3"
    )
    (passed,) = DiffAnswer.model_validate_json(instants.content).changes
    assert (passed.valid_from, passed.commits, passed.events) == (None, [], [])

    joined = await client.get(
        "/v1/home/join?entity=Ann&relation=lives_in&other_entity=Ann&other_relation=works_at"
    )
    pairs = JoinAnswer.model_validate_json(joined.content).pairs
    assert [(pair.left.value, pair.right.value, pair.known_from) for pair in pairs] == [
        ("Ghent", "Brightly", receipt.commit)
    ]


async def test_a_claim_that_did_nothing_is_shown_with_its_key(client, remember):
    claim = {"entity": "ann", "relation": "home", "value": "Lyon"}
    event = {"stream": "s", "kind": "claim", "actor": {"id": "ann", "class": "user"}, "source_event_id": "e"}
    act = {
        "entity": "ann", "relation": "home", "stance": "correct", "value": "Oslo",
        "targets": [{"source_event_id": "e", "ordinal": 7}],
    }  # fmt: skip
    await remember("home", event | {"claims": [claim]}, event | {"claims": [act], "source_event_id": "f"})

    answer = (await client.get("/v1/home/resolve?entity=ann&relation=home")).json()

    assert [claim["value"] for claim in answer["unplaced"]] == ["Oslo"]
    for more in ("", "&relation=home", "&timeline=true"):
        history = (await client.get(f"/v1/home/history?entity=ann{more}")).json()
        assert [claim["value"] for claim in history["unplaced"]] == ["Oslo"]


async def test_a_history_says_what_a_correction_of_a_whole_key_took_back(client, remember, capsys):
    def event(name, actor="ann", **fields):
        person = {"id": actor, "class": "user"}
        return {"stream": "s", "kind": "claim", "actor": person, "source_event_id": name} | fields

    def home(value, month, **fields):
        valid = {"since": f"2025-{month:02d}-01T00:00:00Z"}
        return {"entity": "ann", "relation": "home", "value": value, "valid": valid} | fields

    key = {"entity": "ann", "relation": "home"}
    fixed = {"kind": "correction", "claims": [key | {"value": "Graz"}], "targets": [key]}
    first = await remember(
        "home",
        event("e1", claims=[home("Lyon", 1)]),
        event("e2", claims=[home("Oslo", 3)]),
        event("b1", "bob", claims=[home("Rome", 2)]),
    )
    assert (await client.get("/v1/home/history?entity=ann")).json()["withdrawn"] == []
    second = await remember("home", event("e3", **fixed))

    async def taken_back(**more):
        response = await client.get("/v1/home/history", params={"entity": "ann", **more})
        return HistoryAnswer.model_validate_json(response.content)

    answer = await taken_back()
    told = {claim.id: claim for claim in answer.claims}
    assert [
        (told[one.claim].value, [(told[by].event, told[by].stance) for by in one.by])
        for one in answer.withdrawn
    ] == [(value, [(second[0].event_ids[0], "correct")]) for value in ("Lyon", "Oslo")]
    assert answer.withdrawn_whole
    for more in (
        {"timeline": "true"},
        {"at": "2025-05-01T00:00:00Z"},
        {"valid_from": "2026-01-01T00:00:00Z"},
    ):
        assert (await taken_back(relation="home", **more)).withdrawn == answer.withdrawn, more
    assert (await taken_back(generation=f"1:{first[-1].commit}")).withdrawn == []
    _print_history(answer)
    lines = [line for line in capsys.readouterr().out.splitlines() if "taken back" in line]
    assert [line.split(":")[1].split(",")[0].strip() for line in lines] == ["Lyon", "Oslo"]
    assert all(f"correct {second[0].event_ids[0]} (ann)" in line for line in lines)


# --- at the command line --------------------------------------------------------------------------


def test_a_view_is_pinned_and_asked_at_from_the_command_line(up, tmp_path, capsys):
    def run(*arguments):
        code = execute([*arguments, "--tenant", "pinned", "--json"])
        out, err = capsys.readouterr()
        return code, [json.loads(line) for line in (out or err).splitlines()]

    def tell(value, since):
        line = {
            "stream": "s", "kind": "claim", "actor": {"id": "ann", "class": "user"},
            "claims": [{"entity": "ann", "relation": "home", "value": value, "valid": {"since": since}}],
        }  # fmt: skip
        path = tmp_path / "events.jsonl"
        path.write_text(json.dumps(line) + "\n", encoding="utf-8")
        assert run("emit", str(path))[0] == 0

    tell("Lyon", "2025-01-01T00:00:00Z")
    _, (pinned,) = run("pin", "monday", "--at", "now")
    tell("Oslo", "2025-02-01T00:00:00Z")

    assert run("resolve", "ann", "home", "--view", "monday")[1][0]["value"] == "Lyon"
    assert run("resolve", "ann", "home")[1][0]["value"] == "Oslo"
    assert run("views", "list")[1] == [pinned]
    (difference,) = run("diff", "ann", "--before-view", "monday")[1]
    assert [change["after"]["values"] for change in difference["changes"]] == [["Oslo"]]
    (history,) = run("history", "ann", "--timeline", "--view", "monday")[1]
    assert [cell["values"] for cell in history["cells"]] == [["Lyon"]]
    (joined,) = run("join", "ann", "home", "ann", "home", "--on-value")[1]
    assert [pair["left"]["value"] for pair in joined["pairs"]] == ["Lyon", "Oslo"]
    code, (taken,) = run("pin", "monday")
    assert (code, taken["error"]["code"]) == (2, "incorrect.view_taken")
    assert run("pin", "x", "--at", "now", "--valid-at", "2025-01-01T00:00:00Z")[0] == 2
    assert run("views", "remove", "monday")[1] == [pinned]
    assert run("views", "show", "monday")[0] == 2
