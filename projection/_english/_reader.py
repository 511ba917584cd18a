"""The English reader: sentences, guards, clauses, frames; every word of a clause accounted for."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from contracts.claims import Span
from contracts.events import Stance
from contracts.times import Term, format_instant
from projection._english import _objects as objects
from projection._english._adjuncts import Adjuncts, read_adjuncts, skip_leading
from projection._english._attributes import read_inverted, read_possessed
from projection._english._clauses import Clause, is_bare, split_clauses
from projection._english._dates import Dated, DateKind
from projection._english._frames import (
    COUPLE_RELATIONS,
    EACH_OTHER,
    FRAMES,
    STATE_OF_PAST,
    THING_RELATIONS,
    WE_RELATIONS,
    Frame,
    Mode,
)
from projection._english._guards import before_question, opens_fiction, refused_spans, refuses, takes_back
from projection._english._objects import Item, Object, Place
from projection._english._placements import read_placement
from projection._english._readers import READERS
from projection._english._subjects import Person, Subject, read_subject
from projection._english._tokens import (
    SENTENCE_CHARACTERS_MAX,
    SENTENCES_MAX,
    Sentence,
    split_sentences,
    tokenize,
)
from projection._english._verbs import Tense, VerbGroup, read_verbs
from projection._english._words import word_set
from projection._language import Finding, Speaker, StatedValidity

_HEDGES: Final = word_set(
    "would 'd 'll will might could should must shall want wants wanted hope hopes hoping hoped wish wishes plan "
    "plans planning planned intend intends going gonna thinking considering considered trying try tried about "
    "supposed rather ought"
)
_ATTITUDES: Final = word_set(
    "hope hopes hoping hoped wish wishes wished want wants wanted know knows knew wonder wonders think feel feels "
    "remember remembers love-it if forget forgets sure glad"
)
# "The shop is open on Sundays" says when it is open, not that it is.
_HABITS: Final = frozenset({"on", "every", "in", "at", "for", "from", "until", "till", "to"})
# What may stand before a colon without making the rest a quotation.
_LABELS: Final = word_set(
    "news update intro introduction correction edit note ps fyi reminder info background context announcement "
    "status"
)
_WHO: Final = frozenset({"who", "which"})
_LEADS: Final = word_set("and but so because although though while whereas yet then where plus")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    """What a clause inherits from those before it in its sentence."""

    speaker: Speaker
    text: str
    subject: Subject | None
    blocked: bool
    labelled: bool
    date: Dated | None


class EnglishReader:
    """English, by rules. Pure; see `docs/projection.md` for what is read and what is refused."""

    name = "english-1"

    def read(self, text: str, speaker: Speaker) -> Sequence[Finding]:
        """Return what the text asserts or ends, in reading order; never raises."""
        quoted = refused_spans(text)
        findings: list[Finding] = []
        before: list[Finding] = []
        for sentence in islice(split_sentences(text), SENTENCES_MAX):
            words = text[sentence.start : sentence.end].lower().replace("’", "'")
            if len(words) <= SENTENCE_CHARACTERS_MAX:
                if takes_back(words):
                    before = []
                    continue
                if opens_fiction(words):
                    break
            findings += before
            before = []
            if len(words) <= SENTENCE_CHARACTERS_MAX and not _overlaps(quoted, sentence):
                before = _read_sentence(text, sentence, words, speaker)
        return _once([*findings, *before])


def _overlaps(spans: list[tuple[int, int]], sentence: Sentence) -> bool:
    place = bisect_left(spans, (sentence.end, 0))
    return place > 0 and spans[place - 1][1] > sentence.start


def _once(findings: list[Finding]) -> list[Finding]:
    """Drop a finding that the same text states twice."""
    seen: set[tuple[str, str, str | None, Stance]] = set()
    kept = []
    for finding in findings:
        key = (finding.entity, finding.relation, finding.value, finding.stance)
        if key not in seen:
            seen.add(key)
            kept.append(finding)
    return kept


def _read_sentence(text: str, sentence: Sentence, words: str, speaker: Speaker) -> list[Finding]:
    tokens = tokenize(text, sentence.start, sentence.end)
    while tokens and tokens[-1].low in {".", ",", ";", "-", "–", "—"}:
        tokens.pop()
    if "?" in sentence.close or "？" in sentence.close:
        tokens = before_question(tokens)
    if refuses(tokens, words):
        return []
    context = _Context(speaker=speaker, text=text, subject=None, blocked=False, labelled=False, date=None)
    findings: list[Finding] = []
    for clause in split_clauses(tokens):
        found, context = _read_clause(clause, context)
        findings += found
    return findings


def _read_clause(clause: Clause, context: _Context) -> tuple[list[Finding], _Context]:
    start = 0
    while clause.low(start) in _LEADS:
        start += 1
    start, date = skip_leading(clause, start, context.speaker.observed)
    if ":" in clause.connector.split() and not context.labelled:
        # What stands after a colon is someone's words, unless it is news of one's own.
        context = replace(context, blocked=True)
    if start >= len(clause):
        # Only an adverb or a date: it goes with what follows.
        return [], replace(context, date=date or context.date)
    date = date or context.date
    lows = {token.low for token in clause.tokens}
    subject, verb_at = _subject(clause, start, context)
    explicit = subject is not None and verb_at != start
    # The month is written "May": only the lower-case word is a modal.
    hedged = not _HEDGES.isdisjoint(lows) or any(token.text == "may" for token in clause.tokens)
    blocked = hedged or (context.blocked and not (explicit and "but" in clause.connector.split()))
    findings: list[Finding] = []
    if not context.blocked or not blocked:
        findings = [] if hedged else _read_whole(clause, start, subject, verb_at, date, context)
    after = replace(
        context,
        subject=subject,
        blocked=(blocked and not findings) or not _ATTITUDES.isdisjoint(lows),
        labelled=clause.tokens[-1].low in _LABELS,
        date=date if is_bare(clause) else None,
    )
    return findings, after


def _subject(clause: Clause, start: int, context: _Context) -> tuple[Subject | None, int]:
    """Return the subject and where the verb group starts: the clause's own, or the one before's."""
    if clause.low(start) in _WHO and context.subject is not None:
        return context.subject, start + 1
    own = read_subject(clause, start, context.speaker.actor_id)
    if own is not None:
        return own, own.end
    joined = not {"and", "but", ",", "then", "—", "–", "who"}.isdisjoint(clause.connector.split())
    if joined and context.subject is not None:
        return context.subject, start
    return None, start


def _read_whole(
    clause: Clause, start: int, subject: Subject | None, verb_at: int, date: Dated | None, context: _Context
) -> list[Finding]:
    """Try the shapes of a clause in turn; the first that accounts for every word is taken."""
    placed = _placed(clause, start, context)
    if placed:
        return placed
    possessed = _possessed(clause, start, date, context)
    if possessed:
        return possessed
    if subject is None or subject.person == Person.PET:
        return _pet_gone(clause, subject, date, context) if subject is not None else []
    for group in read_verbs(clause, verb_at, subject.person):
        for frame in FRAMES.get(group.verb, ()):
            findings = _read_frame(clause, subject, group, frame, date, context)
            if findings:
                return findings
    return []


def _read_frame(
    clause: Clause, subject: Subject, group: VerbGroup, frame: Frame, date: Dated | None, context: _Context
) -> list[Finding]:
    index = _after_tail(clause, group.end, frame)
    if index is None or not _fits(subject, frame):
        return []
    observed = context.speaker.observed
    place = Place(clause=clause, index=index, person=subject.person, observed=observed)
    read = READERS[frame.reader](place)
    if read is None:
        return []
    end, extra = _second_object(place, frame, read)
    if frame.relation == "status" and clause.low(end) in _HABITS:
        return []
    adjuncts = read_adjuncts(clause, end, observed)
    if adjuncts is None or (adjuncts.date is not None and date is not None):
        return []
    stated = adjuncts.date or date
    group, frame = _plainly(group, frame, adjuncts)
    stance = _stance(group, frame, adjuncts, stated)
    if stance is None:
        return []
    ok, valid = _validity(group, frame, stance, stated, observed)
    if not ok:
        return []
    if frame.reader == "dated_place" and (stated is None or stated.kind != DateKind.POINT):
        # "I went to Harvard" is no visit; one that has a date is.
        return []
    if frame.reader == EACH_OTHER:
        return _each_other(clause, subject, frame, stance, valid, context)
    statements = _statements(frame, read, stance)
    if extra is not None and stance == Stance.ASSERT and frame.mode != Mode.END:
        statements.append(extra)
    return [
        _finding(clause, entity, relation, item, said, valid, context)
        for entity in subject.entities
        for relation, item, said in statements
    ]


def _plainly(group: VerbGroup, frame: Frame, adjuncts: Adjuncts) -> tuple[VerbGroup, Frame]:
    """Read "I don't like olives" as what everyone means by it: a dislike, not the lack of a liking."""
    disliked = group.verb in {"like", "enjoy"} and group.negative and not group.over and not adjuncts.any_more
    if not disliked or group.tense != Tense.PRESENT or group.progressive:
        return group, frame
    return replace(group, negative=False), replace(frame, relation="dislikes")


def _statements(frame: Frame, read: Object, stance: Stance) -> list[tuple[str, Item | None, Stance]]:
    if not read.items:
        return [(frame.relation, None, stance)]
    if frame.reader == "from_play":
        old, new = read.items
        return [(frame.relation, old, Stance.END), (frame.relation, new, Stance.ASSERT)]
    return [(frame.relation, item, stance) for item in read.items]


def _each_other(
    clause: Clause,
    subject: Subject,
    frame: Frame,
    stance: Stance,
    valid: StatedValidity | None,
    context: _Context,
) -> list[Finding]:
    """Read "Ana and I got married": told of the speaker where that is one of the two, else of the first."""
    if subject.person != Person.SEVERAL or len(subject.entities) != 2:
        return []
    one, other = subject.entities
    if other == context.speaker.actor_id:
        one, other = other, one
    place = next((i for i, token in enumerate(clause.tokens) if other.startswith(token.text)), 0)
    words_count = len(other.split())
    item = Item(start=place, end=place + words_count, text=other)
    return [_finding(clause, one, frame.relation, item, stance, valid, context)]


def _after_tail(clause: Clause, index: int, frame: Frame) -> int | None:
    """Step over the frame's own words; one adverb may stand before them ("live now in")."""
    if frame.tail and clause.low(index) in {"now", "currently", "back", "also", "still", "together", "alone"}:
        index += 1
    for words in frame.tail:
        if clause.low(index) not in words:
            return None
        index += 1
    return index


