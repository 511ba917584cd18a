"""One spelling for what looks alike, and the way back from it to the text as it was said."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import Final

from contracts.claims import Span

_UNSEEN: Final = dict.fromkeys(map(ord, "\ufeff\u200b\u2060"))
"""A byte order mark, and spaces and joiners of no width: nobody says them."""
_RUN: Final = re.compile(r"[\x00-\x7f][^\x00-\x7f]*|[^\x00-\x7f]+")
"""A letter of ASCII joins none before it, so runs that begin with one are spelt each by itself."""


def spelt(text: str) -> str:
    """Return a text in Unicode's form C, as names are, without what has no width."""
    return unicodedata.normalize("NFC", text.translate(_UNSEEN))


class Places:
    """
    Leads from a place in `spelt(text)` back to the text, to whole runs.

    Args:
        text: As it was said.
    """

    def __init__(self, text: str) -> None:
        runs = _RUN.findall(text)
        self._said = list(accumulate(map(len, runs), initial=0))
        self._spelt = list(accumulate((len(spelt(run)) for run in runs), initial=0))

    def back(self, span: Span) -> Span:
        """Return the span of the text that a span of its spelling came from."""
        first = bisect_right(self._spelt, span.start) - 1
        last = bisect_left(self._spelt, span.end)
        return Span(start=self._said[first], end=self._said[last])
