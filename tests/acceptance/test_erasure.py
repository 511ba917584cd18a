"""
After an erasure and its scrub, what was erased is in no file of the data folder, however it was stored.

Words that stand nowhere else are put in every place where a user can put text. The search that finds
nothing at the end is the one that found them before.
"""

from __future__ import annotations

import base64
import json
import signal
from collections.abc import Iterator, Sequence
from typing import Any, Final

import httpx
import pytest

from echoplane._processes import ProcessRecord
from tests.acceptance.file_search import ALIAS, PERSON, STEMS, WORDS, Search
from tests.acceptance.planes import RunningPlane, make_plane, own_plane, wait_until, write_lines

TENANT: Final = "home"
SCRUB_SECONDS: Final = 400.0

pytestmark = pytest.mark.timeout(900)

USER: Final = {"id": PERSON, "class": "user"}
SAID: Final[tuple[dict[str, Any], ...]] = (
    {
        "text": f"I live in Vexolumbia. Remember the word vexolumbwick. {ALIAS} is what they call me.",
        "source_event_id": "vexolumb-src-1",
        "correlation": "vexolumb-corr",
    },
    {
        "kind": "claim",
        "idempotency_key": "vexolumb-idem-1",
        "claims": [
            {"entity": PERSON, "relation": "vexolumb_grade", "value": "Schmöqueln"},
            {"entity": PERSON, "relation": "locker_code", "value": "8841-4417"},
            {
                "entity": PERSON, "relation": "visited", "value": "Vexolumbia",
                "occurrence_id": "vexolumb-occ-1", "valid": {"at": "2025-03-01", "precision": "day"},
            },
            {"entity": PERSON, "relation": "knows", "value": {"who": ["vexolumbwick", {"at": "Schmöqueln"}]}},
        ],
    },
    {"kind": "claim", "claims": [{"entity": PERSON, "relation": "same_as", "value": ALIAS}]},
    {"kind": "claim", "claims": [{"entity": ALIAS, "relation": "likes", "value": "vexolumbwick"}]},
    {
        "kind": "correction",
        "targets": [{"source_event_id": "vexolumb-src-1", "entity": PERSON, "relation": "lives_in"}],
        "claims": [{"entity": PERSON, "relation": "lives_in", "value": "Schmöqueln"}],
    },
    {
        "kind": "retraction",
        "targets": [{"entity": PERSON, "relation": "locker_code", "value": "8841-4417"}],
    },
    {"text": "The vexolumbwick was mentioned by somebody else.", "subjects": [PERSON], "actor": {
        "id": "Ann", "class": "user"}},
)  # fmt: skip
OTHERS: Final[tuple[dict[str, Any], ...]] = (
    {"text": "I live in Lyon. I like chess."},
    {"kind": "claim", "claims": [{"entity": "Ann", "relation": "works_at", "value": "Brightly"}]},
)


def lines(said: Sequence[dict[str, Any]], *, stream: str, actor: dict[str, str]) -> list[dict[str, Any]]:
    start = {"stream": stream, "kind": "turn", "actor": actor, "observed_at": "2025-03-02T10:00:00Z"}
    return [start | one for one in said]


# --- the search ----------------------------------------------------------------------------------------


def test_every_word_holds_what_is_looked_for():
    assert [word for word in WORDS if not any(stem.lower() in word.lower() for stem in STEMS)] == []


@pytest.mark.parametrize("word", WORDS)
def test_the_search_sees_a_word_in_every_form(word):
    search = Search({})

    for data in (
        word.upper().encode() if word.isascii() else word.encode(),
        word.encode("utf-16-le"),
        word.encode("utf-16-be"),
        json.dumps({"a": f"an {word}!"}).encode(),
        json.dumps({"a": f"an {word}!"}, ensure_ascii=False).encode(),
        *(base64.b64encode(f"{'x' * n}{word} and more".encode()) for n in range(3)),
        f"an {word}".encode().hex().encode(),
    ):
        assert list(search.in_bytes(b"\x00\xff" + data + b"\xfe")), data


# --- what is done to a plane ---------------------------------------------------------------------------


def fill(running: RunningPlane, client: httpx.Client) -> list[str]:
    """Emit everything, derive a summary; return the ids of what is about the person."""
    client.put(f"/v1/{TENANT}")
    emit(client, lines(OTHERS, stream="chat", actor={"id": "Ann", "class": "user"}))
    ids = emit(client, lines(SAID, stream="vexolumb-strand", actor=USER))
    summary = {
        "stream": "vexolumb-strand", "kind": "derivation",
        "actor": {"id": "consolidator", "class": "assistant"},
        "claims": [{
            "entity": PERSON, "relation": "summary", "value": "vexolumbmary: code 8841-4417, of Vexolumbia",
            "inputs": [{"event": ids[0]}, {"event": ids[1]}],
        }],
    }  # fmt: skip
    ids += emit(client, [summary])
    running.wait_folded()
    return ids


