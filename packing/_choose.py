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
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from contracts.contexts import Closure

_FALLOFF: Final = 8
"""Power of a utility that a closure is worth: of six to twelve all do alike, and four is too flat."""
_SCALE: Final = 1 << 40
"""Worth per token is compared as a whole number: this many parts, rounded down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What a line takes, its line end included."""

    tokens: int
    bytes_: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Ids of closures admitted, in order of id, and the events that they show."""

    admitted: tuple[str, ...]
    members: frozenset[str]
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
        budget_tokens: Never exceeded by the sum of the members' tokens.
        budget_bytes: The same of bytes; None where only tokens count.
    """
    ordered = sorted(closures, key=lambda closure: closure.closure_id)
    required = [closure for closure in ordered if closure.required]
    needed = {member for closure in required for member in closure.members}
    whole = _Bag(sizes, budget_tokens, budget_bytes)
    whole.put(needed)
    if whole.tokens < 0 or whole.bytes_ < 0:
        required, needed = [], set()
    items = _items([closure for closure in ordered if not closure.required])
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
        members=frozenset(best.shown),
        tokens=budget_tokens - best.tokens,
    )


def worth(closure: Closure) -> int:
    """Return what it is worth to show a closure."""
    return int(closure.utility_ppm**_FALLOFF)


@dataclass(frozen=True, slots=True)
class _Item:
    """A closure that may be shown; `within` are those that it would bring along for nothing."""

    id_: str
    members: tuple[str, ...]
    worth: int
    within: list[_Item]


def _items(closures: Sequence[Closure]) -> list[_Item]:
    items = [
        _Item(closure.closure_id, tuple(dict.fromkeys(closure.members)), worth(closure), [])
        for closure in closures
    ]
    holders = _holders(items)
    for item in items:
        for other in {other.id_: other for member in item.members for other in holders[member]}.values():
            if other is not item and set(other.members).issubset(item.members):
                item.within.append(other)
    return items


def _holders(items: Sequence[_Item]) -> dict[str, list[_Item]]:
    found: dict[str, list[_Item]] = {}
    for item in items:
        for member in item.members:
            found.setdefault(member, []).append(item)
    return found


class _Bag:
    """What is shown so far, and what room is left: an event takes room once, whoever holds it."""

    def __init__(self, sizes: Mapping[str, Size], tokens: int, bytes_: int | None) -> None:
        self.tokens = tokens
        # More than all there is takes.
        self.bytes_ = sum(size.bytes_ for size in sizes.values()) if bytes_ is None else bytes_
        self.worth = 0
        self.chosen: set[str] = set()
        self.shown: set[str] = set()
        self._sizes = sizes

    def put(self, members: Iterable[str]) -> None:
        for member in members:
            if member not in self.shown:
                self.shown.add(member)
                self.tokens -= self._sizes[member].tokens
                self.bytes_ -= self._sizes[member].bytes_

    def add(self, item: _Item) -> None:
        self.put(item.members)
        self.chosen.add(item.id_)
        self.worth += item.worth

    def takes(self, item: _Item) -> tuple[int, int]:
        """Return the tokens and bytes that an item would take."""
        new = [member for member in item.members if member not in self.shown]
        return sum(self._sizes[m].tokens for m in new), sum(self._sizes[m].bytes_ for m in new)

    def gains(self, item: _Item) -> int:
        """Return what an item is worth, with what it would bring along."""
        return item.worth + sum(other.worth for other in item.within if other.id_ not in self.chosen)


def _by_density(bag: _Bag, items: Sequence[_Item]) -> None:
    """Admit the best worth per new token, again and again; a cost falls as members get shared."""
    holders = _holders(items)
    heap = [(_rank(bag, item), item.id_, item) for item in items]
    heapq.heapify(heap)
    while heap:
        rank, id_, item = heapq.heappop(heap)
        tokens, bytes_ = bag.takes(item)
        if id_ in bag.chosen or tokens > bag.tokens or bytes_ > bag.bytes_:
            continue
        if rank < (now := _rank(bag, item)):
            # What it would have brought along is shown already.
            heapq.heappush(heap, (now, id_, item))
            continue
        new = [member for member in item.members if member not in bag.shown]
        bag.add(item)
        for other in {other.id_: other for member in new for other in holders[member]}.values():
            if other.id_ not in bag.chosen:
                heapq.heappush(heap, (_rank(bag, other), other.id_, other))


def _by_worth(bag: _Bag, items: Sequence[_Item]) -> None:
    # They come by id, and equals stay so.
    for item in sorted(items, key=lambda item: -item.worth):
        tokens, bytes_ = bag.takes(item)
        if tokens <= bag.tokens and bytes_ <= bag.bytes_:
            bag.add(item)


def _rank(bag: _Bag, item: _Item) -> tuple[int, int]:
    tokens = bag.takes(item)[0]
    # What costs nothing any more comes first of all.
    return (1, -(bag.gains(item) * _SCALE // tokens)) if tokens else (0, 0)
