"""Views: at which valid time, as known when, and in which generation a question is asked."""

from __future__ import annotations

from dataclasses import dataclass

from contracts.errors import BadRequest
from contracts.times import KnownAt, ValidAt

_DIGITS_MAX = 18
# The most decimal digits that a 64-bit number always holds.


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One complete projection of the log: an epoch, folded to a commit. Written `epoch:commit`."""

    epoch: int
    commit: int

    def __str__(self) -> str:
        """Return `epoch:commit`."""
        return f"{self.epoch}:{self.commit}"


def parse_generation(text: str) -> Generation:
    """
    Read `epoch:commit`.

    Raises:
        BadRequest: Not two whole numbers joined by a colon.
    """
    epoch, colon, commit = text.partition(":")
    digits = all(part.isascii() and part.isdecimal() and len(part) <= _DIGITS_MAX for part in (epoch, commit))
    if not colon or not digits:
        raise BadRequest(field="generation", reason="expected EPOCH:COMMIT, such as 1:42")
    return Generation(epoch=int(epoch), commit=int(commit))


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewRequest:
    """What a caller asks for; None means the newest. `min_commit` waits for its own write."""

    valid_at: ValidAt | None
    known_at: KnownAt | None
    generation: Generation | None
    min_commit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """
    A pinned view: every answer is a pure function of it.

    `cut` is the commit up to which events are seen; `known_at` is what the caller asked for, or
    the "now" it was turned into.
    """

    valid_at: ValidAt
    known_at: KnownAt
    cut: int
    epoch: int
