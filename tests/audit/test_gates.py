"""A gate is run as it was registered, or not at all; and how it ended stays."""

from __future__ import annotations

import gzip
import json
import shutil

import pytest

from audit import content_digests, register_gate, run_gate
from contracts.artifacts import ModelDigest
from contracts.errors import BadRequest, RunRefused
from contracts.gates import EntryKind
from tests.audit.gates import checked, run


def kinds(gates, name="small"):
    return [entry.kind.value for entry in gates.place.register.of(name)]


async def refused(gates, reason, name="small"):
    """The gate does not run, says why, and no gold was read for it."""
    reads = gates.runner.gold_reads
    with pytest.raises(RunRefused, match=reason):
        await run(gates, name)
    assert gates.runner.gold_reads == reads


async def test_a_gate_seals_then_opens_gold_then_says_how_it_ended(gates):
    gates.registered()

    outcome = await run(gates)

    assert outcome.passed
    assert [(one.value, one.n) for one in outcome.conditions] == [(10 / 12, 12), (12, 12)]
    assert kinds(gates) == ["registered", "begun", "sealed", "opened", "outcome"]
    assert checked(gates) == ()


async def test_a_failed_gate_stays_failed_and_on_record(gates):
    gates.registered(at_least=0.9)

    assert not (await run(gates)).passed
    await refused(gates, "it failed, and that stays")
    with pytest.raises(RunRefused, match="one of this name was registered before"):
        register_gate(gates.place, gates.write(at_least=0.5))
    gates.write(at_least=0.9)
    assert checked(gates) == ()
    assert gates.place.register.read_outcome("small").passed is False


async def test_a_threshold_that_is_lowered_after_registering_is_refused(gates):
    gates.registered(at_least=0.9)
    gates.write(at_least=0.5)

    await refused(gates, "its file is not the one that was registered")


async def test_a_gate_that_was_never_registered_is_refused(gates):
    gates.write()

    await refused(gates, "it was never registered")


async def test_another_data_set_of_the_same_name_is_refused(gates):
    gates.registered()
    gates.beam.turn_gold()

    await refused(gates, "the data is not what was registered")


async def test_a_question_that_is_taken_out_of_the_data_is_refused(gates):
    gates.registered()
    path = gates.beam.path / "1" / "probing_questions.json"
    asked = json.loads(path.read_text())
    asked["summarization"].pop()
    path.write_text(json.dumps(asked))

    await refused(gates, "the data is not what was registered")


async def test_code_that_was_tuned_after_registering_is_refused(gates):
    gates.registered()
    (gates.root / "code" / "ranker.py").write_text("WEIGHT = 2\n")

    await refused(gates, "the code is not what was registered")


async def test_a_file_that_is_added_to_the_code_is_refused(gates):
    gates.registered()
    (gates.root / "code" / "phrases.txt").write_text("words of the questions\n")

    await refused(gates, "the code is not what was registered")


async def test_another_model_is_refused(gates):
    gates.registered()
    gates.runner.model = ModelDigest(name="small", sha256="b" * 64, prompt_sha256=None)

    await refused(gates, "a model is not what was registered")


async def test_predictions_that_are_made_anew_after_the_seal_are_refused(gates):
    """Sealed, cut off before the gold was scored, deleted, and run again with better ones."""
    gates.registered()
    gates.runner.gold = _cut_off
    with pytest.raises(KeyboardInterrupt):
        await run(gates)
    shutil.rmtree(gates.place.out / "small.work")
    gates.runner = type(gates.runner)(gates.beam)
    gates.runner.rank = lambda number, arm: 1

    await refused(gates, "its predictions are not those that were sealed")


async def test_predictions_that_are_edited_after_the_seal_are_refused(gates):
    gates.registered()
    gates.runner.gold = _cut_off
    with pytest.raises(KeyboardInterrupt):
        await run(gates)
    path = gates.place.out / "small.work" / "predictions.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"h0t1000"', b'"h0t11"', 1))
    gates.runner = type(gates.runner)(gates.beam)

    with pytest.raises(RunRefused, match="its predictions are not those that were sealed"):
        await run(gates)


def _cut_off(gate, data, recorder=None):
    raise KeyboardInterrupt


