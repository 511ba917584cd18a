"""No model is asked over another context than the frozen one."""

from __future__ import annotations

import pytest

from audit import ContextRecorder, check_contexts, check_matrix, digest_of_lines, read_matrix, write_matrix
from contracts.artifacts import ContextCell
from contracts.errors import RunRefused
from contracts.qa import QaCell
from echoplane._cli import execute


def cell(question="h0q0", arm="ours", budget=768, **changes):
    fields = {
        "question": question, "history": "h0", "arm": arm, "budget": budget, "context_sha256": "a" * 64,
        "tokens": 700, "context_bytes": 2_900, "sources": ("h0t1", "h0t4"), "found": 64, "packed": 2,
        "deferred": 3, "truncated": False, "trace_sha256": "b" * 64, "retrieval_us": 41_000,
        "provider": "echoplane", "failure": None,
    }  # fmt: skip
    return ContextCell(**{**fields, **changes})


PARENT = [cell(), cell(budget=2_048), cell(arm="bm25"), cell("h0q1")]
CHANGES = {
    "history": "h1", "context_sha256": "c" * 64, "tokens": 701, "context_bytes": 2_901,
    "sources": ("h0t4", "h0t1"), "found": 65, "packed": 1, "deferred": 2, "truncated": True,
    "trace_sha256": None, "retrieval_us": 41_001, "provider": "bm25", "failure": "timeout",
}  # fmt: skip


def test_the_same_matrix_in_any_order_goes_on(tmp_path):
    write_matrix(tmp_path / "matrix.jsonl", PARENT)

    check_matrix(read_matrix(tmp_path / "matrix.jsonl"), PARENT[::-1])


@pytest.mark.parametrize("field", CHANGES)
def test_one_field_of_one_cell_voids_the_run_and_is_named(field):
    rebuilt = [*PARENT[:3], cell("h0q1", **{field: CHANGES[field]})]

    with pytest.raises(RunRefused, match=f"h0q1 of ours under 768: {field}$"):
        check_matrix(PARENT, rebuilt)


def test_every_field_is_compared():
    assert {*CHANGES, "question", "arm", "budget"} == set(ContextCell.model_fields)


@pytest.mark.parametrize(
    ("rebuilt", "said"),
    [
        (PARENT[:3], "h0q1 of ours under 768: is missing"),
        (None, "a cell stands twice"),
        ([*PARENT, cell("h0q2")], "h0q2 of ours under 768: is new"),
        ([*PARENT, PARENT[0]], "a cell stands twice"),
    ],
)
def test_a_cell_too_few_or_too_many_voids_the_run(rebuilt, said):
    with pytest.raises(RunRefused, match=said):
        check_matrix(PARENT if rebuilt else [*PARENT, PARENT[0]], rebuilt or PARENT)


def test_a_matrix_is_held_against_its_parent_by_a_command(tmp_path, capsys):
    parent, same, other = (str(tmp_path / f"{name}.jsonl") for name in ("parent", "same", "other"))
    many = [*PARENT, *(cell(f"h1q{number}") for number in range(12))]
    write_matrix(tmp_path / "parent.jsonl", many)
    write_matrix(tmp_path / "same.jsonl", many[::-1])
    write_matrix(
        tmp_path / "other.jsonl", [cell(one.question, one.arm, one.budget, tokens=1) for one in many]
    )

    assert (execute(["audit", "matrix", parent, same]), capsys.readouterr().out) == (
        0,
        "the same: 16 cells\n",
    )
    assert execute(["audit", "matrix", parent, other]) == 2
    said = capsys.readouterr().err
    assert "is not its frozen parent: h0q0 of bm25 under 768: tokens; h0q0 of ours under 768: tokens;" in said
    assert "(and 6 more)" in said
    assert execute(["audit", "matrix", parent, str(tmp_path / "none")]) == 2
    # Frozen in one order, whatever order it was made in.
    assert (tmp_path / "parent.jsonl").read_bytes() == (tmp_path / "same.jsonl").read_bytes()


def words(frozen, *, lines=("[e1] one", "[e2] two")):
    return QaCell(
        question=frozen.question, arm=frozen.arm, budget=frozen.budget, text="Where?", lines=list(lines),
        tokens=frozen.tokens,
    )  # fmt: skip


FROZEN = [cell(number, context_sha256=digest_of_lines(words(cell()).lines)) for number in ("h0q0", "h0q1")]


def test_no_model_is_asked_over_a_context_that_is_not_the_frozen_one():
    given = [words(one) for one in FROZEN]
    failed = cell("h0q9", context_sha256=None, failure="timeout")

    check_contexts([*FROZEN, failed], given)

    for others in (
        [given[0], words(FROZEN[1], lines=("[e1] one",))],
        [given[0], given[1].model_copy(update={"tokens": 1})],
    ):
        with pytest.raises(RunRefused, match=r"is not its frozen parent: h0q1 of ours under 768$"):
            check_contexts(FROZEN, others)
    for fewer, more in ((FROZEN, given[:1]), (FROZEN[:1], given)):
        with pytest.raises(RunRefused, match="h0q1 of ours"):
            check_contexts(fewer, more)


def test_contexts_of_a_run_that_was_cut_off_stand_once_and_none_is_missing(tmp_path):
    recorder = ContextRecorder.open(tmp_path)
    recorder.add(words(FROZEN[1]), FROZEN[1])
    with (tmp_path / "contexts.jsonl").open("ab") as file:
        file.write(b'{"question": "h0q')

    again = ContextRecorder.open(tmp_path)
    again.add(words(FROZEN[1]), FROZEN[1])
    keys = [one.key for one in FROZEN]
    with pytest.raises(RunRefused, match="1 of 2 are not there: the run was begun without them"):
        again.finish(keys)
    again.add(words(FROZEN[0]), FROZEN[0])

    assert again.finish(keys) == 2
    assert read_matrix(tmp_path / "matrix.jsonl") == FROZEN
    lines = (tmp_path / "contexts.jsonl").read_bytes().splitlines()
    assert [QaCell.model_validate_json(line).key for line in lines] == keys
