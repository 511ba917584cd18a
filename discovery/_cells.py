"""
Vectors of a large tenant in memory, a byte a dimension: the nearest in a few milliseconds at a million.

The truth is in PostgreSQL, where the best of what is found here are scored; this is where to look. Up
to `SCANNED_MAX` vectors all are read. Past that they lie in cells around centres, and a question reads
the cells whose centres are nearest to it. How many is measured whenever the cells are laid: as many as
find again what a full scan finds for units moved as far off as questions are, and a margin. They are
laid anew when there are twice as many vectors, so that an addition costs the same at any size.

Source: Jégou, Douze and Schmid, "Product quantization for nearest neighbor search" (2011), for inverted
files; the bytes are plain scalar quantization.
"""

from __future__ import annotations

import itertools
from array import array
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from discovery._arrays import Column
from discovery._embedder import Vectors

SCANNED_MAX: Final = 65_536
"""Vectors up to which all are read: 60 ns each on the machine it was measured on."""
CELL_ROWS: Final = 128
"""Vectors that a cell is meant to hold: few, since what is alike comes in small groups."""
CELLS_MAX: Final = 8_192
SAMPLE_PER_CELL: Final = 16
"""Vectors a cell that centres are found from."""
ROUNDS: Final = 4
"""Of moving the centres."""
PROBED_MIN: Final = 64
"""Cells that are read at least: 8,000 vectors, in about a millisecond."""
PROBES: Final = 64
"""Units that it is measured with how many cells must be read."""
PROBE_TOP: Final = 10
PROBE_NOISE: Final = 0.75
"""Length of what is added to a unit to make it as far from others as a question is."""
RECALL_WANTED: Final = 0.995
"""Of the ten that a full scan finds for a unit, as much must be found: questions lie further off."""
MARGIN: Final = 2
"""As many times more cells are read for a question than did for units."""
BLOCK_ROWS: Final = 512
"""Vectors turned into floats at once: 800 kB, which stays in a core's cache."""
_SEED: Final = 1
_LEVELS: Final = 127
_ASSIGNED_ROWS: Final = 4_096

Numbers = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Layout:
    """Centres, the cell of each of the first rows, and how many cells a question reads."""

    centres: Vectors
    cells: Numbers
    probed: int


@dataclass(frozen=True, slots=True)
class Near:
    """Rows by their cosine, the highest first; `low` is about the lowest that any row has."""

    rows: Numbers
    cosines: Vectors
    low: float


