"""
Who has a value: derived from what the ledger resolved on every key of the relations. Pure.

An entity is named only if its key stands at exactly that value. If of any key it cannot be told whether
it does, nothing is said: neither who has it, nor how many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from contracts.claims import Claim
from contracts.histories import Rectangle
from contracts.limits import KEYS_MAX
from contracts.relations import Cardinality
from contracts.resolutions import Conflict, KeyResolution, Missing, MissingReason, Resolved, ResolvedSet
from contracts.times import KnownAt, ValidAt
from realize._found import Cannot, Derivation, Derived, Withheld, may_mean, missing, says, unclear
from realize._holders import Holders

NAMED_MAX: Final = KEYS_MAX
"""Entities that one answer names or counts: each is shown by lines of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HolderKey:
    """
    One key of a relation: its answer at the view, certain all through the time that is named.

    `pieces` is what it has within that time, where one is named, and its whole history, where it is asked
    who ever had a value. `erased` says that something that was
    said of it was erased since, `merged` that the entity is one with others.
    """

    resolution: KeyResolution
    pieces: Sequence[Rectangle]
    erased: bool
    merged: bool


def holding(
    holders: Holders,
    keys: Sequence[HolderKey],
    *,
    whole: bool,
    erased: bool,
    at: ValidAt,
    known_at: KnownAt,
) -> Derivation:
    """
    Derive who has a value, or how many do.

    Args:
        holders: What is asked.
        keys: Every key of its relations, in the order in which they were first told.
        whole: That none is left out.
        erased: That there were others, of which nothing is left: what was said of them was erased.
        at: The valid time of the view, which must be one that the question names, if it names any.
        known_at: The known time of the view: of what comes after it nothing can be said.
    """
    try:
        period = holders.period
        if period is not None and not (period.start <= at < period.end and period.start <= known_at):
            raise unclear("time_or_scope_not_resolved")
        if not whole:
            raise unclear("not_all_listed")
        if erased:
            raise missing("erased")
        words = holders.words.split()
        each = (
            (key, _ever(key, words, at) if holders.ever else _claims(key, words, holders)) for key in keys
        )
        found = [(key, claims) for key, claims in each if claims is not None]
        beside = [claims for key, claims in found if key.resolution.relation in holders.beside]
        if beside:
            # Told to be there, and not whether in it or on it.
            reason = "preposition_not_told"
            return Withheld(reason=reason, is_missing=False, conflict=None, groups=tuple(beside))
    except Cannot as cannot:
        return cannot.withheld
    return _shown(holders, found)


def standing_of_holders(derivation: Derivation, keys: Sequence[HolderKey]) -> list[KeyResolution]:
    """Return the answers of the keys that a derivation stands on, or that disagree."""
    match derivation:
        case Derived(groups=groups):
            events = {claim.claim_id for group in groups for claim in group}
        case Withheld(conflict=Conflict(rivals=rivals)):
            events = {rival.claim.claim_id for rival in rivals}
        case _:
            events = set()
    own = [key.resolution for key in keys]
    return [each for each in own if not events.isdisjoint(claim.claim_id for claim in _told_in(each))][
        :NAMED_MAX
    ]


def _shown(holders: Holders, found: Sequence[tuple[HolderKey, tuple[Claim, ...]]]) -> Derivation:
    once: dict[str, tuple[HolderKey, tuple[Claim, ...]]] = {}
    for key, claims in found:
        once.setdefault(key.resolution.entity, (key, claims))
    if not once:
        # What nobody told is not false: none, and no zero.
        return missing("never_known").withheld
    if len(once) > NAMED_MAX or (len(once) > 1 and any(key.merged for key, _ in once.values())):
        return unclear("not_all_listed").withheld
    names = list(once)
    groups = tuple(claims for _, claims in once.values())
    return Derived(value=len(names) if holders.counts else names, groups=groups)


