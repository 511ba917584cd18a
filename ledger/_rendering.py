"""What a line of evidence says of an event: its text, and the structured claims that this does not show."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterable
from typing import Any, Final

from contracts.events import ClaimDraft, EventDraft, Stance, TargetDraft, ValidDraft
from contracts.values import shown

CLAIMS_SHOWN_MAX: Final = 8
"""Claims of an event without a text up to which a line shows all of them; a table has hundreds."""

_WORD: Final = re.compile(r"[^\W_]+")


def rendering(draft: EventDraft, wanted: Collection[int] = ()) -> str:
    """
    Return what an event says in words: the same for the same arguments for ever.

    Its text; behind it, in brackets, the structured claims that the text does not show, so that no
    line is evidence of a value that cannot be read in it. Without a text, all that it claims; of a
    table with more than `CLAIMS_SHOWN_MAX` claims, those that are wanted and how many others there are.

    Args:
        draft: The event.
        wanted: Ordinals of claims that a question is about.
    """
    if not draft.text:
        numbered = list(enumerate(draft.claims))
        if len(numbered) > CLAIMS_SHOWN_MAX:
            numbered = [one for one in numbered if one[0] in wanted] or numbered[:CLAIMS_SHOWN_MAX]
        parts = [_claim(claim, draft.stance_of(claim)) for _, claim in numbered]
        if others := len(draft.claims) - len(numbered):
            parts.append(f"and {others} other claims")
        if draft.targets:
            parts.append(f"{draft.kind.value} of {_targets(draft.targets)}")
        return "; ".join(parts)
    spoken = _words(draft.text)
    hidden = [
        _claim(claim, draft.stance_of(claim)) for claim in draft.claims if not _shows(spoken, draft, claim)
    ]
    return f"{draft.text} [recorded: {'; '.join(hidden)}]" if hidden else draft.text


def _shows(spoken: str, draft: EventDraft, claim: ClaimDraft) -> bool:
    """Say whether a text, as `_words` writes it, names a claim's value, and whose it is."""
    if claim.entity is None and claim.value is None:
        return True
    whose = claim.entity is None or claim.entity == draft.actor.id or _words(claim.entity) in spoken
    return whose and claim.value is not None and _words(_value(claim.value)) in spoken


def _words(text: str) -> str:
    """Return the words of a text between blanks, so that whole words are found in it by comparison."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return f" {' '.join(_WORD.findall(folded))} "


def _value(value: Any) -> str:  # noqa: ANN401 -- values are any JSON
    text = shown(value)
    return json.dumps(value, sort_keys=True) if text is None else text


def _claim(claim: ClaimDraft, stance: Stance) -> str:
    words = [] if stance == Stance.ASSERT else [stance.value]
    if claim.entity is not None:
        words.append(f"{claim.entity} {claim.relation}")
    if claim.value is not None:
        value = _value(claim.value)
        words.append(f"= {value}" if words else value)
    if claim.valid is not None:
        words.append(f"({_valid(claim.valid)})")
    if claim.targets:
        words.append(f"of {_targets(claim.targets)}")
    if claim.inputs:
        words.append(f"from {_targets(claim.inputs)}")
    return " ".join(words)


def _valid(valid: ValidDraft) -> str:
    if valid.since is not None:
        return f"since {valid.since}"
    if valid.at is not None:
        return f"at {valid.at}"
    return f"from {valid.from_ or 'ever'} to {valid.to or 'open'}"


def _targets(targets: Iterable[TargetDraft]) -> str:
    return ", ".join(_target(target) for target in targets)


def _target(target: TargetDraft) -> str:
    named = target.event or target.source_event_id
    words = [f"event {named}"] if named is not None else []
    if target.ordinal is not None:
        words.append(f"claim {target.ordinal}")
    if target.entity is not None:
        words.append(f"{target.entity} {target.relation}")
    return " ".join(words)
