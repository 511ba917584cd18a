"""From what a projector read out of an event to claims: defaults filled in, targets named by event id."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

from contracts.claims import Claim, Position, ProjectedClaim, Source, Span, TargetRef
from contracts.errors import BadRequest
from contracts.events import AIMED, Event, Stance, TargetDraft
from contracts.identity import IDENTITY
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
    source = Source(actor_id=event.draft.actor.id, actor_class=event.draft.actor.class_)
    ordered = sorted(projected, key=lambda item: item.ordinal)
    if len({item.ordinal for item in ordered}) < len(ordered):
        raise BadRequest(field="claims", reason="the projector gave two claims one ordinal")
    return [
        _claim(
            event,
            item,
            source=source,
            epoch=epoch,
            contracts=contracts,
            claim_id=claim_id,
            event_id_of=event_id_of,
        )
        for item in ordered
        if not _is_misread(item, contracts)
    ]


def _is_misread(item: ProjectedClaim, contracts: Contracts) -> bool:
    """
    Return whether words were taken for a value that their relation does not take.

    Nobody claimed that; a structured claim, which somebody did, stays and is reported.
    """
    relation, value = item.draft.relation, item.draft.value
    return (
        bool(item.spans)
        and relation is not None
        and value is not None
        and not takes(value, contracts.of(relation))
    )


def _claim(
    event: Event,
    item: ProjectedClaim,
    *,
    source: Source,
    epoch: int,
    contracts: Contracts,
    claim_id: Callable[[int], str],
    event_id_of: Callable[[str], str | None],
) -> Claim:
    draft = event.draft
    relation = item.draft.relation or NO_KEY
    targets = draft.targets if item.draft.targets is None else item.draft.targets
    winner = item.draft.winner or draft.winner

    def refer(target: TargetDraft) -> TargetRef:
        return _reference(target, event, event_id_of)

    return Claim(
        claim_id=claim_id(item.ordinal),
        epoch=epoch,
        entity=item.draft.entity or NO_KEY,
        relation=relation,
        value=_value(item.draft.value, relation),
        stance=item.stance,
        validity=validity_of(
            item.draft.valid,
            stance=item.stance,
            default_kind=contracts.of(relation).validity,
            observed=event.observed,
            recorded_at=event.recorded_at,
        ),
        source=source,
        position=Position(event=event.position, ordinal=item.ordinal),
        commit=event.commit,
        event_id=event.event_id,
        recorded_at=event.recorded_at,
        observed_at=None if event.observed is None else event.observed.first,
        spans=item.spans,
        occurrence_id=item.draft.occurrence_id or draft.occurrence_id,
        targets=tuple(refer(target) for target in targets) if item.stance in AIMED else (),
        winner=refer(winner) if winner is not None and item.stance == Stance.SETTLE else None,
        inputs=tuple(refer(target) for target in item.draft.inputs),
    )


def _value(value: object, relation: str) -> object:
    # Spelt as the border spells every other name, so that both mean one entity.
    if relation in IDENTITY and isinstance(value, str):
        return unicodedata.normalize("NFC", value).strip()
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