def emit(client: httpx.Client, events: Sequence[dict[str, Any]]) -> list[str]:
    """Append each event as a commit of its own; return their ids."""
    ids = []
    for event in events:
        answer = client.post(f"/v1/{TENANT}/events", json={"events": [event]})
        assert answer.status_code == 201, answer.text
        ids += answer.json()["event_ids"]
    return ids


def ask_around(client: httpx.Client) -> list[dict[str, Any]]:
    """Ask and read whatever can be, with the words in questions and parameters; return the answers."""
    answers = []
    for question in (
        f"Where does {PERSON} live? vexolumbque",
        "What is my vexolumb_grade? vexolumbque",
        "Who said vexolumbwick?",
        f"What does {ALIAS} like?",
        "Where does Ann live?",
    ):
        answer = client.post(f"/v1/{TENANT}/ask", json={"question": question, "disclose_conflicts": True})
        assert answer.status_code == 200, answer.text
        answers.append(answer.json())
        client.post(f"/v1/{TENANT}/contexts/{answer.json()['context']['hash']}/replay")
    for relation in ("vexolumb_grade", "lives_in", "summary"):
        for route in ("resolve", "history"):
            client.get(f"/v1/{TENANT}/{route}", params={"entity": PERSON, "relation": relation})
    return answers


def go_wrong(client: httpx.Client) -> None:
    """Send what is refused, with the words in it: they must not end in a log."""
    good = {"stream": "vexolumb-strand", "kind": "turn", "actor": USER}
    for event in (
        good | {"text": "vexolumbax", "idempotency_key": "vexolumb-idem-1"},
        good | {"text": "vexolumbax", "vexolumbax": 1},
        good | {"text": "vexolumbax\x00"},
        good | {"observed_at": "vexolumbax", "text": "x"},
        good | {"kind": "vexolumbax", "text": "x"},
        good | {"text": "x", "targets": [{"event": "vexolumbax"}]},
        good | {"claims": [{"entity": "vexolumbax" * 100, "relation": "x", "value": 1}]},
    ):
        assert client.post(f"/v1/{TENANT}/events", json={"events": [event]}).status_code in {409, 422}
    for path in (
        "events/vexolumbax",
        "contexts/vexolumbax",
        "resolve?entity=vexolumbax&relation=vexolumbax&valid_at=vexolumbax",
        "vexolumbax?entity=vexolumbax",
        "history?vexolumbax=1",
    ):
        assert client.get(f"/v1/{TENANT}/{path}").status_code >= 400


def secrets_of(running: RunningPlane, event_ids: Sequence[str]) -> dict[str, bytes]:
    """Return the wrapped data keys and the vectors of what is to be erased, as they lie in the files."""
    with running.superuser() as connection:
        keys = connection.execute(
            """
            SELECT 'key of ' || event_id, wrapped_key FROM event_key WHERE event_id = ANY (%(ids)s)
            UNION ALL
            SELECT 'vector of ' || unit_id, substr(halfvec_send(embedding), 5) FROM unit_vector
            WHERE unit_id = ANY (%(ids)s)""",
            {"ids": list(event_ids)},
        ).fetchall()
    # pgvector sends big-endian numbers and stores them as the machine does.
    return {
        name: swapped(bytes(value)) if name.startswith("vector") else bytes(value) for name, value in keys
    }


def swapped(numbers: bytes) -> bytes:
    return b"".join(numbers[at : at + 2][::-1] for at in range(0, 64, 2))


def recalled(running: RunningPlane) -> dict[str, bytes]:
    """Return the wrapped keys of all contexts and trails."""
    with running.superuser() as connection:
        rows = connection.execute(
            "SELECT 'context ' || context_hash, wrapped_key FROM context_key "
            "UNION ALL SELECT 'trail ' || trail_id, wrapped_key FROM trail_key"
        ).fetchall()
    return {name: bytes(value) for name, value in rows}


def settle_statistics(running: RunningPlane) -> None:
    """As the server does by itself in time: the most common values of each column are looked up."""
    with running.superuser() as connection:
        connection.execute("ANALYZE")
        connection.execute("CHECKPOINT")


