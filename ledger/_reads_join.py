"""What held at the same time: stretches of two keys that overlap, at one cut or in known time too."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import merge

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.limits import JOIN_PAIRS_MAX
from contracts.times import KnownAt
from contracts.views import View
from ledger._decide import State
from ledger._history import History, Rectangle, Window, history, timeline
from ledger._identity import identity_of
from ledger._intervals import bound, lower, upper
from ledger._keys import TenantKeys
from ledger._values import Normals
from ledger._world import Key, Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A value of either key, and where and in which commits both stood; None is an open bound."""

    left: Rectangle
    right: Rectangle
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

    Only where one value stands: what is in conflict, ended or in doubt is paired with nothing.

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
    form = await _forms(conn, keys, view) if on_value else _any_value
    found: list[Pair] = []
    for pair in _pairs([_values(one) for one in sides], form):
        if len(found) == JOIN_PAIRS_MAX:
            return Joined(pairs=tuple(found), truncated=True)
        found.append(pair)
    return Joined(pairs=tuple(found), truncated=any(one.truncated for one in sides))


def _values(one: History) -> list[Rectangle]:
    standing = [rectangle for rectangle in one.rectangles if rectangle.state == State.VALUE.value]
    return sorted(standing, key=_start)


def _any_value(_rectangle: Rectangle) -> str:
    return ""


async def _forms(conn: AsyncConnection, keys: TenantKeys, view: View) -> Callable[[Rectangle], str]:
    """Return what two rectangles have in common that say the same, as `resolve` tells values apart."""
    reader = Reader(conn=conn, keys=keys, epoch=view.epoch, cut=view.cut)
    contracts = await reader.contracts()
    merges = identity_of(await reader.identity_claims(), contracts)
    normals = Normals(merges.identity.root)

    def form(rectangle: Rectangle) -> str:
        return normals.of(rectangle.claims[0].value, contracts.of(rectangle.relation))

    return form


def _pairs(sides: Sequence[Sequence[Rectangle]], form: Callable[[Rectangle], str]) -> Iterator[Pair]:
    """Yield the pairs that overlap, by the later of their starts: one sweep over both, in order."""
    arrivals = merge(
        *(
            [(_start(one), side, number, one) for number, one in enumerate(own)]
            for side, own in enumerate(sides)
        )
    )
    present: list[dict[str, list[Rectangle]]] = [defaultdict(list), defaultdict(list)]
    for start, side, _, arrived in arrivals:
        name = form(arrived)
        beside = [one for one in present[1 - side][name] if upper(one.valid_to) > start]
        present[1 - side][name] = beside
        present[side][name].append(arrived)
        for one in beside:
            pair = _pair(arrived, one) if side == 0 else _pair(one, arrived)
            if pair is not None:
                yield pair


def _pair(left: Rectangle, right: Rectangle) -> Pair | None:
    """Return where two that overlap in valid time stood together; None if never in known time."""
    begun = max(left, right, key=lambda one: one.known_from)
    ended = min(left, right, key=_known_to)
    if begun.known_from >= _known_to(ended):
        return None
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
