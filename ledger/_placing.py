"""
A claim placed on a line by its tail and the cells around it, without the line's history.

Whatever a plain claim says, it changes nothing of what others say. Where all on a line can replace one
another it stands where it is the later: an interval, being said last, throughout; a state up to the next
state on the line. Source: it is what `judge` comes to there, be the line short or long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from contracts.claims import Claim
from contracts.events import Stance
from ledger._decide import State
from ledger._intervals import FOREVER
from ledger._lines import Line, NotReadError
from ledger._tails import Incoming, Tail
from ledger._timeline import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """
    A claim on a line: `value` is a keyed digest of its normal form.

    `source` is who says it and in which class; None where it may count as another's.
    """

    claim_id: str
    start: int
    end: int
    is_state: bool
    value: str
    source: tuple[str, str] | None


def own_source(claim: Claim) -> tuple[str, str] | None:
    """Return who says a claim and in which class, None for one that may count as another's."""
    says = claim.stance in {Stance.ASSERT, Stance.END}
    return (claim.source.actor_id, claim.source.actor_class) if says else None


class Around(Protocol):
    """What was read around a claim that is to be placed."""

    def said(self, claim_id: str) -> Said:
        """
        Return what a claim says that a cell of the line names.

        Raises:
            NotReadError: It was not read.
        """
        ...

    def state_after(self, start: int, *, by: Claim) -> Said | None:
        """
        Return the first state on the line that was said before a claim and begins after an instant.

        Raises:
            NotReadError: It was not looked for.
        """
        ...


def place(line: Line, incoming: Incoming, commit: int, around: Around) -> bool:
    """Take a claim in; return False, having changed nothing, where more has to be known of the line."""
    try:
        found = _placed(line, incoming, around)
    except NotReadError:
        return False
    if found is None:
        return False
    tail, segments = found
    if segments:
        line.splice(segments[0].start, segments[-1].end, segments, commit)
    line.tail, line.blank = tail, False
    return True


def _placed(line: Line, incoming: Incoming, around: Around) -> tuple[Tail, list[Segment]] | None:
    """Return the line's new tail, and what now is open in one stretch of it; None if that is not sure."""
    start, end, earliest = incoming.extent
    tail = line.tail
    if not incoming.is_state and end == FOREVER:
        return None
    if tail is None:
        return _alone(incoming) if line.blank else None
    if incoming.rank > tail.rank and tail.top_first <= start and tail.first <= earliest:
        return tail.with_outranked(incoming), []
    if not tail.takes(incoming):
        return None
    before = _in_doubt(line, min(earliest, start), start) if earliest < tail.first else []
    if not incoming.is_state:
        if not tail.is_even or not line.knows(start, end):
            return None
        over = _over(line, incoming, around)
        return None if over is None else (tail.with_placed(incoming, is_last=False), [*before, *over])
    if start >= tail.latest:
        new = tail.with_placed(incoming, is_last=True)
        if new.value == tail.value:
            return new, before
        if not line.knows(start, FOREVER):
            return None
        return new, [*before, _segment(incoming, start, FOREVER)]
    return _among(line, tail, incoming, around, before) if tail.is_open else None


def _alone(incoming: Incoming) -> tuple[Tail, list[Segment]]:
    start, end, earliest = incoming.extent
    doubt = [_doubt(earliest, start)] if earliest < start else []
    return Tail.of_first(incoming), [*doubt, _segment(incoming, start, end)]


def _over(line: Line, incoming: Incoming, around: Around) -> list[Segment] | None:
    """Place an interval over what is there: what says the same of the same interval is only repeated."""
    start, end, _ = incoming.extent
    again = (False, start, end, own_source(incoming.claim))
    segments: list[Segment] = []
    for from_, to, open_ in line.pieces(start, end):
        here = None if open_ is None or not open_.claims else around.said(open_.claims[0])
        if open_ is None or here is None or here.value != incoming.value:
            segments.append(_segment(incoming, from_, to))
        elif (here.is_state, here.start, here.end, here.source) == again:
            segments.append(_cut(open_, from_, to))
        else:
            # An earlier one of the same bounds may be carried by it still.
            return None
    return segments


def _among(
    line: Line, tail: Tail, incoming: Incoming, around: Around, before: list[Segment]
) -> tuple[Tail, list[Segment]] | None:
    """Place a state among others: it stands up to the next one, and the states around it regroup."""
    start, _, _ = incoming.extent
    [(_, _, here)] = line.pieces(start, start + 1)
    last = None if here is None or not here.claims else around.said(here.claims[0])
    if last is not None and not last.is_state:
        # It would stand where an interval covers, up to where that ends.
        return None
    if last is not None and last.value == incoming.value:
        return tail.with_placed(incoming, is_last=False), before
    following = around.state_after(start, by=incoming.claim)
    until = FOREVER if following is None else following.start
    named = incoming.claim.claim_id
    segments = list(before)
    for from_, to, open_ in line.pieces(start, until):
        if open_ is not None and open_.claims and not around.said(open_.claims[0]).is_state:
            segments.append(_cut(open_, from_, to))
        else:
            segments.append(_segment(incoming, from_, to))
    if following is not None and following.value == incoming.value:
        segments += _renamed(line, until, following.claim_id, named, around)
    elif following is not None and last is not None and following.value == last.value:
        segments += _renamed(line, until, last.claim_id, following.claim_id, around)
    return tail.with_placed(incoming, is_last=following is None), segments


def _renamed(line: Line, start: int, old: str, new: str, around: Around) -> list[Segment]:
    """Return the rest of a run of one value, which from here on has another first claim."""
    segments: list[Segment] = []
    for from_, to, open_ in line.pieces(start, FOREVER):
        if open_ is None:
            break
        if open_.claims == (old,):
            segments.append(Segment(start=from_, end=to, state=open_.state, claims=(new,)))
        elif open_.claims and not around.said(open_.claims[0]).is_state:
            segments.append(_cut(open_, from_, to))
        else:
            break
    return segments


def _in_doubt(line: Line, start: int, end: int) -> list[Segment]:
    """Return what is open there once it is in doubt wherever nothing was said of it."""
    return [
        _doubt(from_, to) if open_ is None else _cut(open_, from_, to)
        for from_, to, open_ in line.pieces(start, end)
    ]


def _cut(segment: Segment, start: int, end: int) -> Segment:
    return Segment(start=start, end=end, state=segment.state, claims=segment.claims)


def _doubt(start: int, end: int) -> Segment:
    return Segment(start=start, end=end, state=State.UNDETERMINED.value, claims=())


def _segment(incoming: Incoming, start: int, end: int) -> Segment:
    state = State.ENDED if incoming.is_end else State.VALUE
    return Segment(start=start, end=end, state=state.value, claims=(incoming.claim.claim_id,))
