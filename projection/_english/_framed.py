"""Frames found in a clause: subject, verb, object, and every word after them accounted for."""

from __future__ import annotations

from typing import Final

from contracts.events import Stance
from projection._english import _objects as objects
from projection._english._adjuncts import read_adjuncts
from projection._english._clauses import Clause
from projection._english._frames import (
    COUPLE_RELATIONS,
    EACH_OTHER,
    ENDED_ONLY,
    FRAMES,
    HABITS,
    OPPOSITES,
    THING_RELATIONS,
    WE_RELATIONS,
    Frame,
    Mode,
)
from projection._english._meaning import Reading, fits, plainly, stance_of, validity_of
from projection._english._objects import Item, Object, Place
from projection._english._pets import names_pet
from projection._english._readers import READERS
from projection._english._scene import Scene, Statement
from projection._english._subjects import Person, Subject
from projection._english._verbs import Tense, VerbGroup, read_verbs
from projection._english._words import word_set
from projection._language import Finding, StatedValidity

_BEFORE_TAIL: Final = word_set("now currently back also still together alone")
# "The shop is open on Sundays" says when it is open, not that it is.
_HABITS: Final = word_set("on every in at for from until till to")
# Nouns as well as verbs: a subject has to stand before them in their own clause.
_NOUNS: Final = word_set("love loves like likes")
_COUPLE: Final = 2
_TO_THIS_DAY: Final = frozenset({Tense.PRESENT, Tense.PERFECT})


def read_framed(scene: Scene) -> list[Finding]:
    """Return what the first frame that accounts for every word says."""
    subject = scene.subject
    if subject is None or subject.person == Person.PET:
        return []
    for group in read_verbs(scene.clause, scene.verb_at, subject.person):
        for frame in FRAMES.get(group.verb, ()):
            findings = _read(scene, subject, group, frame)
            if findings:
                return findings
    return []


def _read(scene: Scene, subject: Subject, group: VerbGroup, frame: Frame) -> list[Finding]:
    index = _after_tail(scene.clause, group.end, frame)
    if index is None or not _may_be_said_of(subject, frame):
        return []
    place = scene.place(index, subject.person)
    read = READERS[frame.reader](place)
    if read is None:
        return []
    end, extra = _second_object(place, frame, read)
    if frame.relation == "status" and scene.clause.low(end) in _HABITS:
        return []
    adjuncts = read_adjuncts(scene.clause, end, scene.observed)
    if adjuncts is None or (adjuncts.date is not None and scene.date is not None):
        return []
    if adjuncts.habitual and frame.relation not in HABITS:
        # Whoever lives in Graz on weekends does not simply live in Graz.
        return []
    reading = plainly(Reading(group=group, frame=frame, adjuncts=adjuncts, date=adjuncts.date or scene.date))
    stance = stance_of(reading)
    if stance is None or not fits(reading, stance) or _is_unsure(scene, reading.frame, stance):
        return []
    valid = validity_of(reading, scene.observed)
    if frame.reader == EACH_OTHER:
        return _each_other(
            scene, subject, Statement(relation=frame.relation, item=None, stance=stance), valid
        )
    statements = _statements(reading.frame, read, stance)
    if frame.relation == "has_pet" and stance == Stance.END:
        statements = [one for one in statements if one.item is not None and names_pet(scene.clause, one.item)]
    if stance == Stance.ASSERT and (group.started or group.tense in _TO_THIS_DAY):
        statements += _opposites(statements)
    if extra is not None and stance == Stance.ASSERT and frame.mode != Mode.END:
        statements.append(extra)
    return [scene.finding(entity, one, valid) for entity in subject.entities for one in statements]


def _is_unsure(scene: Scene, frame: Frame, stance: Stance) -> bool:
    """Say that the words are too open to be read so: "I have Zed", "so much energy and love everywhere"."""
    if frame.reader in ENDED_ONLY and stance != Stance.END:
        return True
    carried_over = scene.verb_at == scene.start
    return frame.reader == "liking" and carried_over and scene.clause.low(scene.verb_at) in _NOUNS


def _after_tail(clause: Clause, index: int, frame: Frame) -> int | None:
    """Step over the frame's own words; one adverb may stand before them ("live now in")."""
    if frame.tail and clause.low(index) in _BEFORE_TAIL:
        index += 1
    for words in frame.tail:
        if clause.low(index) not in words:
            return None
        index += 1
    return index


def _may_be_said_of(subject: Subject, frame: Frame) -> bool:
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


def _second_object(place: Place, frame: Frame, read: Object) -> tuple[int, Statement | None]:
    """Read "at Acme" after a role and "as a nurse" after an employer: the other relation of the two."""
    clause, end = place.clause, read.end
    other: Object | None = None
    relation = ""
    if frame.relation == "works_as" and clause.low(end) in {"at", "for"}:
        relation, other = "works_at", objects.organization(place.at(end + 1))
    elif (
        frame.relation == "works_at" and clause.low(end) == "as" and clause.low(end + 1) in {"a", "an", "the"}
    ):
        relation, other = "works_as", READERS["role"](place.at(end + 1))
    if other is None:
        return end, None
    return other.end, Statement(relation=relation, item=other.items[0], stance=Stance.ASSERT)


def _statements(frame: Frame, read: Object, stance: Stance) -> list[Statement]:
    if not read.items:
        return [Statement(relation=frame.relation, item=None, stance=stance)]
    if frame.reader == "from_play":
        old, new = read.items
        return [
            Statement(relation=frame.relation, item=old, stance=Stance.END),
            Statement(relation=frame.relation, item=new, stance=Stance.ASSERT),
        ]
    return [Statement(relation=frame.relation, item=item, stance=stance) for item in read.items]


def _opposites(statements: list[Statement]) -> list[Statement]:
    """End what cannot hold of the same thing beside what was said: both would be told of it else."""
    return [
        Statement(relation=OPPOSITES[one.relation], item=one.item, stance=Stance.END)
        for one in statements
        if one.relation in OPPOSITES
    ]


def _each_other(
    scene: Scene, subject: Subject, statement: Statement, valid: StatedValidity | None
) -> list[Finding]:
    """Read "Ana and I got married": told of the speaker where that is one of the two, else of the first."""
    if subject.person != Person.SEVERAL or len(subject.entities) != _COUPLE:
        return []
    one, other = subject.entities
    if other == scene.speaker.actor_id:
        one, other = other, one
    tokens = scene.clause.tokens
    place = next((index for index, token in enumerate(tokens) if other.startswith(token.text)), 0)
    item = Item(start=place, end=min(place + len(other.split()), len(tokens)), text=other)
    said = Statement(relation=statement.relation, item=item, stance=statement.stance)
    return [scene.finding(one, said, valid)]
