"""
BM25 over turns and over windows of turns, exact at every cut, kept up in time linear in what is new.

Term counts and lengths are kept, not scores: what depends on the whole (number of documents, how
many hold a term, mean length) is computed from them at each question, up to the question's cut.
So an addition touches only its own terms, and an older cut is scored as if nothing came after it.
The formula is that of bm25s (`method="lucene"`), and a test holds the scores to it.

Of a large tenant not every turn is scored: `strongest` finds the best turns exactly, passing over
the common words that can no longer bring one in, and `score_rows` scores only the rows it is given,
with the statistics of the whole.

Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009); Lù, "BM25S" (2024);
Turtle and Flood, "Query evaluation: strategies and optimizations" (1995), for what is passed over.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
Rows = npt.NDArray[Any]
"""Whole numbers, of 32 bits where they are stored."""


@dataclass(frozen=True, slots=True)
class _Posting:
    """The rows that hold a term up to a cut, how often each does, and how much the term can say."""

    number: int
    rows: Rows
    counts: Rows
    rarity: float


class Lexical:
    """Postings of one tenant. Rows are numbered from 0 in the order of the log."""

    def __init__(self) -> None:
        self._terms: dict[str, int] = {}
        self._rows: list[array[int]] = []
        self._counts: list[array[int]] = []
        # How many windows hold each term now: kept, since counting them would look at every posting.
        self._windows_held = array("i")
        self._lengths = Column(np.int32)
        self._window_lengths = Column(np.int32)
        # Running totals, so that the mean length at any cut is one look.
        self._turn_total = Column(np.int64)
        self._window_total = Column(np.int64)
        self._before = Column(np.int32)
        self._after = Column(np.int32)
        self._last_of_stream: dict[str, int] = {}
        # The terms of the newest turns of a stream, which share windows with the next one.
        self._newest: dict[str, deque[frozenset[int]]] = {}
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
            + 2_000 * len(self._newest)
        )

    def add(self, terms: Sequence[str], *, stream: str) -> int:
        """Add a turn at the end of its stream; return its row."""
        row = len(self)
        held: list[int] = []
        for term, count in Counter(terms).items():
            number = self._terms.setdefault(term, len(self._rows))
            if number == len(self._rows):
                self._rows.append(array("i"))
                self._counts.append(array("i"))
                self._windows_held.append(0)
            self._rows[number].append(row)
            self._counts[number].append(count)
            held.append(number)
        self._postings += len(held)
        self._hold(frozenset(held), stream)
        self._link(row, len(terms), stream)
        return row

    def _hold(self, terms: frozenset[int], stream: str) -> None:
        """Count the windows that hold each term: the turn's own, and those before it that gain it."""
        newest = self._newest.setdefault(stream, deque(maxlen=2 * WINDOW_REACH))
        near = list(newest)
        own = terms.union(*near[-WINDOW_REACH:])
        gained = [
            terms.difference(*near[max(0, place - WINDOW_REACH) :])
            for place in range(max(0, len(near) - WINDOW_REACH), len(near))
        ]
        for numbers in (own, *gained):
            for number in numbers:
                self._windows_held[number] += 1
        newest.append(terms)

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
        turn_mean, window_mean = self._means(count)
        lengths = self._lengths.view(count)
        for posting in self._found(terms, count):
            turns[posting.rows] += _bm25(posting.counts, lengths[posting.rows], turn_mean, posting.rarity)
            rows, counts = self._spread(posting.rows, posting.counts, count)
            spans = self._window_lengths_of(rows, count)
            windows[rows] += _bm25(counts, spans, window_mean, _rarity(len(rows), count))
        return turns, windows

    def strongest(self, terms: Iterable[str], *, count: int, limit: int) -> Rows:
        """
        Return the rows of the `limit` best turns, ascending: exactly those that `score` puts first.

        The rarest terms are added up first. A term can say no more than its rarity, so once those that
        are left could not lift a turn that holds none of the others above the best `limit` so far, they
        are only looked up for turns that are still in the race.
        """
        found = sorted(self._found(terms, count), key=lambda posting: -posting.rarity)
        left = [sum(posting.rarity for posting in found[place:]) for place in range(len(found) + 1)]
        scores, bar, place = np.zeros(count), 0.0, 0
        mean, lengths = self._means(count)[0], self._lengths.view(count)
        while place < len(found) and left[place] >= bar:
            posting, place = found[place], place + 1
            scores[posting.rows] += _bm25(posting.counts, lengths[posting.rows], mean, posting.rarity)
            if len(posting.rows) >= limit:
                bar = max(bar, _best(scores[posting.rows], limit))
        rows = np.flatnonzero(scores)
        rows = rows[scores[rows] + left[place] >= bar]
        for posting in found[place:]:
            scores[rows] += _bm25(_counts_at(posting, rows), lengths[rows], mean, posting.rarity)
        if len(rows) > limit:
            rows = rows[scores[rows] >= _best(scores[rows], limit)]
            # Of equal ones the earlier.
            rows = np.sort(rows[np.lexsort((rows, -scores[rows]))][:limit])
        return rows

    def score_rows(self, terms: Iterable[str], rows: Rows, *, count: int) -> tuple[Scores, Scores]:
        """Return what `score` gives for these rows (ascending), without looking at the others."""
        turns, windows = np.zeros(len(rows)), np.zeros(len(rows))
        if len(rows) == 0:
            return turns, windows
        turn_mean, window_mean = self._means(count)
        reach = range(-WINDOW_REACH, WINDOW_REACH + 1)
        beside = np.stack([self.step(rows, steps, count=count) for steps in reach])
        wanted, place = np.unique(beside, return_inverse=True)
        place = place.reshape(beside.shape)
        lengths, spans = self._lengths.view(count)[rows], self._window_lengths_of(rows, count)
        for posting in self._found(terms, count):
            counts = _counts_at(posting, wanted)[place]
            turns += _bm25(counts[WINDOW_REACH], lengths, turn_mean, posting.rarity)
            rarity = _rarity(self._windows_holding(posting, count), count)
            windows += _bm25(counts.sum(axis=0), spans, window_mean, rarity)
        return turns, windows

    def _means(self, count: int) -> tuple[float, float]:
        return (
            self._total(self._turn_total, count) / count or 1.0,
            self._total(self._window_total, count) / count or 1.0,
        )

    def _found(self, terms: Iterable[str], count: int) -> list[_Posting]:
        """Return the postings of a question's terms up to a cut, without those that nothing holds."""
        found: list[_Posting] = []
        for term in list(dict.fromkeys(terms))[:QUERY_TERMS_MAX]:
            number = self._terms.get(term)
            if number is None:
                continue
            # Copied: an array that is looked at from outside cannot grow.
            rows = np.array(self._rows[number], dtype=np.int32)
            rows = rows[: int(np.searchsorted(rows, count))]
            if len(rows):
                counts = np.array(self._counts[number], dtype=np.int32)[: len(rows)]
                found.append(_Posting(number, rows, counts, _rarity(len(rows), count)))
        return found

    def _windows_holding(self, posting: _Posting, count: int) -> int:
        if count == len(self):
            return self._windows_held[posting.number]
        return len(self._spread(posting.rows, posting.counts, count)[0])

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


def _rarity(held: int, count: int) -> float:
    """Return what a term that so many of all hold can say at most."""
    return math.log(1 + (count - held + 0.5) / (held + 0.5))


def _bm25(counts: Rows, lengths: Rows, mean: float, rarity: float) -> npt.NDArray[Any]:
    return np.asarray(rarity * counts / (K1 * (1 - B + B * lengths / mean) + counts))


def _best(scores: Scores, limit: int) -> float:
    """Return the score of the last of the best `limit`."""
    return float(np.partition(scores, len(scores) - limit)[len(scores) - limit])


def _counts_at(posting: _Posting, rows: Rows) -> Rows:
    """Return how often each of the rows holds the term."""
    at = np.minimum(np.searchsorted(posting.rows, rows), len(posting.rows) - 1)
    return np.where(posting.rows[at] == rows, posting.counts[at], 0)
