"""The numbers of an evaluation: each by a formula that stands in the bundle beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from contracts.artifacts import Formula, FormulaKind, Unit

SEED: Final = 20_260_501
"""Of every bootstrap; a date, and as good as any number."""
_QUANTILES: Final = ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))
_RANKED: Final = (
    ("hit@5", FormulaKind.SHARE, "hit@5", None),
    ("hit@10", FormulaKind.SHARE, "hit@10", None),
    ("turn-recall@5", FormulaKind.RATIO, "turns_found@5", "turns_gold"),
    ("turn-recall@10", FormulaKind.RATIO, "turns_found@10", "turns_gold"),
    ("turn-recall@50", FormulaKind.RATIO, "turns_found@50", "turns_gold"),
    ("session-recall@5", FormulaKind.RATIO, "sessions_found@5", "sessions_gold"),
    ("session-recall@10", FormulaKind.RATIO, "sessions_found@10", "sessions_gold"),
    ("mrr", FormulaKind.MEAN, "reciprocal_rank", None),
    ("ndcg@10", FormulaKind.MEAN, "ndcg@10", None),
)
_SHOWN: Final = (
    ("hit", FormulaKind.SHARE, "hit", None),
    ("turn-recall", FormulaKind.RATIO, "turns_shown", "turns_gold"),
    ("turn-recall-whole", FormulaKind.RATIO, "turns_shown_whole", "turns_gold"),
    ("whole-gold", FormulaKind.SHARE, "whole_gold", None),
)
_OF_KINDS: Final = frozenset({"hit@10", "turn-recall@10", "mrr"})
_COMPARED: Final = frozenset({"hit@10", "turn-recall@5", "turn-recall@10", "mrr", "ndcg@10"})
_COMPARED_SHOWN: Final = frozenset({"hit", "turn-recall", "whole-gold"})
_TIMES: Final = ("query_ms", "query_ms_without_dense", "propose_ms")
_SIZES: Final = ("tokens", "context_bytes")


def formulas(
    arms: Sequence[str], budgets: Sequence[int | None], kinds: Sequence[tuple[str, bool]], *, ours: str
) -> list[Formula]:
    """
    Return every number of a run: of each arm alone, by kind, and of ours beside each other arm.

    Args:
        kinds: Of questions, each with whether its set reports it apart.
    """
    found: list[Formula] = []
    for arm in arms:
        found += _of_arm(arm, budgets, kinds)
        if arm != ours and ours in arms:
            found += _beside(ours, arm, budgets)
    return found


def _of_arm(arm: str, budgets: Sequence[int | None], kinds: Sequence[tuple[str, bool]]) -> Iterator[Formula]:
    for name, of, column, over in _RANKED:
        yield _formula(name, of, arm, column=column, over=over)
        for kind, apart in kinds if name in _OF_KINDS else ():
            yield _formula(f"{name}.{kind}", of, arm, column=column, over=over, kind=kind, apart=apart)
    for budget in budgets:
        if budget is not None:
            for name, of, column, over in _SHOWN:
                yield _formula(f"{name}.b{budget}", of, arm, column=column, over=over, budget=budget)
            for column in _SIZES:
                for quantile, word in _QUANTILES[:2]:
                    yield _formula(
                        f"{column}.{word}.b{budget}", FormulaKind.QUANTILE, arm,
                        column=column, quantile=quantile, budget=budget, apart=None,
                    )  # fmt: skip
    for column in _TIMES:
        for quantile, word in _QUANTILES:
            yield _formula(
                f"{column}.{word}", FormulaKind.QUANTILE, arm, column=column, quantile=quantile, apart=None
            )
    for column in ("failed", "degraded", "late"):
        yield _formula(column, FormulaKind.SUM, arm, column=column, apart=None)


def _beside(ours: str, other: str, budgets: Sequence[int | None]) -> Iterator[Formula]:
    yield _formula(f"hit@10.mcnemar.{other}", FormulaKind.MCNEMAR, ours, column="hit@10", against=other)
    for unit in Unit:
        for name, of, column, over in _RANKED:
            if name in _COMPARED:
                yield _formula(
                    f"{name}.less.{other}.{unit.value}", of, ours,
                    column=column, over=over, against=other, unit=unit,
                )  # fmt: skip
        for budget in budgets:
            for name, of, column, over in _SHOWN if budget is not None else ():
                if name in _COMPARED_SHOWN:
                    yield _formula(
                        f"{name}.b{budget}.less.{other}.{unit.value}", of, ours,
                        column=column, over=over, against=other, unit=unit, budget=budget,
                    )  # fmt: skip


def _formula(
    name: str,
    of: FormulaKind,
    arm: str,
    *,
    column: str,
    over: str | None = None,
    quantile: float | None = None,
    against: str | None = None,
    budget: int | None = None,
    kind: str | None = None,
    apart: bool | None = False,
    unit: Unit = Unit.QUESTIONS,
) -> Formula:
    return Formula(
        name=name, of=of, arm=arm, column=column, over=over, quantile=quantile, against=against,
        budget=budget, kind=kind, apart=apart, unit=unit, seed=SEED,
    )  # fmt: skip
