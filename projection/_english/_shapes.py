"""Clauses that are no frame: placements, attributes and the end of a pet."""

from __future__ import annotations

from typing import Final

from contracts.events import Stance
from projection._english._adjuncts import Adjuncts, read_adjuncts, starts_adjunct
from projection._english._attributes import read_inverted, read_possessed
from projection._english._clauses import Clause
from projection._english._dates import DateKind
from projection._english._objects import Item
from projection._english._pets import is_name, names_pet, one_word
from projection._english._placements import read_placement
from projection._english._scene import Scene, Statement, since
from projection._english._subjects import Person, Subject
from projection._english._words import word_set
from projection._language import Finding

_BEFORE_LOSS: Final = word_set("has just recently sadly suddenly unfortunately")
_LOSSES: Final = (("died",), ("passed", "away"), ("ran", "away"))


def read_placed(scene: Scene) -> list[Finding]:
    """Read "I put the blue mug on the shelf": where a thing now is."""
    read = read_placement(scene.clause, scene.start, scene.handled, scene.speaker)
    if read is None:
        return []
    adjuncts = _adjuncts(scene, read.end, DateKind.POINT)
    if adjuncts is None:
        return []
    statement = Statement(relation="located_in", item=read.location, stance=Stance.ASSERT)
    return [scene.finding(read.entity, statement, since(_start(scene, adjuncts)))]


def read_attribute(scene: Scene) -> list[Finding]:
    """Read "my email is …" and "blue is my favorite color"."""
    actor_id = scene.speaker.actor_id
    over = False
    inverted = read_inverted(scene.clause, actor_id) if scene.start == 0 else None
    if inverted is not None:
        entity, attribute, value, end = inverted
    else:
        found = read_possessed(scene.clause, scene.start, actor_id)
        if found is None or found.end >= len(scene.clause):
            return []
        read = found.attribute.read(scene.place(found.end, Person.ONE))
        if read is None:
            return []
        entity, attribute, over, value, end = found.entity, found.attribute, found.over, read, read.end
    adjuncts = _adjuncts(scene, end, DateKind.SINCE)
    if adjuncts is None or adjuncts.conditioned:
        return []
    stance = Stance.END if over else Stance.ASSERT
    valid = since(_start(scene, adjuncts))
    return [
        scene.finding(entity, Statement(relation=attribute.relation, item=item, stance=stance), valid)
        for item in value.items
    ]


def read_loss(scene: Scene) -> list[Finding]:
    """
    Read "my hamster Pip died yesterday" and "Pip ran away": the pet is no more.

    Of a name alone nobody knows whether it is a pet's; the end names its value, and so touches nothing
    else where it was a person's.
    """
    clause, subject = scene.clause, scene.subject
    if subject is None:
        return []
    end = _after_loss(clause, subject.end)
    names = _lost_names(scene, subject)
    if end is None or not names:
        return []
    alone = end >= len(clause) or starts_adjunct(clause, end, scene.observed)
    if subject.person != Person.PET and not alone:
        # "Anna died in Paris", "Anna ran away from home": so one tells of people.
        return []
    adjuncts = _adjuncts(scene, end, DateKind.POINT)
    if adjuncts is None:
        return []
    valid = since(_start(scene, adjuncts))
    return [
        scene.finding(
            scene.speaker.actor_id, Statement(relation="has_pet", item=item, stance=Stance.END), valid
        )
        for item in names
    ]


def _lost_names(scene: Scene, subject: Subject) -> list[Item]:
    """Return the pet's name, or the names of one word that are the whole subject; a kind is no name."""
    clause = scene.clause
    if scene.verb_at == scene.start:
        # The subject is that of the clause before; its words are not here.
        return []
    if subject.pet is not None:
        if subject.pet not in clause.tokens:
            return []
        item = one_word(clause.tokens.index(subject.pet))
        return [item] if names_pet(clause, item) else []
    if (
        subject.person not in {Person.ONE, Person.SEVERAL}
        or scene.verb_at != subject.end
        or clause.low(scene.start) == "who"
    ):
        return []
    words = [at for at in range(scene.start, subject.end) if clause.low(at) not in {"and", ","}]
    if len(words) != len(subject.entities) or not all(is_name(clause, at) for at in words):
        return []
    return [one_word(at) for at in words]


def _after_loss(clause: Clause, index: int) -> int | None:
    while clause.low(index) in _BEFORE_LOSS:
        index += 1
    for words in _LOSSES:
        if all(clause.low(index + place) == word for place, word in enumerate(words)):
            return index + len(words)
    return None


def _adjuncts(scene: Scene, index: int, kind: DateKind) -> Adjuncts | None:
    """Read what follows; None where it is not understood, or its date is of another kind."""
    adjuncts = read_adjuncts(scene.clause, index, scene.observed)
    if adjuncts is None or adjuncts.any_more or (adjuncts.date is not None and scene.date is not None):
        return None
    stated = adjuncts.date or scene.date
    return adjuncts if stated is None or stated.kind == kind else None


def _start(scene: Scene, adjuncts: Adjuncts) -> str | None:
    stated = adjuncts.date or scene.date
    return None if stated is None else stated.start
