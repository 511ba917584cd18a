"""What a run records: nothing is lost, nothing is scored before it is sealed, nothing is said in words."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from audit import BundleRecorder
from audit._bundle import scored_rows
from contracts.artifacts import NOT_OBSERVABLE, GoldLine, Prediction, Row
from contracts.errors import RunRefused
from tests.audit.bundles import (
    ENVIRONMENT,
    FORMULAS,
    Ticking,
    bundle,
    gold_of,
    predict,
    prediction_of,
    run_of,
)


def opened(folder, **changes):
    return BundleRecorder.open(folder, run=run_of(**changes), clock=Ticking(), environment=ENVIRONMENT)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_same_run_is_the_same_predictions_in_whatever_order_they_came(tmp_path):
    with opened(tmp_path / "one") as one, opened(tmp_path / "other") as other:
        predict(one)
        predict(other, gold=gold_of()[::-1])

        assert one.seal() == other.seal()


def test_a_run_is_written_by_one_at_a_time_and_goes_on_once_that_one_is_gone(tmp_path):
    with opened(tmp_path) as first:
        with pytest.raises(RunRefused, match="another process is writing it"):
            opened(tmp_path)
        predict(first)

    with opened(tmp_path) as next_one:
        assert len(next_one.done) == len(first.done)


def test_gold_is_not_read_before_the_predictions_are_sealed_and_nothing_is_predicted_after(tmp_path):
    def gold():
        pytest.fail("gold was read")
        yield

    with opened(tmp_path) as recorder:
        predict(recorder)

        with pytest.raises(RunRefused, match="not those that were sealed"):
            recorder.score(gold())

        recorder.seal()
        with pytest.raises(RunRefused, match="are sealed"):
            recorder.predict(prediction_of(gold_of(99)[98], "ours", rank=1), {})


def test_predictions_that_were_changed_after_the_seal_are_not_scored(tmp_path):
    with opened(tmp_path) as recorder:
        predict(recorder)
        recorder.seal()
        path = recorder.folder / "predictions.jsonl"
        path.write_bytes(path.read_bytes().replace(b'"h0t0"', b'"h0t7"'))

        with pytest.raises(RunRefused, match="not those that were sealed"):
            recorder.score(gold_of())


def test_a_failure_and_a_question_without_a_prediction_score_zero_and_stay_in_the_denominator(tmp_path):
    with opened(tmp_path) as recorder:
        predict(recorder, gold=gold_of()[:-1])
        recorder.seal()
        rows = recorder.score(gold_of())

    ours = [row for row in rows if row.arm == "ours"]
    assert len(ours) == 12
    assert ours[-1].failure == "missing"
    assert (ours[-1].values["hit@10"], ours[-1].values["failed"]) == (0, 1)
    theirs = next(row for row in rows if row.arm == "bm25" and row.failure == "timeout")
    assert (theirs.values["hit@10"], theirs.values["reciprocal_rank"], theirs.values["turns_gold"]) == (
        0,
        0.0,
        2,
    )


@pytest.mark.parametrize("cut", [1, 40, -2, -1])
def test_an_interrupted_run_goes_on_with_what_is_whole_and_keeps_the_broken_line(tmp_path, cut):
    with opened(tmp_path) as recorder:
        predict(recorder, gold=gold_of()[:6])
        path = recorder.folder / "predictions.jsonl"
    *whole, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole) + last[:cut])

    with opened(tmp_path) as recorder:
        assert len(recorder.done) == 11
        predict(recorder)
        recorder.seal()
        recorder.score(gold_of())
        found = recorder.finish(FORMULAS, {})

    lost = lines(found / "lost.jsonl")
    assert [(one["file"], one["line"], bytes.fromhex(one["raw_hex"])) for one in lost] == [
        ("predictions.jsonl", 12, last[:cut])
    ]
    assert json.loads((found / "manifest.json").read_text())["resumed_count"] == 1
    assert (found / "rows.jsonl").read_bytes() == (bundle(tmp_path / "whole") / "rows.jsonl").read_bytes()


def test_a_run_does_not_go_on_with_what_another_run_left(tmp_path):
    with opened(tmp_path) as recorder:
        predict(recorder)

    with pytest.raises(RunRefused, match="another one of this name"):
        opened(tmp_path, seed=8)


def test_a_bundle_has_the_address_of_its_manifest(tmp_path):
    one, same = bundle(tmp_path / "one"), bundle(tmp_path / "same")
    other = bundle(tmp_path / "other", seed=8)

    assert one.name == same.name
    assert one.name != other.name
    assert sorted(path.name for path in one.iterdir()) == [
        "costs.jsonl", "gold.jsonl", "lost.jsonl", "manifest.json", "measures.jsonl", "predictions.jsonl",
        "rows.jsonl",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "What did Ann say?"},
        {"question": "answer_4be1"},
        {"failure": "Ann lives in Lyon"},
        {"values": {"hit": "yes"}},
        {"note": "x"},
    ],
)
def test_no_field_of_a_row_can_hold_a_sentence_or_a_public_id(changes):
    row = {
        "question": "h0q0", "history": "h0", "arm": "ours", "budget": None, "kind": "easy", "apart": False,
        "failure": None, "values": {"hit@10": 1},
    }  # fmt: skip
    Row.model_validate(row)

    with pytest.raises(ValidationError):
        Row.model_validate({**row, **changes})


def test_a_context_is_scored_by_what_it_shows_and_what_an_arm_cannot_show_is_left_out(tmp_path):
    line = GoldLine(question="h0q0", kind="easy", apart=False, turns=("h0t1", "h0t2"), sessions=("h0s1",))
    run = run_of(arms=("ours", "full"), budgets=(768,))
    cell = {"question": "h0q0", "history": "h0", "budget": 768, "response": None}
    shown = Prediction(
        **cell, arm="ours", ranked=("h0t1", "h0t2"), sessions=("h0s1", "h0s1"), scores=(1, 0), failure=None
    )
    hidden = Prediction(**cell, arm="full", ranked=(), sessions=(), scores=(), failure=NOT_OBSERVABLE)

    ours, full, missing = [
        scored_rows(run, [line], predictions, [])[place].values
        for place, predictions in ((0, [shown, hidden]), (1, [shown, hidden]), (0, []))
    ]

    assert ours == {
        "turns_gold": 2, "turns_shown": 2, "turns_shown_whole": 1, "hit": 1, "whole_gold": 1, "failed": 0,
    }  # fmt: skip
    assert full == {"failed": 0}
    assert missing == {
        "turns_gold": 2, "turns_shown": 0, "turns_shown_whole": 0, "hit": 0, "whole_gold": 0, "failed": 1,
    }  # fmt: skip
