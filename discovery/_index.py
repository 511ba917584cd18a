"""One tenant's index in memory: turns, words, names, claims and vectors, in the order of the log."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from contracts.claims import ASSISTANT, USER, Claim
from contracts.events import ErasedEvent, Event
from contracts.times import MICROSECOND
from discovery._arrays import Column
from discovery._cells import Codes
from discovery._embedder import Vectors
from discovery._lexical import Lexical
from discovery._names import NameBook
from discovery._record import ClaimBook
from discovery._text import words
from discovery._units import Unit, unit_of

WHOLE_UNITS_MAX: Final = 20_000
"""Units up to which every one is scored, and its vector held as floats. Past it, see `Selection`."""
MEDIAN_SAMPLE_MAX: Final = 4_096
"""Units that the median length is taken from, spread evenly over the tenant."""
EPOCHS_MAX: Final = 2
"""Claims are held for the epoch that serves and the one that is about to, or a stored question's."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class TenantIndex:
    """
    What discovery knows of one tenant. Rows are units, numbered from 0 in the order of the log.

    Adding is linear in what is added. Everything is read up to a cut, so that a question at an
    older cut finds what it would have found then.
    """

    def __init__(self, *, dimensions: int) -> None:
        self.lexical = Lexical()
        self.names = NameBook()
        self.claims: dict[int, ClaimBook] = {}
        self.unit_ids: list[str] = []
        self.row_of: dict[str, int] = {}
        self.actors: dict[str, int] = {}
        self._speakers: dict[tuple[str, ...], int] = {}
        self.codes: Codes | None = None
        """The vectors of a tenant that is not scored whole."""
        self._vectors: Column | None = Column(np.float32, width=dimensions)
        self.position = 0
        """Events up to here were read."""
        self.events_held = 0
        """Events of these that were not erased when they were read."""
        self.claims_position = 0
        """Names of claims of events up to here were read, which may be further on."""
        self.last_commit = 0
        """The commit of the last of them."""
        self.complete_commit = 0
        """Every event of commits up to here was read."""
        self.is_warm = False
        """The log was read to its end once."""
        self.is_dropped = False
        """An event in it was erased since: it answers nothing any more."""
        self._first_assistant: int | None = None
        self._streams: dict[str, int] = {}
        self.dimensions = dimensions
        """Numbers in one vector."""
        self._commits = Column(np.int64)
        self._positions = Column(np.int64)
        self._observed = Column(np.int64)
        self._words = Column(np.int32)
        self._actor = Column(np.int32)
        self._actors_seen = Column(np.int32)
        self._stream = Column(np.int32)
        self._assistant = Column(np.bool_)
        self._marks = Column(np.uint8)
        self._told_rows = Column(np.int32)
        self._told = Column(np.int64, width=2)
        self._embedded = Column(np.bool_)
        self._first_missing = 0

    def __len__(self) -> int:
        return len(self.unit_ids)

    @property
    def bytes_held(self) -> int:
        """Memory held, in bytes; an estimate where Python objects are counted."""
        vectors = sum(held.bytes_held for held in (self._vectors, self.codes) if held is not None)
        claims = sum(book.bytes_held for book in self.claims.values())
        return self.lexical.bytes_held + vectors + claims + 300 * len(self) + 200 * len(self.names)

    def __getstate__(self) -> dict[str, object]:
        """Without claims: which hold is the ledger's to say, in the epoch that serves then."""
        return self.__dict__ | {"claims": {}}

    # --- upkeep ---------------------------------------------------------------------------------

    def add(self, event: Event | ErasedEvent) -> None:
        """Add the next event of the log; of an erased one, only that it stands there."""
        self.position, self.last_commit = event.position, event.commit
        if isinstance(event, ErasedEvent):
            return
        self.events_held += 1
        draft = event.draft
        self.names.add_entity(draft.actor.id, commit=event.commit)
        for subject in draft.subjects:
            self.names.add_entity(subject, commit=event.commit)
        if draft.actor.class_ == USER:
            self.names.add_user(draft.actor.id, commit=event.commit)
        unit = unit_of(event)
        if unit is not None:
            self._add_unit(unit)

    def _add_unit(self, unit: Unit) -> None:
        row = self.lexical.add(unit.terms, stream=unit.stream)
        assert row == len(self.unit_ids)
        self.unit_ids.append(unit.unit_id)
        self.row_of[unit.unit_id] = row
        self._commits.append(unit.commit)
        self._positions.append(unit.position)
        self._observed.append(instant_us(unit.observed))
        self._words.append(unit.words_count)
        if unit.actor_id not in self.actors:
            self._speakers.setdefault(words(unit.actor_id), len(self.actors))
        self._actor.append(self.actors.setdefault(unit.actor_id, len(self.actors)))
        self._stream.append(self._streams.setdefault(unit.stream, len(self._streams)))
        self._assistant.append(unit.actor_class == ASSISTANT)
        self._marks.append(unit.marks)
        for start, end in unit.told:
            self._told_rows.append(row)
            self._told.append((instant_us(start), instant_us(end)))
        self._actors_seen.append(len(self.actors))
        if unit.actor_class == ASSISTANT and self._first_assistant is None:
            self._first_assistant = row
        self._embedded.append(False)
        if self._vectors is not None:
            self._vectors.append(0)
            if len(self) > WHOLE_UNITS_MAX:
                self._encode(self._vectors)
        elif self.codes is not None:
            self.codes.append_empty()

    def _encode(self, vectors: Column) -> None:
        self.codes, self._vectors = Codes(self.dimensions), None
        for _ in range(len(self)):
            self.codes.append_empty()
        rows = np.flatnonzero(self._embedded.view(len(self)))
        self.codes.put(rows, vectors.view(len(self))[rows])

    def book(self, epoch: int) -> ClaimBook:
        """Return the claims of an epoch, empty at first; the lowest epoch goes when there are too many."""
        if epoch not in self.claims:
            while len(self.claims) >= EPOCHS_MAX:
                del self.claims[min(self.claims)]
            self.claims[epoch] = ClaimBook()
        return self.claims[epoch]

    def add_claim(self, claim: Claim) -> None:
        """Add the next claim of its epoch."""
        self.book(claim.epoch).add(claim)
        self.claims_position = max(self.claims_position, claim.position.event)
        self.names.add_claim(claim)

    def set_vectors(self, rows: Sequence[int], vectors: Vectors) -> None:
        """Fill in the vectors of units."""
        at = np.array(rows, dtype=np.int64)
        self._embedded.view(len(self))[at] = True
        if self._vectors is not None:
            self._vectors.view(len(self))[at] = vectors
        elif self.codes is not None:
            self.codes.put(at, vectors)

    def missing_vectors(self, limit: int) -> list[int]:
        """Return the first rows that have no vector yet."""
        rows: list[int] = []
        while len(rows) < limit and self._first_missing < len(self):
            start = self._first_missing
            some = self._embedded.view(len(self))[start : start + limit]
            rows += (np.flatnonzero(~some)[: limit - len(rows)] + start).tolist()
            if rows:
                break
            self._first_missing += len(some)
        return rows

    # --- reading --------------------------------------------------------------------------------

    def count_at(self, cut: int) -> int:
        """Return how many rows are known at a cut."""
        return int(np.searchsorted(self._commits.view(len(self)), cut, side="right"))

    def position_of(self, row: int) -> int:
        """Return the position in the log of a row."""
        return int(self._positions.view(len(self))[row])

    def observed(self, count: int) -> npt.NDArray[Any]:
        """When each of the first rows was observed, in microseconds since 1970."""
        return self._observed.view(count)

    def actor(self, count: int) -> npt.NDArray[Any]:
        """The number of each row's actor."""
        return self._actor.view(count)

    def stream(self, count: int) -> npt.NDArray[Any]:
        """The number of each row's stream."""
        return self._stream.view(count)

    def said_by_assistant(self, count: int) -> npt.NDArray[Any]:
        """Whether an actor of class `assistant` said it."""
        return self._assistant.view(count)

    def marks(self, count: int) -> npt.NDArray[Any]:
        """The marks of each row's text."""
        return self._marks.view(count)

    def told(self, count: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Times that texts of the first rows name: the row of each, ascending, and its start and end."""
        rows = self._told_rows.view(len(self._told_rows))
        known = int(np.searchsorted(rows, count))
        return rows[:known], self._told.view(known)

    def embedded(self, count: int) -> npt.NDArray[Any]:
        """Whether each row has its vector."""
        return self._embedded.view(count)

    def has_all_vectors(self, count: int) -> bool:
        """Whether none of the first rows waits for its vector."""
        self.missing_vectors(1)
        return self._first_missing >= count or bool(self._embedded.view(count)[self._first_missing :].all())

    def cosines(self, vector: Vectors, count: int) -> tuple[npt.NDArray[Any], float]:
        """Return the cosines of the first rows, and the lowest of those that have a vector."""
        assert self._vectors is not None
        cosines = self._vectors.view(count) @ vector
        return cosines, float(cosines[self.embedded(count)].min(initial=1.0))

    def vectors_of(self, rows: npt.NDArray[Any]) -> Vectors:
        """Return the vectors of rows that have one."""
        if self.codes is not None:
            return self.codes.floats(rows)
        assert self._vectors is not None
        return np.asarray(self._vectors.view(len(self))[rows], dtype=np.float32)

    def median_words(self, count: int) -> float:
        """Return the median words of a row; of a large tenant, of rows spread evenly over it."""
        return float(np.median(self._words.view(count)[:: max(1, count // MEDIAN_SAMPLE_MAX)]))

    def is_speaker(self, name: tuple[str, ...], count: int) -> bool:
        """Return whether one of this name, as folded words, had spoken by then."""
        number = self._speakers.get(name)
        return number is not None and number < self._seen(count)

    def _seen(self, count: int) -> int:
        return int(self._actors_seen.view(count)[-1]) if count else 0

    def actors_at(self, count: int) -> list[str]:
        """Return who had spoken by then; the number of each is its place."""
        seen = self._seen(count)
        # Numbers are given out in the order of the first appearance, which is the order of the names.
        return list(itertools.islice(self.actors, seen))

    def has_assistant(self, count: int) -> bool:
        """Whether an actor of class `assistant` had spoken by then."""
        return self._first_assistant is not None and self._first_assistant < count


def instant_us(instant: datetime) -> int:
    """Return whole microseconds since 1970."""
    return (instant - _EPOCH) // MICROSECOND
