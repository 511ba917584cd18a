"""What discovery needs from an embedding model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
"""One row per text; each row has Euclidean length 1."""
DIMENSIONS_MAX: Final = 16_000
"""Numbers in one vector: what pgvector stores."""


class Embedder(Protocol):
    """
    Turns texts into vectors whose dot product is their cosine similarity.

    `model_digest` names weights, graph and truncation: vectors of two digests are never compared.
    """

    model_digest: str
    dimensions: int

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return `[len(texts), dimensions]`, rows in the order of the texts. Blocks; call off the loop."""
        ...
