"""Small runs for the tests of bundles and gates: three histories, three arms' worth of rankings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from audit import BundleRecorder
from contracts.artifacts import (
    CodeDigest,
    Environment,
    Formula,
    GoldLine,
    Prediction,
    RunDescription,
)

ENVIRONMENT = Environment(
    python="3.11.7", system="linux", machine="x86_64", cpus=2, libraries={"numpy": "2.4.6"}
)


class Ticking:
    """A clock that goes on by a second whenever it is looked at."""

    def __init__(self):
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self):
        self.now += timedelta(seconds=1)
        return self.now


def run_of(**changes):
    given = {
        "name": "small",
        "level": "visible development",
        "data_set": "made",
        "data": (),
        "code": CodeDigest(packages=("audit",), sha256="0" * 64),
        "models": (),
        "configuration": {"top_k": 10},
        "arms": ("ours", "bm25"),
        "budgets": (None,),
        "seed": 7,
        "gate": None,
    }
    return RunDescription.model_validate({**given, **changes})


def gold_of(questions=12):
    """Question n of history n % 3 has its gold at turn n, and every third one at turn n + 1 too."""
    return [
        GoldLine(
            question=f"h{n % 3}q{n}",
            kind="hard" if n % 4 == 0 else "easy",
            apart=False,
            turns=tuple(f"h{n % 3}t{n + m}" for m in range(2 if n % 3 == 0 else 1)),
            sessions=(f"h{n % 3}s{n // 5}",),
        )
        for n in range(questions)
    ]


def prediction_of(line, arm, *, rank):
    """A ranking of twelve turns with the gold at `rank` (from 1); 0 is a failure."""
    history, _, number = line.question.partition("q")
    others = [f"{history}t{1_000 + place}" for place in range(12)]
    ranked = [] if rank == 0 else [*others[: rank - 1], f"{history}t{number}", *others[rank - 1 :]][:12]
    return Prediction(
        question=line.question,
        history=history,
        arm=arm,
        budget=None,
        ranked=tuple(ranked),
        sessions=tuple(f"{history}s{int(number) // 5}" for _ in ranked),
        scores=tuple(1.0 / place for place, _ in enumerate(ranked, start=1)),
        response=None,
        failure="timeout" if rank == 0 else None,
    )


def rank_of(number, arm):
    return (number % 12) + 1 if arm == "ours" else (number * 5) % 13


FORMULAS = (
    Formula(name="questions", of="count", arm="ours"),
    Formula(name="hit@10", of="share", arm="ours", column="hit@10"),
    Formula(name="turn_recall@5", of="ratio", arm="ours", column="turns_found@5", over="turns_gold", seed=3),
    Formula(name="mrr", of="mean", arm="ours", column="reciprocal_rank"),
    Formula(name="query_ms_p95", of="quantile", arm="ours", column="query_ms", quantile=0.95),
    Formula(name="hit@10-less-bm25", of="share", arm="ours", against="bm25", column="hit@10"),
    Formula(
        name="hit@10-less-bm25-by-history",
        of="share", arm="ours", against="bm25", column="hit@10", unit="histories", stratified=True,
    ),
    Formula(name="mcnemar", of="mcnemar", arm="ours", against="bm25", column="hit@10"),
    Formula(name="failures", of="sum", arm="ours", column="failed"),
)  # fmt: skip


def predict(recorder, gold=None):
    for line in gold or gold_of():
        for arm in ("ours", "bm25"):
            number = int(line.question.partition("q")[2])
            prediction = prediction_of(line, arm, rank=rank_of(number, arm))
            if prediction.key not in recorder.done:
                recorder.predict(prediction, {"query_ms": 10 + number})


def bundle(out, **changes):
    """A finished bundle below a folder."""
    with BundleRecorder.open(
        out, run=run_of(**changes), clock=Ticking(), environment=ENVIRONMENT
    ) as recorder:
        predict(recorder)
        recorder.seal()
        recorder.score(gold_of())
        return recorder.finish(FORMULAS, {"index_build_ms": 12.5})
