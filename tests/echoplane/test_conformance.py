"""Cases of both formats against a real ledger: what agrees, what does not, and what is no case at all."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from contracts.errors import BadRequest, LimitExceeded
from echoplane import _conformance
from echoplane._cli import execute
from echoplane._conformance import read_cases, run_cases
from echoplane._conformance_ledger import FOLDER_PREFIX, Ledgers, SetClock
from ledger import log

DATA = Path(__file__).parents[1] / "data"
SHARED = Path(__file__).parents[3] / "shared" / "cases"
FILES = [
    (DATA / "cases_bitemporal.json", 8, 1),
    (DATA / "cases_scenarios.json", 4, 0),
    (DATA / "scenarios_own.json", None, 0),
    (SHARED / "bitemporal.json", 32, 3),
    (SHARED / "scenarios.json", 30, 0),
]


@pytest.fixture
async def ledgers(database):
    """Tenants of a fresh database, with a clock that cases set."""
    clock = SetClock()
    opened = log.open_database(
        plane_url=database.backfill,
        relay_url=database.relay,
        master_key=bytes(32),
        clock=clock,
        states_clock=True,
    )
    yield Ledgers(opened, clock, "case-")
    await opened.close()


@pytest.fixture
def run(ledgers, tmp_path):
    """Run a file, or what a file would hold, and return the count and the mismatches."""

    async def run(given):
        path = given
        if not isinstance(given, Path):
            path = tmp_path / "cases.json"
            path.write_text(json.dumps(given), encoding="utf-8")
        found = []
        return await run_cases(read_cases(path), ledgers, say=found.append), found

    return run


@pytest.mark.parametrize(("path", "cases", "not_applicable"), FILES, ids=[path.name for path, _, _ in FILES])
async def test_every_case_agrees(run, path, cases, not_applicable):
    if not path.exists():
        pytest.skip(f"{path.name} is not here")

    answer, mismatches = await run(path)

    assert mismatches == []
    assert answer.cases == (cases or answer.cases)
    assert answer.not_applicable == not_applicable
    assert answer.agreed == answer.queries - not_applicable > 0


async def test_what_differs_is_shown_with_both_sides(run):
    answer, mismatches = await run(DATA / "cases_mismatch.json")

    assert [(one.case, one.where) for one in mismatches] == [
        ("wrong-value", "query 1 (timeline)"),
        ("wrong-status", "transaction 1"),
        ("no-such-kind", "query 1 (guess)"),
        ("no-such-kind", "query 2 (timeline)"),
        ("no-such-op", "query 1 (point)"),
    ]
    value, status, kind, field, operation = mismatches
    assert (value.expected[0]["valid_to"], value.found[0]["valid_to"]) == (None, "2026-02-01T00:00:00Z")
    assert (status.expected, status.found) == ("rejected", "committed")
    assert "guess is none of" in kind.error
    assert field.error == "depth: unknown to this format"
    assert operation.error.startswith("op: update is none of")
    assert (answer.queries, answer.agreed, answer.mismatched, answer.not_applicable) == (5, 1, 5, 0)


def scenario(**changes):
    claim = {"key": ["ann", "home"], "value": "Lyon", "since": "2026-01-01T00:00:00Z"}
    event = {"id": "e1", "source": "ann", "class": "user", "claims": [claim]}
    query = {"state": ["ann", "home"], "valid_at": "2026-02-01T00:00:00Z", "expect": {"resolved": "Lyon"}}
    form = {
        "id": "s",
        "commits": [{"recorded_at": "2026-01-01T00:00:00Z", "events": [event]}],
        "queries": [query],
    }
    return {"scenarios": [form | changes]}


async def test_a_scenario_that_agrees_agrees(run):
    answer, mismatches = await run(scenario())

    assert (answer.agreed, mismatches) == (1, [])


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"guess": ["ann", "home"], "expect": {"resolved": "Lyon"}}, "guess: unknown"),
        ({"state": ["ann", "home"], "expect": {"probably": "Lyon"}}, "probably: unknown"),
        ({"state": ["ann", "home"], "entity": "ann", "expect": {}}, "asks for one of"),
        ({"state": ["ann", "home"], "commit": 9, "expect": {"resolved": "Lyon"}}, "1 were accepted"),
        ({"state": ["ann", "home"], "valid_at": "soon", "expect": {"resolved": "Lyon"}}, "ISO 8601"),
        ({"state": ["ann", "home"]}, "expect: is missing"),
    ],
)
async def test_a_query_that_the_format_does_not_have_is_an_error_of_its_case(run, query, words):
    answer, (mismatch,) = await run(scenario(queries=[query]))

    assert words in mismatch.error
    assert (mismatch.case, answer.agreed, answer.mismatched) == ("s", 0, 1)


async def test_a_whole_answer_is_shown_where_a_part_of_it_differs(run):
    query = {"state": ["ann", "home"], "valid_at": "2026-02-01T00:00:00Z", "expect": {"missing": "ended"}}

    _, (mismatch,) = await run(scenario(queries=[query]))

    assert mismatch.expected == {"missing": "ended"}
    assert (mismatch.found["resolved"], mismatch.found["claims"]) == ("Lyon", ["e1#0"])


async def test_a_case_that_cannot_be_told_agrees_with_nothing(run):
    answer, mismatches = await run(scenario(commits=[{"recorded_at": "2026-01-01T00:00:00Z"}]))

    assert answer.agreed == 0
    assert answer.mismatched == len(mismatches) == 1


@pytest.mark.parametrize(
    ("commit", "field"),
    [
        ({"recorded_at": "2026-01-01T00:00:00Z", "event": []}, "commits[0].event"),
        ({"recorded_at": "2026-01-01T00:00:00Z"}, "commits[0].events"),
    ],
)
async def test_a_misspelt_field_of_a_commit_is_named(run, commit, field):
    _, (mismatch,) = await run(scenario(commits=[commit]))

    assert mismatch.error.startswith(f"{field}: ")


@pytest.mark.parametrize("status", ["committed", "rejected"])
async def test_a_transaction_without_a_key_names_what_is_missing(run, status):
    """That its format is not kept to is no refusal of the ledger's, also where one is expected."""
    transaction = {"system": "2026-01-01T00:00:00Z", "ops": [{"op": "erase"}], "status": status}
    case = {"id": "b", "transactions": [transaction], "queries": [{"kind": "system_times", "expect": []}]}

    answer, (mismatch,) = await run({"schema": "bitemporal-cases/1", "cases": [case]})

    assert mismatch.error == "key: is missing"
    assert answer.agreed == 0


