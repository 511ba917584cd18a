"""The relations that say which entities are one; the value of a claim on one is the other entity's name."""

from __future__ import annotations

from typing import Final

SAME_AS: Final = "same_as"
NOT_SAME_AS: Final = "not_same_as"
IDENTITY: Final = frozenset({SAME_AS, NOT_SAME_AS})
