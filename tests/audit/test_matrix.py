"""No model is asked over another context than the frozen one."""

from __future__ import annotations

import pytest

from audit import check_matrix, read_matrix, write_matrix
from contracts.artifacts import ContextCell
from contracts.errors import RunRefused


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
        ([*PARENT, cell("h0q2")], "h0q2 of ours under 768: is new"),
        ([*PARENT, PARENT[0]], "a cell stands twice"),
    ],
)
def test_a_cell_too_few_or_too_many_voids_the_run(rebuilt, said):
    with pytest.raises(RunRefused, match=said):
        check_matrix(PARENT, rebuilt)