async def test_hard_questions_that_are_left_out_score_zero_and_stay_in_the_denominator(gates):
    gates.registered(at_least=0.9)
    gates.runner.left_out = {"h0q10", "h0q11"}

    outcome = await run(gates)

    assert (outcome.conditions[0].value, outcome.conditions[0].n) == (10 / 12, 12)
    assert not outcome.passed


async def test_hard_questions_that_are_called_not_observable_fail_the_gate(gates):
    gates.registered(at_least=0.9)
    gates.runner.hidden = {"h0q10", "h0q11"}

    outcome = await run(gates)

    assert outcome.conditions[0].value == 1
    assert (outcome.denominators_hold, outcome.passed) == (False, False)


async def test_a_denominator_that_is_not_the_registered_one_fails(gates):
    gates.registered(denominators={"questions": 12, "with_gold": 11})

    outcome = await run(gates)

    assert all(one.passed for one in outcome.conditions)
    assert (outcome.denominators_hold, outcome.passed) == (False, False)


@pytest.mark.parametrize("line", [0, 2, 4])
async def test_a_line_of_the_register_that_is_changed_or_taken_out_breaks_it(gates, line):
    gates.registered(at_least=0.9)
    await run(gates)
    path = gates.root / "gates" / "register.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)

    path.write_bytes(b"".join(lines[:line] + lines[line + 1 :] + [lines[0]]))
    with pytest.raises(RunRefused, match="the register"):
        await run(gates)

    path.write_bytes(b"".join(lines).replace(b'"passed":false', b'"passed":true'))
    with pytest.raises(RunRefused, match="line 5 is not what was written there"):
        await run(gates)


async def test_a_line_that_was_cut_off_while_it_was_written_is_as_if_it_never_was(gates):
    gates.registered()
    path = gates.root / "gates" / "register.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:-1])

    assert gates.place.register.state("small") is EntryKind.REGISTERED
    assert (await run(gates)).passed

    assert kinds(gates) == ["registered", "begun", "sealed", "opened", "outcome"]
    assert path.read_bytes().startswith(whole)


async def test_an_outcome_that_is_cut_off_the_register_is_remembered_by_its_bundle(gates):
    gates.registered(at_least=0.9)
    await run(gates)
    path = gates.root / "gates" / "register.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)

    path.write_bytes(lines[0])

    await refused(gates, "the register does not know its outcome")
    assert checked(gates) == ("a bundle of its run is there, and the register does not know its outcome",)
    # Cut off by one line alone, it ends as it did: the rows are there.
    path.write_bytes(b"".join(lines[:4]))
    assert not (await run(gates)).passed


async def test_an_outcome_or_a_row_that_is_turned_is_found(gates):
    gates.registered(at_least=0.9)
    outcome = await run(gates)
    path = gates.root / "gates" / "small.outcome.json"
    told = path.read_bytes()

    path.write_bytes(told.replace(b'"passed":false', b'"passed":true'))
    assert checked(gates) == ("gate small: its outcome is not the one that was written down",)

    path.write_bytes(told)
    rows = gates.place.out / outcome.bundle / "rows.jsonl"
    rows.write_bytes(rows.read_bytes().replace(b'"hit@10":0', b'"hit@10":1'))
    assert any("its bytes are not those of the manifest" in problem for problem in checked(gates))