def _fits(subject: Subject, frame: Frame) -> bool:
    match subject.person:
        case Person.WE:
            return frame.relation in WE_RELATIONS
        case Person.THING:
            return frame.relation in THING_RELATIONS
        case Person.SEVERAL:
            return frame.relation not in COUPLE_RELATIONS or frame.reader == EACH_OTHER
        case Person.FIRST:
            return frame.relation not in {"located_in", "status"}
        case Person.ONE | Person.PET:
            return frame.relation != "status"


def _second_object(
    place: Place, frame: Frame, read: Object
) -> tuple[int, tuple[str, Item | None, Stance] | None]:
    """Read "at Acme" after a role and "as a nurse" after an employer: the other relation of the two."""
    clause = place.clause
    if frame.relation == "works_as" and clause.low(read.end) in {"at", "for"}:
        other = objects.organization(place.at(read.end + 1))
        if other is not None:
            return other.end, ("works_at", other.items[0], Stance.ASSERT)
    if (
        frame.relation == "works_at"
        and clause.low(read.end) == "as"
        and clause.low(read.end + 1) in {"a", "an", "the"}
    ):
        other = READERS["role"](place.at(read.end + 1))
        if other is not None:
            return other.end, ("works_as", other.items[0], Stance.ASSERT)
    return read.end, None


