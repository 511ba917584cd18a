"""
What a line's next claim can be decided by, without the claims that were said on it before.

A tail says what all of them have in common; with it a claim is placed by the cells around it alone.
"""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, Self

from contracts.claims import DERIVED, Claim, ValidityKind
from contracts.events import Stance
from ledger._chains import Chain, Pieces
from ledger._claims import UNSTATED, canonical
from ledger._decide import value_of
from ledger._entries import Entry
from ledger._intervals import FOREVER, NEVER, difference

NO_VALUE: Final = ""
"""In place of a digest: nothing stands at the end of all time."""


class Incoming(NamedTuple):
    """
    A claim about to be placed on a line, with what the contract says of its source there.

    It only says something. `value` is a keyed digest of its normal form, `extent` (start, end, earliest)
    that of its validity.
    """

    claim: Claim
    rank: int
    replaces_any: bool
    value: str
    extent: tuple[int, int, int]

    @property
    def is_state(self) -> bool:
        """Return whether it stands until something later is known."""
        return self.claim.validity.kind == ValidityKind.SINCE

    @property
    def is_end(self) -> bool:
        """Return whether it says that something ended."""
        return self.claim.stance == Stance.END


def only_says(claim: Claim, *, may_end_value: bool) -> bool:
    """
    Return whether a claim acts on nothing and was derived from nothing.

    `may_end_value` says that its line is about one value, which an end may name.
    """
    return (
        claim.stance in {Stance.ASSERT, Stance.END}
        and (claim.stance == Stance.ASSERT or claim.value is None or may_end_value)
        # What is stated has a start: to compare whole validities takes as long as all else here.
        and (claim.validity.start is not None or claim.validity != UNSTATED)
        and not claim.inputs
        and claim.source.actor_class != DERIVED
    )


class Tail(NamedTuple):
    """
    What the claims of a line have in common where a plain one more can be decided by it.

    Times are microseconds. Every interval on the line has an end, and what was withdrawn was
    withdrawn throughout. Claims of the highest rank of which a state is left (`rank`) can all replace
    one another: whatever the sources are whose rule is `any`, there is at most one other
    (`same_actor`). From `first` on every instant is covered, withdrawn or in doubt, and from
    `top_first` on covered by that rank; after `latest` nothing begins or ends, and `value` stands, a
    keyed digest.

    `is_even` says that all that was ever said can replace all else. `is_open` says that a state may be
    placed among the others: each is where its claim says, and none stands where an interval covers.
    `is_plain` says that there are states alone, all left, and that they can replace one another.
    """

    rank: int
    same_actor: str | None
    first: int
    top_first: int
    latest: int
    value: str
    is_even: bool
    is_open: bool
    is_plain: bool

    def stored(self) -> bytes:
        """Return it as a column; what is last there is asked for in SQL."""
        return canonical(list(self))

    @classmethod
    def read(cls, stored: bytes) -> Self:
        """Return it from a column."""
        return cls(*json.loads(stored))

    @classmethod
    def of_first(cls, incoming: Incoming) -> Self:
        """Return that of a line that nothing else was ever on."""
        start, end, earliest = incoming.extent
        is_state = incoming.is_state
        return cls(
            rank=incoming.rank,
            same_actor=None if incoming.replaces_any else incoming.claim.source.actor_id,
            first=earliest if is_state else FOREVER,
            top_first=start if is_state else FOREVER,
            latest=start if is_state else end,
            value=incoming.value if is_state else NO_VALUE,
            is_even=True,
            is_open=True,
            is_plain=is_state,
        )

    def takes(self, incoming: Incoming) -> bool:
        """Return whether a claim can replace, and be replaced by, all that are of the highest rank."""
        if incoming.rank != self.rank:
            return False
        return incoming.replaces_any or self.same_actor in {None, incoming.claim.source.actor_id}

    def with_placed(self, incoming: Incoming, *, is_last: bool) -> Tail:
        """Return it with a claim more that it takes; `is_last` says that no state begins after it."""
        start, end, earliest = incoming.extent
        is_state = incoming.is_state
        # By place: this is made anew for each claim, and names take half of the time.
        return Tail(
            self.rank,
            self.same_actor if incoming.replaces_any else incoming.claim.source.actor_id,
            min(self.first, earliest) if is_state else self.first,
            min(self.top_first, start) if is_state else self.top_first,
            max(self.latest, start if is_state else end),
            incoming.value if is_state and is_last else self.value,
            self.is_even,
            self.is_open,
            self.is_plain and is_state,
        )

    def with_outranked(self, incoming: Incoming) -> Tail:
        """Return it with a claim of a lower rank more, that begins where a higher one stands for good."""
        start, end, _ = incoming.extent
        latest = max(self.latest, start if incoming.is_state else end)
        return self._replace(latest=latest, is_even=False, is_open=False, is_plain=False)