async def test_a_clock_that_no_ledger_can_have_is_an_error_of_its_case_and_the_next_is_run(run):
    early = scenario(commits=[{"recorded_at": "0001-01-01T00:00:00Z", "events": []}])["scenarios"]

    answer, mismatches = await run({"scenarios": [*early, *scenario()["scenarios"]]})

    assert (answer.agreed, len(mismatches)) == (1, 1)
    assert "OverflowError" in mismatches[0].error


async def test_a_relation_is_decided_as_the_rules_say_whatever_this_plane_presumes_of_it(run):
    """`likes` has many values here unless a contract says otherwise; a scenario's default is one."""
    claims = [
        {"key": ["ann", "likes"], "value": value, "since": since}
        for value, since in (("tea", "2026-01-01T00:00:00Z"), ("rye", "2026-01-02T00:00:00Z"))
    ]
    event = {"id": "e1", "source": "ann", "class": "user", "claims": claims}
    query = {"state": ["ann", "likes"], "valid_at": "2026-02-01T00:00:00Z", "expect": {"resolved": "rye"}}

    commits = [{"recorded_at": "2026-01-03T00:00:00Z", "events": [event]}]
    answer, mismatches = await run(scenario(commits=commits, queries=[query]))

    assert (mismatches, answer.agreed) == ([], 1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[]", "is no object"),
        ("{}", "has neither"),
        ('{"schema": "bitemporal-cases/2", "cases": []}', "has neither"),
        ('{"schema": "bitemporal-cases/1"}', "is a list of objects"),
        ('{"scenarios": [1]}', "is a list of objects"),
        ('{"scenarios": [{"id": "s", "queries": []}]}', "is missing"),
    ],
)
def test_a_file_of_no_format_is_refused(tmp_path, text, reason):
    path = tmp_path / "cases.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(BadRequest, match=reason):
        read_cases(path)


def test_a_file_that_is_too_long_or_not_there_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "cases.json"
    path.write_text("{}", encoding="utf-8")
    monkeypatch.setattr(_conformance, "CASES_BYTES_MAX", 1)

    with pytest.raises(LimitExceeded):
        read_cases(path)
    with pytest.raises(BadRequest, match="cannot be read"):
        read_cases(tmp_path / "none.json")


def test_command_prints_differences_counts_last_and_leaves_nothing_behind(capsys):
    before = set(Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"))

    code = execute(["conformance", str(DATA / "cases_mismatch.json")])
    printed = capsys.readouterr().out.splitlines()

    assert code == 1
    assert printed[0] == "wrong-value: query 1 (timeline)"
    assert printed[1].startswith('  expected  [{"by": "e1"')
    assert printed[2].startswith('  found     [{"by": "e1"')
    assert printed[-1] == "4 cases, 5 queries: 1 agreed, 5 mismatched, 0 not applicable"
    assert set(Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*")) <= before


def test_command_says_what_is_no_case_file(tmp_path, capsys):
    code = execute(["conformance", str(tmp_path / "none.json"), "--json"])

    assert code == 2
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "incorrect.bad_request"
