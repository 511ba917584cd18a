"""
Where derived claims hold: no longer than what they were derived from.

Source: SEMANTICS, "Derived states".
"""

from __future__ import annotations

from collections.abc import Callable

from contracts.claims import ValidityKind
from contracts.relations import Cardinality
from ledger._entries import Entry, input_withdrawn
from ledger._intervals import ALWAYS, EMPTY, Intervals, intersection


def borne(
    entry: Entry,
    *,
    carried: Callable[[Entry], Intervals],
    cover: Callable[[Entry], Intervals],
    cardinality_of: Callable[[str], Cardinality],
) -> Intervals:
    """
    Return where the inputs of a claim bear it; everywhere for a claim that has none.

    Args:
        entry: The claim.
        carried: Where an observed input carries its key's answer among observed claims.
        cover: Where a derived input itself holds.
        cardinality_of: Cardinality of a relation.
    """
    if not entry.inputs:
        return ALWAYS
    if input_withdrawn(entry):
        return EMPTY
    if entry.kind != ValidityKind.SINCE:
        return ALWAYS
    where = ALWAYS
    for source in entry.inputs:
        if cardinality_of(source.relation) == Cardinality.OCCURRENCE:
            continue
        where = intersection(where, cover(source) if source.is_derived else carried(source))
    return where
