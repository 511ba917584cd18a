"""The command line: shapes, exit codes, errors that change nothing. One plane is up for all of it."""

from __future__ import annotations

import asyncio
import json

import psycopg
import pytest

from contracts.epoch_wire import RegisteredAnswer
from contracts.relation_wire import ContractAnswer
from contracts.reports import DoctorAnswer, StatusAnswer
from contracts.wire import (
    AskAnswer,
    ErrorAnswer,
    HistoryAnswer,
    ImportAnswer,
    ReceiptAnswer,
    ReplayAnswer,
    ResolveAnswer,
    TokenAnswer,
    VerifyAnswer,
)
from echoplane._cli import execute
from echoplane._embedded import DATABASE
from echoplane._folders import DataFolder
from echoplane._postgres import SUPERUSER, find_postgres
from tests.echoplane.stand_in_model import MODEL, stand_in

TURNS = [
    {"text": "I live in Lyon.", "observed_at": "2025-01-10T09:00:00+01:00", "source_event_id": "t1"},
    {"text": "I moved to Ghent.", "observed_at": "2025-06-02T18:30:00+02:00", "source_event_id": "t2"},
]


def lines(*more):
    base = {"stream": "s", "kind": "turn", "actor": {"id": "Ann", "class": "user"}}
    return "\n".join(json.dumps(base | one) for one in more)


@pytest.fixture
def run(up, capsys):
    """Run a command with `--json`; return its exit code, its lines and its error."""

    def run(*arguments):
        code = execute([*arguments, "--json"])
        written = capsys.readouterr()
        error = ErrorAnswer.model_validate_json(written.err).error if written.err else None
        return code, written.out.splitlines(), error

    return run


@pytest.fixture
def emit(run, tmp_path):
    def emit(tenant, *more, options=()):
        path = tmp_path / "events.jsonl"
        path.write_text(lines(*more), encoding="utf-8")
        return run("emit", str(path), "--tenant", tenant, *options)

    return emit


def heads(run):
    _, out, _ = run("status")
    return {one.tenant: one.head for one in StatusAnswer.model_validate_json(out[0]).tenants}


def test_each_line_is_a_commit_with_a_receipt_and_a_rerun_repeats_them(emit):
    code, first, _ = emit("receipts", *TURNS)
    _, second, _ = emit("receipts", *TURNS)

    receipts = [ReceiptAnswer.model_validate_json(line) for line in first]
    assert (code, [one.commit for one in receipts]) == (0, [1, 2])
    assert [json.loads(line) for line in second] == [json.loads(line) | {"repeated": True} for line in first]


def test_atomic_makes_one_commit(emit):
    code, out, _ = emit("atomic", *TURNS, options=["--atomic"])

    (receipt,) = [ReceiptAnswer.model_validate_json(line) for line in out]
    assert (code, receipt.commit, receipt.positions) == (0, 1, [1, 2])


def test_a_wrong_line_changes_nothing_and_is_named(run, emit):
    code, out, error = emit("wrong", TURNS[0], {"text": "x", "bogus": 1})

    assert (code, out, error.code) == (2, [], "incorrect.bad_request")
    assert error.details["field"] == "line 2: bogus"
    assert "wrong" not in heads(run)


def test_a_refused_target_stops_the_file_before_it(run, emit):
    retraction = {"kind": "retraction", "text": "No.", "targets": [{"source_event_id": "gone"}]}

    code, out, error = emit("targets", TURNS[0], retraction, TURNS[1])

    assert (code, error.details["line"], error.details["written"]) == (2, 2, 1)
    assert len(out) == 1
    assert heads(run)["targets"] == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["ask", "Where?", "--tenant", "t", "--valid-at", "2025-01-01T00:00:00"],
        ["ask", "Where?", "--tenant", "t", "--budget", "0"],
        ["ask", "", "--tenant", "t"],
        ["ask", "Where?"],
        ["resolve", "Ann", "lives_in", "--tenant", "t", "--known-at", "2025"],
        ["resolve", "Ann", "lives_in", "--tenant", "t", "--generation", "1"],
        ["resolve", "Ann", "lives_in", "--tenant", "../t"],
        ["history", "Ann", "--tenant", "t", "--valid-at", "2025-01-01T00:00:00Z"],
        ["replay", "0" * 64, "--tenant", "t"],
        ["emit", "missing.jsonl", "--tenant", "t"],
        ["import", "locomo", "missing.json"],
        ["token", "--tenant", "t", "--right", "everything"],
        ["nonsense"],
        ["status", "--nonsense"],
    ],
)
def test_wrong_requests_exit_2_with_one_json_line(run, arguments):
    code, out, error = run(*arguments)

    assert (code, out) == (2, [])
    assert error.code.startswith("incorrect")


