"""
The part of a large tenant that one question looks at, with the same face as the whole.

Up to `WHOLE_UNITS_MAX` units every route scores every unit. Past that the routes that can find without
reading everything (words, vectors, typed state) bring their best, what stands beside it in its stream
comes along, and all routes score these few thousand units, with the statistics of the whole. So a
question costs about the same at any size, and a route never knows how large the tenant is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from discovery._cells import Near
from discovery._embedder import Vectors
from discovery._index import TenantIndex
from discovery._lexical import NO_ROW, WINDOW_REACH, Rows, Scores
from discovery._names import NameBook
from discovery._record import ClaimBook

LEXICAL_ROWS: Final = 300
"""Turns that the words of a question bring."""
DENSE_ROWS: Final = 200
"""Turns that its vector brings; these are scored from the stored vectors."""
STATE_ROWS: Final = 400
"""Events that typed state brings, the highest first."""


class Selection:
    """Some rows of an index, numbered from 0 in their order."""

    def __init__(self, index: TenantIndex, rows: Rows, *, count: int, near: Near | None) -> None:
        self._index = index
        self._rows = rows
        self._count = count
        self._near = near
        self.lexical = _SelectedLexical(index, rows, count)
        self.unit_ids = [index.unit_ids[row] for row in rows.tolist()]
        self.row_of: Mapping[str, int] = {unit: at for at, unit in enumerate(self.unit_ids)}

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def claims(self) -> dict[int, ClaimBook]:
        """The tenant's claims by epoch."""
        return self._index.claims

    @property
    def names(self) -> NameBook:
        """The tenant's names."""
        return self._index.names

    def observed(self, count: int) -> npt.NDArray[Any]:
        """When each row was observed, in microseconds since 1970."""
        return np.asarray(self._index.observed(self._count)[self._rows[:count]])

    def actor(self, count: int) -> npt.NDArray[Any]:
        """The number of each row's actor."""
        return np.asarray(self._index.actor(self._count)[self._rows[:count]])

    def stream(self, count: int) -> npt.NDArray[Any]:
        """The number of each row's stream."""
        return np.asarray(self._index.stream(self._count)[self._rows[:count]])

    def said_by_assistant(self, count: int) -> npt.NDArray[Any]:
        """Whether an actor of class `assistant` said it."""
        return np.asarray(self._index.said_by_assistant(self._count)[self._rows[:count]])

    def marks(self, count: int) -> npt.NDArray[Any]:
        """The marks of each row's text."""
        return np.asarray(self._index.marks(self._count)[self._rows[:count]])

    def told(self, count: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Times that texts of the rows name: the row of each, ascending, and its start and end."""
        rows, bounds = self._index.told(self._count)
        here = np.isin(rows, self._rows[:count])
        return np.searchsorted(self._rows[:count], rows[here]), bounds[here]

    def embedded(self, count: int) -> npt.NDArray[Any]:
        """Whether each row has its vector."""
        return np.asarray(self._index.embedded(self._count)[self._rows[:count]])

    def has_all_vectors(self, _: int) -> bool:
        """Whether no unit of the tenant waits for its vector."""
        return self._index.has_all_vectors(self._count)

    def vectors_of(self, rows: npt.NDArray[Any]) -> Vectors:
        """Return the vectors of rows that have one."""
        return self._index.vectors_of(self._rows[rows])

    def cosines(self, vector: Vectors, count: int) -> tuple[npt.NDArray[Any], float]:
        """Return the cosines of the rows, and about the lowest of all units."""
        assert self._index.codes is not None
        cosines, low = self._index.codes.cosines(self._rows[:count], vector), 0.0
        if self._near is not None:
            # These were scored from the stored vectors.
            at = np.searchsorted(self._rows, self._near.rows)
            cosines[at], low = self._near.cosines, self._near.low
        return cosines, min(low, float(cosines.min(initial=1.0)))

    def median_words(self, _: int) -> float:
        """Return the median words of a unit of the tenant."""
        return self._index.median_words(self._count)

    def actors_at(self, _: int) -> list[str]:
        """Return who had spoken by then in the tenant."""
        return self._index.actors_at(self._count)

    def is_speaker(self, name: tuple[str, ...], _: int) -> bool:
        """Return whether one of this name had spoken by then in the tenant."""
        return self._index.is_speaker(name, self._count)

    def has_assistant(self, _: int) -> bool:
        """Whether an actor of class `assistant` had spoken by then in the tenant."""
        return self._index.has_assistant(self._count)


Searched: TypeAlias = TenantIndex | Selection
"""What routes read: a tenant whole, or what one question looks at of it."""


class _SelectedLexical:
    """Words of selected rows, scored with the statistics of the whole."""

    def __init__(self, index: TenantIndex, rows: Rows, count: int) -> None:
        self._whole, self._rows, self._count = index.lexical, rows, count

    def score(self, terms: Iterable[str], *, count: int) -> tuple[Scores, Scores]:
        """Return the scores of the selected turns, and those of the windows around them."""
        return self._whole.score_rows(terms, self._rows[:count], count=self._count)

    def step(self, rows: Rows, steps: int, *, count: int) -> Rows:
        """Return the rows that many turns later (or earlier); -1 where none is selected."""
        there = self._whole.step(np.where(rows == NO_ROW, NO_ROW, self._rows[rows]), steps, count=self._count)
        at = np.minimum(np.searchsorted(self._rows, there), len(self._rows) - 1)
        found = (there != NO_ROW) & (self._rows[at] == there) & (at < count)
        return np.where(found, at, NO_ROW)


def select(
    index: TenantIndex, terms: Iterable[str], events: Mapping[str, float], near: Near | None, *, count: int
) -> Selection:
    """
    Return what a question looks at.

    Args:
        index: Of a large tenant.
        terms: Of the question.
        events: What typed state has to say, by event.
        near: The nearest units, if the dense route has spoken.
        count: Rows known at the question's cut.
    """
    best = sorted(events, key=lambda event: (-events[event], event))[:STATE_ROWS]
    brought = [
        index.lexical.strongest(terms, count=count, limit=LEXICAL_ROWS),
        np.array([index.row_of[event] for event in best if event in index.row_of], dtype=np.int64),
    ]
    if near is not None:
        brought.append(near.rows)
    core = np.unique(np.concatenate(brought))
    core = core[core < count]
    beside = [
        index.lexical.step(core, steps, count=count) for steps in range(-WINDOW_REACH, WINDOW_REACH + 1)
    ]
    rows = np.unique(np.concatenate(beside)).astype(np.int64)
    return Selection(index, rows[rows != NO_ROW], count=count, near=near)
