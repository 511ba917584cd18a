"""Checkpoints and proofs at the doors: taken from one plane, checked where there is none."""

from __future__ import annotations

import contextlib
import json

import pytest

from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from contracts.log_wire import (
    CheckedAnswer,
    CheckpointAnswer,
    CommitsAnswer,
    ConsistencyAnswer,
    InclusionAnswer,
)
from echoplane import _cli_log
from echoplane._cli import execute
from echoplane._embedded import Servers
from echoplane._proofs import check_file, export_lines
from echoplane._wiring import open_plane
from tests.echoplane.test_http import code_of


@pytest.fixture
def commands(database, redis_url, place, monkeypatch):
    """Commands over a plane without processes; each appends an event before it does its own work."""
    servers = Servers(database=database, redis_url=redis_url, postgres=None, redis=None)
    monkeypatch.setenv("ECHOPLANE_DATA_DIR", str(place / "data"))
    event = EventDraft.model_validate(
        {"stream": "s", "kind": "turn", "actor": {"id": "Ann", "class": "user"}, "text": "Hello."}
    )

    @contextlib.asynccontextmanager
    async def with_plane(settings):
        async with open_plane(settings, servers, wait_ms=500) as plane:
            await plane.make_tenant("home")
            await plane.append("home", [event], grant=LOCAL_GRANT, expected_version=None)
            yield plane

    monkeypatch.setattr(_cli_log, "with_plane", with_plane)


@pytest.fixture
def run(commands, capsys):
    def run(*arguments):
        code = execute([*arguments, "--json"])
        written = capsys.readouterr()
        return code, json.loads(written.out) if written.out else json.loads(written.err)["error"]["code"]

    return run


@pytest.fixture
def kept(run, place):
    """A checkpoint of two commits in a file of its own, its key, and one proof of each kind."""
    run("checkpoint", "--tenant", "home")
    _, answer = run("checkpoint", "--tenant", "home", "--out", str(place / "home.log"))
    for name, arguments in (("inclusion", ("2", "--size", "2")), ("consistency", ("2",))):
        code, proof = run("proof", name, *arguments, "--tenant", "home")
        assert (code, proof["kind"]) == (0, name)
        (place / f"{name}.json").write_text(json.dumps(proof))
    return str(place / "home.log"), CheckpointAnswer.model_validate(answer).key


def test_a_log_and_its_proofs_are_checked_where_there_is_no_plane(run, kept, place, monkeypatch):
    file, key = kept
    monkeypatch.delattr(_cli_log, "with_plane")
    proofs = [
        part for name in ("inclusion", "consistency") for part in ("--proof", str(place / f"{name}.json"))
    ]

    code, answer = run("verify", "--checkpoint", file, "--key", key, *proofs)

    checked = CheckedAnswer.model_validate(answer)
    assert (code, checked.ok, checked.pinned, checked.tenant) == (0, True, True, "home")
    assert (checked.size, checked.commits, checked.events, checked.proofs) == (2, 2, 2, 2)
    assert run("verify", "--checkpoint", file)[1]["pinned"] is False


def test_a_log_of_today_is_held_against_a_checkpoint_kept_elsewhere(run, kept, place):
    file, key = kept

    code, answer = run("verify", "--tenant", "home", "--checkpoint", file, "--key", key)
    assert (code, answer["ok"], answer["commits"] > 2) == (0, True, True)
    # Signed as it should be, of a log that this one is not.
    other = place / "other"
    refused = (2, "incorrect.bad_request")
    assert run("verify", "--tenant", "away", "--checkpoint", file, "--key", key) == refused
    other.write_text((place / "home.log").read_text().replace("home", "hime"))
    assert run("verify", "--tenant", "home", "--checkpoint", str(other)) == refused


