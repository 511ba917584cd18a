"""What a question asks to be done with the evidence: an ordered table of patterns, general English."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from contracts.lexicon import CARDINALITY_OF
from contracts.proposals import Operation
from contracts.relations import Cardinality
from discovery._text import STOP_WORDS


def _pattern(text: str) -> re.Pattern[str]:
    # Verbose, for legibility: a space that counts is written `\s`.
    return re.compile(text, re.VERBOSE)


_UNITS: Final = r"(?:second|minute|hour|day|night|week|weekend|month|year|decade)s?"

_ORDER: Final = _pattern(
    r"""
    \b in \s (?:what|which|the) \s (?:\w+\s)? order \b
    | \b chronolog\w+ | \b (?:correct|right|proper) \s order \b | \b order \s of \s events \b
    | \b (?:put|sort|arrange|order|rank) \b .* \b (?:order|time|date|sequence|earliest|oldest|latest) \b
    | \b (?:sequence|timeline) \s of \b | \b before \s or \s after \b | \b earlier \s or \s later \b
    | \b (?:first|earlier|last|later|earliest|latest|sooner|before) \b .* \b or \b
    | \b or \b .* \b (?:first|earlier|earliest|sooner) \b
    | \b (?:came|come|happened|happen|occurred) \s first \b
    """
)
_ARITHMETIC: Final = _pattern(
    rf"""
    \b how \s (?: long | much \s time | much \s (?:older|younger|earlier|later|longer) ) \b
    | \b how \s many \s (?:\w+\s)? {_UNITS} \b (?! \s (?:old|a|per|each|every) \b )
    | \b (?:time|{_UNITS}|gap|interval|difference) \b .* \b (?:between|elapsed|passed|apart) \b
    | \b (?: duration | (?:length|amount) \s of \s time ) \b
    """
)
# "the phone number of" asks for a value and counts nothing.
_COUNT: Final = _pattern(
    r"""
    \b how \s (?:many|often|frequently) \b
    | \b (?:total|overall) \s (?:number|count) \b | \b count \s (?:of|up|the|all|my|how) \b
    | (?<! phone\s ) (?<! telephone\s ) (?<! mobile\s ) (?<! cell\s ) (?<! house\s ) (?<! room\s )
      (?<! account\s ) \b number \s of \b
    """
)
_SUMMARY: Final = _pattern(
    r"""
    \b (?: summar (?:y|ies|ise|ize|ised|ized|ising|izing) | overview | recap | rundown | gist | synopsis
         | outline \s of | describe | sum \s up | brief \s me | catch \s me \s up | fill \s me \s in
         | up \s to \s speed | walk \s me \s through | everything \s (?:you\sknow|about)
         | what \s do \s (?:you|we) \s (?:know|remember|recall) | going \s on \s with | been \s up \s to ) \b
    | ^ about \b
    """
)
_PREFERENCE: Final = _pattern(
    r"""
    \b (?: recommend\w* | suggest\w* | advi[cs]e | prefer\w* | favou?rites? | faves? | rather | keen \s on
         | fond \s of | taste \s in | should \s (?:i|we|he|she|they) (?! \s have )
         | would \s \w+ (?: \s \w+ ){0,2} \s (?:like|enjoy|love|appreciate|want) ) \b
    """
)
_LOOKUP: Final = _pattern(
    r"""
    ^ (?: (?:since|until|till|from|by) \s )? when \b
    | \b (?:what|which) \s (?:\w+\s)? (?:date|day|month|year|week|weekday|time|hour|season|century|decade) \b
    | ^ (?:the\s)? (?:date|day|time|year) \s (?:of|when|that|on\swhich) \b
    """
)
_LIST: Final = _pattern(
    r"""
    ^ (?: list | name | enumerate | give \s (?:(?:me|us)\s)? (?:a\slist|all|every)
        | show \s (?:(?:me|us)\s)? (?:all|every) | all \s (?:of\s)? (?:the|my) ) \b
    | \b (?: list \s of | which \s ones | (?:what|who|where) \s all | who \s (?:are|were)
           | (?:what|which) \s (?:things|kinds|types|sorts|places|people) | everything | everyone
           | everybody | every \s (?:place|person|thing) | what \s (?:else|other) ) \b
    """
)
_AUXILIARY: Final = _pattern(
    r"""
    ^ (?: if | whether | is | are | am | was | were | do | does | did | has | have | had | can | could | will
        | would | should | may | might | must | isn | aren | wasn | weren | doesn | don | didn | hasn
        | haven | hadn | couldn | won | wouldn | shouldn ) \b
    """
)
_EMBEDDED: Final = re.compile(r"^\w+ .*\b(?:what|which|who|whom|whose|where|when|why|how)\b")
_CHOICE: Final = re.compile(r"\bor\b(?! not\b)")
_NOW: Final = _pattern(
    r"""
    \b (?: now | currently | current | nowadays | presently | these \s days | at \s the \s moment
         | at \s present | still | today | tonight | latest | newest | most \s recent | up \s to \s date
         | so \s far | at \s this \s point ) \b
    """
)
_PAST: Final = _pattern(
    r"""
    \b (?: was | were | did | had | used \s to | ago | previous | previously | former | formerly
         | originally | back \s then ) \b
    """
)
_NO_STATE: Final = re.compile(r"^(?:why|how)\b")
_ASKS_WHAT: Final = re.compile(r"^(?:(?:in|at|to|with|for) )?(?:what|which|who|whom|where)\b")
_ASKED_FOR: Final = _pattern(
    r"""
    ^ (?:\w+\s)? (?:what|which) (?: \s (?:are|were|all) )? (?: \s (?:the|my|our|his|her|their) )?
    (?P<phrase> (?: \s \w+ ){1,4} )
    """
)
_PLURAL: Final = re.compile(r"^(?:children|people|men|women|(?!\w*(?:ss|us|is|as)$)\w{3,}s)$")
_VERB_LIKE: Final = frozenset({"does", "has", "is", "was", "always"})
_HOW_MUCH: Final = re.compile(r"\bhow (?:old|much|far|tall|heavy|big)\b")

# In this order: "how many days between" is arithmetic before it is a count.
_RULES: Final = (
    (Operation.ORDER, _ORDER),
    (Operation.TEMPORAL_ARITHMETIC, _ARITHMETIC),
    (Operation.COUNT, _COUNT),
    (Operation.SUMMARY, _SUMMARY),
    (Operation.PREFERENCE, _PREFERENCE),
    (Operation.TEMPORAL_LOOKUP, _LOOKUP),
)

_STATES: Final = frozenset(
    {"lives_in", "works_at", "works_as", "studies_at", "married_to", "engaged_to", "dating", "located_in"}
) | {"status", "drives"}
"""Listed relations whose value changes in the course of a life: asked in the present, today's is meant."""

