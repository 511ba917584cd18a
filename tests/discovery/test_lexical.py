"""BM25 with exact statistics at every cut, held to bm25s."""

from __future__ import annotations

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discovery._lexical import Lexical

TERMS = st.lists(st.sampled_from("abcdefgh"), max_size=6)
TURNS = st.lists(st.tuples(TERMS, st.sampled_from(["x", "y"])), min_size=1, max_size=12)


def index_of(turns):
    lexical = Lexical()
    for terms, stream in turns:
        lexical.add(terms, stream=stream)
    return lexical


def reference(documents, query):
    """Scores of bm25s; it refuses a corpus without a word."""
    if not any(documents):
        return np.zeros(len(documents))
    retriever = bm25s.BM25(k1=0.9, b=0.4, method="lucene", backend="numpy", dtype="float64")
    retriever.index(documents, show_progress=False)
    known = [term for term in dict.fromkeys(query) if term in retriever.vocab_dict]
    return retriever.get_scores(known) if known else np.zeros(len(documents))


def windows_of(turns):
    documents = []
    for at, (_, stream) in enumerate(turns):
        rows = [row for row, turn in enumerate(turns) if turn[1] == stream]
        place = rows.index(at)
        documents.append([term for row in rows[max(0, place - 2) : place + 3] for term in turns[row][0]])
    return documents


@given(TURNS, TERMS, st.data())
def test_scores_of_turns_and_windows_equal_bm25s_at_every_cut(turns, query, data):
    count = data.draw(st.integers(1, len(turns)))

    scores, windows = index_of(turns).score(query, count=count)

    assert scores == pytest.approx(reference([terms for terms, _ in turns[:count]], query), abs=1e-6)
    assert windows == pytest.approx(reference(windows_of(turns[:count]), query), abs=1e-6)


@pytest.mark.parametrize("query", [[], ["unknown"]])
def test_a_question_without_a_known_term_scores_zero_everywhere(query):
    scores, windows = index_of([(["a"], "x"), (["b"], "x")]).score(query, count=2)

    assert not scores.any()
    assert not windows.any()


def test_nothing_indexed_is_no_error():
    scores, _ = Lexical().score(["a"], count=0)

    assert len(scores) == 0


def test_a_neighbour_in_another_stream_is_not_in_the_window():
    lexical = index_of([(["a"], "x"), (["b"], "y"), (["c"], "x")])

    _, windows = lexical.score(["a"], count=3)

    assert list(windows > 0) == [True, False, True]


@given(TURNS, TERMS, st.integers(1, 4), st.data())
def test_the_best_turns_and_what_they_score_are_those_of_the_whole(turns, query, limit, data):
    """Passing over common words must lose no turn, and a row scored alone must score the same."""
    count = data.draw(st.integers(1, len(turns)))
    lexical = index_of(turns)
    scores, windows = lexical.score(query, count=count)

    rows = lexical.strongest(query, count=count, limit=limit)
    some, some_windows = lexical.score_rows(query, rows, count=count)

    ranked = sorted((row for row in range(count) if scores[row] > 0), key=lambda row: (-scores[row], row))
    # By score: sums in another order differ in their last bits, and with them the order of equal turns.
    assert sorted(scores[rows]) == pytest.approx(sorted(scores[ranked[:limit]]), rel=1e-12)
    assert some == pytest.approx(scores[rows], rel=1e-12)
    assert some_windows == pytest.approx(windows[rows], rel=1e-12)
