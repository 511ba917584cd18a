r"""
The default token estimate: whole numbers, no model, the same on any machine.

`approx-v1` counts, over explicit code point ranges (never `str.isalpha`, whose answers change
with the Unicode version of the interpreter):

- a run of Latin letters: one token for each begun six letters;
- a run of digits: one for each begun three;
- any other character from U+0080 up that is not Latin: one each;
- an ASCII sign: one each; an escape such as `\u202e` is signs, letters and digits as it stands;
- a line end: one; blanks: none.

Its error against a real tokenizer is measured in the tests and stated in docs/contexts.md.
"""

from __future__ import annotations

import re
from typing import Final

# Six letters rather than eight, which comes nearest: an estimate that a budget rests on should err
# upwards. A greedy match of one to six takes a run apart into as many pieces as it begins sixes.
_PIECES: Final = re.compile(r"[A-Za-z\u00c0-\u024f]{1,6}|[0-9]{1,3}|[^ \tA-Za-z0-9\u00c0-\u024f]")


class ApproximateCounter:
    """A `TokenCounter`. Additive over lines: no piece crosses a line end."""

    name: str = "approx-v1"

    def count(self, text: str) -> int:
        """Return the estimate; at least 1 for a text that is not empty."""
        return len(_PIECES.findall(text)) or min(len(text), 1)
