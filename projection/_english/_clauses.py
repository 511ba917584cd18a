"""Clauses: a sentence cut where a new subject or verb begins, and never inside a list or a date."""

from __future__ import annotations

from typing import Final

from projection._english._frames import FORMS
from projection._english._inflection import Form
from projection._english._tokens import Token
from projection._english._words import NOT_NAMES, word_set

_CONNECTORS: Final = word_set("and but so because although though while whereas yet then")
_CUTS: Final = frozenset({",", ";", "—", "–", "-", "(", ")", ":"}) | _CONNECTORS
_SUBJECTS: Final = word_set("i we you he she they it who which where this that there please")
_AUXILIARIES: Final = word_set(
    "am is are was were 'm 's 're 've 'll 'd have has had do does did will would can could should shall "
    "might must may used"
)
# Verbs of no frame that make a clause all the same: "Zed died and Tom ran away".
_LOSSES: Final = word_set("died ran passed")
_SUBJECT_WORDS_MAX: Final = 6
_YEAR_DIGITS: Final = 4
_TENSED: Final = Form.THIRD | Form.PAST
_NOMINAL: Final = word_set("likes loves works plays owns drives dates hates studies visits moves starts")


class Clause:
    """
    Tokens of one clause, `words` (lower case, joined by spaces) and where each token starts in it.

    `connector` is the word or mark before it, "" at the start of a sentence.
    """

    __slots__ = ("connector", "offsets", "tokens", "words")

    def __init__(self, tokens: list[Token], connector: str) -> None:
        self.tokens = tokens
        self.connector = connector
        self.offsets: list[int] = []
        place = 0
        for token in tokens:
            self.offsets.append(place)
            place += len(token.low) + 1
        self.words = " ".join([token.low for token in tokens])

    def low(self, index: int) -> str:
        """Return the token at `index` in lower case, "" past the end."""
        return self.tokens[index].low if index < len(self.tokens) else ""

    def rest(self, index: int) -> str:
        """Return the words from token `index` on."""
        return self.words[self.offsets[index] :] if index < len(self.tokens) else ""

    def __len__(self) -> int:
        return len(self.tokens)


def split_clauses(tokens: list[Token]) -> list[Clause]:
    """Cut a sentence into clauses, in order."""
    segments = _segments(tokens)
    clauses: list[Clause] = []
    current: list[Token] = []
    connector = ""
    for cut, segment in segments:
        hard = any(token.low in {";", ":", "(", ")", "—", "–"} for token in cut)
        if not current or hard or _is_new(current, cut, segment) or (_is_adverbial(current) and cut):
            if current:
                clauses.append(Clause(current, connector))
            current = list(segment)
            connector = " ".join(token.low for token in cut)
        else:
            current += [*cut, *segment]
    if current:
        clauses.append(Clause(current, connector))
    return clauses


def _segments(tokens: list[Token]) -> list[tuple[list[Token], list[Token]]]:
    """Return (cut marks, words up to the next cut) in order."""
    segments: list[tuple[list[Token], list[Token]]] = []
    cut: list[Token] = []
    words: list[Token] = []
    for index, token in enumerate(tokens):
        if token.low in _CUTS and not _in_date(tokens, index):
            if words:
                segments.append((cut, words))
                cut, words = [], []
            cut.append(token)
        else:
            words.append(token)
    if words:
        segments.append((cut, words))
    return segments


def _in_date(tokens: list[Token], comma: int) -> bool:
    """Say that a comma stands before the year of a date: "April 5th, 2024"."""
    if tokens[comma].low != "," or comma == 0 or comma + 1 >= len(tokens):
        return False
    year = tokens[comma + 1].low
    return tokens[comma - 1].low[0].isdigit() and year.isdecimal() and len(year) == _YEAR_DIGITS


def _starts_clause(segment: list[Token]) -> bool:
    """Say that a segment has a verb of its own, so that it is no item of a list."""
    if segment[0].low in _SUBJECTS:
        return True
    for index, token in enumerate(segment[:8]):
        low = token.low
        # The month is written "May".
        if low in _AUXILIARIES and token.text != "May":
            # "Ana's" before a noun is no verb, but then the segment is a new subject all the same.
            return True
        if low in _LOSSES:
            return True
        forms = FORMS.get(low)
        if forms is None:
            continue
        if index == 0 and low not in _NOMINAL and any(form & (Form.BASE | _TENSED) for _, form in forms):
            return True
        if any(form & _TENSED for _, form in forms):
            return True
    return False


def _is_new(current: list[Token], cut: list[Token], segment: list[Token]) -> bool:
    return _starts_clause(segment) and not _names_go_on(current, cut, segment)


def _names_go_on(current: list[Token], cut: list[Token], segment: list[Token]) -> bool:
    """Say that "Ana and Ben live" is one subject so far: names alone, joined by "and" or a comma."""
    joined = all(token.low in {"and", ","} for token in cut)
    named = current[-1].text[:1].isupper() and not _starts_clause(current)
    follows = (segment[0].text[:1].isupper() and segment[0].low not in _SUBJECTS | {"my", "the"}) or (
        segment[0].low == "i" and len(segment) > 1
    )
    return (
        joined
        and named
        and follows
        and (current[0].text[:1].isupper())
        and len(current) <= _SUBJECT_WORDS_MAX
    )


def _is_adverbial(tokens: list[Token]) -> bool:
    """Say that a clause so far has no verb and no subject: a greeting, a date, "by the way"."""
    return (not _starts_clause(tokens) and not tokens[0].text[:1].isupper()) or (
        len(tokens) == 1 and (tokens[0].low in NOT_NAMES or tokens[0].low.endswith("ly"))
    )


def is_bare(clause: Clause) -> bool:
    """Say that a clause has no verb at all."""
    return not _starts_clause(clause.tokens)
