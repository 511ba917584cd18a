"""
The same question in other words, by rules that were fixed before any was tried.

General English, and nothing in them was chosen by looking at a question of a set.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

_SHORT: Final = (
    (r"\b(what|where|who|when|how) is\b", r"\1's"),
    (r"\b(do|does|did|is|was|were|has|have|had|would|could|should) not\b", r"\1n't"),
    (r"\b(I|you|we|they) have\b", r"\1've"),
)
_FORMAL: Final = (
    (r"^when (did|does|do|is|was|were|will)\b", r"at what time \1"),
    (r"^where (did|does|do|is|was|were|will)\b", r"in which place \1"),
    (r"^why (did|does|do|is|was|were)\b", r"for what reason \1"),
    (r"^who\b", "which person"),
    (r"^how many\b", "what number of"),
)


def _polite(text: str) -> str:
    return f"Could you please tell me: {text}"


def _aside(text: str) -> str:
    return f"{text} I was only wondering."


def _bare(text: str) -> str:
    return re.sub(r"[?!.,]+", "", text).lower().strip()


def _short(text: str) -> str:
    for pattern, instead in _SHORT:
        text = re.sub(pattern, instead, text, flags=re.IGNORECASE)
    return text


def _formal(text: str) -> str:
    for pattern, instead in _FORMAL:
        text = re.sub(pattern, instead, text, flags=re.IGNORECASE)
    return text


REWORDINGS: Final[Mapping[str, Callable[[str], str]]] = {
    "polite": _polite,
    "aside": _aside,
    "bare": _bare,
    "short": _short,
    "formal": _formal,
}
"""By name; each is a function of the text alone."""
