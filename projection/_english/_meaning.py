"""
What tense, negation and date make of a frame: whether it asserts, ends or says nothing for certain.

The rule is that of SEMANTICS: take nothing that might be false, and nothing that would leave a user
with something stale. So a past state without an end, a plain negation and a plan say nothing; "no
longer", "used to" and "stopped" end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from contracts.events import Stance
from contracts.times import Term, format_instant
from projection._english._adjuncts import Adjuncts
from projection._english._dates import Dated, DateKind
from projection._english._frames import STATE_OF_PAST, Frame, Mode
from projection._english._scene import since
from projection._english._verbs import Tense, VerbGroup
from projection._language import StatedValidity

_HAPPENED = frozenset({Tense.PAST, Tense.PERFECT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A frame found in a clause: its verb group, what follows its object, and the date said."""

    group: VerbGroup
    frame: Frame
    adjuncts: Adjuncts
    date: Dated | None


def plainly(reading: Reading) -> Reading:
    """
    Read "I don't like olives" as what everyone means by it: a dislike, not the lack of a liking.

    "I can't stand olives any more" is a dislike too, which began: it comes as the verb "hate".
    """
    group = reading.group
    if group.verb == "hate" and not group.negative and not group.over:
        return replace(reading, adjuncts=replace(reading.adjuncts, any_more=False))
    disliked = group.verb in {"like", "enjoy"} and group.negative and not group.over
    if not disliked or reading.adjuncts.any_more or group.tense != Tense.PRESENT or group.progressive:
        return reading
    return replace(
        reading, group=replace(group, negative=False), frame=replace(reading.frame, relation="dislikes")
    )


def stance_of(reading: Reading) -> Stance | None:
    """Say what the clause does to the state, or None where it asserts nothing for certain."""
    group, frame, adjuncts = reading.group, reading.frame, reading.adjuncts
    over = group.over or (group.negative and adjuncts.any_more)
    if adjuncts.any_more and not over:
        return None
    if group.stopped or group.started:
        certain = group.tense in _HAPPENED and frame.mode == Mode.STATE and not group.negative and not over
        return (Stance.END if group.stopped else Stance.ASSERT) if certain else None
    if frame.mode != Mode.STATE:
        return None if group.negative or over else _happened(group, frame)
    if (adjuncts.conditioned and group.tense != Tense.PERFECT) or (
        group.progressive and not frame.progressive
    ):
        return None
    if over:
        return Stance.END if group.tense in {Tense.PRESENT, Tense.PERFECT} else None
    if group.negative:
        return None
    return Stance.END if group.tense == Tense.USED_TO else _lasting(reading)


def _happened(group: VerbGroup, frame: Frame) -> Stance | None:
    if group.tense not in _HAPPENED or group.progressive:
        return None
    # "I was to Rome" is no visit; "I have been to Rome" is one.
    if frame.verb == "be" and frame.mode == Mode.OCCURRENCE and group.tense != Tense.PERFECT:
        return None
    return Stance.END if frame.mode == Mode.END else Stance.ASSERT


def _lasting(reading: Reading) -> Stance | None:
    kind = reading.date.kind if reading.date is not None else None
    holds = False
    match reading.group.tense:
        case Tense.PRESENT:
            holds = kind in {None, DateKind.SINCE}
        case Tense.PERFECT:
            holds = kind in {DateKind.SINCE, DateKind.LENGTH} or (kind is None and reading.group.progressive)
        case Tense.PAST:
            holds = reading.frame.relation in STATE_OF_PAST or kind in {DateKind.SPAN, DateKind.UNTIL}
        case Tense.USED_TO:
            pass
    return Stance.ASSERT if holds else None


def fits(reading: Reading, stance: Stance) -> bool:
    """Say that a date of this kind may stand with such a statement ("I moved there until" may not)."""
    date, group, frame = reading.date, reading.group, reading.frame
    if frame.reader == "dated_place" and (date is None or date.kind != DateKind.POINT):
        # "I went to Harvard" is no visit; one that has a date is.
        return False
    if date is None or group.tense == Tense.USED_TO:
        return date is None or date.kind != DateKind.SINCE
    if frame.mode == Mode.OCCURRENCE:
        return date.kind == DateKind.POINT
    lasting = group.tense == Tense.PERFECT and frame.mode == Mode.STATE and stance == Stance.ASSERT
    begins = frame.mode != Mode.STATE or group.started or group.stopped or stance == Stance.END
    match date.kind:
        case DateKind.SPAN | DateKind.UNTIL:
            ends = date.start is not None or date.end is not None
            return group.tense == Tense.PAST and not begins and ends
        case DateKind.LENGTH:
            return lasting
        case DateKind.SINCE:
            return lasting or not begins or (frame.mode == Mode.STATE and stance == Stance.END)
        case DateKind.POINT:
            return begins or frame.relation in STATE_OF_PAST


def validity_of(reading: Reading, observed: Term | None) -> StatedValidity | None:
    """Return the validity that the date states; None where it states none."""
    date = reading.date
    if reading.frame.mode == Mode.OCCURRENCE:
        if date is not None and date.start is not None:
            return StatedValidity(since=None, at=date.start, start=None, end=None)
        # Some time before it was told: else it would have happened at the telling.
        told = None if observed is None else format_instant(observed.first)
        return None if told is None else StatedValidity(since=None, at=None, start=None, end=told)
    if date is None or reading.group.tense == Tense.USED_TO:
        return None
    if date.kind in {DateKind.SPAN, DateKind.UNTIL}:
        return StatedValidity(since=None, at=None, start=date.start, end=date.end)
    return since(date.start)
