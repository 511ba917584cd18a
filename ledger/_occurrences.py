"""
How a key splits into lines: one, one a value, or one an occurrence.

Source: SEMANTICS, "Many-valued relations and occurrences".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from contracts.relations import Cardinality
from ledger._claims import canonical
from ledger._decide import Standing
from ledger._entries import Entry
from ledger._intervals import FOREVER, NEVER, intersection, union

WHOLE = ""
"""The part of a key that does not split."""


def parts_of(
    entries: Sequence[Entry], cardinality: Cardinality, stand: Callable[[Entry], Standing]
) -> dict[str, list[Standing]]:
    """Return the lines of a key by the name of its part, in the order in which they appeared."""
    match cardinality:
        case Cardinality.ONE:
            return {WHOLE: [stand(entry) for entry in entries]} if entries else {}
        case Cardinality.MANY:
            return _by_value(entries, stand)
        case Cardinality.OCCURRENCE:
            return _by_occurrence(entries, stand)


def _by_value(entries: Sequence[Entry], stand: Callable[[Entry], Standing]) -> dict[str, list[Standing]]:
    members: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.normal is not None:
            members[entry.normal].append(entry)
    _add_ends(members, entries)
    return {part: [stand(entry) for entry in _in_order(line)] for part, line in members.items()}


def _add_ends(members: dict[str, list[Entry]], entries: Sequence[Entry]) -> None:
    """An end that names no value is on every line; one that does, also where that value was corrected."""
    ends = [entry for entry in entries if entry.is_end]
    for line in members.values():
        lineage = frozenset[str]().union(*(entry.lineage for entry in line if not entry.is_end))
        line += [end for end in ends if end not in line and (end.normal is None or end.normal in lineage)]


def is_ended_by(end: Entry, part: str, lineage: frozenset[str]) -> bool:
    """Return whether an end is on an occurrence's line: one with a source's id on that one alone."""
    if end.occurrence is not None:
        return identity_of_mention(end) == part
    return end.normal is None or end.normal in lineage


def _in_order(line: list[Entry]) -> list[Entry]:
    return sorted(line, key=lambda entry: (entry.claim.position.event, entry.claim.position.ordinal))


def _by_occurrence(entries: Sequence[Entry], stand: Callable[[Entry], Standing]) -> dict[str, list[Standing]]:
    standings = {id(entry): stand(entry) for entry in entries}
    members: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        if not entry.is_end:
            members[identity_of_mention(entry)].append(entry)
    live = [entry for entry in entries if not entry.is_end and standings[id(entry)].cover]
    vague = {id(entry) for entry in live if any(is_witness(other, against=entry) for other in live)}
    exact = {part: [entry for entry in line if id(entry) not in vague] for part, line in members.items()}
    exact = {part: line for part, line in exact.items() if line}
    lines: dict[str, list[Standing]] = {}
    ends = [entry for entry in entries if entry.is_end]
    for part, mentions in exact.items():
        lineage = frozenset[str]().union(*(entry.lineage for entry in mentions))
        line = [*mentions, *(end for end in ends if is_ended_by(end, part, lineage))]
        told = [standings[id(entry)] for entry in _in_order(line)]
        occurred = union(*(standings[id(entry)].cover for entry in mentions))
        told += [
            replace(standings[id(entry)], cover=intersection(standings[id(entry)].cover, occurred))
            for entry in live
            if id(entry) in vague and _tells(entry, mentions, standings)
        ]
        lines[part] = told
    return lines


def identity_of_mention(entry: Entry) -> str:
    """Return the part that a mention is on by itself: its source's id, or what it says and when."""
    if entry.occurrence is not None:
        return canonical(["id", *entry.occurrence]).decode("ascii")
    bounds = [None if bound in {NEVER, FOREVER} else bound for bound in (entry.start, entry.end)]
    return canonical(["at", entry.normal, *bounds]).decode("ascii")


def is_witness(other: Entry, *, against: Entry) -> bool:
    """Return whether a mention without an id is told less exactly than another, a live one, tells it."""
    return (
        against.occurrence is None
        and other is not against
        and contains(against, other)
        and (other.occurrence is not None or (other.start, other.end) != (against.start, against.end))
    )


def contains(outer: Entry, inner: Entry) -> bool:
    """Return whether two mentions say the same, and the interval of one equals or contains the other's."""
    return outer.normal == inner.normal and outer.start <= inner.start and inner.end <= outer.end


def _tells(entry: Entry, line: Sequence[Entry], standings: dict[int, Standing]) -> bool:
    """It supports each occurrence that its interval contains."""
    return any(contains(entry, other) for other in line if standings[id(other)].cover)
