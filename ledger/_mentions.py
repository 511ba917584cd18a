"""Mentions of occurrences by the source's own id: a later one with another date corrects the earlier."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from contracts.claims import Claim
from contracts.relations import Cardinality
from ledger._entries import Entry, Identity, withdrawn_throughout
from ledger._intervals import ALWAYS, Intervals
from ledger._register import place_of
from ledger._relations import Contracts


class Mentions:
    """Mentions by key, source and id, as far as they stand."""

    def __init__(self, contracts: Contracts, identity: Identity) -> None:
        self._contracts = contracts
        self._identity = identity
        self._live: dict[tuple[str, str, tuple[str, str]], list[Entry]] = defaultdict(list)

    def note(self, entry: Entry, *, leave: Callable[[Entry, Intervals, Claim], None]) -> None:
        """Take in a mention, and let every earlier one that it corrects leave."""
        if entry.occurrence is None or entry.is_end:
            return
        if self._contracts.of(entry.relation).cardinality != Cardinality.OCCURRENCE:
            return
        at = (self._identity.entity(entry.entity), entry.relation, entry.occurrence)
        live = [mention for mention in self._live[at] if not withdrawn_throughout(mention)]
        corrected = [
            mention
            for mention in live
            if (mention.start, mention.end) != (entry.start, entry.end)
            # Nothing said after an erasure is about what was erased.
            and (mention.erased_in is None or entry.claim.commit < mention.erased_in)
        ]
        # A correction that took a target's place keeps it, unless a later mention is corrected too.
        taken = [entry.place] if entry.place != place_of(entry.claim) else []
        if corrected:
            entry.place = max([*taken, *(mention.place for mention in corrected)])
        for mention in corrected:
            entry.lineage |= mention.lineage
            leave(mention, ALWAYS, entry.claim)
            mention.heir = entry
        self._live[at] = [*(mention for mention in live if mention.heir is None), entry]
