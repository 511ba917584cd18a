"""What held at the same time: stretches of two keys that overlap, at one cut or in known time too."""

from __future__ import annotations

import asyncio
import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from heapq import merge
from itertools import islice, takewhile
from typing import Any, TypeAlias

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.histories import Rectangle
from contracts.identity import IDENTITY, SAME_AS
from contracts.limits import JOIN_PAIRS_MAX
from contracts.times import KnownAt
from contracts.views import View
from ledger._decide import State
from ledger._history import History, Window, history, timeline
from ledger._identity import Merges, identity_of
from ledger._intervals import bound, lower, upper
from ledger._keys import TenantKeys
from ledger._register import names_of_pair
from ledger._relations import Contracts
from ledger._values import Normals
from ledger._world import Key, Reader

_Numbered: TypeAlias = "tuple[int, Held]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held(Rectangle):
    """A rectangle of one value, and that value: of a key of identity the other name, whoever said so."""

    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A value of either key, and where and in which commits both stood; None is an open bound."""

    left: Held
    right: Held
    valid_from: datetime | None
    valid_to: datetime | None
    known_from: int
    known_to: int | None
    known_from_at: KnownAt
    known_to_at: KnownAt | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Pairs by valid time; `truncated` where there may be more."""

    pairs: tuple[Pair, ...]
    truncated: bool


async def join(
    conn: AsyncConnection,
    keys: TenantKeys,
    view: View,
    left: Key,
    right: Key,
    *,
    on_value: bool,
    bitemporal: bool,
    valid_from: datetime | None,
    valid_to: datetime | None,
) -> Joined:
    """
    Return the pairs of values of two keys that held at the same time.

    Only where one value stands: what is in conflict, ended or in doubt is paired with nothing. A key of
    identity has, for all valid time, the other name of each pair of names that its relation stood for, as
    long as that was known. Pairs of those that are the entity at the view's cut are its own.

    Args:
        conn: A snapshot of the tenant.
        keys: The tenant's.
        view: Pinned; `valid_at` plays no part.
        left: One key.
        right: The other; it may be of the same entity.
        on_value: Only pairs of equal values, each under its own key's contract.
        bitemporal: Pairs of rectangles that overlap in valid and known time, up to the view's cut;
            else of the segments that stand at it.
        valid_from: Where in valid time to begin; None is open.
        valid_to: Where to end.

    Raises:
        IntegrityFault: A claim or contract that was read is not what was written.
    """

    async def side(key: Key) -> History:
        if bitemporal:
            window = Window(valid_from=valid_from, valid_to=valid_to, known_from=None, known_to=None)
            return await history(conn, keys, *key, epoch=view.epoch, cut=view.cut, window=window)
        return await timeline(conn, keys, view, *key, valid_from=valid_from, valid_to=valid_to)

    sides = [await side(left), await side(right)]
    reader = Reader(conn=conn, keys=keys, epoch=view.epoch, cut=view.cut)
    contracts = await reader.contracts()
    needs_names = on_value or not IDENTITY.isdisjoint({left[1], right[1]})
    merges = identity_of(await reader.identity_claims() if needs_names else [], contracts)
    held = [_held(one, key, merges) for one, key in zip(sides, (left, right), strict=True)]
    form = _forms(contracts, merges) if on_value else _any_value
    # In a thread: so many rectangles would let nobody else have a turn.
    is_given_up = threading.Event()
    try:
        found = await asyncio.to_thread(_first_pairs, held, form, is_given_up)
    finally:
        # A thread cannot be cancelled: it is told.
        is_given_up.set()
    is_cut = len(found) > JOIN_PAIRS_MAX
    return Joined(
        pairs=tuple(found[:JOIN_PAIRS_MAX]), truncated=is_cut or any(one.truncated for one in sides)
    )


def _first_pairs(
    sides: Sequence[Sequence[Held]], form: Callable[[Held], str], is_given_up: threading.Event
) -> list[Pair]:
    """Return the pairs that are listed, and one more if there are more; fewer where nobody waits for them."""
    wanted = takewhile(lambda _: not is_given_up.is_set(), _pairs(sides, form))
    return list(islice(wanted, JOIN_PAIRS_MAX + 1))


def _held(found: History, key: Key, merges: Merges) -> list[Held]:
    """Return the rectangles of a key in which one value stands, by where they begin."""
    standing = [one for one in found.rectangles if one.state == State.VALUE.value]
    if key[1] in IDENTITY:
        # A pair's line has both relations.
        valued = [
            (one, name)
            for one in standing
            if one.relation == key[1]
            for name in _others(one.part, key, merges)
        ]
    else:
        valued = [(one, one.claims[0].value) for one in standing]
    held = [
        Held(**{field.name: getattr(one, field.name) for field in fields(one)}, value=value)
        for one, value in valued
    ]
    return sorted(held, key=_start)


