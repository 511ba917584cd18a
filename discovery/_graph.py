"""
Facts two hops away: activation spreads from the entities of a question over claims to others.

"Where does Ann's manager live?" names Ann alone; that Bob is her manager is one claim, where he lives
another. Claims are edges between their entity and a value that is itself an entity of the tenant.
Withdrawn and superseded ones are edges too: the ledger decides what they are worth.

Source: Collins and Loftus, "A spreading-activation theory of semantic processing" (1975).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from contracts.proposals import Plan
from discovery._record import ClaimBook

HOPS: Final = 2
DECAY: Final = 0.5
"""Of an entity's activation reaches each of those it is claimed with, shared among them."""
BESIDE: Final = 0.2
"""Share of a claim on another relation than the question names."""
ENTITIES_MAX: Final = 32
"""Entities that activation leaves on one hop, the most active first."""
EDGES_MAX: Final = 64
"""Claims of one entity that are followed, the newest."""


def spread(book: ClaimBook, plan: Plan, *, cut: int) -> dict[str, float]:
    """
    Return events by how active what they claim on is, 0 to 1, without those of the entities named.

    Args:
        book: Claims of one epoch.
        plan: Its entities are where activation starts.
        cut: Claims after it are not followed.
    """
    active = dict.fromkeys(plan.entities, 1.0)
    events: dict[str, float] = {}
    frontier = dict(active)
    for _ in range(HOPS):
        reached: dict[str, float] = {}
        for entity in _most_active(frontier):
            others = [
                name for name in book.neighbours(entity, cut=cut, limit=EDGES_MAX) if name not in active
            ]
            for other in others:
                share = DECAY * frontier[entity] / len(others) ** 0.5
                reached[other] = max(reached.get(other, 0.0), share)
        for entity in _most_active(reached):
            for event, relation in book.events_of(entity, cut=cut, limit=EDGES_MAX):
                # What the question asks for, of another entity than it names: "lives in" of the manager.
                score = reached[entity] * (1.0 if relation in plan.relations else BESIDE)
                events[event] = max(events.get(event, 0.0), score)
        active |= reached
        frontier = reached
    return events


def _most_active(found: dict[str, float]) -> Iterable[str]:
    return sorted(found, key=lambda name: (-found[name], name))[:ENTITIES_MAX]
