"""What an evaluation prints: a line an arm, and three lines that sum it up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from contracts.artifacts import FormulaKind, Measure
from echoplane._evaluation_arms import OURS

if TYPE_CHECKING:
    from echoplane._evaluation import Evaluated, Wanted

_UNSEEN: Final = "not observable"
_COLUMNS: Final = ("hit@10", "turn-recall@5", "turn-recall@10", "session-recall@10", "mrr", "ndcg@10")


class _Numbers:
    """Measures by arm and name."""

    def __init__(self, measures: Sequence[Measure]) -> None:
        self._found = {(one.formula.arm, one.formula.name): one for one in measures}

    def arms(self) -> list[str]:
        return list(dict.fromkeys(arm for arm, _ in self._found))

    def points(self, arm: str, name: str) -> str:
        """A share in points, with its interval."""
        one = self._found.get((arm, name))
        if one is None or one.value is None:
            return _UNSEEN
        inside = "" if one.low is None else f" [{100 * one.low:.1f}, {100 * (one.high or 0):.1f}]"
        return f"{100 * one.value:.1f}{inside}"

    def short(self, arm: str, name: str) -> str:
        one = self._found.get((arm, name))
        return "—" if one is None or one.value is None else f"{100 * one.value:.1f}"

    def plain(self, arm: str, name: str) -> str:
        one = self._found.get((arm, name))
        return "—" if one is None or one.value is None else f"{one.value:.1f}"

    def count(self, arm: str, name: str) -> int:
        one = self._found.get((arm, name))
        return 0 if one is None else int(one.value or 0)

    def n(self, arm: str, name: str) -> int:
        one = self._found.get((arm, name))
        return 0 if one is None else one.n

    def p(self, arm: str) -> str:
        one = self._found.get((OURS, f"hit@10.mcnemar.{arm}"))
        assert one is None or one.formula.of is FormulaKind.MCNEMAR
        return "" if one is None or one.value is None else f"{one.value:.4f}"

    def difference(self, name: str, arm: str) -> str:
        return self.points(OURS, f"{name}.less.{arm}.questions")


def table(measures: Sequence[Measure], budgets: Sequence[int]) -> Iterator[str]:
    """Yield the measures of each arm, and what ours is better by, in points."""
    numbers = _Numbers(measures)
    ordered = sorted(budgets)
    yield "arm".ljust(34) + " ".join(name.rjust(17) for name in _COLUMNS)
    for arm in numbers.arms():
        yield arm.ljust(34) + " ".join(numbers.short(arm, name).rjust(17) for name in _COLUMNS)
    yield "in a context of tokens: hit / turn recall / whole gold; bytes p50"
    for arm in numbers.arms():
        yield arm.ljust(34) + "   ".join(f"{budget}: {_context(numbers, arm, budget)}" for budget in ordered)
    for arm in numbers.arms():
        if arm != OURS and numbers.p(arm):
            yield (
                f"{OURS} less {arm}: Hit@10 {numbers.difference('hit@10', arm)}, McNemar p {numbers.p(arm)}; "
                f"turn R@10 {numbers.difference('turn-recall@10', arm)}; MRR {numbers.difference('mrr', arm)}"
            )


def _context(numbers: _Numbers, arm: str, budget: int) -> str:
    shares = [numbers.short(arm, f"{name}.b{budget}") for name in ("hit", "turn-recall", "whole-gold")]
    return f"{' / '.join(shares)}; {numbers.plain(arm, f'context_bytes.p50.b{budget}')}"


def summary(evaluated: Evaluated, wanted: Wanted) -> Iterator[str]:
    """Yield the three lines."""
    numbers = _Numbers(evaluated.measures)
    arm = OURS if OURS in wanted.arms else wanted.arms[0]
    questions = len({row.question for row in evaluated.rows})
    ordered = sorted(wanted.budgets)
    yield (
        f"{wanted.data_set.name}: {questions} questions asked, {numbers.n(arm, 'hit@10')} scored, "
        f"{numbers.count(arm, 'failed')} failed, {numbers.count(arm, 'degraded')} degraded, "
        f"{numbers.count(arm, 'late')} late routes, "
        f"{evaluated.recorded.get('projection_failures', 'unknown')} projection failures; "
        f"sealed {evaluated.sealed[:16]}, bundle {evaluated.bundle.name}"
    )
    ranked = (
        ("Hit@10", "hit@10"), ("turn R@5", "turn-recall@5"), ("R@10", "turn-recall@10"),
        ("session R@10", "session-recall@10"), ("MRR", "mrr"), ("NDCG@10", "ndcg@10"),
    )  # fmt: skip
    times = "/".join(numbers.plain(arm, f"query_ms.{word}") for word in ("p50", "p95", "p99"))
    yield (
        ", ".join(f"{words} {numbers.points(arm, name)}" for words, name in ranked)
        + f"; query p50/p95/p99 {times} ms"
    )
    contexts = (
        f"{budget}: {numbers.short(arm, f'hit.b{budget}')}/{numbers.short(arm, f'turn-recall.b{budget}')}/"
        f"{numbers.short(arm, f'whole-gold.b{budget}')}"
        for budget in ordered
    )
    packed = ", ".join(contexts) or "none was packed"
    yield f"context hit/turn recall/whole gold at tokens {packed}"