def _stance(group: VerbGroup, frame: Frame, adjuncts: Adjuncts, date: Dated | None) -> Stance | None:
    """Say what the clause does to the state, or None where it asserts nothing for certain."""
    over = group.over or (group.negative and adjuncts.any_more)
    if adjuncts.any_more and not (group.negative or group.over):
        return None
    if group.stopped:
        settled = (
            group.tense in {Tense.PAST, Tense.PERFECT} and frame.mode == Mode.STATE and not group.negative
        )
        return Stance.END if settled and not over else None
    if group.started:
        settled = (
            group.tense in {Tense.PAST, Tense.PERFECT} and frame.mode == Mode.STATE and not group.negative
        )
        return Stance.ASSERT if settled and not over else None
    if frame.mode != Mode.STATE:
        happened = group.tense in {Tense.PAST, Tense.PERFECT} and not group.progressive
        if frame.verb == "be" and frame.tail and frame.relation == "visited":
            happened = group.tense == Tense.PERFECT
        if not happened or group.negative or over:
            return None
        return Stance.END if frame.mode == Mode.END else Stance.ASSERT
    if adjuncts.conditioned and group.tense != Tense.PERFECT:
        return None
    if group.progressive and not frame.progressive:
        return None
    if over:
        return Stance.END if group.tense in {Tense.PRESENT, Tense.PERFECT} else None
    if group.tense == Tense.USED_TO:
        return Stance.END if not group.negative else None
    return None if group.negative else _lasting(group, frame, date)