def _claims(key: HolderKey, words: Sequence[str], holders: Holders) -> tuple[Claim, ...] | None:
    """Return what says that a key has the value; None where it has not."""
    answer = key.resolution
    if answer.contract.cardinality == Cardinality.OCCURRENCE:
        raise unclear("operation_not_typed")
    standing = list(_standing(key, words))
    named = [claims for value, claims in standing if says(value, words)]
    near = [value for value, _ in standing if not says(value, words)]
    if not named and any(may_mean(value, words) for value in near):
        # "Bergen" may be meant by "Bergen, Norway".
        raise unclear("not_the_value")
    if holders.period is not None:
        _check_throughout(key, words, holders)
    if not named and key.erased and answer.contract.cardinality == Cardinality.MANY:
        # A member that was erased leaves no trace among those that stand.
        raise missing("erased")
    return named[0] if named else None


def _ever(key: HolderKey, words: Sequence[str], at: ValidAt) -> tuple[Claim, ...] | None:
    """Return what says that a key had the value at some time by now; None where it surely never had."""
    if key.resolution.contract.cardinality == Cardinality.OCCURRENCE:
        raise unclear("operation_not_typed")
    now = [piece for piece in key.pieces if piece.known_to is None]
    now = [piece for piece in now if piece.valid_from is None or piece.valid_from <= at]
    held = [(claim, piece) for piece in now if piece.state == "value" for claim in piece.claims]
    named = next((claim for claim, _ in held if says(claim.value, words)), None)
    if named is not None:
        return (named,)
    if key.erased:
        raise missing("erased")
    if any(may_mean(claim.value, words) for claim, _ in held):
        raise unclear("not_the_value")
    told = {claim.claim_id: claim for piece in key.pieces for claim in piece.claims}
    near = [claim for claim in told.values() if may_mean(claim.value, words)]
    if any(piece.state == "conflict" and not set(piece.claims).isdisjoint(near) for piece in now):
        raise unclear("history_disputed")
    # What is told with a coarse start, or with none, may have been there though it stands nowhere.
    if any(claim.validity.earliest != claim.validity.start or claim.validity.timeless for claim in near):
        raise unclear("time_or_scope_not_resolved")
    return None


def _standing(key: HolderKey, words: Sequence[str]) -> Iterator[tuple[object, tuple[Claim, ...]]]:
    match key.resolution.resolution:
        case Resolved() as one:
            yield one.value, tuple(one.claims)
        case ResolvedSet(members=members, disputed=disputed) as several:
            for conflict in disputed:
                _check_conflict(conflict, words)
            if (several.members_count, several.disputed_count) != (len(members), len(disputed)):
                raise unclear("not_all_listed")
            for member in members:
                yield member.value, tuple(member.claims)
        case Conflict() as conflict:
            _check_conflict(conflict, words)
        case Missing(reason=MissingReason.ERASED):
            raise missing("erased")
        case Missing(reason=MissingReason.UNDETERMINED, superseded=might):
            if not might or any(may_mean(claim.value, words) for claim in might):
                raise missing("undetermined", [claim for claim in might if says(claim.value, words)])
        case Missing():
            return


def _check_conflict(conflict: Conflict, words: Sequence[str]) -> None:
    if not any(may_mean(rival.value, words) for rival in conflict.rivals):
        return
    groups = tuple((rival.claim,) for rival in conflict.rivals)
    raise Cannot(Withheld(reason=conflict.why, is_missing=False, conflict=conflict, groups=groups))


def _check_throughout(key: HolderKey, words: Sequence[str], holders: Holders) -> None:
    """Withhold where a key may have the value in a part of the time that is named, and not in all of it."""
    period = holders.period
    assert period is not None
    for piece in key.pieces:
        may = any(may_mean(claim.value, words) for claim in piece.claims)
        is_whole = (piece.valid_from is None or piece.valid_from <= period.start) and (
            piece.valid_to is None or period.end <= piece.valid_to
        )
        if piece.state == "erased":
            raise missing("erased")
        if may and piece.state == "value" and not is_whole:
            raise unclear("changes_within")
        if may and piece.state in {"conflict", "undetermined"}:
            raise unclear("history_disputed" if piece.state == "conflict" else "time_or_scope_not_resolved")


def _told_in(answer: KeyResolution) -> Iterator[Claim]:
    match answer.resolution:
        case Resolved(claims=claims):
            yield from claims
        case ResolvedSet(members=members, disputed=disputed):
            yield from (claim for member in members for claim in member.claims)
            yield from (rival.claim for conflict in disputed for rival in conflict.rivals)
        case Conflict(rivals=rivals):
            yield from (rival.claim for rival in rivals)
        case Missing():
            return
