"""
The choice: which closures go into a budget. Whole numbers, no chance, ties by id.

Required closures are one atom: all of them are admitted, or none and the answer abstains.
Optional ones follow by utility per token, members already shown costing nothing; the result is
compared with the plain order by utility, and the better is kept, so that one large and useful
closure is not lost to many small ones.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from contracts.contexts import Closure

_SCALE: Final = 1 << 40
"""Utility per token is compared as a whole number: this many parts, rounded down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Ids of closures admitted, in order of id, and the events that they show."""

    admitted: tuple[str, ...]
    members: frozenset[str]
    tokens: int


def choose(closures: Sequence[Closure], cost_tokens: Mapping[str, int], *, budget_tokens: int) -> Choice:
    """
    Return the closures to show.

    Args:
        closures: Any order; it changes nothing.
        cost_tokens: What each event costs, by event id; every member is in it.
        budget_tokens: Never exceeded by the sum of the members' costs.
    """
    ordered = sorted(closures, key=lambda closure: closure.closure_id)
    required = [closure for closure in ordered if closure.required]
    optional = [closure for closure in ordered if not closure.required]
    members = frozenset(member for closure in required for member in closure.members)
    spent = sum(cost_tokens[member] for member in members)
    if spent > budget_tokens:
        required, members, spent = [], frozenset(), 0
    rest = budget_tokens - spent
    fills = [
        _by_density(optional, cost_tokens, members, rest),
        _by_utility(optional, cost_tokens, members, rest),
    ]
    # `max` keeps the first of equals.
    best = max(fills, key=lambda fill: sum(closure.utility_ppm for closure in fill))
    shown = members.union(*(closure.members for closure in best))
    return Choice(
        admitted=tuple(sorted(closure.closure_id for closure in (*required, *best))),
        members=shown,
        tokens=sum(cost_tokens[member] for member in shown),
    )


def _by_density(
    closures: Sequence[Closure], cost_tokens: Mapping[str, int], members: frozenset[str], rest: int
) -> list[Closure]:
    """Admit the best utility per new token, again and again; a cost falls as members get shared."""
    shown, chosen, left = set(members), [], rest
    holders: dict[str, list[int]] = {}
    for index, closure in enumerate(closures):
        for member in set(closure.members):
            holders.setdefault(member, []).append(index)
    cost = [_cost(closure, cost_tokens, shown) for closure in closures]
    heap = [(_rank(closure, cost[index]), index) for index, closure in enumerate(closures)]
    heapq.heapify(heap)
    done: set[int] = set()
    while heap:
        rank, index = heapq.heappop(heap)
        # A closure whose cost fell was pushed again under its better rank: this one is out of date.
        if index in done or rank != _rank(closures[index], cost[index]) or cost[index] > left:
            continue
        done.add(index)
        chosen.append(closures[index])
        left -= cost[index]
        for member in sorted(set(closures[index].members) - shown):
            shown.add(member)
            for other in holders[member]:
                cost[other] -= cost_tokens[member]
                if other not in done:
                    heapq.heappush(heap, (_rank(closures[other], cost[other]), other))
    return chosen


def _by_utility(
    closures: Sequence[Closure], cost_tokens: Mapping[str, int], members: frozenset[str], rest: int
) -> list[Closure]:
    shown, chosen, left = set(members), [], rest
    for closure in sorted(closures, key=lambda closure: (-closure.utility_ppm, closure.closure_id)):
        cost = _cost(closure, cost_tokens, shown)
        if cost <= left:
            chosen.append(closure)
            shown.update(closure.members)
            left -= cost
    return chosen


def _cost(closure: Closure, cost_tokens: Mapping[str, int], shown: set[str]) -> int:
    return sum(cost_tokens[member] for member in set(closure.members) - shown)


def _rank(closure: Closure, cost: int) -> tuple[int, int, str]:
    # What costs nothing any more comes first of all.
    density = closure.utility_ppm * _SCALE // cost if cost else -1
    return (0 if density < 0 else 1, -density, closure.closure_id)