def _lasting(group: VerbGroup, frame: Frame, date: Dated | None) -> Stance | None:
    kind = date.kind if date is not None else None
    match group.tense:
        case Tense.PRESENT:
            return Stance.ASSERT if kind in {None, DateKind.SINCE} else None
        case Tense.PERFECT:
            lasting = kind in {DateKind.SINCE, DateKind.LENGTH} or (kind is None and group.progressive)
            return Stance.ASSERT if lasting else None
        case Tense.PAST:
            past = frame.relation in STATE_OF_PAST or kind in {DateKind.SPAN, DateKind.UNTIL}
            return Stance.ASSERT if past else None
        case Tense.USED_TO:
            return None


def _validity(
    group: VerbGroup, frame: Frame, stance: Stance, date: Dated | None, observed: Term | None
) -> tuple[bool, StatedValidity | None]:
    """Return whether the date fits, and the validity it states (None: none stated)."""
    if date is None:
        if frame.mode == Mode.OCCURRENCE and observed is not None:
            # Some time before it was told: without this it would have happened at the telling.
            return True, StatedValidity(since=None, at=None, start=None, end=format_instant(observed.first))
        return True, None
    if group.tense == Tense.USED_TO:
        return date.kind in {DateKind.SPAN, DateKind.UNTIL, DateKind.LENGTH, DateKind.POINT}, None
    if frame.mode == Mode.OCCURRENCE:
        point = date.kind == DateKind.POINT
        return point, _valid(at=date.start) if point and date.start else None
    lasting = group.tense == Tense.PERFECT and frame.mode == Mode.STATE
    starting = frame.mode != Mode.STATE or group.started or group.stopped or stance == Stance.END
    match date.kind:
        case DateKind.SPAN | DateKind.UNTIL:
            ok = group.tense == Tense.PAST and frame.mode == Mode.STATE and stance == Stance.ASSERT
            ok = ok and not group.started and (date.start is not None or date.end is not None)
            return ok, StatedValidity(since=None, at=None, start=date.start, end=date.end) if ok else None
        case DateKind.LENGTH:
            return lasting, _valid(since=date.start) if date.start else None
        case DateKind.SINCE:
            return not starting or lasting, _valid(since=date.start) if date.start else None
        case DateKind.POINT:
            ok = starting or frame.relation in STATE_OF_PAST
            return ok, _valid(since=date.start) if date.start else None


