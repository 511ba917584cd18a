"""What a proposal may hold before anybody acts on it. The service is not trusted: it is checked here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from contracts.errors import Unavailable
from contracts.limits import (
    CANDIDATES_MAX,
    CLOSURE_EVENTS_MAX,
    KEYS_MAX,
    NAME_BYTES_MAX,
    NAME_CHARACTERS_MAX,
)
from contracts.proposals import Candidate, Proposal

ROUTES_MAX: Final = 32
"""Routes of a proposal, and hits of a candidate."""
_PPM_MAX: Final = 1_000_000
_COUNT_MAX: Final = 2**53


def check_proposal(proposal: Proposal) -> None:
    """
    Refuse a proposal that is out of bounds, whole: nothing of it is worth to be trusted.

    Raises:
        Unavailable: More candidates, keys, routes or events than one may hold; a name that no
            record can hold; a number out of its range.
    """
    if reason := next(_faults(proposal), None):
        raise Unavailable(part="discovery", reason=f"its answer is out of bounds: {reason}")


def is_name(name: str) -> bool:
    """Say whether a record can hold a name: not empty, not too long, no NUL, no lone surrogate."""
    if not 0 < len(name) <= NAME_CHARACTERS_MAX or "\0" in name:
        return False
    try:
        return len(name.encode()) <= NAME_BYTES_MAX
    except UnicodeEncodeError:
        return False


def _faults(proposal: Proposal) -> Iterator[str]:
    sizes = (
        ("candidates", len(proposal.candidates), CANDIDATES_MAX),
        ("keys", len(proposal.keys), KEYS_MAX),
        ("routes", len(proposal.routes), ROUTES_MAX),
        ("entities", len(proposal.plan.entities), KEYS_MAX),
    )
    for name, size, size_max in sizes:
        if size > size_max:
            yield name
    for candidate in proposal.candidates:
        yield from _faults_of(candidate)
    for key in proposal.keys:
        if not (is_name(key.entity) and is_name(key.relation) and 0 <= key.score_ppm <= _PPM_MAX):
            yield "a key"
    for report in proposal.routes:
        numbers = (report.count, report.duration_us)
        named = is_name(report.route) and is_name(report.generation)
        if not (named and all(0 <= number <= _COUNT_MAX for number in numbers)):
            yield "a route"
    if not all(is_name(entity) for entity in proposal.plan.entities):
        yield "an entity"


def _faults_of(candidate: Candidate) -> Iterator[str]:
    if len(candidate.hits) > ROUTES_MAX or len(candidate.event_ids) > CLOSURE_EVENTS_MAX:
        yield "the size of a candidate"
    if not all(is_name(name) for name in (candidate.unit_id, *candidate.event_ids)):
        yield "an id"
    if not 0 <= candidate.score_ppm <= _PPM_MAX:
        yield "a score"
    for hit in candidate.hits:
        if not (is_name(hit.route) and 0 <= hit.score_ppm <= _PPM_MAX and 1 <= hit.rank <= _COUNT_MAX):
            yield "a hit"