def _others(pair: str, key: Key, merges: Merges) -> list[str]:
    """Return the names of a pair that an entity is one with, or is not."""
    own = {key[0]} if key[1] == SAME_AS else merges.names_of(key[0])
    return [name for name in names_of_pair(pair) if name not in own]


def _forms(contracts: Contracts, merges: Merges) -> Callable[[Held], str]:
    """Return what two have in common that say the same, as `resolve` tells values apart."""
    normals = Normals(merges.identity.root)
    return lambda one: normals.of(one.value, contracts.of(one.relation))


def _any_value(_one: Held) -> str:
    return ""


def _pairs(sides: Sequence[Sequence[Held]], form: Callable[[Held], str]) -> Iterator[Pair]:
    """Yield the pairs that overlap, by the later of their starts: one sweep over both, in order."""
    arrivals = merge(
        *(
            [(_start(one), side, number, one) for number, one in enumerate(own)]
            for side, own in enumerate(sides)
        )
    )
    edges = sorted({edge for own in sides for one in own for edge in (one.known_from, _known_to(one))})
    present: list[dict[str, _Together]] = [defaultdict(lambda: _Together(edges)) for _ in sides]
    for start, side, _, arrived in arrivals:
        name = form(arrived)
        for one in present[1 - side][name].beside(arrived, start):
            yield _pair(arrived, one) if side == 0 else _pair(one, arrived)
        present[side][name].add(arrived)


class _Together:
    """
    Rectangles that stand where a sweep through valid time is, found by the commits in which they stood.

    Two that overlap in known time are one that began while the other stood. So each is kept at the
    nodes of a binary tree over the commits that its own make up, and at those that its first lies
    under: whatever is looked at is a pair, or has ended and is let go.
    """

    def __init__(self, edges: Sequence[float]) -> None:
        self._edges = edges
        self._over: dict[int, list[_Numbered]] = defaultdict(list)
        self._begun: dict[int, list[_Numbered]] = defaultdict(list)
        self._count = 0

    def add(self, one: Held) -> None:
        """Take in a rectangle that begins where the sweep is."""
        first, after = self._place(one.known_from), self._place(_known_to(one))
        self._count += 1
        for node in self._nodes(first, after):
            self._over[node].append((self._count, one))
        for node in self._above(first):
            self._begun[node].append((self._count, one))

    def beside(self, one: Held, at: int) -> list[Held]:
        """Return those that reach beyond `at` and stood in some commit with another, as they came."""
        first, after = self._place(one.known_from), self._place(_known_to(one))
        found = [each for node in self._above(first) for each in self._left(self._over, node, at)]
        found += [
            each for node in self._nodes(first + 1, after) for each in self._left(self._begun, node, at)
        ]
        return [each for _, each in sorted(found, key=lambda numbered: numbered[0])]

    def _left(self, nodes: dict[int, list[_Numbered]], node: int, at: int) -> list[_Numbered]:
        """Let go of those at a node that have ended, and return the others."""
        if node not in nodes:
            return []
        nodes[node] = [numbered for numbered in nodes[node] if upper(numbered[1].valid_to) > at]
        return nodes[node]

    def _place(self, edge: float) -> int:
        return bisect_left(self._edges, edge)

    def _above(self, place: int) -> Iterator[int]:
        node = place + len(self._edges)
        while node:
            yield node
            node //= 2

    def _nodes(self, first: int, after: int) -> Iterator[int]:
        """Yield the fewest nodes under which the places from `first` to before `after` lie."""
        first, after = first + len(self._edges), after + len(self._edges)
        while first < after:
            if first % 2:
                yield first
                first += 1
            if after % 2:
                after -= 1
                yield after
            first, after = first // 2, after // 2


def _pair(left: Held, right: Held) -> Pair:
    """Return where two that overlap in both times stood together."""
    begun = max(left, right, key=lambda one: one.known_from)
    ended = min(left, right, key=_known_to)
    return Pair(
        left=left,
        right=right,
        valid_from=bound(max(_start(left), _start(right))),
        valid_to=bound(min(upper(left.valid_to), upper(right.valid_to))),
        known_from=begun.known_from,
        known_to=ended.known_to,
        known_from_at=begun.known_from_at,
        known_to_at=ended.known_to_at,
    )


def _start(rectangle: Rectangle) -> int:
    return lower(rectangle.valid_from)


def _known_to(rectangle: Rectangle) -> float:
    return float("inf") if rectangle.known_to is None else rectangle.known_to
