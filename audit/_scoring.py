"""What a ranking is worth beside its gold: the columns of a scored row. Pure, ids alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from contracts.artifacts import NOT_OBSERVABLE, GoldLine, Prediction, Values

CUTOFFS: Final = (5, 10, 50)
"""To the last of them it is told where gold stands that was missed: found too low, or not at all."""


def score(prediction: Prediction | None, gold: GoldLine, *, budget: int | None) -> Values:
    """
    Return the columns of one prediction; none at all is scored as an empty one.

    A question without gold has no columns: nothing could be found; nor has what an arm cannot show. A
    failure has them all, and zeros where something was to be found.
    """
    if not gold.turns or (prediction is not None and prediction.failure == NOT_OBSERVABLE):
        return {}
    if budget is not None:
        return _context(prediction, gold)
    ranked: Sequence[str] = () if prediction is None or prediction.failure is not None else prediction.ranked
    sessions: Sequence[str] = () if prediction is None else prediction.sessions
    wanted, wanted_sessions = set(gold.turns), set(gold.sessions)
    hits = [turn in wanted for turn in ranked]
    values: Values = {"turns_gold": len(wanted), "sessions_gold": len(wanted_sessions)}
    for cutoff in CUTOFFS:
        values[f"hit@{cutoff}"] = int(any(hits[:cutoff]))
        values[f"turns_found@{cutoff}"] = len(wanted.intersection(ranked[:cutoff]))
        values[f"sessions_found@{cutoff}"] = len(
            wanted_sessions.intersection(sessions[: min(cutoff, len(ranked))])
        )
    values["first_rank"] = next((rank for rank, hit in enumerate(hits, start=1) if hit), None)
    values["reciprocal_rank"] = next((1 / rank for rank, hit in enumerate(hits, start=1) if hit), 0.0)
    values["ndcg@10"] = _ndcg(hits, len(wanted), cutoff=10)
    return values


def score_answer(prediction: Prediction | None, gold: GoldLine) -> Values:
    """Return whether an answer is strictly right, where one was given."""
    if prediction is None or prediction.response is None:
        return {}
    return {"correct": int(prediction.response == gold.answer)}


def _context(prediction: Prediction | None, gold: GoldLine) -> Values:
    """Return the columns of what one context shows; a turn with score 0 is shown in part alone."""
    wanted = set(gold.turns)
    shown: dict[str, bool] = {}
    if prediction is not None and prediction.failure is None:
        shown = {turn: bool(whole) for turn, whole in zip(prediction.ranked, prediction.scores, strict=True)}
    found = wanted & shown.keys()
    return {
        "turns_gold": len(wanted),
        "turns_shown": len(found),
        "turns_shown_whole": sum(shown[turn] for turn in found),
        "hit": int(bool(found)),
        "whole_gold": int(found == wanted),
    }


def _ndcg(hits: Sequence[bool], gold_count: int, *, cutoff: int) -> float:
    gained = math.fsum(1 / math.log2(rank + 1) for rank, hit in enumerate(hits[:cutoff], start=1) if hit)
    best = math.fsum(1 / math.log2(rank + 1) for rank in range(1, min(gold_count, cutoff) + 1))
    return gained / best
