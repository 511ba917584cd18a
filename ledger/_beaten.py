"""Since when claims are beaten: what a mark of what was superseded says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from contracts.claims import ValidityKind
from ledger._decide import value_of
from ledger._entries import Entry
from ledger._rivals import Contest


def beaten_since(
    entries: Iterable[Entry], present: Sequence[Entry], *, window_us: int
) -> dict[int, int | None]:
    """
    Return, by `id` of each entry, the commit of the first claim there that makes it leave.

    None where none does.
    """
    of_rank: dict[int, list[Entry]] = defaultdict(list)
    for entry in present:
        of_rank[entry.rank].append(entry)
    above: dict[int, int | None] = {}
    first: int | None = None
    for rank in sorted(of_rank):
        above[rank] = first
        commits = [entry.claim.commit for entry in of_rank[rank]]
        first = min(commits) if first is None else min(first, *commits)
    peers = {rank: _beaten_by_peers(found, window_us) for rank, found in of_rank.items()}
    found: dict[int, int | None] = {}
    for entry in entries:
        commits = [commit for commit in (above[entry.rank], peers[entry.rank](entry)) if commit is not None]
        # A claim that stood there before this one was made beat it from the start.
        found[id(entry)] = max(min(commits), entry.claim.commit) if commits else None
    return found


def _beaten_by_peers(peers: Sequence[Entry], window_us: int) -> Callable[[Entry], int | None]:
    spans = [entry for entry in peers if entry.kind != ValidityKind.SINCE]
    by_place = Contest(spans, value_of, by_place=True, window_us=0)
    by_order = Contest(peers, value_of, by_place=False, window_us=window_us)

    def looked_up(entry: Entry) -> int | None:
        found = [by_place.beaters(entry), by_order.beaters(entry)]
        return min((beaters[1] for beaters in found if beaters is not None), default=None)

    return looked_up
