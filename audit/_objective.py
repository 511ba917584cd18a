"""
The objective of the ECHO paper (its equation 10), with its five terms, for each arm under each budget.

Every row stays in the denominator: a failure of reader or judge scores zero and is counted. A term of
which the gold says nothing is None, which is not zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from audit._judge import response_digest, says
from audit._statistics import wilson
from contracts.models import ReadingStatus
from contracts.qa import Judgement, Objective, QaGold, QaResponse, Verdict, Weights


def objectives(
    responses: Sequence[QaResponse],
    gold: Mapping[str, QaGold],
    judged: Mapping[tuple[str, str], Judgement],
    *,
    weights: Weights,
) -> list[Objective]:
    """Return the objective of every arm under every budget."""
    places = sorted({(response.arm, response.budget) for response in responses})
    return [
        _objective(
            arm, budget, [one for one in responses if (one.arm, one.budget) == (arm, budget)],
            gold, judged, weights=weights,
        )
        for arm, budget in places
    ]  # fmt: skip


def _objective(
    arm: str,
    budget: int,
    rows: Sequence[QaResponse],
    gold: Mapping[str, QaGold],
    judged: Mapping[tuple[str, str], Judgement],
    *,
    weights: Weights,
) -> Objective:
    verdicts = [_verdict(row, gold[row.question], judged) for row in rows]
    correct = sum(verdict == Verdict.CORRECT for verdict in verdicts)
    interval = wilson(correct, len(rows))
    stale = _share(
        [_stale(row, gold[row.question], verdict) for row, verdict in zip(rows, verdicts, strict=True)]
    )
    conflict = _share([_glossed_over(row, gold[row.question]) for row in rows])
    abstained = sum(row.status == ReadingStatus.ABSTAINED and _has_answer(gold[row.question]) for row in rows)
    kilotokens = math.fsum(row.tokens for row in rows) / len(rows) / 1_000
    terms = [
        (weights.stale, stale),
        (weights.conflict, conflict),
        (weights.false_abstention, abstained / len(rows)),
        (weights.kilotokens, kilotokens),
    ]
    known = all(term is not None or weight == 0 for weight, term in terms)
    cost = math.fsum(weight * (term or 0.0) for weight, term in terms)
    return Objective(
        arm=arm,
        budget=budget,
        rows=len(rows),
        failures=sum(row.status == ReadingStatus.FAILED for row in rows),
        judge_failures=sum(verdict == Verdict.FAILED for verdict in verdicts),
        correct=correct,
        accuracy=correct / len(rows),
        accuracy_low=interval.low,
        accuracy_high=interval.high,
        stale=stale,
        conflict=conflict,
        false_abstentions=abstained / len(rows),
        kilotokens=kilotokens,
        ungrounded=sum(row.status == ReadingStatus.ANSWERED and not row.grounded for row in rows),
        weights=weights,
        value=correct / len(rows) - cost if known else None,
    )


def _verdict(row: QaResponse, gold: QaGold, judged: Mapping[tuple[str, str], Judgement]) -> Verdict:
    if row.status == ReadingStatus.ANSWERED and row.text is not None:
        if gold.answer is None:
            return Verdict.INCORRECT
        return judged[row.question, response_digest(row.text)].verdict
    right = row.status == ReadingStatus.ABSTAINED and not _has_answer(gold)
    return Verdict.CORRECT if right else Verdict.INCORRECT


def _has_answer(gold: QaGold) -> bool:
    # Where sources disagree, to abstain is right, and so is to say that they do.
    return gold.answer is not None and not gold.rivals


def _stale(row: QaResponse, gold: QaGold, verdict: Verdict) -> bool | None:
    """Say whether a row gave a value of the past for the present; None where nothing is known of it."""
    if gold.stale is None:
        return None
    text = row.text or ""
    return verdict != Verdict.CORRECT and any(says(text, value) for value in gold.stale)


def _glossed_over(row: QaResponse, gold: QaGold) -> bool | None:
    """Say whether a conflict was answered without all its rivals; None where nothing is known of one."""
    if gold.rivals is None:
        return None
    answered = row.status == ReadingStatus.ANSWERED
    return answered and not all(says(row.text or "", rival) for rival in gold.rivals)


def _share(found: Sequence[bool | None]) -> float | None:
    """Return the share over all rows; None where no row says anything."""
    known = [one for one in found if one is not None]
    return sum(known) / len(found) if known else None
