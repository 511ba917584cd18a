"""
How lines stand one below the other, and what each takes of the room there.

Of its time a line says what is not as in the line above, so a day takes room once for all lines in a row
that share it: it is a head of each of them. Where lines between two rows of one day are not shown, the rows
become one and take a little less than was counted, never more.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Self

from contracts.errors import IntegrityFault
from contracts.ports import TokenCounter
from contracts.trails import PACKER_UNSAID
from packing._choose import Head, Size
from packing._render import Shown, Written, lines_of, written

PACKER_VERSION: Final = 3
"""Raised with whatever changes the bytes that are packed of the same evidence. Of today's contexts."""
WHOLE_TIMES: Final = PACKER_UNSAID
"""The packer whose lines each said all of their time. What it packed must still be built anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Events as written, in source order by event id, and what each takes beside the others."""

    written: Mapping[str, Written]
    sizes: Mapping[str, Size]
    packer: int

    @classmethod
    def of(cls, shown: Mapping[str, Shown], counter: TokenCounter, *, packer: int) -> Self:
        """
        Write events that are in source order.

        Raises:
            IntegrityFault: Nothing is known of this packer.
        """
        words = {event_id: written(line) for event_id, line in shown.items()}
        if packer == WHOLE_TIMES:
            sizes = [_size(line.below(None), counter, ()) for line in words.values()]
        elif packer == PACKER_VERSION:
            sizes = sizes_of(list(words.values()), counter)
        else:
            raise IntegrityFault(what=f"context of packer {packer}, which is none of ours")
        return cls(written=words, sizes=dict(zip(words, sizes, strict=True)), packer=packer)

    def lines(self, members: Collection[str]) -> dict[str, str]:
        """Return the lines of these events, in source order, without line ends."""
        words = {event_id: line for event_id, line in self.written.items() if event_id in members}
        if self.packer == WHOLE_TIMES:
            return {event_id: line.below(None) for event_id, line in words.items()}
        return dict(zip(words, lines_of(words.values()), strict=True))


def sizes_of(lines: Sequence[Written], counter: TokenCounter) -> list[Size]:
    """Return what each of these lines takes, which are in source order, and its heads: time and day."""
    sizes: list[Size] = []
    day = clock = Head(number=0, tokens=0, bytes_=0)
    for above, line in pairwise([None, *lines]):
        assert line is not None
        is_later = above is not None and (above.day, above.zone) == (line.day, line.zone)
        if not is_later:
            day = _head(2 * len(sizes), f"{line.day} {line.zone}", counter)
        if not is_later or (above is not None and above.clock != line.clock):
            clock = _head(2 * len(sizes) + 1, f"{line.clock} ", counter)
        sizes.append(_size(line.bare(), counter, (day, clock)))
    return sizes


def room_of(lines: Sequence[Shown], counter: TokenCounter) -> list[dict[Hashable, int]]:
    """
    Return the tokens that each of these lines takes, in source order: its own, and those of its heads.

    A head is the same in each line that shares it and takes room once. A line's own stand under its place.
    """
    sizes = sizes_of([written(line) for line in lines], counter)
    return [
        {f"line {place}": size.tokens, **{head.number: head.tokens for head in size.heads}}
        for place, size in enumerate(sizes)
    ]


def _size(line: str, counter: TokenCounter, heads: tuple[Head, ...]) -> Size:
    text = f"{line}\n"
    return Size(tokens=counter.count(text), bytes_=len(text.encode()), heads=heads)


def _head(number: int, words: str, counter: TokenCounter) -> Head:
    return Head(number=number, tokens=counter.count(words), bytes_=len(words))
