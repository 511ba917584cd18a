"""English verb forms: the regular ones made by rule, the others listed."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Flag, auto
from typing import Final


class Form(Flag):
    """What a form of a verb may be."""

    BASE = auto()
    THIRD = auto()
    PAST = auto()
    PARTICIPLE = auto()
    GERUND = auto()


# base: past, participle
_IRREGULAR: Final = {
    "become": ("became", "become"),
    "begin": ("began", "begun"),
    "break": ("broke", "broken"),
    "buy": ("bought", "bought"),
    "drive": ("drove", "driven"),
    "find": ("found", "found"),
    "get": ("got", "gotten"),
    "fly": ("flew", "flown"),
    "give": ("gave", "given"),
    "go": ("went", "gone"),
    "have": ("had", "had"),
    "leave": ("left", "left"),
    "lose": ("lost", "lost"),
    "quit": ("quit", "quit"),
    "sell": ("sold", "sold"),
    "speak": ("spoke", "spoken"),
    "split": ("split", "split"),
    "take": ("took", "taken"),
    "be": ("was", "been"),
    "put": ("put", "put"),
}
_DOUBLED: Final = frozenset({"enrol", "transfer", "quit", "get", "begin", "stop", "split", "drop", "put"})
_VOWELS: Final = frozenset("aeiou")


def forms_of(verbs: Iterable[str]) -> dict[str, tuple[tuple[str, Form], ...]]:
    """Return every inflected form of the verbs, each with the verbs it may be a form of."""
    found: dict[str, dict[str, Form]] = {}
    for verb in sorted(verbs):
        past, participle = _IRREGULAR.get(verb, (_regular_past(verb), _regular_past(verb)))
        for word, form in (
            (verb, Form.BASE),
            (_third(verb), Form.THIRD),
            (past, Form.PAST),
            (participle, Form.PARTICIPLE),
            (_gerund(verb), Form.GERUND),
        ):
            of_word = found.setdefault(word, {})
            of_word[verb] = of_word.get(verb, form) | form
    return {word: tuple(verbs_of.items()) for word, verbs_of in found.items()}


def _third(verb: str) -> str:
    if verb == "have":
        return "has"
    if verb.endswith(("s", "sh", "ch", "x", "o")):
        return verb + "es"
    if verb.endswith("y") and verb[-2] not in _VOWELS:
        return verb[:-1] + "ies"
    return verb + "s"


def _regular_past(verb: str) -> str:
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in _VOWELS:
        return verb[:-1] + "ied"
    return (verb + verb[-1] if verb in _DOUBLED else verb) + "ed"


def _gerund(verb: str) -> str:
    if verb in _DOUBLED:
        return verb + verb[-1] + "ing"
    return (verb[:-1] if verb.endswith("e") and verb != "be" else verb) + "ing"
