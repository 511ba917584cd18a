"""Whether an answer is what the oracle says, and a table of how often."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, Final

from audit._statistics import wilson
from contracts.answers import Answer
from tests.answers.asking import MISSING, Asked

RIGHT: Final = "right"
WRONG: Final = "wrong"
STALE: Final = "stale"
ABSTAINED: Final = "rightly withheld"
FALSE: Final = "wrongly withheld"
UNCLAIMED: Final = "not claimed"
VERDICTS: Final = (RIGHT, ABSTAINED, UNCLAIMED, FALSE, WRONG, STALE)


def judge(asked: Asked, answer: Answer) -> str:
    """
    Return how an answer compares with the truth.

    Stale is a value that the cell had at another time. A wording that is not claimed hands out
    evidence, or has found none; saying that nothing stands where something does is withholding wrongly.
    """
    if answer.status == "answered":
        value = answer.value
        if _same(asked, value):
            return RIGHT
        return STALE if isinstance(value, float | int) and float(value) in asked.others else WRONG
    if asked.truth == MISSING:
        return ABSTAINED
    return UNCLAIMED if answer.status == "evidence" or answer.reason == "nothing_found" else FALSE


def _same(asked: Asked, value: Any) -> bool:
    if asked.truth == MISSING:
        return False
    match asked.operation, value:
        case "largest_revision", {"change": change}:
            return bool(abs(change) == abs(asked.truth["change"]))
        case "largest_revision", [_, _, *_]:
            return all(abs(each["change"]) == abs(asked.truth["change"]) for each in value)
        case "who_said", {"among": sources}:
            return bool(sources) and set(sources) <= set(asked.truth)
        case "order", [*items]:
            return [item["entity"] for item in items] == asked.truth
        case _:
            return bool(value == asked.truth) and isinstance(value, bool) == isinstance(asked.truth, bool)


def table(found: Iterable[tuple[Asked, str]]) -> str:
    """Return the counts by operation, and of all by wording; shares with their intervals of 95 %."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for asked, verdict in found:
        for name in (asked.operation, f"all, {asked.wording}", "all"):
            counts[name][verdict] += 1
    lines = [
        "| operation | n | " + " | ".join(VERDICTS) + " | not claimed, 95 % | wrongly, 95 % |",
        "| --- | " + "--: | " * (len(VERDICTS) + 3),
    ]
    for name, own in sorted(counts.items(), key=lambda one: (one[0].startswith("all"), one[0])):
        whole = sum(own.values())
        shares = [_share(own[UNCLAIMED], whole), _share(own[WRONG] + own[STALE] + own[FALSE], whole)]
        cells = [name, whole, *(own[verdict] for verdict in VERDICTS), *shares]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _share(count: int, whole: int) -> str:
    interval = wilson(count, whole)
    return f"{100 * interval.low:.1f}–{100 * interval.high:.1f} %"
