"""From what a projector read out of an event to claims: defaults filled in, targets named by event id."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Final

from contracts.claims import (
    Claim,
    Position,
    ProjectedClaim,
    Source,
    Span,
    TargetRef,
    Validity,
)
from contracts.errors import BadRequest
from contracts.events import AIMED, Event, Stance, TargetDraft, ValidDraft
from contracts.identity import IDENTITY
from contracts.names import spelt
from contracts.ports import Projector
from ledger._claims import NO_KEY, claim_ids
from ledger._keys import TenantKeys
from ledger._relations import Contracts
from ledger._validity import validity_of
from ledger._values import takes


def claims_in(
    event: Event, projector: Projector, *, keys: TenantKeys, epoch: int, contracts: Contracts
) -> list[Claim]:
    """
    Return the claims of an event in an epoch, as its projector reads them.

    Raises:
        BadRequest: The projector gave what no claim can be.
    """
    return claims_of(
        event,
        projector.project(event),
        epoch=epoch,
        contracts=contracts,
        claim_id=claim_ids(keys, tenant=keys.tenant, event_id=event.event_id, epoch=epoch),
        # An event that was read back names its targets by event.
        event_id_of=lambda _: None,
    )


def claims_of(
    event: Event,
    projected: Sequence[ProjectedClaim],
    *,
    epoch: int,
    contracts: Contracts,
    claim_id: Callable[[int], str],
    event_id_of: Callable[[str], str | None],
) -> list[Claim]:
    """
    Return the event's claims in the order of their ordinals, without values that were misread in a text.

    Args:
        event: The event they were read out of.
        projected: What the projector read.
        epoch: The epoch they belong to.
        contracts: The contracts of the epoch.
        claim_id: The id of the claim with this ordinal.
        event_id_of: The event of the same stream with this `source_event_id`; None if there is none.

    Raises:
        BadRequest: An interval is empty or inverted, or an ordinal occurs twice.
    """
    ordered = sorted(projected, key=_ordinal)
    if len({item.ordinal for item in ordered}) < len(ordered):
        raise BadRequest(field="claims", reason="the projector gave two claims one ordinal")
    reading = _Reading(
        event=event, epoch=epoch, contracts=contracts, claim_id=claim_id, event_id_of=event_id_of
    )
    return [reading.claim(item) for item in ordered if not (item.spans and _is_misread(item, contracts))]


def _is_misread(item: ProjectedClaim, contracts: Contracts) -> bool:
    """
    Return whether words of a text were taken for a value that their relation does not take.

    Nobody claimed that; a structured claim, which somebody did, stays and is reported.
    """
    relation, value = item.draft.relation, item.draft.value
    return relation is not None and value is not None and not takes(value, contracts.of(relation))


class _Reading:
    """Makes the claims of one event: what all of them have in common is worked out once."""

    def __init__(
        self,
        *,
        event: Event,
        epoch: int,
        contracts: Contracts,
        claim_id: Callable[[int], str],
        event_id_of: Callable[[str], str | None],
    ) -> None:
        self._event = event
        self._epoch = epoch
        self._contracts = contracts
        self._claim_id = claim_id
        self._event_id_of = event_id_of
        actor = event.draft.actor
        self._source = Source(actor_id=actor.id, actor_class=actor.class_)
        self._observed_at = None if event.observed is None else event.observed.first
        self._occurrence_id = event.draft.occurrence_id
        # By stance and relation: of an event nearly all claims are of one.
        self._validity_unsaid: dict[tuple[Stance, str], Validity] = {}

    def claim(self, item: ProjectedClaim) -> Claim:
        event, draft, stance = self._event, item.draft, item.stance
        relation = draft.relation or NO_KEY
        validity = None if draft.valid is not None else self._validity_unsaid.get((stance, relation))
        targets: Sequence[TargetDraft] = ()
        winner: TargetDraft | None = None
        if stance in AIMED:
            targets = event.draft.targets if draft.targets is None else draft.targets
        if stance == Stance.SETTLE:
            winner = draft.winner or event.draft.winner
        return Claim(
            claim_id=self._claim_id(item.ordinal),
            epoch=self._epoch,
            entity=draft.entity or NO_KEY,
            relation=relation,
            value=_value(draft.value, relation),
            stance=stance,
            validity=self._validity(draft.valid, stance, relation) if validity is None else validity,
            source=self._source,
            position=Position(event.position, item.ordinal),
            commit=event.commit,
            event_id=event.event_id,
            recorded_at=event.recorded_at,
            observed_at=self._observed_at,
            spans=item.spans,
            occurrence_id=draft.occurrence_id or self._occurrence_id,
            targets=self._references(targets) if targets else (),
            winner=None if winner is None else _reference(winner, event, self._event_id_of),
            inputs=self._references(draft.inputs) if draft.inputs else (),
        )

    def _validity(self, valid: ValidDraft | None, stance: Stance, relation: str) -> Validity:
        event, kind = self._event, self._contracts.of(relation).validity
        found = validity_of(
            valid, stance=stance, default_kind=kind, observed=event.observed, recorded_at=event.recorded_at
        )
        if valid is None:
            self._validity_unsaid[stance, relation] = found
        return found

    def _references(self, targets: Sequence[TargetDraft]) -> tuple[TargetRef, ...]:
        return tuple([_reference(target, self._event, self._event_id_of) for target in targets])


_ordinal: Final[Callable[[ProjectedClaim], int]] = operator.attrgetter("ordinal")


def _value(value: object, relation: str) -> object:
    # Spelt as the border spells every other name, so that both mean one entity.
    if relation in IDENTITY and isinstance(value, str):
        return spelt(value)
    return value


def _reference(target: TargetDraft, event: Event, event_id_of: Callable[[str], str | None]) -> TargetRef:
    event_id = target.event
    if target.source_event_id is not None:
        # The append refuses a target that is not in the log, so one is always found; the empty
        # id is no event's, and a claim that names it is reported as unplaced.
        event_id = event_id_of(target.source_event_id) or ""
    start, end = (None, None)
    if target.interval is not None:
        start, end = target.interval.bounds(
            offset_minutes=None if event.observed is None else event.observed.offset_minutes
        )
    return TargetRef(
        event_id=event_id,
        ordinal=target.ordinal,
        entity=target.entity,
        relation=target.relation,
        value=_value(target.value, target.relation or NO_KEY),
        span=None if target.span is None else Span(start=target.span[0], end=target.span[1]),
        interval_start=start,
        interval_end=end,
        has_interval=target.interval is not None,
    )