def test_without_json_an_error_is_one_line_for_a_person(up, capsys):
    assert execute(["resolve", "Ann", "lives_in", "--tenant", "t", "--known-at", "2025"]) == 2

    error = capsys.readouterr().err
    assert error.startswith("echoplane: known_at:")
    assert error.count("\n") == 1
    assert "change the request" in error


def test_what_was_emitted_is_resolved_asked_replayed_and_verified(run, emit):
    emit("ann", *TURNS)

    _, out, _ = run("resolve", "Ann", "lives_in", "--tenant", "ann")
    resolved = ResolveAnswer.model_validate_json(out[0])
    assert (resolved.outcome, resolved.value, resolved.view.cut) == ("resolved", "Ghent", 2)
    assert set(json.loads(out[0])) == {
        "outcome", "value", "disputed", "disputed_count", "reason", "conflict", "claims", "superseded",
        "disputes", "undetermined", "unplaced", "truncated", "view",
    }  # fmt: skip

    _, out, _ = run("history", "Ann", "--tenant", "ann")
    assert {value for cell in HistoryAnswer.model_validate_json(out[0]).cells for value in cell.values} >= {
        "Lyon"
    }

    _, out, _ = run("ask", "Where does Ann live?", "--tenant", "ann", "--valid-at", "2025-03-01T00:00:00Z")
    asked = AskAnswer.model_validate_json(out[0])
    assert (asked.status, asked.answer, asked.degraded) == ("answered", "Lyon", False)
    assert set(json.loads(out[0])) >= {
        "status", "answer", "view", "context", "resolutions", "routes", "candidates", "degraded",
        "configuration_hash", "trail",
    }  # fmt: skip

    code, out, _ = run("replay", asked.context.hash, "--tenant", "ann")
    assert (code, ReplayAnswer.model_validate_json(out[0]).verdict) == (0, "identical")

    code, out, _ = run("verify", "--tenant", "ann")
    verified = VerifyAnswer.model_validate_json(out[0])
    assert (code, verified.ok, verified.commits, verified.events) == (0, True, 2, 2)
    assert (verified.cells, verified.cuts, verified.changes) == (2, 2, 2)


def test_a_reader_that_fails_leaves_the_answer_and_exits_as_unavailable(run, emit, monkeypatch):
    emit("read", *TURNS)
    with stand_in(str, 403) as (url, _):
        monkeypatch.setenv("ECHOPLANE_READER_URL", url)
        monkeypatch.setenv("ECHOPLANE_READER_MODEL", MODEL)
        code, written, _ = run("ask", "Where does Ann live now?", "--tenant", "read", "--reader")
    answer = AskAnswer.model_validate_json(written[0])
    assert (code, answer.answer, answer.reading.failure) == (4, "Ghent", "rejected")


def test_a_changed_claim_is_a_mismatch_and_exits_1(run, emit, data_dir):
    emit("tampered", *TURNS)
    _, out, _ = run("ask", "Where does Ann live?", "--tenant", "tampered")
    asked = AskAnswer.model_validate_json(out[0])

    tamper(data_dir, "UPDATE claim SET seal = sha256(seal) WHERE tenant = 'tampered'")

    replayed, verified = (
        run("replay", asked.context.hash, "--tenant", "tampered"),
        run("verify", "--tenant", "tampered"),
    )
    assert (replayed[0], json.loads(replayed[1][0])["verdict"]) == (1, "mismatch")
    assert (verified[0], json.loads(verified[1][0])["ok"]) == (1, False)


