"""A numpy array that grows at its end, in amortized constant time."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

_FIRST_ROWS: Final = 256


class Column:
    """Values of one type, by row; `view` is a window onto the first rows and is not copied."""

    def __init__(self, dtype: npt.DTypeLike, *, width: int | None = None) -> None:
        self._rows = np.zeros(_FIRST_ROWS if width is None else (_FIRST_ROWS, width), dtype=dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, value: npt.ArrayLike) -> None:
        """Add one row."""
        if self._count == len(self._rows):
            grown = np.zeros((2 * len(self._rows), *self._rows.shape[1:]), dtype=self._rows.dtype)
            grown[: self._count] = self._rows
            self._rows = grown
        self._rows[self._count] = value
        self._count += 1

    def view(self, count: int) -> npt.NDArray[Any]:
        """Return the first `count` rows, writable; not to be kept past the next `append`."""
        assert count <= self._count
        return self._rows[:count]

    def __getstate__(self) -> tuple[npt.NDArray[Any], int]:
        """Without the room to grow."""
        return self._rows[: max(1, self._count)], self._count

    def __setstate__(self, state: tuple[npt.NDArray[Any], int]) -> None:
        """As it was written, with room for what was there."""
        self._rows, self._count = state

    @property
    def bytes_held(self) -> int:
        """Memory held, in bytes."""
        return self._rows.nbytes
