"""
BM25 over turns and over windows of turns, exact at every cut, kept up in time linear in what is new.

Term counts and lengths are kept, not scores: what depends on the whole (number of documents, how
many hold a term, mean length) is computed from them at each question, up to the question's cut.
So an addition touches only its own terms, and an older cut is scored as if nothing came after it.
The formula is that of bm25s (`method="lucene"`), and a test holds the scores to it.

Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009); Lù, "BM25S" (2024).
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from discovery._arrays import Column

K1: Final = 0.9
B: Final = 0.4
WINDOW_REACH: Final = 2
"""Turns before and after a turn, in its stream, that its window holds."""
QUERY_TERMS_MAX: Final = 128
"""Different terms of a question that are scored: a pasted page is not a question."""
NO_ROW: Final = -1

Scores = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


class Lexical:
    """Postings of one tenant. Rows are numbered from 0 in the order of the log."""

    def __init__(self) -> None:
        self._terms: dict[str, int] = {}
        self._rows: list[array[int]] = []
        self._counts: list[array[int]] = []
        self._lengths = Column(np.int64)
        self._window_lengths = Column(np.int64)
        # Running totals, so that the mean length at any cut is one look.
        self._turn_total = Column(np.int64)
        self._window_total = Column(np.int64)
        self._before = Column(np.int64)
        self._after = Column(np.int64)
        self._last_of_stream: dict[str, int] = {}
        self._postings = 0

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def bytes_held(self) -> int:
        """Memory held, in bytes; an estimate where Python objects are counted."""
        columns = (self._lengths, self._window_lengths, self._turn_total, self._window_total)
        links = (self._before, self._after)
        return (
            sum(column.bytes_held for column in (*columns, *links))
            + 9 * self._postings
            + 400 * len(self._terms)
        )

    def add(self, terms: Sequence[str], *, stream: str) -> int:
        """Add a turn at the end of its stream; return its row."""
        row = len(self)
        for term, count in Counter(terms).items():
            number = self._terms.setdefault(term, len(self._rows))
            if number == len(self._rows):
                self._rows.append(array("i"))
                self._counts.append(array("i"))
            self._rows[number].append(row)
            self._counts[number].append(count)
            self._postings += 1
        self._link(row, len(terms), stream)
        return row

    def _link(self, row: int, length: int, stream: str) -> None:
        before = self._last_of_stream.get(stream, NO_ROW)
        self._last_of_stream[stream] = row
        self._lengths.append(length)
        self._before.append(before)
        self._after.append(NO_ROW)
        if before != NO_ROW:
            self._after.view(row + 1)[before] = row
        # Its own window gains itself and what is before it; the windows before it gain it.
        own, gained, neighbour = length, 0, before
        for _ in range(WINDOW_REACH):
            if neighbour == NO_ROW:
                break
            own += int(self._lengths.view(row)[neighbour])
            gained += length
            self._window_lengths.view(row)[neighbour] += length
            neighbour = int(self._before.view(row)[neighbour])
        self._window_lengths.append(own)
        self._turn_total.append(length + self._total(self._turn_total, row))
        self._window_total.append(own + gained + self._total(self._window_total, row))

    @staticmethod
    def _total(column: Column, count: int) -> int:
        return int(column.view(count)[count - 1]) if count else 0

    def step(self, rows: Rows, steps: int, *, count: int) -> Rows:
        """Return the rows that many turns later (or earlier) in the stream; -1 where there is none yet."""
        links = self._after if steps > 0 else self._before
        for _ in range(abs(steps)):
            rows = np.where(rows == NO_ROW, NO_ROW, links.view(count)[rows])
            rows = np.where(rows >= count, NO_ROW, rows)
        return rows

    def score(self, terms: Iterable[str], *, count: int) -> tuple[Scores, Scores]:
        """
        Return the scores of the first `count` turns, and those of the windows around them.

        Terms that nothing holds score nothing; a question of stop words alone scores zero everywhere.
        """
        turns, windows = np.zeros(count), np.zeros(count)
        if count == 0:
            return turns, windows
        turn_mean = self._total(self._turn_total, count) / count or 1.0
        window_mean = self._total(self._window_total, count) / count or 1.0
        lengths = self._lengths.view(count)
        for term in list(dict.fromkeys(terms))[:QUERY_TERMS_MAX]:
            rows, counts = self._posting(term, count)
            if len(rows) == 0:
                continue
            turns[rows] += _bm25(counts, lengths[rows], turn_mean, held=len(rows), count=count)
            rows, counts = self._spread(rows, counts, count)
            spans = self._window_lengths_of(rows, count)
            windows[rows] += _bm25(counts, spans, window_mean, held=len(rows), count=count)
        return turns, windows

    def _posting(self, term: str, count: int) -> tuple[Rows, Rows]:
        number = self._terms.get(term)
        if number is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        # Copied: an array that is looked at from outside cannot grow.
        rows = np.array(self._rows[number], dtype=np.int64)
        held = int(np.searchsorted(rows, count))
        return rows[:held], np.array(self._counts[number], dtype=np.int64)[:held]

    def _spread(self, rows: Rows, counts: Rows, count: int) -> tuple[Rows, Rows]:
        """Return the rows whose window holds the term, and how often it does."""
        total = np.zeros(count, dtype=np.int64)
        total[rows] = counts
        for links in (self._before.view(count), self._after.view(count)):
            reached, weights = rows, counts
            for _ in range(WINDOW_REACH):
                reached = links[reached]
                there = (reached != NO_ROW) & (reached < count)
                reached, weights = reached[there], weights[there]
                # No two rows have the same neighbour on one side, so no addition is lost.
                total[reached] += weights
        windows = np.flatnonzero(total)
        return windows, total[windows]

    def _window_lengths_of(self, rows: Rows, count: int) -> Rows:
        spans: Rows = self._window_lengths.view(count)[rows]
        if count == len(self):
            return spans
        # At an older cut the last windows of each stream have not yet gained what came after it.
        lengths, later = self._lengths.view(len(self)), rows
        for _ in range(WINDOW_REACH):
            later = np.where(later == NO_ROW, NO_ROW, self._after.view(len(self))[later])
            spans = spans - np.where(later >= count, lengths[later], 0)
        return spans


def _bm25(counts: Rows, lengths: Rows, mean: float, *, held: int, count: int) -> npt.NDArray[Any]:
    rarity = math.log(1 + (count - held + 0.5) / (held + 0.5))
    return np.asarray(rarity * counts / (K1 * (1 - B + B * lengths / mean) + counts))