def test_a_changed_cell_is_found_by_verify(run, emit, data_dir):
    emit("forged", *TURNS)
    run("resolve", "Ann", "lives_in", "--tenant", "forged")
    tamper(data_dir, "UPDATE cell SET state = 'ended' WHERE tenant = 'forged' AND upper_inf(known)")

    code, out, _ = run("verify", "--tenant", "forged")

    answer = VerifyAnswer.model_validate_json(out[0])
    assert (code, answer.ok, answer.problems_count) == (1, False, len(answer.problems))
    assert {problem.split(": ")[1] for problem in answer.problems} == {"cell", "cell.seal"}


def tamper(data_dir, statement):
    address = asyncio.run(find_postgres(DataFolder.at(data_dir)))
    with psycopg.connect(address.conninfo(role=SUPERUSER, database=DATABASE), autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(statement)


def test_a_generation_that_is_not_there_exits_3(run, emit, monkeypatch):
    emit("later", TURNS[0])
    # It never comes, however long a command waits for it.
    monkeypatch.setattr("contracts.limits.WAIT_MS_MAX", 100)

    code, _, error = run("resolve", "Ann", "lives_in", "--tenant", "later", "--generation", "9:1")

    assert (code, error.code) in {(3, "stale.not_yet"), (2, "incorrect.not_found")}


def test_import_says_what_came_in(run, tmp_path):
    path = tmp_path / "locomo.json"
    turns = [{"speaker": "Ida", "dia_id": "D1:1", "text": "I live in Oslo."}]
    sample = {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    path.write_text(json.dumps([{"sample_id": "c", "conversation": sample}]), encoding="utf-8")

    code, out, _ = run("import", "locomo", str(path), "--tenant", "imported")

    answer = ImportAnswer.model_validate_json(out[0])
    assert (code, answer.events, answer.commit, answer.folded, answer.projection_failures) == (0, 1, 1, 1, 0)


@pytest.mark.parametrize(
    "command",
    [
        ("resolve", "Ann", "home"),
        ("history", "Ann"),
        ("diff", "Ann"),
        ("relations", "list"),
        ("views", "list"),
    ],
)
def test_who_mistypes_a_tenant_makes_none(run, command):
    for _ in range(2):
        code, _, error = run(*command, "--tenant", "mistyped")
        assert (code, error.code) == (2, "incorrect.not_found")


def test_a_registered_contract_decides_and_is_shown(run, emit, tmp_path):
    path = tmp_path / "contract.json"
    path.write_text('{"relation": "boss", "authority": [["hr"], ["*"]]}', encoding="utf-8")

    emit("firm", {"actor": {"id": "hr", "class": "user"}, "kind": "turn", "text": "Hello."})
    _, before, _ = run("relations", "show", "boss", "--tenant", "firm")
    code, out, _ = run("relations", "register", str(path), "--tenant", "firm")
    _, listed, _ = run("relations", "list", "--tenant", "firm")

    answer = RegisteredAnswer.model_validate_json(out[0])
    assert not ContractAnswer.model_validate_json(before[0]).registered
    assert (code, answer.registered, answer.authority) == (0, True, [["hr"], ["*"]])
    shown = ContractAnswer.model_validate_json(listed[0]).model_dump()
    assert shown == {name: value for name, value in answer.model_dump().items() if name in shown}
    for actor, boss in (("hr", "Ann"), ("Eve", "Bob")):
        claim = {"entity": "Eve", "relation": "boss", "value": boss}
        emit("firm", {"actor": {"id": actor, "class": "user"}, "kind": "claim", "claims": [claim]})
    _, out, _ = run("resolve", "Eve", "boss", "--tenant", "firm")
    assert ResolveAnswer.model_validate_json(out[0]).value == "Ann"

    path.write_text('{"relation": "boss", "cardinality": "many"}', encoding="utf-8")
    code, _, error = run("relations", "register", str(path), "--tenant", "firm")
    assert (code, error.code, error.details["relation"]) == (2, "incorrect.relation_in_use", "boss")


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("[]", "body"),
        ('{"relation": " "}', "relation"),
        ('{"relation": "same_as"}', "relation"),
        ('{"relation": "r", "colour": 1}', "colour"),
        ('{"relation": "r", "cardinality": "two"}', "cardinality"),
        ('{"relation": "r", "authority": [["a"], ["a"]]}', "authority"),
        ('{"relation": "r", "authority": [[]]}', "authority[0]"),
        ('{"relation": "r", "supersession": {"*": "all"}}', "supersession.*"),
        ('{"relation": "r", "conflict_window_seconds": -1}', "conflict_window_seconds"),
    ],
)
def test_a_contract_that_cannot_be_applied_is_refused_by_its_field(run, tmp_path, text, field):
    path = tmp_path / "contract.json"
    path.write_text(text, encoding="utf-8")

    code, _, error = run("relations", "register", str(path), "--tenant", "firm-2")

    assert (code, error.code, error.details["field"]) == (2, "incorrect.bad_request", field)


