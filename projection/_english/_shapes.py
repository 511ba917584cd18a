"""Clauses that are no frame: placements, attributes and the end of a pet."""

from __future__ import annotations

from contracts.events import Stance
from projection._english._adjuncts import Adjuncts, read_adjuncts
from projection._english._attributes import read_inverted, read_possessed
from projection._english._dates import DateKind
from projection._english._objects import Item
from projection._english._placements import read_placement
from projection._english._scene import Scene, Statement, since
from projection._english._subjects import Person
from projection._language import Finding


def read_placed(scene: Scene) -> list[Finding]:
    """Read "I put the blue mug on the shelf": where a thing now is."""
    read = read_placement(scene.clause, scene.start)
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
    """Read "my hamster Pip died yesterday": the pet is no more."""
    clause, subject = scene.clause, scene.subject
    if subject is None or subject.pet is None:
        return []
    index = subject.end
    if clause.low(index) in {"has", "just", "recently", "sadly", "suddenly"}:
        index += 1
    if clause.low(index) == "died":
        index += 1
    elif clause.low(index) == "passed" and clause.low(index + 1) == "away":
        index += 2
    else:
        return []
    adjuncts = _adjuncts(scene, index, DateKind.POINT)
    if adjuncts is None:
        return []
    place = clause.tokens.index(subject.pet)
    item = Item(start=place, end=place + 1, text=None)
    statement = Statement(relation="has_pet", item=item, stance=Stance.END)
    return [scene.finding(subject.entities[0], statement, since(_start(scene, adjuncts)))]


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
