"""What a ranking is worth beside its gold: the columns of a scored row. Pure, ids alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from contracts.artifacts import GoldLine, Prediction, Values

CUTOFFS: Final = (5, 10)


def score(prediction: Prediction | None, gold: GoldLine) -> Values:
    """
    Return the columns of one prediction; none at all is scored as an empty one.

    A question without gold has no retrieval columns: nothing could be found. A failure has them all,
    and zeros where something was to be found.
    """
    if not gold.turns:
        return {}
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
    values["reciprocal_rank"] = next((1 / rank for rank, hit in enumerate(hits, start=1) if hit), 0.0)
    values["ndcg@10"] = _ndcg(hits, len(wanted), cutoff=10)
    return values


def _ndcg(hits: Sequence[bool], gold_count: int, *, cutoff: int) -> float:
    gained = math.fsum(1 / math.log2(rank + 1) for rank, hit in enumerate(hits[:cutoff], start=1) if hit)
    best = math.fsum(1 / math.log2(rank + 1) for rank in range(1, min(gold_count, cutoff) + 1))
    return gained / best
