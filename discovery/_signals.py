"""
What each route says about every unit up to the cut: one number between 0 and 1.

Pure functions over a tenant's index. A signal that brings candidates of its own is ranked; the
others (who said it, in which stream, at what time) only move what a ranked one found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from contracts.proposals import Plan, TimeExpression
from discovery._embedder import Vectors
from discovery._index import instant_us
from discovery._lexical import NO_ROW, Rows, Scores
from discovery._parts import parts_of
from discovery._selection import Searched
from discovery._text import terms, words
from discovery._units import Mark

NEIGHBOURS_OF_MAX: Final = 128
"""Strong turns whose neighbours gain."""
# A turn right beside a strong one may complete it (question and reply); two away, less.
NEAR: Final = 1.0
TWO_AWAY: Final = 0.5
SESSION_MEANING: Final = 0.6
"""Share of meaning in what a stream has to offer; the rest is what its best turn scores."""
TOLD_TIME: Final = 0.5
"""What a time that a text tells of is worth, next to the one at which it was said."""
HOP_FROM: Final = 5
"""Units that a second hop starts from."""
HOP_OVER: Final = 1_000
"""Units that it looks at, the best first."""
SURFACE_MARKS: Final = {"date": Mark.TIME, "number": Mark.NUMBER}
"""What a text has in it that answers in the form asked for."""
SHORT_TURN_WORDS: Final = 60
"""Median words of a turn at which a window helps half as much: one that long speaks for itself."""

_EVER: Final = 2**62
"""Further than any time from 1970, in microseconds."""


@dataclass(frozen=True, slots=True)
class Signal:
    """Scores of a route, 0 to 1, one a row; how many rows it says something for; if it ranks them."""

    scores: Scores
    count: int
    ranks: bool


def shortness(index: Searched, count: int) -> float:
    """
    Return how much turns need those around them: near 1 for chat lines, near 0 for long messages.

    From the tenant's median turn.
    """
    if count == 0:
        return 1.0
    return 1.0 / (1.0 + (index.median_words(count) / SHORT_TURN_WORDS) ** 2)


def lexical(index: Searched, question: str, count: int) -> tuple[Signal, Signal]:
    """Return the signals of turns and of the windows around them."""
    turns, windows = index.lexical.score(terms(question), count=count)
    return _signal(turns), _signal(windows)


def dense(index: Searched, vector: Vectors, count: int) -> Signal:
    """Return the cosine to the question, stretched to 0 … 1; rows without a vector stand at the mean."""
    present = index.embedded(count)
    scores = np.zeros(count)
    if not present.any():
        return Signal(scores, 0, ranks=True)
    cosines, low = index.cosines(vector, count)
    high = float(cosines[present].max())
    scores[present] = (cosines[present] - low) / (high - low) if high > low else 0.0
    scores[~present] = float(scores[present].mean())
    return Signal(scores, int(present.sum()), ranks=True)


def state(index: Searched, events: Mapping[str, float], count: int) -> Signal:
    """Return how much typed state says for each unit."""
    scores = np.zeros(count)
    for event_id, score in events.items():
        row = index.row_of.get(event_id, count)
        if row < count:
            scores[row] = score
    return Signal(scores, int(np.count_nonzero(scores)), ranks=True)


def time(index: Searched, times: tuple[TimeExpression, ...], count: int) -> Signal:
    """
    Return 1 where a unit was observed within a time that the question names.

    Less where its text tells of a time that lies in it ("last week", told in the week after).
    """
    scores = np.zeros(count)
    named = [asked for asked in times if asked.start is not None or asked.end is not None]
    if not named:
        return Signal(scores, 0, ranks=False)
    observed, (rows, told) = index.observed(count), index.told(count)
    for asked in named:
        start = instant_us(asked.start) if asked.start is not None else -_EVER
        end = instant_us(asked.end) if asked.end is not None else _EVER
        scores[(observed >= start) & (observed < end)] = 1.0
        shared = np.minimum(told[:, 1], end) - np.maximum(told[:, 0], start)
        inside = np.maximum(shared, 0) / (told[:, 1] - told[:, 0])
        np.maximum.at(scores, rows, TOLD_TIME * inside)
    return Signal(scores, int(np.count_nonzero(scores)), ranks=False)


def actor(index: Searched, plan: Plan, count: int) -> Signal:
    """Return 1 where one whom the question names says it; nothing where only one speaks at all."""
    spelled = {words(entity) for entity in plan.entities}
    actors = index.actors_at(count)
    named = [number for number, name in enumerate(actors) if words(name) in spelled]
    if not named or len(actors) == 1:
        return Signal(np.zeros(count), 0, ranks=False)
    said = np.zeros(len(actors))
    said[named] = 1.0
    scores = said[index.actor(count)]
    return Signal(scores, int(np.count_nonzero(scores)), ranks=False)


def first_hand(index: Searched, count: int) -> Signal:
    """Return 1 where it was not an assistant that said it, in a tenant where one speaks."""
    if not index.has_assistant(count):
        return Signal(np.zeros(count), 0, ranks=False)
    scores = (~index.said_by_assistant(count)).astype(np.float64)
    return Signal(scores, int(np.count_nonzero(scores)), ranks=False)


def stated(index: Searched, count: int) -> Signal:
    """Return 1 where a text does not end with a question: a short one that asks states nothing."""
    scores = (index.marks(count) & Mark.ASKS == 0).astype(np.float64)
    return Signal(scores, int(np.count_nonzero(scores)), ranks=False)


def surface(index: Searched, plan: Plan, count: int) -> Signal:
    """Return 1 where a text names a time or a number, if the question asks for one."""
    wanted = SURFACE_MARKS.get(plan.surface)
    if wanted is None:
        return Signal(np.zeros(count), 0, ranks=False)
    scores = (index.marks(count) & wanted != 0).astype(np.float64)
    return Signal(scores, int(np.count_nonzero(scores)), ranks=False)


def reply(index: Searched, base: Scores, count: int) -> Signal:
    """Return for each turn what the question before it has to offer, if another put it."""
    scores = np.zeros(count)
    strong = strongest(base, NEIGHBOURS_OF_MAX)
    strong = strong[index.marks(count)[strong] & Mark.ASKS != 0]
    after = index.lexical.step(strong, 1, count=count)
    there = after != NO_ROW
    strong, after = strong[there], after[there]
    actors = index.actor(count)
    other = actors[strong] != actors[after]
    scores[after[other]] = base[strong[other]]
    return Signal(scores / _highest(base), int(np.count_nonzero(scores)), ranks=True)


def session(index: Searched, base: Scores, meaning: Scores | None, count: int) -> Signal:
    """
    Return for each unit the best that its stream has to offer.

    Args:
        index: The tenant's.
        base: What the ranked routes say together.
        meaning: What the dense route says, if it has spoken. The nearest stream stands at 1 and the
            farthest at 0: single turns of a stream rarely differ from others as much as streams do.
        count: Rows known.
    """
    streams = index.stream(count)
    if count == 0 or int(streams.max()) == int(streams.min()):
        return Signal(np.zeros(count), 0, ranks=False)
    scores = stretched(_best_of(streams, base))
    if meaning is not None:
        nearest = _best_of(streams, meaning)
        nearest = stretched(nearest - nearest.min())
        scores = (1 - SESSION_MEANING) * scores + SESSION_MEANING * nearest
    return Signal(scores, int(np.count_nonzero(np.bincount(streams))), ranks=False)


def _best_of(streams: Rows, scores: Scores) -> Scores:
    best = np.zeros(int(streams.max()) + 1)
    np.maximum.at(best, streams, scores)
    return np.asarray(best[streams])


def parts(index: Searched, question: str, shortness: float, count: int) -> Signal:
    """Return for each unit how well its words, or those around it, answer the part it answers best."""
    best = np.zeros(count)
    for part in parts_of(question):
        turns, windows = index.lexical.score(terms(part), count=count)
        both = (1 - shortness / 2) * stretched(turns) + shortness / 2 * stretched(windows)
        best = np.maximum(best, stretched(both))
    return _signal(best)


def second_hop(index: Searched, base: Scores, count: int) -> Signal:
    """
    Return the cosine to what was found first: the mean of the best units, by their scores.

    What is told apart from the question's words and meaning may still be near to what answers half
    of it. Only what was found somehow is looked at, the best of it in a large tenant.
    """
    scores = np.zeros(count)
    rows = strongest(base, HOP_OVER)
    rows = rows[index.embedded(count)[rows]]
    if len(rows) == 0:
        return Signal(scores, 0, ranks=True)
    vectors, best = index.vectors_of(rows), min(len(rows), HOP_FROM)
    cosines = vectors @ (base[rows[:best]].astype(np.float32) @ vectors[:best])
    low, high = float(cosines.min()), float(cosines.max())
    scores[rows] = (cosines - low) / (high - low) if high > low else 0.0
    return Signal(scores, len(rows), ranks=True)


def neighbours(index: Searched, base: Scores, count: int) -> Signal:
    """Return what the turns before and after have to offer, from the strongest turns only."""
    scores = np.zeros(count)
    strong = strongest(base, NEIGHBOURS_OF_MAX)
    for steps, share in ((-2, TWO_AWAY), (-1, NEAR), (1, NEAR), (2, TWO_AWAY)):
        beside = index.lexical.step(strong, steps, count=count)
        there = beside != NO_ROW
        np.maximum.at(scores, beside[there], share * base[strong[there]])
    return Signal(stretched(scores), int(np.count_nonzero(scores)), ranks=True)


def strongest(scores: Scores, limit: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the rows with the highest scores above 0, the best first; of equal ones the earlier."""
    rows = np.flatnonzero(scores > 0)
    if len(rows) > limit:
        # Everything that ties with the last place is kept until the order is settled.
        floor = np.partition(scores[rows], len(rows) - limit)[len(rows) - limit]
        rows = rows[scores[rows] >= floor]
    order: np.ndarray[tuple[int], np.dtype[np.int64]] = rows[np.lexsort((rows, -scores[rows]))][:limit]
    return order.astype(np.int64)


def stretched(scores: Scores) -> Scores:
    """Return non-negative scores divided by their highest; all 0 if that is 0."""
    return scores / _highest(scores)


def _highest(scores: Scores) -> float:
    return float(scores.max(initial=0.0)) or 1.0


def _signal(scores: Scores) -> Signal:
    return Signal(stretched(scores), int(np.count_nonzero(scores)), ranks=True)
