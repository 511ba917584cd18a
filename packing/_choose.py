"""
The choice: which closures go into a budget. Whole numbers, no chance, ties by id.

Required closures are one atom: all of them are admitted, or none and the answer abstains. Each
other closure is worth the eighth power of its utility: how likely a line is the one looked for falls
much faster than its score does. Its length makes it no likelier, and takes room.

They are taken by worth per new token, members already shown costing nothing, and the result is
compared with the plain order by worth, so that one large and useful closure is not lost to many small
ones. How near that comes to the best possible is held against an exact solver in the tests and in
`make bench`. What would come nearer, by exchanging one closure for another, found no more of what was
looked for.

What lines share is paid once, like a member that closures share: the day that stands on the first of
several lines is a head of each of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from contracts.contexts import Closure

_FALLOFF: Final = 8
"""Power of a utility that a closure is worth: of six to twelve all do alike, and four is too flat."""
_SCALE: Final = 1 << 40
"""Worth per token is compared as a whole number: this many parts, rounded down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What several lines share, and what it takes: once, however many of them are shown."""

    number: int
    tokens: int
    bytes_: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What a line takes, its line end included, beside its heads."""

    tokens: int
    bytes_: int
    heads: tuple[Head, ...]


Part: TypeAlias = str | int
"""What takes room: an event's line by the event's id, or a head by its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Ids of closures admitted, in order of id, the events that they show, and all that takes room."""

    admitted: tuple[str, ...]
    members: frozenset[str]
    parts: frozenset[Part]
    tokens: int


def choose(
    closures: Sequence[Closure],
    sizes: Mapping[str, Size],
    *,
    budget_tokens: int,
    budget_bytes: int | None = None,
) -> Choice:
    """
    Return the closures to show.

    Args:
        closures: Any order; it changes nothing.
        sizes: What each event takes, by event id; every member is in it.
        budget_tokens: Never exceeded by the tokens of the members and of their heads.
        budget_bytes: The same of bytes; None where only tokens count.
    """
    ordered = sorted(closures, key=lambda closure: closure.closure_id)
    required = [closure for closure in ordered if closure.required]
    needed = parts_of((member for closure in required for member in closure.members), sizes)
    whole = _Bag(sizes, budget_tokens, budget_bytes)
    whole.put(needed)
    if whole.tokens < 0 or whole.bytes_ < 0:
        required, needed = [], {}
    items = _items([closure for closure in ordered if not closure.required], sizes)
    bags = []
    for fill in (_by_density, _by_worth):
        bag = _Bag(sizes, budget_tokens, budget_bytes)
        bag.put(needed)
        fill(bag, items)
        bags.append(bag)
    # `max` keeps the first of equals.
    best = max(bags, key=lambda bag: bag.worth)
    return Choice(
        admitted=tuple(sorted([*best.chosen, *(closure.closure_id for closure in required)])),
        members=frozenset(part for part in best.shown if isinstance(part, str)),
        parts=frozenset(best.shown),
        tokens=budget_tokens - best.tokens,
    )


def worth(closure: Closure) -> int:
    """Return what it is worth to show a closure."""
    return int(closure.utility_ppm**_FALLOFF)


def parts_of(members: Iterable[str], sizes: Mapping[str, Size]) -> dict[Part, tuple[int, int]]:
    """Return what these events' lines and their heads take, each once: tokens and bytes."""
    found: dict[Part, tuple[int, int]] = {}
    for member in members:
        size = sizes[member]
        found[member] = size.tokens, size.bytes_
        for head in size.heads:
            found[head.number] = head.tokens, head.bytes_
    return found


@dataclass(frozen=True, slots=True)
class _Item:
    """A closure that may be shown; `within` are those that it would bring along for nothing."""

    id_: str
    members: frozenset[str]
    parts: dict[Part, tuple[int, int]]
    worth: int
    within: list[_Item]