def test_what_does_not_add_up_ends_with_1(run, kept, place):
    file, key = kept
    whole = (place / "home.log").read_text().splitlines(keepends=True)
    (place / "cut.log").write_text("".join(whole[:-1]))
    mutant = json.loads((place / "inclusion.json").read_text())

    code, answer = run("verify", "--checkpoint", str(place / "cut.log"), "--key", key)
    assert (code, answer["problems"]) == (1, ["commit 1: checkpoint.size"])
    for name, form in {
        "proof.path": mutant | {"path": ["00" * 32]},
        "proof.size": mutant | {"size": 3},
        "proof.tenant": mutant | {"tenant": "away"},
        "proof.form": mutant | {"kind": "consistency"},
        "commit.hash": mutant | {"commit": mutant["commit"] | {"event_hashes": ["00" * 32]}},
    }.items():
        (place / "mutant.json").write_text(json.dumps(form))
        code, answer = run(
            "verify", "--checkpoint", file, "--key", key, "--proof", str(place / "mutant.json")
        )
        assert (code, name in str(answer["problems"])) == (1, True), (name, answer)


def test_no_changed_byte_of_a_proof_file_passes(kept, place):
    """But for white space and the like: what is read of the mutant must be what was read before."""
    file, key = place / "home.log", kept[1]
    passed = []
    for name, model in (("inclusion", InclusionAnswer), ("consistency", ConsistencyAnswer)):
        raw = (place / f"{name}.json").read_bytes()
        mutant = place / "mutant.json"
        for index in range(0, len(raw), 2):
            changed = bytearray(raw)
            changed[index] ^= 1
            mutant.write_bytes(changed)
            if check_file(file, key, [mutant]).ok and model.model_validate_json(
                bytes(changed)
            ) != model.model_validate_json(raw):
                passed.append((name, index))
    assert passed == []


def test_a_checkpoint_alone_needs_something_to_hold_it_against(run, kept, place):
    run("checkpoint", "--tenant", "home", "--size", "2", "--no-commits", "--out", str(place / "alone"))
    alone = ("--checkpoint", str(place / "alone"))

    assert run("verify", *alone) == (2, "incorrect.bad_request")
    assert run("verify", *alone, "--proof", str(place / "inclusion.json"))[0] == 0
    assert run("verify", *alone, "--tenant", "home")[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify",),
        ("verify", "--tenant", "home", "--key", "k"),
        ("verify", "--tenant", "home", "--checkpoint", "f", "--proof", "p"),
        ("verify", "--checkpoint", "/nowhere"),
        ("checkpoint", "--tenant", "home", "--out", "/nowhere/else"),
        ("checkpoint", "--tenant", "home", "--size", "99"),
        ("proof", "inclusion", "99", "--tenant", "home"),
        ("proof", "consistency", "99", "--tenant", "home"),
    ],
)
def test_what_cannot_be_checked_is_refused(run, arguments):
    assert run(*arguments) == (2, "incorrect.bad_request")


async def test_http_hands_out_what_is_needed_to_check_a_log(client, plane, home, place):
    checkpoint = CheckpointAnswer.model_validate_json((await client.get("/v1/home/checkpoint")).content)
    listed = CommitsAnswer.model_validate_json((await client.get("/v1/home/commits")).content)
    path, proof = place / "home.log", place / "proof"
    path.write_bytes(b"".join([line async for line in export_lines(plane, checkpoint, with_commits=True)]))

    assert checkpoint.size == len(listed.commits) == 2
    assert check_file(path, checkpoint.key, []).ok
    for asked in ("inclusion?commit=1&size=2", "consistency?old_size=2"):
        proof.write_bytes((await client.get(f"/v1/home/proofs/{asked}")).content)
        assert check_file(path, checkpoint.key, [proof]).ok
    second = (await client.get("/v1/home/commits?after_commit=1&limit=5")).json()["commits"]
    assert second == [listed.commits[1].model_dump()]
    refused = [
        await client.get(f"/v1/home/{asked}")
        for asked in ("checkpoint?size=9", "proofs/inclusion", "proofs/inclusion?commit=3", "commits?limit=0",
                      "proofs/consistency?old_size=2&new_size=1")
    ]  # fmt: skip
    assert [await code_of(one) for one in refused] == [(422, "incorrect.bad_request")] * 5
