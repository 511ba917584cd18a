"""The English reader: sentences, guards and clauses. What a clause says is for the shapes and frames."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from contracts.lexicon import CARDINALITY_OF
from contracts.relations import Cardinality
from projection._english._adjuncts import skip_leading
from projection._english._clauses import Clause, is_bare, split_clauses
from projection._english._dates import Dated
from projection._english._framed import read_framed
from projection._english._guards import before_question, opens_fiction, refused_spans, refuses, takes_back
from projection._english._placements import read_handled
from projection._english._scene import Scene
from projection._english._shapes import read_attribute, read_loss, read_placed
from projection._english._subjects import Subject, read_subject
from projection._english._tokens import (
    SENTENCE_CHARACTERS_MAX,
    SENTENCES_MAX,
    Sentence,
    split_sentences,
    tokenize,
)
from projection._english._words import word_set
from projection._language import Finding, Speaker

# Tried in turn; the first that accounts for every word of the clause is taken.
_SHAPES: Final = (read_placed, read_attribute, read_loss, read_framed)
_HEDGES: Final = word_set(
    "would 'd 'll will might could should must shall want wants wanted hope hopes hoping hoped wish "
    "wishes plan "
    "plans planning planned intend intends going gonna thinking considering considered trying try "
    "tried about "
    "supposed rather ought"
)
_ATTITUDES: Final = word_set(
    "hope hopes hoping hoped wish wishes wished want wants wanted know knows knew wonder wonders "
    "think feel feels "
    "remember remembers forget forgets sure glad"
)
# What may stand before a colon without making the rest a quotation.
_LABELS: Final = word_set(
    "news update intro introduction correction edit note ps fyi reminder info background context "
    "announcement "
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
    handled: str | None
    date: Dated | None


class EnglishReader:
    """English, by rules. Pure; see `docs/projection.md` for what is read and what is refused."""

    name = "english-5"

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
    """
    Drop a finding that the same text states twice.

    What is said again after something else of the same subject is news: she is back, or the mug is. Of
    what has many values at once only its end is something else: coffee takes nothing from tea.
    """
    said: dict[tuple[str, str, str | None], list[Finding]] = {}
    kept = []
    for finding in findings:
        is_many = CARDINALITY_OF.get(finding.relation) == Cardinality.MANY
        about = finding.value if is_many else None
        since = said.setdefault((finding.entity, finding.relation, about), [])
        if any(_says_the_same(finding, other) for other in since):
            continue
        if any(other.value != finding.value or other.stance != finding.stance for other in since):
            since.clear()
        since.append(finding)
        kept.append(finding)
    return kept


def _says_the_same(one: Finding, other: Finding) -> bool:
    return (one.value, one.stance, one.valid) == (other.value, other.stance, other.valid)


def _read_sentence(text: str, sentence: Sentence, words: str, speaker: Speaker) -> list[Finding]:
    tokens = tokenize(text, sentence.start, sentence.end)
    while tokens and tokens[-1].low in {".", ",", ";", "-", "–", "—"}:
        tokens.pop()
    if "?" in sentence.close or "\uff1f" in sentence.close:
        tokens = before_question(tokens)
    if refuses(tokens, words):
        return []
    context = _Context(
        speaker=speaker, text=text, subject=None, blocked=False, labelled=False, handled=None, date=None
    )
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
    scene = Scene(
        speaker=context.speaker,
        text=context.text,
        clause=clause,
        start=start,
        subject=subject,
        verb_at=verb_at,
        date=date,
        handled=context.handled,
    )
    findings = [] if blocked else next((found for shape in _SHAPES if (found := shape(scene))), [])
    after = replace(
        context,
        subject=subject,
        blocked=blocked or not _ATTITUDES.isdisjoint(lows),
        handled=read_handled(clause, start),
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
