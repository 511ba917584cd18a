"""`echoplane erase` and `echoplane scrub`, over a plane that is up."""

from __future__ import annotations

import io
import json

import pytest

from contracts.erasure_wire import ErasureAnswer, ScrubAnswer
from contracts.errors import Unavailable
from contracts.reports import DoctorAnswer
from contracts.wire import ReceiptAnswer
from echoplane import _scrub
from echoplane._cli import execute
from tests.echoplane.test_cli import lines, run  # noqa: F401 - a fixture


@pytest.fixture
def told(run, tmp_path):  # noqa: F811 - a fixture
    """Tell a tenant of its own something about Ann; return the event's id."""

    def told(tenant):
        file = tmp_path / "lines.jsonl"
        file.write_text(lines({"text": "I live in Lyon."}))
        code, out, _ = run("emit", str(file), "--tenant", tenant)
        assert code == 0
        return ReceiptAnswer.model_validate_json(out[0]).event_ids[0]

    return told


def resolved(run, tenant):  # noqa: F811 - a fixture
    _, out, _ = run("resolve", "Ann", "lives_in", "--tenant", tenant)
    return json.loads(out[0])["outcome"]


def test_a_subject_is_erased_and_the_files_are_scrubbed_when_the_command_ends(run, told):  # noqa: F811
    event_id = told("one")

    code, out, error = run("erase", "--tenant", "one", "--subject", "Ann", "--yes")

    answer = ErasureAnswer.model_validate_json(out[0])
    assert (code, error, answer.erased, answer.scrub.state) == (0, None, [event_id], "done")
    assert resolved(run, "one") == "missing"
    code, out, _ = run("erase", "--tenant", "one", "--event", event_id, "--yes")
    again = ErasureAnswer.model_validate_json(out[0])
    assert (code, again.event_id, again.already_erased) == (0, None, [event_id])


def test_nothing_is_erased_by_whoever_does_not_say_yes(run, told, monkeypatch, capsys):  # noqa: F811
    told("two")

    for reply, code in (("n\n", 2), ("", 2), ("y\n", 0)):
        monkeypatch.setattr("sys.stdin", io.StringIO(reply))
        assert execute(["erase", "--tenant", "two", "--subject", "Ann"]) == code
        # What is asked on standard error is no error in JSON.
        said = capsys.readouterr().err
        assert "Nothing brings it back" in said
        # At the end of its input a program is told what to say.
        assert ("--yes: nothing was erased" in said) == (code != 0)
        assert resolved(run, "two") == ("missing" if code == 0 else "resolved")


def test_with_json_nobody_is_asked_and_nothing_is_erased(run, told):  # noqa: F811
    told("seven")

    code, _, error = run("erase", "--tenant", "seven", "--subject", "Ann")

    assert (code, error.details["field"]) == (2, "--yes")
    assert resolved(run, "seven") == "resolved"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ((), "subject"),
        (("--subject", "Ann", "--event", "ev_1"), "subject"),
        (("--subject", " "), "subject"),
        (("--event", ""), "events[0]"),
    ],
)
def test_a_wrong_command_names_the_field(run, told, arguments, field):  # noqa: F811
    told("three")

    code, _, error = run("erase", "--tenant", "three", "--yes", *arguments)

    assert (code, error.details["field"]) == (2, field)
    assert resolved(run, "three") == "resolved"


def test_an_unknown_event_is_not_found(run, told):  # noqa: F811
    told("four")

    code, _, error = run("erase", "--tenant", "four", "--yes", "--event", "ev_none")

    assert (code, error.code) == (2, "incorrect.not_found")


def test_erased_and_not_scrubbed_is_no_success_and_no_error(run, told, monkeypatch):  # noqa: F811
    told("five")

    async def busy(*_, **__):
        raise Unavailable(part="scrub", reason="busy")

    monkeypatch.setattr(_scrub, "settle", busy)
    code, out, error = run("erase", "--tenant", "five", "--subject", "Ann", "--yes")

    answer = ErasureAnswer.model_validate_json(out[0])
    assert (code, error, answer.scrub.state) == (1, None, "pending")
    assert resolved(run, "five") == "missing"


def test_a_scrub_that_was_not_waited_for_is_done_by_the_next_one(run, told):  # noqa: F811
    told("six")
    code, _, _ = run("erase", "--tenant", "six", "--subject", "Ann", "--yes", "--no-wait")
    assert code == 0

    code, out, _ = run("scrub")

    answer = ScrubAnswer.model_validate_json(out[0])
    assert (code, answer.state, len(answer.places)) == (0, "done", 4)
    code, out, _ = run("doctor")
    checks = {check.check: check.ok for check in DoctorAnswer.model_validate_json(out[0]).checks}
    assert checks["scrub"]