class Codes:
    """Vectors by row; one that is not there yet is zero, and as near as a stranger."""

    def __init__(self, dimensions: int) -> None:
        self._codes = Column(np.int8, width=dimensions)
        self._scales = Column(np.float32)
        self._layout: Layout | None = None
        self._members: list[array[int]] = []
        self._buffer = np.empty((BLOCK_ROWS, dimensions), dtype=np.float32)

    def __len__(self) -> int:
        return len(self._scales)

    @property
    def bytes_held(self) -> int:
        """Memory held, in bytes."""
        cells = 0 if self._layout is None else self._layout.centres.nbytes + 8 * len(self)
        return self._codes.bytes_held + self._scales.bytes_held + cells

    @property
    def wants_layout(self) -> bool:
        """Whether there are so many more vectors than when cells were laid that it ought to be done again."""
        laid = 0 if self._layout is None else len(self._layout.cells)
        return len(self) > max(SCANNED_MAX, 2 * laid)

    @property
    def probed(self) -> int | None:
        """How many cells a question reads; None while it reads all vectors."""
        return None if self._layout is None else self._layout.probed

    def append_empty(self) -> None:
        """Add a row without a vector."""
        self._codes.append(0)
        self._scales.append(0)

    def put(self, rows: Numbers, vectors: Vectors) -> None:
        """Fill in the vectors of rows."""
        codes, scales = quantized(vectors)
        self._codes.view(len(self))[rows] = codes
        self._scales.view(len(self))[rows] = scales
        if self._layout is not None:
            for row, cell in zip(
                rows.tolist(), _nearest(self._layout.centres, vectors).tolist(), strict=True
            ):
                if row >= len(self._layout.cells):
                    self._members[cell].append(row)

    def use(self, layout: Layout) -> None:
        """Read the cells of a layout from now on; rows that came since it was made are put into them."""
        order = np.argsort(layout.cells, kind="stable").astype(np.int32)
        bounds = np.searchsorted(layout.cells[order], np.arange(len(layout.centres) + 1))
        self._members = [
            array("i", order[start:end].tobytes()) for start, end in itertools.pairwise(bounds.tolist())
        ]
        self._layout = layout
        # One that has no vector yet is put into its cell when it gets it.
        later = np.flatnonzero(self._scales.view(len(self))[len(layout.cells) :]) + len(layout.cells)
        for start in range(0, len(later), _ASSIGNED_ROWS):
            rows = later[start : start + _ASSIGNED_ROWS]
            for row, cell in zip(
                rows.tolist(), _nearest(layout.centres, self.floats(rows)).tolist(), strict=True
            ):
                self._members[cell].append(row)

    def nearest(self, vector: Vectors, *, count: int, limit: int) -> Near:
        """Return the nearest of the first `count` rows, of those in the cells that are read."""
        rows, low = self._read(vector, count)
        if rows is None or len(rows) < min(limit, count):
            # There are few, or of an older cut the cells hold too little: all of it is read.
            rows, cosines = np.arange(count), self._scan(vector, count)
        else:
            cosines = self.cosines(rows, vector)
        low = min(low, float(cosines.min(initial=0.0)))
        if len(rows) > limit:
            floor = np.partition(cosines, len(cosines) - limit)[len(cosines) - limit]
            rows, cosines = rows[cosines >= floor], cosines[cosines >= floor]
        order = np.lexsort((rows, -cosines))[:limit]
        return Near(rows[order], cosines[order], low)

    def cosines(self, rows: Numbers, vector: Vectors) -> Vectors:
        """Return the cosines of these rows."""
        codes, found = self._codes.view(len(self)), np.empty(len(rows), dtype=np.float32)
        for start in range(0, len(rows), BLOCK_ROWS):
            some = rows[start : start + BLOCK_ROWS]
            block = self._buffer[: len(some)]
            np.copyto(block, codes[some], casting="unsafe")
            found[start : start + len(some)] = block @ vector
        return np.asarray(found * self._scales.view(len(self))[rows])

    def _read(self, vector: Vectors, count: int) -> tuple[Numbers | None, float]:
        """Return the rows to look at, None for all, and the lowest cosine of a centre."""
        if self._layout is None or count <= SCANNED_MAX:
            return None, 0.0
        likeness = self._layout.centres @ vector
        probed = min(self._layout.probed, len(likeness))
        cells = np.argpartition(-likeness, probed - 1)[:probed]
        rows = np.concatenate([np.array(self._members[cell], dtype=np.int32) for cell in cells.tolist()])
        return rows[rows < count], float(likeness.min())

    def _scan(self, vector: Vectors, count: int) -> Vectors:
        codes, found = self._codes.view(count), np.empty(count, dtype=np.float32)
        for start in range(0, count, BLOCK_ROWS):
            some = codes[start : start + BLOCK_ROWS]
            block = self._buffer[: len(some)]
            np.copyto(block, some, casting="unsafe")
            found[start : start + len(some)] = block @ vector
        return np.asarray(found * self._scales.view(count))

    def floats(self, rows: Numbers) -> Vectors:
        """Return the vectors of rows, as near as a byte a dimension comes to them."""
        scales = self._scales.view(len(self))[rows]
        return np.asarray(self._codes.view(len(self))[rows] * scales[:, None], dtype=np.float32)

    def stored(self) -> tuple[Numbers, Numbers]:
        """Return codes and scales as they are now, for `lay` in another thread: not to be changed."""
        return self._codes.view(len(self)), self._scales.view(len(self))