def _valid(*, since: str | None = None, at: str | None = None) -> StatedValidity:
    return StatedValidity(since=since, at=at, start=None, end=None)


def _placed(clause: Clause, start: int, context: _Context) -> list[Finding]:
    """Read "I put the blue mug on the shelf": where a thing now is."""
    read = read_placement(clause, start)
    if read is None:
        return []
    adjuncts = read_adjuncts(clause, read.end, context.speaker.observed)
    if (
        adjuncts is None
        or adjuncts.any_more
        or (adjuncts.date is not None and adjuncts.date.kind != DateKind.POINT)
    ):
        return []
    since = adjuncts.date.start if adjuncts.date is not None else None
    valid = _valid(since=since) if since is not None else None
    return [_finding(clause, read.entity, "located_in", read.location, Stance.ASSERT, valid, context)]


def _possessed(clause: Clause, start: int, date: Dated | None, context: _Context) -> list[Finding]:
    """Read "my email is …" and "blue is my favorite color"."""
    observed = context.speaker.observed
    inverted = read_inverted(clause, context.speaker.actor_id) if start == 0 else None
    if inverted is not None:
        entity, attribute, value, end = inverted
        over = False
    else:
        found = read_possessed(clause, start, context.speaker.actor_id)
        if found is None:
            return []
        entity, attribute, over = found.entity, found.attribute, found.over
        if found.end >= len(clause):
            return []
        read = attribute.read(Place(clause=clause, index=found.end, person=Person.ONE, observed=observed))
        if read is None:
            return []
        value, end = read, read.end
    adjuncts = read_adjuncts(clause, end, observed)
    if adjuncts is None or adjuncts.any_more or adjuncts.conditioned:
        return []
    stated = adjuncts.date or date
    if stated is not None and stated.kind != DateKind.SINCE:
        return []
    valid = _valid(since=stated.start) if stated is not None and stated.start is not None else None
    stance = Stance.END if over else Stance.ASSERT
    return [
        _finding(clause, entity, attribute.relation, item, stance, valid, context) for item in value.items
    ]


def _pet_gone(clause: Clause, subject: Subject, date: Dated | None, context: _Context) -> list[Finding]:
    """Read "my hamster Pip died yesterday": the pet is no more."""
    index = subject.end
    if clause.low(index) in {"has", "just", "recently", "sadly", "suddenly"}:
        index += 1
    if clause.low(index) == "died":
        index += 1
    elif clause.low(index) == "passed" and clause.low(index + 1) == "away":
        index += 2
    else:
        return []
    adjuncts = read_adjuncts(clause, index, context.speaker.observed)
    if adjuncts is None or subject.pet is None:
        return []
    stated = adjuncts.date or date
    if stated is not None and stated.kind != DateKind.POINT:
        return []
    place = clause.tokens.index(subject.pet)
    item = Item(start=place, end=place + 1, text=None)
    valid = _valid(since=stated.start) if stated is not None and stated.start is not None else None
    return [_finding(clause, subject.entities[0], "has_pet", item, Stance.END, valid, context)]


def _finding(
    clause: Clause,
    entity: str,
    relation: str,
    item: Item | None,
    stance: Stance,
    valid: StatedValidity | None,
    context: _Context,
) -> Finding:
    if item is None:
        span = Span(start=clause.tokens[0].start, end=clause.tokens[-1].end)
        return Finding(entity=entity, relation=relation, value=None, stance=stance, valid=valid, span=span)
    span = Span(start=clause.tokens[item.start].start, end=clause.tokens[item.end - 1].end)
    value = item.text if item.text is not None else context.text[span.start : span.end]
    return Finding(entity=entity, relation=relation, value=value, stance=stance, valid=valid, span=span)