async def test_a_set_whose_gold_was_opened_is_not_fresh_whatever_it_is_called_or_packed_as(gates):
    gates.registered("first")
    gates.registered("second", level="fresh confirmatory")
    await run(gates, "first")

    await refused(gates, "its gold was opened before, by gate first", "second")

    path = gates.beam.path / "1" / "probing_questions.json"
    (path.parent / "probing_questions.json.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    gates.beam.path.rename(gates.beam.path.with_name("renamed"))
    gates.beam.path = gates.beam.path.with_name("renamed")
    gates.registered("third", level="fresh confirmatory")
    await refused(gates, "its gold was opened before, by gate first", "third")


async def test_a_set_that_any_run_has_scored_is_not_fresh(gates):
    gates.beam.bundle(gates.place.out)
    gates.registered(level="fresh confirmatory")

    await refused(gates, "its gold was opened before, by run small")

    for path in [one for one in gates.beam.path.rglob("*") if one.is_file()]:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    gates.registered("packed", level="fresh confirmatory")
    await refused(gates, "its gold was opened before, by run small", "packed")


async def test_after_a_failure_what_follows_is_skipped_and_reserved_sets_stay_sealed(gates, small_beam):
    gates.registered("after")
    gates.registered(
        "first",
        at_least=0.9,
        stopping={"skips": ["after"], "reserved": list(content_digests(small_beam.path))[:1]},
    )
    gates.registered("other")
    assert not (await run(gates, "first")).passed

    await refused(gates, "it is skipped, since a gate before it failed", "after")
    assert kinds(gates, "after") == ["registered", "skipped"]
    await refused(gates, "its data stays sealed, since gate first failed", "other")


async def test_a_run_that_was_cut_off_goes_on_under_the_same_code_alone(gates):
    gates.registered()
    gates.runner.gold = _cut_off
    with pytest.raises(KeyboardInterrupt):
        await run(gates)
    assert gates.place.register.state("small") is EntryKind.OPENED
    gates.runner = type(gates.runner)(gates.beam)

    (gates.root / "code" / "ranker.py").write_text("WEIGHT = 2\n")
    await refused(gates, "the code is not what was registered")

    (gates.root / "code" / "ranker.py").write_text("WEIGHT = 1\n")
    assert (await run(gates)).passed
    assert kinds(gates) == ["registered", "begun", "sealed", "opened", "outcome"]


async def test_gates_that_are_run_side_by_side_share_one_register(gates):
    gates.registered("first")
    gates.registered("second")
    one, other = gates.place, gates.place

    await run_gate(one, "first", gates.runner, data=gates.beam.path)
    await run_gate(other, "second", gates.runner, data=gates.beam.path)

    assert [checked(gates, name) for name in ("first", "second")] == [(), ()]
    assert [entry.number for entry in gates.place.register.entries] == list(range(1, 11))


async def test_nothing_that_cannot_be_measured_or_binds_nothing_is_registered(gates):
    formula = {"name": "hit@10", "of": "share", "arm": "ours", "column": "hit@10"}
    unbound = gates.write(conditions=[{"formula": formula, "at_least": None, "at_most": None}])

    with pytest.raises(RunRefused, match="has no threshold"):
        register_gate(gates.place, unbound)
    halved = gates.write(conditions=[{"formula": formula | {"of": "ratio"}, "at_least": 0, "at_most": None}])
    with pytest.raises(BadRequest, match="hit@10"):
        register_gate(gates.place, halved)


async def test_a_gate_that_passed_stops_nothing_and_one_that_was_begun_is_stopped(gates, small_beam):
    stopping = {"skips": ["after"], "reserved": list(content_digests(small_beam.path))}
    gates.registered("after")
    gates.registered("good", stopping=stopping)
    gates.registered("bad", at_least=0.9, stopping=stopping)
    assert (await run(gates, "good")).passed
    whole, gates.runner.predict = gates.runner.predict, _cut_off
    with pytest.raises(KeyboardInterrupt):
        await run(gates, "after")
    gates.runner.predict = whole
    assert kinds(gates, "after") == ["registered", "begun"]

    assert not (await run(gates, "bad")).passed

    assert kinds(gates, "after") == ["registered", "begun", "skipped"]


async def test_a_fresh_gate_that_was_cut_off_after_it_opened_gold_goes_on(gates):
    gates.registered(level="fresh confirmatory")
    whole, gates.runner.gold = gates.runner.gold, _cut_off
    with pytest.raises(KeyboardInterrupt):
        await run(gates)
    gates.runner.gold = whole

    assert (await run(gates)).passed


async def test_a_set_of_which_one_file_was_opened_is_not_fresh(gates):
    gates.registered("first")
    await run(gates, "first")
    (gates.beam.path / "more.txt").write_text("a file more")
    gates.registered("second", level="fresh confirmatory")

    await refused(gates, "its gold was opened before, by gate first", "second")


async def test_a_set_that_was_scored_packed_is_not_fresh_packed(gates):
    for path in [one for one in gates.beam.path.rglob("*") if one.is_file()]:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()
    gates.beam.bundle(gates.place.out)
    gates.registered(level="fresh confirmatory")

    await refused(gates, "its gold was opened before, by run small")
