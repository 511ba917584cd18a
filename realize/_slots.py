"""
A question with what it names put aside: `what was E0 R for P0 as known on P1`.

Names, words that mean the relation and times stand as slots, all other words as themselves. So a
way of asking can be matched as a whole, and no word of a question is passed over.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from contracts.proposals import Plan, TimeExpression
from realize._scope import cues_of, fold, has_signs, words_in

_TOKEN: Final = re.compile(r"(?<![\w.,])-?\d+(?:[.,]\d+)*(?!\w)|[^\W_]+(?:['’][^\W_]+)*")
_POSSESSED: Final = re.compile(r"(?P<owner>.+?)(?:['’]s|(?<=s)['’])$")
_ASKING: Final = frozenset(
    {"what", "which", "who", "whom", "whose", "where", "when", "why", "how", "number", "value"}
)
_PREPOSITIONS: Final = frozenset({"in", "at", "as", "to", "for", "of", "on", "with", "by"})
"""Words of a relation's name that mean it only behind others: "lives in"."""
_OTHER_FORMS: Final = {
    "seen": ("see", "saw"), "said": ("say",), "met": ("meet",), "told": ("tell",),
    "speak": ("spoke", "spoken"), "driv": ("drove", "driven"),
}  # fmt: skip
"""By a word that means a relation, folded: forms of it that no ending tells."""
_TODAY: Final = frozenset({"today", "tonight"})
"""Times that are the view's own, and so words like "now"."""
_BEGINNING: Final = frozenset({"move", "moved", "moving"})
"""Verbs that mean a relation and say that it begins: where Ann moved is not where she lived all along."""
_FIRST_PERSON: Final = {"i": "", "me": "", "my": " 's"}
_SECOND_PERSON: Final = {"you": "", "your": " 's"}


@dataclass(frozen=True, slots=True)
class _Token:
    start: int
    end: int
    raw: str
    word: str
    owns: bool


def slotted(text: str, plan: Plan, *, entities: Sequence[str], relation: str) -> str | None:
    """
    Return a question as slots and words.

    None where a name or a time of it is not found in it, or a sign beside them means something.

    Args:
        text: The question.
        plan: Whose times are looked for in the text, in order: `P0 P1 …`.
        entities: Those that are asked about: `E0 E1 …`.
        relation: The one relation: `R`.
    """
    text = unicodedata.normalize("NFC", text)
    spans = _times(text, plan)
    if spans is None:
        return None
    slots = {
        start: (end, f"P{number}")
        for number, (start, end) in enumerate(spans)
        if text[start:end].casefold() not in _TODAY and _is_bounded(plan.times[number])
    }
    dated = list(slots.items())
    tokens = [
        token for token in _tokens(text) if not any(_inside(token, (start, end)) for start, (end, _) in dated)
    ]
    for number, entity in enumerate(entities):
        places = list(_places(tokens, entity)) or list(_in_person(tokens, _FIRST_PERSON))
        places = places or list(_in_person(tokens, _SECOND_PERSON))
        if not places:
            return None
        slots.update({start: (end, f"E{number}{owns}") for start, end, owns in places})
    taken = [(start, end) for start, (end, _) in slots.items()]
    free = [token for token in tokens if not any(_inside(token, span) for span in taken)]
    slots.update(_relation(tokens, free, relation))
    named = [found.span() for entity in entities for found in re.finditer(re.escape(entity), text)]
    if has_signs(_without(text, [*named, *((start, end) for start, (end, _) in slots.items())])):
        return None
    return _written(tokens, slots)


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text with a word like any other in the place of each name and time."""
    for start, end in spans:
        text = text[:start] + "x" * (end - start) + text[end:]
    return text


def _times(text: str, plan: Plan) -> list[tuple[int, int]] | None:
    spans: list[tuple[int, int]] = []
    at = 0
    for time in plan.times:
        start = text.find(time.wording, at)
        if start < 0:
            return None
        at = start + len(time.wording)
        spans.append((start, at))
    return spans


def _is_bounded(time: TimeExpression) -> bool:
    """Say whether it is a time at all: of "before the trip" only the ledger could know."""
    return time.start is not None or time.end is not None


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        raw = match.group()
        owner = _POSSESSED.fullmatch(raw)
        own = raw if owner is None else owner["owner"]
        word = "".join(words_in(own)) or own.casefold()
        number = own if own.lstrip("-")[:1].isdigit() else word
        yield _Token(start=match.start(), end=match.end(), raw=own, word=number, owns=owner is not None)


def _inside(token: _Token, span: tuple[int, int]) -> bool:
    return span[0] < token.end and token.start < span[1]


def _places(tokens: Sequence[_Token], entity: str) -> Iterator[tuple[int, int, str]]:
    """Yield where a name stands; as it is spelt, where it stands so anywhere."""
    own = words_in(entity)
    found = [
        tokens[at : at + len(own)]
        for at in range(len(tokens) - len(own) + 1)
        if own and [token.word for token in tokens[at : at + len(own)]] == own
    ]
    exact = [run for run in found if " ".join(token.raw for token in run) == entity]
    for run in exact or found:
        yield run[0].start, run[-1].end, " 's" if run[-1].owns else ""


def _in_person(tokens: Sequence[_Token], person: Mapping[str, str]) -> Iterator[tuple[int, int, str]]:
    for token in tokens:
        if token.word in person:
            yield token.start, token.end, person[token.word]


def _relation(tokens: Sequence[_Token], free: Sequence[_Token], relation: str) -> dict[int, tuple[int, str]]:
    """Return the runs of words that mean the relation, each one slot."""
    cues = cues_of(relation) - {fold(word) for word in _ASKING}
    cues |= {fold(form) for cue in cues for form in _OTHER_FORMS.get(cue, ())}
    slots: dict[int, tuple[int, str]] = {}
    last: tuple[int, int] | None = None
    for place, token in enumerate(tokens):
        if token not in free or fold(token.word) not in cues:
            continue
        if token.word in _PREPOSITIONS and (last is None or last[1] != place - 1):
            continue
        start = last[0] if last is not None and last[1] == place - 1 else token.start
        began = start in slots and slots[start][1].startswith("BEGIN") and start != token.start
        begins = began or (
            token.word in _BEGINNING and token.word not in words_in(relation.replace("_", " "))
        )
        slots[start] = (token.end, ("BEGIN " if begins else "") + ("R 's" if token.owns else "R"))
        last = (start, place)
    return slots


def _written(tokens: Sequence[_Token], slots: dict[int, tuple[int, str]]) -> str:
    parts: dict[int, str] = {start: slot for start, (_, slot) in slots.items()}
    spans = [(start, end) for start, (end, _) in slots.items()]
    for token in tokens:
        if not any(_inside(token, span) for span in spans):
            parts[token.start] = f"{token.word} 's" if token.owns else token.word
    return " ".join(parts[start] for start in sorted(parts))
