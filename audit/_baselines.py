"""
Arms that a plane is held against: public methods over the same turns and questions, nothing of ours.

Each ranks every turn of a history, ties by place. None was tuned to any set.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping, Sequence
from typing import Final

import bm25s
import numpy as np
import snowballstemmer
from numpy.typing import NDArray

from audit._histories import History

Matrix = NDArray[np.float32]
"""One row a question, one column a turn."""

BM25: Final = "bm25"
DENSE: Final = "dense"
RRF: Final = "rrf"
RECENT: Final = "recent"
FULL: Final = "full"
BASELINES: Final = (BM25, DENSE, RRF, RECENT, FULL)
_K1: Final = 1.2
_B: Final = 0.75
_RRF_K: Final = 60
"""As its authors have it (Cormack, Clarke and Büttcher 2009)."""


def said(history: History) -> list[str]:
    """Return each turn as the baselines read it: who says it, then what."""
    return [f"{turn.speaker}: {turn.text}" for turn in history.turns]


def bm25_scores(history: History) -> Matrix:
    """Return Lucene's BM25 with usual parameters: English stop words, Snowball stems, single turns."""
    # It sets its own logger to say everything.
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    stemmer = snowballstemmer.stemmer("english")

    def tokens(texts: list[str]) -> list[list[str]]:
        found = bm25s.tokenize(
            texts, stopwords="en", stemmer=stemmer.stemWords, return_ids=False, show_progress=False
        )
        return list(found)

    scores = np.zeros((len(history.questions), len(history.turns)), dtype=np.float32)
    ranker = bm25s.BM25(method="lucene", k1=_K1, b=_B)
    ranker.index(tokens(said(history)), show_progress=False)
    for row, asked in enumerate(tokens([question.text for question in history.questions])):
        known = [token for token in asked if token in ranker.vocab_dict]
        if known:
            scores[row] = ranker.get_scores(known)
    return scores


def dense_scores(questions: Matrix, turns: Matrix) -> Matrix:
    """Return cosines of vectors of length 1."""
    return questions @ turns.T


def rankings(scores: Matrix) -> list[tuple[int, ...]]:
    """Return the turns of each question, best first."""
    return [tuple(row) for row in np.argsort(-scores, axis=1, kind="stable").tolist()]


def fused(first: Sequence[tuple[int, ...]], second: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return two rankings as one, by reciprocal ranks."""
    found = []
    for ones, others in zip(first, second, strict=True):
        total: dict[int, float] = {}
        for ranking in (ones, others):
            for rank, turn in enumerate(ranking, start=1):
                total[turn] = total.get(turn, 0.0) + 1 / (_RRF_K + rank)
        found.append(tuple(sorted(total, key=lambda turn: (-total[turn], turn))))
    return found


def baseline_rankings(
    arm: str, history: History, vectors: tuple[Matrix, Matrix] | None
) -> list[tuple[int, ...]] | None:
    """
    Return an arm's turns for each question of a history, best first; None where it has none to show.

    Args:
        arm: One of `BASELINES`. The whole history (`full`) is in no order of rank.
        vectors: Of the questions and of the turns; None where there is no model.
    """
    questions = len(history.questions)
    match arm:
        case "bm25":
            return rankings(bm25_scores(history))
        case "recent":
            return [most_recent(history)] * questions
        case "dense" if vectors is not None:
            return rankings(dense_scores(*vectors))
        case "rrf" if vectors is not None:
            return fused(rankings(bm25_scores(history)), rankings(dense_scores(*vectors)))
        case _:
            return None


def pack_plainly(
    ranked: Sequence[int], costs: Mapping[int, Mapping[Hashable, int]], budget_tokens: int
) -> tuple[int, ...]:
    """
    Return whole turns in order of rank, each that still fits: what packing is held against.

    Args:
        costs: Tokens of each part of a turn as a line, by the part: what lines share costs once. A turn
            that is not there cannot be shown.
    """
    chosen: list[int] = []
    shown: set[Hashable] = set()
    left = budget_tokens
    for turn in ranked:
        parts = costs.get(turn)
        if parts is None:
            continue
        cost = sum(tokens for part, tokens in parts.items() if part not in shown)
        if cost <= left:
            chosen.append(turn)
            shown.update(parts)
            left -= cost
    return tuple(sorted(chosen))


def most_recent(history: History) -> tuple[int, ...]:
    """Return the turns, last first."""
    return tuple(reversed(range(len(history.turns))))
