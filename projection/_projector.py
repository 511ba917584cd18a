"""The projector of this build: structured claims exactly, then what the language readers find in text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from contracts.claims import ASSISTANT, SENSOR, ProjectedClaim
from contracts.errors import BadRequest
from contracts.events import ClaimDraft, Event, Kind, Stance, ValidDraft
from contracts.limits import EXTRACTED_CLAIMS_MAX
from contracts.names import is_name
from projection._english import EnglishReader
from projection._language import Finding, Language, Speaker, StatedValidity
from projection._spelling import Places, spelt
from projection._structured import structured

_READ_KINDS: Final = frozenset({Kind.TURN, Kind.OBSERVATION, Kind.ACTION, Kind.CLAIM})
_REPORTS: Final = frozenset({Kind.OBSERVATION, Kind.ACTION})


class RuleProjector:
    """
    A `contracts.ports.Projector`: pure, and the same for the same event for ever.

    Text is read only where an event has no structured claims: whoever gives both says one thing
    in two forms, and reading both would count it twice. An assistant's text is not read: what it
    says about people comes out of its context, and is no new support (SEMANTICS, "Many-valued
    relations", last paragraph); left standing alone it would outlive the retraction of what it
    repeats. Its structured claims are projected like anyone's.
    """

    def __init__(self) -> None:
        self._languages: tuple[Language, ...] = (EnglishReader(),)
        # Raised whenever the same log would be projected or decided otherwise: a tenant that was folded
        # under another name is rebuilt.
        self.version = "+".join(("rules-3", *(language.name for language in self._languages)))

    def project(self, event: Event) -> Sequence[ProjectedClaim]:
        """Return structured claims with ordinals from 0, or, where there are none, what the text says."""
        draft = event.draft
        claims = structured(draft)
        if claims or draft.text is None or draft.kind not in _READ_KINDS or draft.actor.class_ == ASSISTANT:
            return claims
        speaker = Speaker(
            actor_id=draft.actor.id,
            observed=event.observed,
            reports=draft.actor.class_ == SENSOR and draft.kind in _REPORTS,
        )
        return self._read(draft.text, speaker, occurrence_id=draft.occurrence_id)

    def _read(self, text: str, speaker: Speaker, *, occurrence_id: str | None) -> list[ProjectedClaim]:
        # As names are: what a keyboard or a file system made of a letter or a line must not hide a fact.
        read = spelt(text)
        findings = [finding for language in self._languages for finding in language.read(read, speaker)]
        fitting = [finding for finding in findings if _fits(finding, speaker)][:EXTRACTED_CLAIMS_MAX]
        if fitting and read != text:
            places = Places(text)
            fitting = [replace(finding, span=places.back(finding.span)) for finding in fitting]
        # An id of the source's own names one occurrence: it cannot be shared out over several.
        shared = occurrence_id if len(fitting) == 1 else None
        return [_claim(ordinal, finding, shared) for ordinal, finding in enumerate(fitting)]


def _fits(finding: Finding, speaker: Speaker) -> bool:
    """Return whether a claim can say it: a text must never stop a tenant, whatever it says."""
    if not all(is_name(name) for name in (finding.entity, finding.relation, finding.value or "x")):
        return False
    valid = _valid(finding.valid)
    if valid is None:
        return True
    offset_minutes = None if speaker.observed is None else speaker.observed.offset_minutes
    try:
        valid.term(offset_minutes=offset_minutes)
        valid.bounds(offset_minutes=offset_minutes)
    except BadRequest:
        return False
    return True


def _claim(ordinal: int, finding: Finding, occurrence_id: str | None) -> ProjectedClaim:
    draft = ClaimDraft(
        entity=finding.entity,
        relation=finding.relation,
        value=finding.value,
        valid=_valid(finding.valid),
        stance=finding.stance,
        occurrence_id=occurrence_id if finding.stance == Stance.ASSERT else None,
    )
    return ProjectedClaim(ordinal=ordinal, draft=draft, stance=finding.stance, spans=(finding.span,))


def _valid(stated: StatedValidity | None) -> ValidDraft | None:
    if stated is None:
        return None
    if stated.since is not None:
        return ValidDraft(since=stated.since)
    if stated.at is not None:
        return ValidDraft(at=stated.at)
    return ValidDraft.model_validate({"from": stated.start, "to": stated.end})