def _items(closures: Sequence[Closure], sizes: Mapping[str, Size]) -> list[_Item]:
    items = [
        _Item(
            closure.closure_id,
            frozenset(closure.members),
            parts_of(closure.members, sizes),
            worth(closure),
            [],
        )
        for closure in closures
    ]
    # By events alone: a head has far more holders, and none within another for its sake.
    holders: dict[str, list[_Item]] = {}
    for item in items:
        for member in item.members:
            holders.setdefault(member, []).append(item)
    for item in items:
        for other in {other.id_: other for member in item.members for other in holders[member]}.values():
            if other is not item and other.members <= item.members:
                item.within.append(other)
    return items


def _holders(items: Sequence[_Item]) -> dict[Part, list[_Item]]:
    found: dict[Part, list[_Item]] = {}
    for item in items:
        for part in item.parts:
            found.setdefault(part, []).append(item)
    return found


class _Bag:
    """What is shown so far, and what room is left: a part takes room once, whoever holds it."""

    def __init__(self, sizes: Mapping[str, Size], tokens: int, bytes_: int | None) -> None:
        self.tokens = tokens
        # More than all there is takes.
        self.bytes_ = sum(taken for _, taken in parts_of(sizes, sizes).values()) if bytes_ is None else bytes_
        self.worth = 0
        self.chosen: set[str] = set()
        self.shown: set[Part] = set()

    def put(self, parts: Mapping[Part, tuple[int, int]]) -> list[Part]:
        """Show parts, and return those that were not shown yet."""
        new = [part for part in parts if part not in self.shown]
        for part in new:
            tokens, bytes_ = parts[part]
            self.tokens -= tokens
            self.bytes_ -= bytes_
        self.shown.update(new)
        return new

    def add(self, item: _Item) -> list[Part]:
        self.chosen.add(item.id_)
        self.worth += item.worth
        return self.put(item.parts)

    def takes(self, item: _Item) -> tuple[int, int]:
        """Return the tokens and bytes that an item would take."""
        return room(item.parts, self.shown)

    def gains(self, item: _Item) -> int:
        """Return what an item is worth, with what it would bring along."""
        return item.worth + sum(other.worth for other in item.within if other.id_ not in self.chosen)


def room(parts: Mapping[Part, tuple[int, int]], shown: Container[Part]) -> tuple[int, int]:
    """Return the tokens and bytes that parts take beside those that are shown."""
    tokens = bytes_ = 0
    for part, (more_tokens, more_bytes) in parts.items():
        if part not in shown:
            tokens += more_tokens
            bytes_ += more_bytes
    return tokens, bytes_


def _by_density(bag: _Bag, items: Sequence[_Item]) -> None:
    """Admit the best worth per new token, again and again; a cost falls as parts get shared."""
    holders = _holders(items)
    heap = [(_rank(bag, item, bag.takes(item)[0]), item.id_, item) for item in items]
    heapq.heapify(heap)
    while heap:
        rank, id_, item = heapq.heappop(heap)
        if id_ in bag.chosen:
            continue
        tokens, bytes_ = bag.takes(item)
        if tokens > bag.tokens or bytes_ > bag.bytes_:
            continue
        if rank < (now := _rank(bag, item, tokens)):
            # What it would have brought along is shown already.
            heapq.heappush(heap, (now, id_, item))
            continue
        new = bag.add(item)
        for other in {other.id_: other for part in new for other in holders[part]}.values():
            if other.id_ not in bag.chosen:
                # What still does not fit comes again when more of it is shown.
                tokens, bytes_ = bag.takes(other)
                if tokens <= bag.tokens and bytes_ <= bag.bytes_:
                    heapq.heappush(heap, (_rank(bag, other, tokens), other.id_, other))


def _by_worth(bag: _Bag, items: Sequence[_Item]) -> None:
    # They come by id, and equals stay so.
    for item in sorted(items, key=lambda item: -item.worth):
        tokens, bytes_ = bag.takes(item)
        if tokens <= bag.tokens and bytes_ <= bag.bytes_:
            bag.add(item)


def _rank(bag: _Bag, item: _Item, tokens: int) -> tuple[int, int]:
    # What costs nothing any more comes first of all.
    return (1, -(bag.gains(item) * _SCALE // tokens)) if tokens else (0, 0)