def test_status_and_doctor_say_why_tenants_cannot_be_read(run, data_dir):
    key = data_dir / "keys" / "master.key"
    key.chmod(0o644)
    try:
        code, out, _ = run("status")
        _, found, _ = run("doctor")
    finally:
        key.chmod(0o600)

    answer = StatusAnswer.model_validate_json(out[0])
    assert (code, answer.tenants) == (1, [])
    assert "can be read by others" in answer.failure
    checks = {check.check: check.ok for check in DoctorAnswer.model_validate_json(found[0]).checks}
    assert not checks["tenants"]


@pytest.mark.parametrize("name", ["A\x00nn", "A\udc80nn", " "])
def test_names_and_questions_that_nothing_can_hold_are_refused(run, name):
    codes = [
        run(*arguments, "--tenant", "ann")[::2]
        for arguments in (
            ("resolve", name, "lives_in"), ("resolve", "Ann", name), ("history", name), ("ask", name),
            ("replay", name), ("token", "--actor", name),
        )
    ]  # fmt: skip

    assert [(code, error.code) for code, error in codes] == [(2, "incorrect.bad_request")] * 6


def test_a_token_that_may_emit_names_whom_it_speaks_for(run):
    code, _, error = run("token", "--tenant", "open")

    assert (code, error.details["field"]) == (2, "--actor")
    assert "open" not in heads(run)
    code, out, _ = run("token", "--tenant", "open", "--right", "ask")
    assert (code, TokenAnswer.model_validate_json(out[0]).actors) == (0, [])


def test_a_token_is_made_with_its_tenant(run):
    code, out, _ = run("token", "--tenant", "fresh", "--right", "ask", "--actor", "Ann")

    answer = TokenAnswer.model_validate_json(out[0])
    assert (code, answer.rights, answer.actors, answer.classes) == (0, ["ask"], ["Ann"], ["user"])
    assert "fresh" in heads(run)


def test_a_second_up_says_that_it_is_up_already(run):
    _, out, _ = run("status")
    before = StatusAnswer.model_validate_json(out[0])

    codes = [run("up")[0], run("up", "--detach")[0]]

    _, out, _ = run("status")
    after = StatusAnswer.model_validate_json(out[0])
    assert codes == [0, 0]
    assert (after.up, after.supervisor) == (True, before.supervisor)
    assert {role.role for role in after.roles} == {"api", "discovery", "worker"}


def test_doctor_finds_nothing_wrong(run):
    code, out, _ = run("doctor")

    answer = DoctorAnswer.model_validate_json(out[0])
    assert [check for check in answer.checks if not check.ok] == []
    assert code == 0


def test_secrets_and_logs_are_for_their_owner_alone(data_dir):
    for path in [
        data_dir / "keys" / "local.token",
        data_dir / "keys" / "master.key",
        *(data_dir / "log").iterdir(),
    ]:
        assert path.stat().st_mode & 0o077 == 0, path
