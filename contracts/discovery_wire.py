"""Discovery's index as doors show it."""

from __future__ import annotations

from contracts._wire import Wire


class ReindexAnswer(Wire):
    """
    A tenant's index that is made anew: `vectors_dropped` of any model were deleted.

    Until it is there, questions are answered from what is, and the routes that wait say `late`.
    """

    tenant: str
    vectors_dropped: int
