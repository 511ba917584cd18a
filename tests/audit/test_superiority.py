"""Superiority is claimed where every condition of the paper's appendix A is met, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from audit import run_gate, superiority
from audit._superiority import questions_needed
from contracts.artifacts import ModelDigest
from tests.audit.gates import Gates, Runner

ANSWERER = ModelDigest(name="answerer", sha256="c" * 64, prompt_sha256="d" * 64)
JUDGE = ModelDigest(name="judge", sha256="e" * 64, prompt_sha256="f" * 64)
WHOLE = {
    "arm": "ours",
    "baseline": "bm25",
    "answerer": ANSWERER.model_dump(),
    "judge": JUDGE.model_dump(),
    "calibration": {"people": 2, "labels": 120, "labels_sha256": "1" * 64, "agreement": 0.71},
    # Twelve questions are enough where every pair is decided for one arm.
    "power": {"effect": 0.75, "discordant": 0.8, "power": 0.8},
    "non_regression": ["before"],
}


def difference(unit):
    formula = {
        "name": f"correct-{unit}", "of": "share", "arm": "ours", "against": "bm25", "column": "correct",
        "unit": unit,
    }  # fmt: skip
    return {"formula": formula, "at_least": 0.0, "at_most": None, "held": "low"}


class Answering(Runner):
    """Ours is right but once, the baseline wrong but twice."""

    def models(self):
        return (ANSWERER, JUDGE)

    def values(self, number, arm):
        return {"correct": int(number != 0) if arm == "ours" else int(number in {1, 2})}


@pytest.fixture
def gates(tmp_path, small_beam):
    made = Gates(tmp_path / "repository", small_beam)
    made.runner = Answering(small_beam)
    made.models = (ANSWERER, JUDGE)
    return made


async def claimed(gates, *, before_first=True, level="fresh confirmatory", **changes):
    comparison = changes.pop("comparison", WHOLE)
    changes = {"conditions": [difference("questions"), difference("histories")], **changes}
    if before_first:
        gates.registered("before", level="frozen candidate")
    gates.registered("claim", level=level, comparison=comparison, **changes)
    await run_gate(gates.place, "claim", gates.runner, data=gates.beam.path)
    if not before_first:
        gates.registered("before", level="frozen candidate")
    await run_gate(gates.place, "before", gates.runner, data=gates.beam.path)
    return superiority(gates.place.register, "claim", out=gates.place.out)


async def test_a_gate_that_meets_every_condition_words_the_claim(gates):
    claim = await claimed(gates)

    assert claim.missing == ()
    assert claim.text.startswith("ours answers more questions correctly than bm25: 75.00 points (")
    assert "n = 12, of beam, by gate claim" in claim.text


@pytest.mark.parametrize(
    ("part", "value", "missing"),
    [
        ("answerer", None, "a frozen answerer"),
        ("answerer", {**ANSWERER.model_dump(), "prompt_sha256": None}, "a frozen answerer"),
        ("judge", {**JUDGE.model_dump(), "sha256": "0" * 64}, "a frozen judge"),
        ("calibration", None, "a human-calibrated judge"),
        ("calibration", {**WHOLE["calibration"], "people": 1}, "a human-calibrated judge"),
        ("calibration", {**WHOLE["calibration"], "agreement": 0.59}, "a human-calibrated judge"),
        ("power", None, "a sufficiently powered baseline"),
        ("power", {"effect": 0.1, "discordant": 0.3, "power": 0.8}, "234 questions are needed, 12 are asked"),
        ("baseline", "mem0", "a protocol-matched baseline"),
        ("calibration", {**WHOLE["calibration"], "labels": 119}, "a human-calibrated judge"),
        ("power", {**WHOLE["power"], "power": 0.79}, "a sufficiently powered baseline: an effect"),
        ("power", {**WHOLE["power"], "effect": 0.0}, "a sufficiently powered baseline: an effect"),
        ("power", {**WHOLE["power"], "effect": 0.9}, "a sufficiently powered baseline: an effect"),
        ("baseline", "ours", "a protocol-matched baseline"),
        ("non_regression", [], "non-regression gates"),
        ("non_regression", ["never"], "non-regression gate never, registered before answers were opened"),
    ],
)
async def test_without_one_condition_there_is_no_claim_and_the_text_says_which(gates, part, value, missing):
    claim = await claimed(gates, comparison={**WHOLE, part: value})

    assert any(one.startswith(missing) or missing in one for one in claim.missing)
    assert claim.text.startswith("Gate claim supports no claim of superiority. Missing:\n- ")


@pytest.mark.parametrize("level", ["visible development", "frozen candidate", "stage retrieval"])
async def test_nothing_but_a_fresh_source_supports_a_claim(gates, level):
    claim = await claimed(gates, level=level)

    assert claim.missing == (f"a fresh source: this gate is at the level {level}",)


async def test_a_model_without_the_digest_of_its_prompt_is_not_frozen(gates):
    bare = ANSWERER.model_copy(update={"prompt_sha256": None})
    gates.models = (bare, JUDGE)
    gates.runner.models = lambda: gates.models

    claim = await claimed(gates, comparison={**WHOLE, "answerer": bare.model_dump()})

    assert claim.missing == ("a frozen answerer: a model of the run, with the digest of its prompt",)


async def test_without_a_comparison_or_an_outcome_or_a_record_that_holds_there_is_no_claim(gates):
    claim = await claimed(gates, comparison=None)
    assert claim.missing == ("a comparison: which arm, against which baseline, read and judged by what",)

    gates.registered("later", comparison=WHOLE)
    not_run = superiority(gates.place.register, "later", out=gates.place.out)
    assert "an outcome" in not_run.missing

    (rows,) = gates.place.out.glob("claim-*/rows.jsonl")
    rows.write_bytes(rows.read_bytes().replace(b"0", b"1", 1))
    touched = superiority(gates.place.register, "claim", out=gates.place.out)
    assert touched.missing[0].startswith("a record that holds: bundle claim-")


@pytest.mark.parametrize("before", [True, False], ids=["it failed", "it was not run"])
async def test_a_non_regression_gate_that_did_not_pass_supports_no_claim(gates, before):
    gates.registered("before", level="frozen candidate", at_least=0.9)
    gates.runner.rank = lambda number, arm: 0
    gates.registered(
        "claim", level="fresh confirmatory", comparison=WHOLE,
        conditions=[difference("questions"), difference("histories")],
    )  # fmt: skip
    await run_gate(gates.place, "claim", gates.runner, data=gates.beam.path)
    if before:
        await run_gate(gates.place, "before", gates.runner, data=gates.beam.path)

    claim = superiority(gates.place.register, "claim", out=gates.place.out)

    assert claim.missing == ("non-regression gate before, passed",)


@pytest.mark.parametrize(
    ("formula", "condition"),
    [
        ({"arm": "dense"}, {}),
        ({"against": "dense"}, {}),
        ({"kind": "easy"}, {}),
        ({}, {"held": "value"}),
        ({}, {"at_least": 0.99}),
    ],
    ids=["another arm", "another baseline", "one kind", "not the lower bound", "it failed"],
)
async def test_a_condition_on_another_difference_supports_no_claim(gates, formula, condition):
    gates.runner.values = lambda number, arm: {"correct": int(arm != "bm25" or number == 1)}
    if "against" in formula:
        gates.runner.values = lambda number, arm: {"correct": int(arm == "ours" or number == 1)}
    wrong = difference("questions") | condition
    wrong["formula"] |= formula
    kinds = {line.kind for line in gates.runner.gold(None, gates.beam.path)}
    if "kind" in formula:
        wrong["formula"]["kind"] = min(kinds)
    gates.arms = ("ours", "bm25", "dense")

    claim = await claimed(gates, conditions=[wrong, difference("histories")])

    assert claim.missing[-1] == "a condition that the difference of `correct` is above zero over questions"


async def test_a_difference_of_nothing_supports_no_claim_whatever_threshold_was_set(gates):
    gates.runner.values = lambda number, arm: {"correct": 1}
    nothing = [difference(unit) | {"at_least": -1.0} for unit in ("questions", "histories")]

    claim = await claimed(gates, conditions=nothing)

    assert len(claim.missing) == 2


async def test_a_non_regression_gate_that_was_fixed_after_answers_were_opened_supports_no_claim(gates):
    claim = await claimed(gates, before_first=False)

    assert claim.missing == ("non-regression gate before, registered before answers were opened",)


async def test_retrieval_never_stands_for_answers(gates):
    retrieval = difference("questions")
    retrieval["formula"]["column"] = "hit@10"
    gates.runner.rank = lambda number, arm: 1 if arm == "ours" else 0

    claim = await claimed(gates, conditions=[retrieval, difference("histories")])

    assert claim.missing == ("a condition that the difference of `correct` is above zero over questions",)


async def test_a_failed_gate_supports_no_claim(gates):
    claim = await claimed(gates, denominators={"questions": 13, "with_gold": 12})

    assert claim.missing == ("a gate that passed: this one failed", "zero denominator drift")


@pytest.mark.parametrize(
    ("effect", "discordant", "power"), [(0.1, 0.3, 0.8), (0.2, 0.4, 0.9), (0.05, 0.1, 0.8)]
)
def test_so_many_questions_have_the_power_that_was_asked_for(effect, discordant, power):
    """Summed over every number of discordant pairs and every split of them that McNemar's test can see."""
    n = questions_needed(effect=effect, discordant=discordant, power=power)
    share = (discordant + effect) / 2 / discordant

    def seen(pairs):
        split = np.arange(pairs + 1)
        seen = (2 * split - pairs) ** 2 > stats.chi2.ppf(0.95, 1) * pairs
        return float(stats.binom.pmf(split, pairs, share)[seen].sum())

    pairs = np.arange(n + 1)
    found = sum(
        chance * seen(many) for many, chance in zip(pairs, stats.binom.pmf(pairs, n, discordant), strict=True)
    )

    assert found == pytest.approx(power, abs=0.03)