def scrubbed(client: httpx.Client, request: dict[str, Any]) -> dict[str, Any]:
    """Repeat an erasure until its files are scrubbed; return the last answer."""
    last: dict[str, Any] = {}

    def done() -> bool:
        nonlocal last
        answer = client.post(f"/v1/{TENANT}/erasures", json=request)
        if answer.status_code == 503:
            # As long as a killed server is not back: the answer says to repeat it, which this does.
            return False
        assert answer.status_code == 200, answer.text
        last = answer.json()
        return last["scrub"]["state"] == "done"

    wait_until(done, what="the files are scrubbed", seconds=SCRUB_SECONDS, pause_seconds=0.3)
    return last


def others_answer(client: httpx.Client) -> None:
    answer = client.post(f"/v1/{TENANT}/ask", json={"question": "Where does Ann live?"}).json()
    assert answer["answer"] == "Lyon"
    resolved = client.get(f"/v1/{TENANT}/resolve", params={"entity": "Ann", "relation": "works_at"}).json()
    assert resolved["value"] == "Brightly"


# --- the proofs ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def running() -> Iterator[RunningPlane]:
    with own_plane() as made:
        yield made


def test_after_erasing_a_subject_no_file_holds_any_of_it(running: RunningPlane, tmp_path):
    with running.http() as client:
        ids = fill(running, client)
        before_recall = set(recalled(running))
        answers = ask_around(client)
        go_wrong(client)
        wait_until(lambda: has_vectors(running, ids[0]), what="units have vectors")
        settle_statistics(running)
        # The last question is about somebody else, and stays.
        taken = {part for one in answers[:-1] for part in (one["context"]["hash"], one["trail"])}
        about_person = {
            name: key
            for name, key in recalled(running).items()
            if name not in before_recall and name.split()[1] in taken
        }
        search = Search(secrets_of(running, ids) | about_person)

        control = search.files(running)
        erased = client.post(f"/v1/{TENANT}/erasures", json={"subject": PERSON}).json()
        again = scrubbed(client, {"subject": PERSON})
        after = search.files(running)

        assert after == {}
        # The negative control: the same search saw names, values, relations, keys and vectors.
        seen = set().union(*control.values())
        assert {PERSON, ALIAS, "Schmöqueln", "vexolumb_grade", "vexolumbmary", "8841-4417"} <= seen
        assert {f"key of {one}" for one in ids} <= seen
        assert any(one.startswith("vector of ") for one in seen)
        assert set(about_person) <= seen
        assert "vexolumbax" not in seen
        assert set(ids) <= set(erased["erased"])
        assert again["erased"] == []
        others_answer(client)
        reads_say_erased(client, ids, answers[0]["context"]["hash"])
    running.run("verify", "--tenant", TENANT)
    running.down()
    assert search.files(running) == {}
    running.up()
    with running.http() as client:
        others_answer(client)
        assert search.files(running) == {}


def has_vectors(running: RunningPlane, event_id: str) -> bool:
    with running.superuser() as connection:
        rows = connection.execute("SELECT FROM unit_vector WHERE unit_id = %s", [event_id]).fetchall()
    return bool(rows)


def reads_say_erased(client: httpx.Client, event_ids: Sequence[str], context_hash: str) -> None:
    """Every read of what is gone says so, in a form of its own, and never fails."""
    for event_id in event_ids:
        event = client.get(f"/v1/{TENANT}/events/{event_id}")
        assert (event.status_code, event.json()["erased"], event.json()["event"]) == (200, True, None)
    context = client.get(f"/v1/{TENANT}/contexts/{context_hash}")
    assert (context.status_code, context.json()["form"]) == (200, None)
    replay = client.post(f"/v1/{TENANT}/contexts/{context_hash}/replay")
    assert (replay.status_code, replay.json()["verdict"]) == (200, "redacted")
    for relation in ("vexolumb_grade", "lives_in", "summary", "same_as"):
        resolved = client.get(f"/v1/{TENANT}/resolve", params={"entity": PERSON, "relation": relation})
        assert (resolved.status_code, resolved.json()["outcome"]) == (200, "missing")
        past = client.get(f"/v1/{TENANT}/history", params={"entity": PERSON, "relation": relation})
        assert (past.status_code, past.json()["claims"]) == (200, [])
    asked = client.post(f"/v1/{TENANT}/ask", json={"question": f"What is the vexolumb_grade of {PERSON}?"})
    assert (asked.status_code, asked.json()["answer"]) == (200, None)
    assert "Schmöqueln" not in asked.text


