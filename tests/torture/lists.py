"""
Whether streams are lists: what clients appended and read at once, held against one order of everything.

After Elle (Kingsbury and Alvaro, 2020), for the one object that a stream is: appends of unique elements make
the order of all writes known, so a history is right exactly if its dependencies have no cycle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Final

ANOMALIES_MAX: Final = 20


class End(StrEnum):
    """How an operation ended: done, refused and nothing written, or nobody knows."""

    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """One commit: elements put at the ends of one or several streams, from `began` to `ended`."""

    began: float
    ended: float
    end: End
    elements: tuple[tuple[str, str], ...]
    """(stream, element), each element once in a history."""
    expected_version: int | None
    """How long the one stream was said to be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What stood in a stream after its first `offset` elements, as far as it was read."""

    began: float
    ended: float
    stream: str
    offset: int
    elements: tuple[str, ...]


Operation = Append | Read


def anomalies(history: Sequence[Operation], streams: Mapping[str, Sequence[str]]) -> list[str]:
    """
    Return what is wrong with a history; the first ones.

    Args:
        history: What clients did and were told, in any order.
        streams: What stands in each stream when everything is over.
    """
    found = [
        *_not_there_once(history, streams),
        *_not_where_said(history, streams),
        *_misread(history, streams),
    ]
    # A read of what was never there has no place in an order.
    return (found or _cycles(history, streams))[:ANOMALIES_MAX]


def _not_there_once(history: Sequence[Operation], streams: Mapping[str, Sequence[str]]) -> Iterable[str]:
    standing = Counter((stream, element) for stream, elements in streams.items() for element in elements)
    tried = {one: append for append in history if isinstance(append, Append) for one in append.elements}
    for one, count in standing.items():
        if count > 1:
            yield f"duplicated: {one} stands {count} times"
        if one not in tried:
            yield f"from nowhere: {one} was appended by nobody"
    for one, append in tried.items():
        if append.end is End.DONE and not standing[one]:
            yield f"lost: {one} was acknowledged"
        if append.end is End.REFUSED and standing[one]:
            yield f"half done: {one} was refused and stands"
    for append in history:
        if isinstance(append, Append) and len({standing[one] > 0 for one in append.elements}) > 1:
            yield f"torn: of {append.elements} some stand"


def _not_where_said(history: Sequence[Operation], streams: Mapping[str, Sequence[str]]) -> Iterable[str]:
    for append in history:
        if isinstance(append, Read) or append.end is not End.DONE or append.expected_version is None:
            continue
        stream, first = append.elements[0]
        if streams[stream][append.expected_version : append.expected_version + 1] != [first]:
            yield f"not at its version: {first} after {append.expected_version} of {stream}"


def _misread(history: Sequence[Operation], streams: Mapping[str, Sequence[str]]) -> Iterable[str]:
    for read in history:
        if isinstance(read, Read):
            stands = tuple(streams[read.stream][read.offset : read.offset + len(read.elements)])
            if stands != read.elements:
                yield f"reordered: {read.stream} after {read.offset} was {read.elements}, and is {stands}"


def _cycles(history: Sequence[Operation], streams: Mapping[str, Sequence[str]]) -> list[str]:
    """Order everything: writes as they stand, reads between them, and whatever ended before what began."""
    writer = {one: number for number, append in enumerate(history) if isinstance(append, Append)
              for one in append.elements}  # fmt: skip
    after: dict[object, set[object]] = {number: set() for number in range(len(history))}
    for stream, elements in streams.items():
        writers = [writer[stream, element] for element in elements]
        for earlier, later in pairwise(writers):
            if earlier != later:
                after[later].add(earlier)
        for number, read in enumerate(history):
            if isinstance(read, Read) and read.stream == stream:
                seen = read.offset + len(read.elements)
                if seen:
                    after[number].add(writers[seen - 1])
                if seen < len(writers):
                    after[writers[seen]].add(number)
    _add_time(history, after)
    try:
        TopologicalSorter(after).prepare()
    except CycleError as error:
        numbers = [one for one in error.args[1] if isinstance(one, int)]
        return ["no order: " + " < ".join(repr(history[number]) for number in reversed(numbers))]
    return []


def _add_time(history: Sequence[Operation], after: dict[object, set[object]]) -> None:
    """Put what ended before what began: by a chain of instants, so that it stays a short list of pairs."""
    is_over = [one for one in enumerate(history) if isinstance(one[1], Read) or one[1].end is End.DONE]
    turns = sorted(
        [(operation.began, 1, number) for number, operation in enumerate(history)]
        + [(operation.ended, 0, number) for number, operation in is_over]
    )  # fmt: skip
    instant: object = None
    for place, (_, is_begin, number) in enumerate(turns):
        here = ("instant", place)
        after[here] = set() if instant is None else {instant}
        if is_begin:
            after[number].add(here)
        else:
            after[here].add(number)
        instant = here
