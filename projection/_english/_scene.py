"""A clause and all it is read with: who speaks, whom it is about, what date was said before it."""

from __future__ import annotations

from dataclasses import dataclass

from contracts.claims import Span
from contracts.events import Stance
from contracts.times import Term
from projection._english._clauses import Clause
from projection._english._dates import Dated
from projection._english._objects import Item, Place
from projection._english._subjects import Person, Subject
from projection._language import Finding, Speaker, StatedValidity


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A relation, its value (None where an end names none) and what is said of it."""

    relation: str
    item: Item | None
    stance: Stance


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """
    One clause to be read.

    Token `start` is its first word of content, `verb_at` where its verb group begins; `date` was said
    at its head or just before it. `handled` is the one thing taken in the clause before: "it".
    """

    speaker: Speaker
    text: str
    clause: Clause
    start: int
    subject: Subject | None
    verb_at: int
    date: Dated | None
    handled: str | None

    @property
    def observed(self) -> Term | None:
        """When it was said."""
        return self.speaker.observed

    def place(self, index: int, person: Person) -> Place:
        """Return where an object is to be read."""
        return Place(clause=self.clause, index=index, person=person, observed=self.observed)

    def finding(self, entity: str, statement: Statement, valid: StatedValidity | None) -> Finding:
        """Return the finding with its place in the text."""
        tokens, item = self.clause.tokens, statement.item
        value: str | None = None
        if item is None:
            span = Span(start=tokens[0].start, end=tokens[-1].end)
        else:
            span = Span(start=tokens[item.start].start, end=tokens[item.end - 1].end)
            value = item.text if item.text is not None else self.text[span.start : span.end]
        return Finding(
            entity=entity,
            relation=statement.relation,
            value=value,
            stance=statement.stance,
            valid=valid,
            span=span,
        )


def since(term: str | None) -> StatedValidity | None:
    """Return "from then on", or nothing stated."""
    return None if term is None else StatedValidity(since=term, at=None, start=None, end=None)