def test_events_erased_while_nothing_is_up_are_in_no_file(tmp_path):
    """The command line alone, each command with a plane of its own that ends with it."""
    running = make_plane()
    try:
        ann = {"stream": "chat", "kind": "turn", "actor": {"id": "Ann", "class": "user"}}
        grade = {"entity": "Ann", "relation": "vexolumb_grade", "value": "Schmöqueln"}
        told = [
            ann | {"text": "I live in Lyon."},
            ann | {"text": "I moved to Vexolumbia.", "source_event_id": "vexolumb-src-9"},
            ann | {"kind": "claim", "claims": [grade]},
        ]
        receipts = running.say("emit", str(write_lines(tmp_path / "e.jsonl", told)), "--tenant", TENANT)
        asked = running.say("ask", "Where does Ann live?", "--tenant", TENANT)[0]
        assert asked["answer"] == "Vexolumbia", asked
        search = Search({})
        control = search.files(running)

        gone = [receipts[1]["event_ids"][0], receipts[2]["event_ids"][0]]
        arguments = [part for one in gone for part in ("--event", one)]
        erased = running.say("erase", "--tenant", TENANT, *arguments, "--yes")[0]
        after = search.files(running)

        assert after == {}
        assert {"Vexolumbia", "Schmöqueln", "vexolumb_grade"} <= set().union(*control.values())
        assert (erased["erased"], erased["scrub"]["state"]) == (gone, "done")
        # The older value does not come back because the newer one was erased.
        resolved = running.say("resolve", "Ann", "lives_in", "--tenant", TENANT)[0]
        assert (resolved["outcome"], resolved["reason"]) == ("missing", "erased")
    finally:
        running.close()


def test_after_deleting_a_tenant_no_file_holds_any_of_it(running: RunningPlane):
    with running.http() as client:
        client.put("/v1/leaving")
        ids = []
        for event in lines(SAID, stream="vexolumb-strand", actor=USER):
            answer = client.post("/v1/leaving/events", json={"events": [event]})
            assert answer.status_code == 201, answer.text
            ids += answer.json()["event_ids"]
        client.put(f"/v1/{TENANT}")
        emit(client, lines(OTHERS, stream="chat", actor={"id": "Ann", "class": "user"}))
        running.wait_folded()
        asked = client.post("/v1/leaving/ask", json={"question": f"Where does {PERSON} live? vexolumbque"})
        assert asked.status_code == 200, asked.text
        wait_until(lambda: has_vectors(running, ids[0]), what="units have vectors")
        settle_statistics(running)
        with running.superuser() as connection:
            (row,) = connection.execute("SELECT wrapped_keys FROM tenant WHERE tenant = 'leaving'").fetchall()
        search = Search(secrets_of(running, ids) | {"keys of the tenant": bytes(row[0])})
        control = search.files(running)

        left = running.say("tenants", "delete", "leaving", "--reason", "contract ended", "--yes")[0]

        assert search.files(running) == {}
        seen = set().union(*control.values())
        assert {PERSON, "Schmöqueln", "vexolumb_grade", "8841-4417", "keys of the tenant"} <= seen
        assert {f"key of {one}" for one in ids} <= seen
        assert any(one.startswith("vector of ") for one in seen)
        assert (left["state"], left["events"], left["scrub"]["state"]) == ("deleted", len(SAID), "done")
        assert client.get("/v1/leaving/events").status_code == 404
        others_answer(client)
        wait_until(running.is_indexed, what="discovery has forgotten the tenant")


def test_a_scrub_whose_server_is_killed_is_begun_again(running: RunningPlane):
    with running.http() as client:
        told = {
            "stream": "vexolumb-strand", "kind": "claim", "actor": {"id": "Bo", "class": "user"},
            "claims": [{"entity": "Vexolumbella", "relation": "likes", "value": f"Vexolumbosella {n}"}
                       for n in range(50)],
        }  # fmt: skip
        client.put(f"/v1/{TENANT}")
        emit(client, [*lines(OTHERS, stream="chat", actor={"id": "Ann", "class": "user"}), told])
        running.wait_folded()
        settle_statistics(running)
        search = Search({})
        assert search.files(running)

        assert client.post(f"/v1/{TENANT}/erasures", json={"subject": "Vexolumbella"}).status_code == 200
        record = ProcessRecord.read(running.folder.run / "postgres.json")
        assert record is not None
        assert record.signal(signal.SIGKILL)
        scrubbed(client, {"subject": "Vexolumbella"})

        assert search.files(running) == {}
        others_answer(client)
