"""
What makes a sentence say nothing for certain: questions, conditions, hearsay, quotes, jokes, fiction.

A guard refuses a whole sentence, or what goes before or after it in the text. It may refuse too
much; it may never let through too much.
"""

from __future__ import annotations

import re
from typing import Final

from projection._english._tokens import Token
from projection._english._words import word_set

_SENTENCE: Final = word_set(
    # conditions and doubt
    "if unless whether maybe perhaps possibly probably presumably hypothetically supposing suppose "
    "supposedly seemingly seems seem seemed appears appeared doubt doubtful unsure assume assuming "
    "assumed guess guesses otherwise theoretically almost nearly practically virtually "
    # hearsay
    "apparently allegedly reportedly rumor rumour rumored rumoured rumors rumours hearsay said says say "
    "saying told tells tell telling heard hear hears hearing claims claimed claim claiming swears swore "
    "insists insisted thinks thought thinking believes believed believe reckons reckon according quote "
    "quotes quoted quoting mentioned mentions wrote writes posted tweeted announced admitted admits "
    "promised promises denies denied suspects suspect expects convinced "
    # feigning, jokes, fiction
    "pretend pretends pretended pretending imagine imagined imagining fantasize joke joking joked kidding "
    "jk lol lmao rofl haha hahaha hahahaha hehe sarcasm sarcastic ironically ironic bot: "
    "dream dreamed dreamt dreams dreaming roleplay role-play role-playing fictional fiction character "
    "protagonist villain hero avatar persona novel screenplay lyrics "
    # the statement itself is under discussion
    "lie lied lying fake false untrue example translate translation pronounce spell sentence "
    "mistaken misheard wrongly falsely"
)
_PHRASES: Final = re.compile(
    r"\b(?:as if|as though|let's say|let ' s say|say that|what if|in (?:the|this|that|a|my|our|his|her|their|"
    r"another) (?:\w+ )?(?:game|story|book|film|movie|show|series|play|sims|simulation|universe|life|script|"
    r"poem|song|comic|scene|episode|campaign|past life|dream|ad|play)\b|i read (?:that|somewhere)|no way|"
    r"not (?:true|really|sure|certain)|yeah right|as a child|as a kid|when i grow up|one day|some day|"
    r"someday|in theory|on paper|or so|word is|wish(?:es|ed)? |in an? (?:ideal|perfect|parallel|alternate|"
    r"other) |so to speak|in spirit|at heart|figuratively|metaphorically|for (?:halloween|carnival|the role))"
)
_BACKWARDS: Final = re.compile(
    r"(?:^|\s)(?:/s|/j|jk|j/k|just kidding|only kidding|kidding|just joking|only joking|just a joke|"
    r"not really|lol|lmao|rofl|ha(?:ha)+h?|hehe(?:he)*|psych|sike|april fools?|as if|yeah right|"
    r"i wish|in my dreams|"
    r"sarcasm|no wait|scratch that|never ?mind|i lied|that's a lie|that was a lie|that's a joke|"
    r"that was a joke|i'm lying|wrong chat)(?=$|[\s.,!?)])"
)
_LAUGHTER: Final = re.compile("[😂🤣😜🙃😝🤪😏]")
_FORWARDS: Final = re.compile(
    r"\b(?:imagine|pretend|suppose|picture this|let's say|let’s say|hypothetically|once upon a time|"
    r"in (?:my|the|a|this|our|that|her|his|their) (?:\w+ )?(?:dream|novel|story|game|screenplay|campaign|"
    r"script|short story|play|book|film|movie|poem|song|sims|roleplay|simulation)|"
    r"(?:my|the|our|her|his) (?:\w+ )?(?:character|protagonist|hero|heroine|avatar|persona)|"
    r"role-?play(?:ing)?|i (?:dreamed|dreamt|had a dream)|lyrics|translate|fill in the blank|"
    r"complete the sentence|"
    r"for example|for instance|here is a quote|here's a quote|the (?:post|letter|article|email|note|ad|"
    r"text|sign|poster|card) (?:said|says|read|reads))\b"
)
_ASKING: Final = word_set(
    "do does did is are was were am can could will would shall should may might must have has had who whom "
    "whose what where when why how which isn't aren't don't doesn't"
)
_OPENERS: Final = word_set("so and but well hey ok okay oh um then now hi hello")
_DOUBLE: Final = frozenset('"“”„«»‟〝〞「」『』')
_QUOTED: Final = re.compile(
    r"\"[^\"\n]*(?:\"|$|\n)|“[^”\n]*(?:”|$|\n)|«[^»\n]*(?:»|$|\n)|„[^“”\n]*(?:[“”]|$|\n)"
)
_FENCED: Final = re.compile(r"```[^`]*(?:```|$)|^[ \t]*>.*$|^[ \t]{0,3}\|.*$", re.MULTILINE)
_SINGLE: Final = re.compile(r"(?:^|[\s(,:])['\u2018`](?!\d0s|cause\b|til\b|em\b|tis\b)\w")


def refused_spans(text: str) -> list[tuple[int, int]]:
    """Return the parts of a text that are someone else's words: quotes, quoted lines, code."""
    spans = [match.span() for match in _FENCED.finditer(text)]
    if not _DOUBLE.isdisjoint(text):
        spans += [match.span() for match in _QUOTED.finditer(text)]
    return _merged(sorted(spans))


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join spans that touch, so that they ascend and can be searched by halves."""
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def takes_back(sentence: str) -> bool:
    """Say that a sentence (lower case) takes back itself and what stands just before it."""
    return _BACKWARDS.search(sentence) is not None or _LAUGHTER.search(sentence) is not None


def opens_fiction(sentence: str) -> bool:
    """Say that from this sentence (lower case) on, the text tells of something not real."""
    return _FORWARDS.search(sentence) is not None


def before_question(tokens: list[Token]) -> list[Token]:
    """Return what a question states first: in "I live in Graz, so which bus is it?" all up to "so"."""
    for index in range(len(tokens) - 2, 1, -1):
        joined = tokens[index].low in {"so", "but", "and"} and tokens[index + 1].low in _ASKING
        if joined and tokens[index - 1].low in {",", ";"}:
            return tokens[: index - 1]
    return []


def refuses(tokens: list[Token], sentence: str) -> bool:
    """Say that a sentence asserts nothing; `sentence` is its text in lower case."""
    if not tokens or not _DOUBLE.isdisjoint(sentence):
        return True
    words = [token.low for token in tokens]
    if not _SENTENCE.isdisjoint(words) and not (
        words[:2] == ["guess", "what"] and _SENTENCE.isdisjoint(words[2:])
    ):
        return True
    index = 0
    while index < len(words) and (words[index] in _OPENERS or words[index] == ","):
        index += 1
    if index < len(words) and words[index] in _ASKING:
        return True
    return _PHRASES.search(sentence) is not None or _SINGLE.search(sentence) is not None
