"""
What of an answer may stand in a hash: keyed digests, and nothing that can be guessed.

Names of entities, relations and speakers, questions and contracts are digested with the tenant's
key; values and claims with the data key of the event that said them, so that losing that key (an
erasure) leaves nothing to test a guess against. Source: DESIGN decisions 7 and 11.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, Final, assert_never

from contracts.answers import Answer
from contracts.claims import Claim
from contracts.contexts import SealedClaim, SealedResolution
from contracts.ports import Digests
from contracts.relations import RelationContract, ValueType
from contracts.resolutions import Conflict, KeyResolution, Missing, Resolved, ResolvedSet
from packing._canonical import canonical

_OF_A_CLAIM: Final = tuple(field.name for field in fields(Claim) if field.name not in {"claim_id", "epoch"})


def event_ids(resolutions: Sequence[KeyResolution]) -> tuple[str, ...]:
    """Return the events whose data keys `seal` needs, sorted: read them before packing."""
    return tuple(sorted({claim.event_id for key in resolutions for _, _, claim in _claims(key)}))


def seal(key: KeyResolution, digests: Digests) -> SealedResolution:
    """
    Return a key's answer as a hash may hold it.

    Its view and its claim ids are left out: the view belongs to the context, and a claim id
    changes with the epoch.

    Raises:
        IntegrityFault: A data key of `event_ids` was not read.
    """
    return SealedResolution(
        key_digest=digests.of_tenant(canonical(["key", key.entity, key.relation])),
        contract_digest=digests.of_tenant(canonical(["contract", _contract(key.contract)])),
        outcome=_outcome(key),
        reasons=_reasons(key),
        values=tuple(
            digests.of_event(claim.event_id, canonical(["value", value])) for claim, value in _values(key)
        ),
        claims=tuple(
            SealedClaim(
                role=role,
                group=group,
                event_id=claim.event_id,
                ordinal=claim.position.ordinal,
                digest=digests.of_event(claim.event_id, canonical(["claim", _claim(claim)])),
            )
            for role, group, claim in _claims(key)
        ),
    )


def answer_digest(answer: Answer, digests: Digests) -> str:
    """Return the digest of an answer that its trail keeps, keyed with the tenant's digest key."""
    return digests.of_tenant(canonical(["answer", answer]))


def _contract(contract: RelationContract) -> dict[str, object]:
    """
    Everything that decides under a contract.

    What contracts could not say once is left out where it says nothing, and `any` stands under the
    name that it had: a context that was stored then is built again to the same bytes.
    """
    form = {field.name: getattr(contract, field.name) for field in fields(contract)}
    form = {name: value for name, value in form.items() if value is not None}
    once = {ValueType.ANY: "text", ValueType.TEXT: "string"}
    return form | {"value_type": once.get(contract.value_type, contract.value_type)}


def _outcome(key: KeyResolution) -> str:
    match key.resolution:
        case Resolved():
            return "resolved"
        case ResolvedSet():
            return "set"
        case Missing():
            return "missing"
        case Conflict():
            return "conflict"
        case _ as never:
            assert_never(never)


def _reasons(key: KeyResolution) -> tuple[str, ...]:
    match key.resolution:
        case Missing(reason=reason):
            return (reason.value,)
        case Conflict(why=why):
            return (why,)
        case ResolvedSet(disputed=disputed):
            return tuple(conflict.why for conflict in disputed)
        case _:
            return ()


def _values(key: KeyResolution) -> Iterator[tuple[Claim, Any]]:
    # A value that several events carry is digested with the key of the latest of them. An
    # occurrence's identity holds its value in words, so it goes the same way.
    match key.resolution:
        case Resolved() as member:
            yield _latest(member.claims), [member.value, member.count_identity]
        case ResolvedSet(members=members, disputed=disputed):
            for member in members:
                yield _latest(member.claims), [member.value, member.count_identity]
            for conflict in disputed:
                yield from ((rival.claim, [rival.value, rival.ended]) for rival in conflict.rivals)
        case Conflict(rivals=rivals):
            yield from ((rival.claim, [rival.value, rival.ended]) for rival in rivals)
        case Missing():
            return


def _claims(key: KeyResolution) -> Iterator[tuple[str, int, Claim]]:
    match key.resolution:
        case Resolved() as member:
            yield from _member_claims(member, 0)
        case ResolvedSet(members=members, disputed=disputed):
            for group, member in enumerate(members):
                yield from _member_claims(member, group)
            for group, conflict in enumerate(disputed, start=len(members)):
                yield from _conflict_claims(conflict, group)
        case Conflict() as conflict:
            yield from _conflict_claims(conflict, 0)
        case Missing(superseded=superseded, withdrawn=withdrawn):
            yield from (("superseded", 0, claim) for claim in superseded)
            yield from (("withdrawn", 0, claim) for claim in withdrawn)
    yield from (("dispute", group, claim) for group, claim in enumerate(key.disputes))
    yield from (("unplaced", group, claim) for group, claim in enumerate(key.unplaced))


def _member_claims(member: Resolved, group: int) -> Iterator[tuple[str, int, Claim]]:
    yield from (("carries", group, claim) for claim in member.claims)
    yield from (("superseded", group, claim) for claim in member.superseded)


def _conflict_claims(conflict: Conflict, group: int) -> Iterator[tuple[str, int, Claim]]:
    yield from (("rival", group, rival.claim) for rival in conflict.rivals)
    yield from (("superseded", group, claim) for claim in conflict.superseded)


def _latest(claims: Sequence[Claim]) -> Claim:
    return max(claims, key=lambda claim: claim.position)


def _claim(claim: Claim) -> dict[str, object]:
    """Everything that was stored of a claim, save what only its epoch gave it."""
    return {name: getattr(claim, name) for name in _OF_A_CLAIM}