def quantized(vectors: Vectors) -> tuple[Numbers, Vectors]:
    """Return a byte a dimension, and what to multiply with."""
    highest = np.abs(vectors).max(axis=1, initial=0.0)
    scales = np.where(highest > 0, highest / _LEVELS, 1.0).astype(np.float32)
    return np.rint(vectors / scales[:, None]).astype(np.int8), scales


def lay(codes: Numbers, scales: Numbers) -> Layout:
    """
    Return cells for these vectors, and how many must be read. Pure; takes minutes of a core a million.

    Args:
        codes: Of rows that all have their vector.
        scales: What to multiply them with.
    """
    random = np.random.default_rng(_SEED)
    count = min(CELLS_MAX, max(1, len(codes) // CELL_ROWS))
    sample = np.sort(random.choice(len(codes), min(len(codes), SAMPLE_PER_CELL * count), replace=False))
    vectors = codes[sample] * scales[sample, None]
    centres = vectors[np.sort(random.choice(len(vectors), count, replace=False))]
    for _ in range(ROUNDS):
        cells = _nearest(centres, vectors)
        sums = np.zeros_like(centres)
        np.add.at(sums, cells, vectors)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        # A centre that nothing is nearest to stays where it is.
        centres = np.where(lengths > 0, sums / np.maximum(lengths, 1e-9), centres).astype(np.float32)
    cells = np.empty(len(codes), dtype=np.int32)
    for start in range(0, len(codes), _ASSIGNED_ROWS):
        some = slice(start, start + _ASSIGNED_ROWS)
        cells[some] = _nearest(centres, codes[some] * scales[some, None])
    return Layout(centres, cells, _probed(codes, scales, centres, cells, random))


def _probed(
    codes: Numbers, scales: Numbers, centres: Vectors, cells: Numbers, random: np.random.Generator
) -> int:
    """Return how many cells must be read to find what a full scan finds for some of the vectors."""
    probes = random.choice(len(codes), min(len(codes), PROBES), replace=False)
    vectors = codes[probes] * scales[probes, None]
    noise = random.standard_normal(vectors.shape) * (PROBE_NOISE / np.sqrt(vectors.shape[1]))
    vectors = (vectors + noise).astype(np.float32)
    best = np.full((len(probes), PROBE_TOP), -np.inf, dtype=np.float32)
    rows = np.zeros((len(probes), PROBE_TOP), dtype=np.int64)
    for start in range(0, len(codes), _ASSIGNED_ROWS):
        part = codes[start : start + _ASSIGNED_ROWS] * scales[start : start + _ASSIGNED_ROWS, None]
        scores = np.concatenate([best, vectors @ part.T], axis=1)
        numbers = np.concatenate(
            [rows, np.broadcast_to(np.arange(start, start + len(part)), (len(probes), len(part)))], axis=1
        )
        top = np.argpartition(-scores, PROBE_TOP - 1, axis=1)[:, :PROBE_TOP]
        best, rows = np.take_along_axis(scores, top, axis=1), np.take_along_axis(numbers, top, axis=1)
    # The place of the cell of each of the best, in the order in which a question reads cells.
    places = np.argsort(np.argsort(-(vectors @ centres.T), axis=1), axis=1)
    needed = np.sort(np.take_along_axis(places, cells[rows], axis=1).ravel()) + 1
    enough = int(needed[min(len(needed) - 1, int(np.ceil(RECALL_WANTED * len(needed))))])
    return min(len(centres), max(PROBED_MIN, MARGIN * enough))


def _nearest(centres: Vectors, vectors: Vectors) -> Numbers:
    found = np.empty(len(vectors), dtype=np.int32)
    # All at once would be a number for each pair.
    for start in range(0, len(vectors), _ASSIGNED_ROWS):
        some = slice(start, start + _ASSIGNED_ROWS)
        found[some] = np.argmax(vectors[some] @ centres.T, axis=1)
    return found
