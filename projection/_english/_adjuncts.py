"""
What may follow an object: dates, adverbs, company and place. What is not understood refuses the clause.

That every word of a clause must be understood is what keeps "I live in Lyon in my sister's stories"
from being read as "I live in Lyon".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from contracts.times import Term
from projection._english._clauses import Clause
from projection._english._dates import Dated, read_date
from projection._english._words import FINITE, word_set

_ANY_MORE: Final = ("anymore", "any more", "any longer")
_HABITUAL: Final = ("every ", "on mon", "on tue", "on wed", "on thu", "on fri", "on sat", "on sun", "on week",
                    "in the evenings", "once a week", "twice a week", "three times a week")  # fmt: skip
_PHRASES: Final = (
    "now", "right now", "at the moment", "at present", "currently", "these days", "nowadays", "presently",
    "for now", "too", "as well", "also", "already", "again", "full time", "part time", "full-time",
    "part-time", "fulltime", "permanently", "for good", "together", "alone", "actually", "finally",
    "by the way", "btw", "you know", "of course", "though", "then", "recently", "so much", "very much",
    "a lot", "really", "instead", "long ago", "fluently", "well", "quite well", "very well", "myself",
    "happily", "officially", "sadly", "unfortunately", "luckily", "thankfully", "here", "every day",
    "every week", "every weekend", "every morning", "every evening", "every sunday", "every saturday",
    "every monday", "every tuesday", "every wednesday", "every thursday", "every friday", "twice a week",
    "once a week", "three times a week", "on weekends", "on mondays", "on tuesdays", "on wednesdays",
    "on thursdays", "on fridays", "on saturdays", "on sundays", "in the evenings", "on weekday evenings",
    "as of today", "to be exact", "remotely", "still", "with all my heart", "at the end of last month",
    "by heart", "a bit", "a little", "natively", "since childhood", "since forever", "all the time",
    "in total", "lately", "today", "as we speak", "once again", "meanwhile", "in all", "for real",
    "in the city", "in the country", "to be honest", "tbh", "thanks",
    "this time", "in the end", "in fact", "after all", "with joy", "as a hobby", "at last",
)  # fmt: skip
_BY_FIRST: Final[dict[str, tuple[str, ...]]] = {
    first: tuple(sorted((p for p in (*_PHRASES, *_ANY_MORE) if p.split()[0] == first), key=len, reverse=True))
    for first in {phrase.split()[0] for phrase in (*_PHRASES, *_ANY_MORE)}
}
_PREPOSITIONS: Final = word_set(
    "with near by alongside for outside around beside on at in under after over above opposite behind "
    "close next between among within inside off across along downtown from"
)
_PHRASE_WORDS_MAX: Final = 7
# Of part of the time or of a part of the world's possibilities only: then the state is not simply so.
PARTIAL: Final = word_set(
    "week weeks weekend weekends weekday weekdays summer summers winter winters spring autumn fall "
    "season month "
    "months year years day days hour hours minute minutes night nights moment while time times bit free "
    "mind head heart soul imagination thoughts memory memories name theory principle practice general "
    "part moderation disguise exchange trial semester term vacation holiday holidays visit trip "
    "christmas easter january february march april may june july august september october november december "
    "monday tuesday wednesday thursday friday saturday sunday childhood youth twenties thirties past future "
    "instead sake training least most progress parts"
)
_NO_VERBS: Final = word_set("the a an my his her our their your this that another some")
_SUBORDINATORS: Final = word_set("when after before once where as because since while until that who which")


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjuncts:
    """
    What was understood after an object.

    `conditioned` says that a subordinate clause follows ("when I was twenty"): a state it limits is
    not taken, an event is.
    """

    date: Dated | None
    any_more: bool
    conditioned: bool
    habitual: bool


def starts_adjunct(clause: Clause, index: int, observed: Term | None) -> bool:
    """Say that a date or an adverb starts at token `index`: an object ends before it."""
    return (
        index >= len(clause)
        or _phrase(clause, index) > 0
        or read_date(clause.rest(index), observed) is not None
    )


def read_adjuncts(clause: Clause, start: int, observed: Term | None) -> Adjuncts | None:
    """Read all that follows token `start`; None where something is not understood or not simply so."""
    date: Dated | None = None
    any_more = conditioned = habitual = False
    index = start
    while index < len(clause):
        low = clause.low(index)
        phrase = _phrase(clause, index)
        dated = read_date(clause.rest(index), observed)
        if dated is not None and (phrase == 0 or dated.words_count >= phrase):
            if date is not None:
                return None
            date = dated
            index += dated.words_count
        elif phrase:
            said = clause.rest(index)
            any_more = any_more or said.startswith(_ANY_MORE)
            habitual = habitual or said.startswith(_HABITUAL)
            index += phrase
        elif clause.rest(index).startswith((", not ", "and not ", "not ")):
            length = _contrast(clause, index, observed)
            if length == 0:
                return None
            index += length
        elif low == "," and index + 1 < len(clause):
            index += 1
        elif clause.rest(index).startswith("in case "):
            index = len(clause)
        elif low in _SUBORDINATORS or _purpose(clause, index):
            conditioned = low != "to" or conditioned
            index = len(clause)
        elif low in _PREPOSITIONS:
            length = _prepositional(clause, index, observed)
            if length == 0:
                return None
            index += length
        else:
            return None
    return Adjuncts(date=date, any_more=any_more, conditioned=conditioned, habitual=habitual)


def skip_leading(clause: Clause, start: int, observed: Term | None) -> tuple[int, Dated | None]:
    """Step over adverbs and one date at the head of a clause ("In 2019", "These days")."""
    index, date = start, None
    while index < len(clause):
        low = clause.low(index)
        dated = read_date(clause.rest(index), observed) if date is None else None
        phrase = _phrase(clause, index)
        if dated is not None and dated.words_count >= phrase:
            date = dated
            index += dated.words_count
        elif phrase:
            index += phrase
        elif low == "," and index > start:
            index += 1
        else:
            break
    return index, date


def _phrase(clause: Clause, index: int) -> int:
    """Return how many tokens the adverb at `index` takes, 0 for none."""
    phrases = _BY_FIRST.get(clause.low(index))
    if phrases is None:
        return 0
    rest = clause.rest(index)
    for phrase in phrases:
        if rest.startswith(phrase) and rest[len(phrase) : len(phrase) + 1] in {"", " "}:
            return phrase.count(" ") + 1
    return 0


def _purpose(clause: Clause, index: int) -> bool:
    """Say that "to" starts a purpose ("to study medicine"), and is no second goal ("then to Vienna")."""
    if clause.low(index) != "to" or index + 1 >= len(clause):
        return False
    word = clause.tokens[index + 1]
    return word.text.islower() and word.low not in _NO_VERBS


def _contrast(clause: Clause, start: int, observed: Term | None) -> int:
    """Return how many tokens ", not Dinant" takes: what is denied adds nothing to what is said."""
    index = start
    while clause.low(index) in {",", "and", "not", "n't"}:
        index += 1
    first = index
    while index < len(clause) and index - first < _PHRASE_WORDS_MAX:
        if clause.low(index) in FINITE or clause.low(index) in {"only", "just", "i", "really", "quite"}:
            return 0
        if clause.low(index) == "," or starts_adjunct(clause, index, observed):
            break
        index += 1
    return index - start if index > first else 0


def _prepositional(clause: Clause, start: int, observed: Term | None) -> int:
    """Return how many tokens "with my sister", "near the river" takes, 0 where it is not harmless."""
    index = start + 1
    while index < len(clause) and index - start <= _PHRASE_WORDS_MAX:
        low = clause.low(index)
        if low in PARTIAL or low in FINITE or low in {"i", "he", "she", "they", "we", "you", "it", "if"}:
            return 0
        if index > start + 1 and (low in _PREPOSITIONS or low in _SUBORDINATORS or low == ","):
            break
        if index > start + 1 and starts_adjunct(clause, index, observed):
            break
        index += 1
    return index - start if index > start + 1 else 0
