"""Typed answers as a gate measures them: sealed as digests, and strictly right by their words alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from audit import BundleRecorder, DataSet, check_bundle, gold_lines, measure, words_digest
from audit._scoring import score_answer
from contracts.artifacts import Prediction
from contracts.errors import Unavailable
from echoplane._evaluating import tell
from echoplane._evaluation import data_set_named
from echoplane._gate_runners import answered, runner_named
from echoplane._gates import _condition
from tests.audit.bundles import ENVIRONMENT, Ticking, run_of

OWN = Path(__file__).resolve().parents[1] / "data" / "evaluation_own.json"
LOCOMO: DataSet = data_set_named("locomo")


def test_answers_of_the_same_words_are_one_and_no_word_may_be_more_or_less():
    assert words_digest("a red Boat") == words_digest(["boat", "A red"]) == words_digest("Red a, boat!")
    assert words_digest(900) == words_digest("900")
    assert len({words_digest(one) for one in ("boat", "a boat", "red boat", "", None)}) == 5


@pytest.mark.usefixtures("discovery", "folding")
async def test_what_is_claimed_is_counted_and_strictly_scored_after_it_is_sealed(
    plane, tmp_path, monkeypatch
):
    [history] = LOCOMO.read(OWN)
    told = await tell(plane, history, set_name="answers")
    run = run_of(name="answers", data_set="locomo", arms=("echoplane",))
    with BundleRecorder.open(tmp_path, run=run, clock=Ticking(), environment=ENVIRONMENT) as recorder:
        for place in range(4):
            recorder.predict(*await answered(plane, told, place, name=f"h0q{place}", arm="echoplane"))

        async def fail(self, *_, **__):
            raise Unavailable(part="database", reason="gone")

        monkeypatch.setattr(type(plane.path), "ask", fail)
        recorder.predict(*await answered(plane, told, 4, name="h0q4", arm="echoplane"))
        recorder.seal()
        rows = recorder.score(gold_lines(LOCOMO, OWN, answers=True))
        names = ("claimed", "strict-accuracy", "false-abstentions", "failed")
        formulas = [_condition(f"{name} >= 0", arm="echoplane", seed=1).formula for name in names]
        bundle = recorder.finish(formulas, {})

    # Where Ann lives is answered; the others ask for what nobody told as a value.
    assert {row.question: row.values.get("correct") for row in rows} == {
        "h0q0": 1, "h0q1": None, "h0q2": None, "h0q3": None, "h0q4": None,
    }  # fmt: skip
    claimed, right, withheld, failed = (measure(formula, rows, {}) for formula in formulas)
    assert (claimed.value, claimed.n) == (0.2, 5)
    assert (right.value, right.n) == (1, 1)
    assert (withheld.value, failed.value) == (0, 0)
    assert b"Ghent" not in (bundle / "predictions.jsonl").read_bytes() + (bundle / "gold.jsonl").read_bytes()
    assert check_bundle(bundle).holds


def test_a_runner_of_answers_reads_gold_with_the_digests_of_answers():
    [*lines] = runner_named("typed-answers", settings=None, say=print).gold(_Of(), OWN)

    assert [line.answer is None for line in lines] == [False, False, False, False, True]
    assert lines[2].answer == words_digest("900")
    assert all(line.answer is None for line in gold_lines(LOCOMO, OWN))


def test_by_a_set_that_says_nothing_nothing_is_right(tmp_path):
    [sample] = json.loads(OWN.read_text())
    sample["qa"][2]["answer"] = ""
    path = tmp_path / "silent.json"
    path.write_text(json.dumps([sample]))

    line = gold_lines(LOCOMO, path, answers=True)[2]

    assert line.answer is None
    assert score_answer(_answering(line.question, words_digest([])), line) == {"correct": 0}


def _answering(question, response):
    return Prediction(
        question=question, history="h0", arm="echoplane", budget=None, ranked=(), sessions=(), scores=(),
        response=response, failure=None,
    )  # fmt: skip


class _Of:
    """As much of a gate as names a set."""

    class run:  # noqa: N801 - a field
        data_set = "locomo"