_LIKINGS: Final = frozenset({"likes", "dislikes"})

_SURFACES: Final = {
    Operation.COUNT: "number",
    Operation.LIST: "list",
    Operation.ORDER: "list",
    Operation.TEMPORAL_LOOKUP: "date",
    Operation.TEMPORAL_ARITHMETIC: "number",
    Operation.YES_NO: "boolean",
    Operation.SUMMARY: "text",
    Operation.PREFERENCE: "text",
}


def find_operation(question: str, relations: Sequence[str], *, names_time: bool) -> tuple[Operation, bool]:
    """
    Return the operation, and whether a rule found it rather than the fallback to `fact`.

    Args:
        question: Folded words joined by single spaces, without a polite frame.
        relations: What the question is about, the most specific first.
        names_time: Whether the question holds a time expression.
    """
    for operation, pattern in _RULES:
        if pattern.search(question) and not _asks_value(operation, relations):
            return operation, True
    if relations and relations[0] in _LIKINGS and _ASKS_WHAT.match(question):
        return Operation.PREFERENCE, True
    if _is_list(question, relations):
        return Operation.LIST, True
    if _AUXILIARY.match(question) and not (_CHOICE.search(question) or _EMBEDDED.match(question)):
        return Operation.YES_NO, True
    if names_time and relations and relations[0] in _STATES and _PAST.search(question):
        # What held at another time than the view's: a state, looked up in the past.
        return Operation.TEMPORAL_LOOKUP, True
    if _NOW.search(question) or _is_present_state(question, relations):
        return Operation.CURRENT_STATE, True
    return Operation.FACT, False


def surface_of(operation: Operation, question: str, *, names_time: bool) -> str:
    """Return the form of answer asked for."""
    if operation == Operation.TEMPORAL_LOOKUP and names_time and not _LOOKUP.search(question):
        return "value"
    if operation in {Operation.FACT, Operation.CURRENT_STATE} and _HOW_MUCH.search(question):
        return "number"
    return _SURFACES.get(operation, "value")


def _asks_value(operation: Operation, relations: Sequence[str]) -> bool:
    # The value of a birthday is a date: asking when it is asks for the value, not for when it was said.
    return operation == Operation.TEMPORAL_LOOKUP and "birthday" in relations


def _is_list(question: str, relations: Sequence[str]) -> bool:
    if _LIST.search(question):
        return True
    if not _ASKS_WHAT.match(question):
        return False
    asked_for = _ASKED_FOR.match(question)
    if asked_for and any(_PLURAL.match(word) for word in _noun_phrase(asked_for["phrase"].split())):
        return True
    # What one can have many of is asked for as a list, whatever the grammatical number.
    return bool(relations) and CARDINALITY_OF.get(relations[0]) == Cardinality.MANY


def _noun_phrase(words: Sequence[str]) -> list[str]:
    phrase: list[str] = []
    for word in words:
        # A possessor comes first ("what are Ann s allergies"): its `s` stands alone here.
        if word in STOP_WORDS and word != "s":
            break
        phrase.append(word)
    return [word for word in phrase if word not in _VERB_LIKE]


def _is_present_state(question: str, relations: Sequence[str]) -> bool:
    if not relations or _PAST.search(question) or _NO_STATE.match(question):
        return False
    # A relation of the tenant's own is a state unless the question looks back.
    return relations[0] in _STATES or relations[0] not in CARDINALITY_OF
