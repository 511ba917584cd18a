"""The answer of a key of identity: who an entity is one with, or is not, as known at a view."""

from __future__ import annotations

from collections.abc import Iterable

from contracts.claims import Claim
from contracts.identity import SAME_AS
from contracts.limits import LISTED_CLAIMS_MAX, LISTED_VALUES_MAX
from contracts.relations import RelationContract
from contracts.resolutions import KeyResolution, Missing, MissingReason, Resolution, Resolved, ResolvedSet
from contracts.views import View
from ledger._answers import newest
from ledger._identity import Merges
from ledger._values import spelt_form


def identity_answer(
    merges: Merges, view: View, *, entity: str, veil: str, relation: str, contract: RelationContract
) -> KeyResolution:
    """
    Return the other names of an entity (`same_as`), or those that are another's (`not_same_as`).

    What is contested stands in `disputed`, or is the answer, a `Conflict`, where nothing else is.
    `veil` is the entity as tombstones know it: of what was erased nothing may say its name.
    """
    # What is said against a pair that joins it through others bears on it as well.
    names = merges.names_of(entity)
    of_pairs = (one for name in names for one in merges.disputed.get(name, ()))
    disputes = _once([*merges.questions(entity), *of_pairs])
    unplaced = _once(one for name in names for one in merges.unplaced.get(name, ()))
    borne = [claims for _, claims in _others(merges, entity, relation)]
    return KeyResolution(
        entity=entity,
        relation=relation,
        view=view,
        contract=contract,
        resolution=_resolution(merges, entity, veil, relation),
        disputes=newest(disputes),
        unplaced=newest(unplaced),
        truncated=any(len(claims) > LISTED_CLAIMS_MAX for claims in (disputes, unplaced, *borne))
        or max(len(borne), len(merges.contested.get(entity, ()))) > LISTED_VALUES_MAX,
    )


def _once(claims: Iterable[Claim]) -> list[Claim]:
    return list({claim.claim_id: claim for claim in claims}.values())


def _resolution(merges: Merges, entity: str, veil: str, relation: str) -> Resolution:
    others = _others(merges, entity, relation)
    members = [_member(name, claims) for name, claims in others[:LISTED_VALUES_MAX]]
    conflicts = merges.contested.get(entity, ())
    if members or len(conflicts) > 1:
        return ResolvedSet(
            members=tuple(members),
            disputed=conflicts[:LISTED_VALUES_MAX],
            members_count=len(others),
            disputed_count=len(conflicts),
        )
    if conflicts:
        return conflicts[0]
    reasons = [merges.lapsed[name] for name in (entity, veil) if name in merges.lapsed]
    reason = min(reasons, key=tuple(MissingReason).index, default=MissingReason.NEVER_KNOWN)
    return Missing(reason=reason, superseded=(), withdrawn=())


def _others(merges: Merges, entity: str, relation: str) -> list[tuple[str, tuple[Claim, ...]]]:
    if relation != SAME_AS:
        return sorted(merges.apart.get(entity, ()))
    names = [name for name in merges.names_of(entity) if name != entity]
    # A name that is joined through others is borne by the claims on its own pairs.
    return [(name, merges.stated.get(name, ())) for name in names]


def _member(name: str, claims: tuple[Claim, ...]) -> Resolved:
    form = spelt_form(name, "exact")
    return Resolved(value=name, form=form, claims=newest(claims), superseded=(), count_identity=None)