class TailBasis:
    """
    What a line's tail is told from, entry by entry, in whatever order they come.

    `value` is the one that the whole line is about, None where it has several.
    """

    def __init__(self, value: str | None, *, has_window: bool) -> None:
        self._value = value
        self._has_window = has_window
        self._is_ruled_out = False
        self._is_corrected = False
        self._same_actors: dict[int, set[str]] = defaultdict(set)
        self._spans: Pieces[Entry] = Pieces()
        self._is_crossed = False
        self._partly: set[int] = set()
        self._gone: set[int] = set()
        # Of each state from when on it covers or might; of one that is gone, from when on it did.
        self._firsts: list[int] = []
        self._latest = NEVER

    def note(self, entry: Entry, *, is_new: bool) -> None:
        """Take in an entry, or that it left somewhere."""
        if self._is_ruled_out:
            return
        if is_new:
            self._enter(entry)
        if entry.withdrawn and id(entry) not in self._gone:
            self._leave(entry)

    def _leave(self, entry: Entry) -> None:
        if difference(entry.extent, entry.withdrawn):
            self._partly.add(id(entry))
            return
        self._partly.discard(id(entry))
        self._gone.add(id(entry))
        if entry.kind == ValidityKind.SINCE:
            del self._firsts[bisect_left(self._firsts, entry.earliest)]
            insort(self._firsts, entry.start)

    def _enter(self, entry: Entry) -> None:
        self._is_ruled_out = (
            bool(entry.inputs)
            or entry.is_derived
            or entry.erased_in is not None
            or (entry.kind != ValidityKind.SINCE and entry.end == FOREVER)
            or (entry.is_end and entry.normal not in {None, self._value})
        )
        # A correction that found nothing counts as an assertion, but is not looked for among those.
        self._is_corrected = self._is_corrected or entry.claim.stance == Stance.CORRECT
        actors = self._same_actors[entry.rank]
        # Within a window two sources cannot replace each other, whatever the rule.
        if self._has_window or not entry.replaces_any:
            actors.add(entry.actor_id)
        if entry.kind == ValidityKind.SINCE:
            insort(self._firsts, entry.earliest)
            self._latest = max(self._latest, entry.start)
            covering = self._spans.overlapping(entry.start, entry.start + 1)
            self._is_crossed = self._is_crossed or any(span.place < entry.place for _, _, span in covering)
        else:
            self._latest = max(self._latest, entry.end)
            self._spans.add(entry.start, entry.end, entry)
            # An end of all values comes late to a line that is younger than itself.
            ends_all = entry.is_end and entry.normal is None and self._value is not None
            self._is_crossed = self._is_crossed or ends_all

    def tail(self, chains: Mapping[int, Iterable[Chain]], digest: Callable[[str], str]) -> Tail | None:
        """Return the tail, None where the line has none; `chains` are the states that are left, by rank."""
        if self._is_ruled_out or self._partly or not self._same_actors:
            return None
        if self._value is not None and self._gone:
            # What ended a value also ended what corrected it, on other lines.
            return None
        is_single = len(self._same_actors) == 1
        left = {rank: found for rank, own in chains.items() if (found := [chain for chain in own if chain])}
        if not left and not is_single:
            return None
        rank = min(left or self._same_actors)
        actors = self._same_actors[rank]
        if len(actors) > 1:
            return None
        own = left.get(rank, [])
        last = max((chain.last for chain in own), key=lambda entry: entry.order, default=None)
        is_whole = not self._gone
        return Tail(
            rank=rank,
            same_actor=next(iter(actors), None),
            first=self._firsts[0] if self._firsts else FOREVER,
            top_first=min((chain.first.start for chain in own), default=FOREVER),
            latest=self._latest,
            value=NO_VALUE if last is None else digest(value_of(last)),
            is_even=is_single,
            is_open=is_single and is_whole and not self._is_corrected and not self._is_crossed,
            is_plain=is_single and is_whole and not self._spans,
        )
