"""
A compound question, as the questions it is made of. Rules of grammar alone; pure.

"Where does Ann live and when did she move there?" asks two things. Scored as one bag of words,
evidence for either part stands behind turns that touch both a little.
"""

from __future__ import annotations

import re
from typing import Final

from discovery._text import terms

PARTS_MAX: Final = 3
"""Sub-questions of one question; what comes after them stays with the last."""
PART_TERMS_MIN: Final = 2
"""Terms of a part that stands by itself: fewer only add to what is before."""

_JOINT: Final = re.compile(
    r"\s*(?:[;,]\s*(?:and|then|or|but)?\b|\b(?:and|or|but|then)\b|(?<=[?.!])\s)\s*", re.IGNORECASE
)


def parts_of(question: str) -> tuple[str, ...]:
    """Return the sub-questions of a compound question, in order; none where it is one question."""
    parts: list[str] = []
    for piece in (piece.strip() for piece in _JOINT.split(question)):
        if not piece:
            continue
        stands_alone = len(terms(piece)) >= PART_TERMS_MIN and len(parts) < PARTS_MAX
        if stands_alone or not parts:
            parts.append(piece)
        else:
            parts[-1] = f"{parts[-1]} {piece}"
    return tuple(parts) if len(parts) > 1 else ()
