"""
Keys on which only states were said that can replace each other: most keys, and most of what is read.

What the court and `_excerpt` decide in general is decided here of those in one pass, without making
an object of each claim: the same steps, the same lists. Whether a key is one is told from what was
read of it, and from nothing else; of any other key nothing is said here. A property over random logs
holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from contracts.claims import DERIVED, SELF, ValidityKind
from contracts.events import Stance
from contracts.identity import IDENTITY
from contracts.limits import LISTED_CLAIMS_MAX
from contracts.relations import Cardinality, RelationContract, ValueType
from contracts.resolutions import KeyResolution, Resolved
from contracts.views import View
from ledger._claims import Told, micros
from ledger._decide import State
from ledger._entries import rank_and_rule
from ledger._found import Found
from ledger._ground import Ground
from ledger._identity import NO_MERGES, Merges
from ledger._intervals import NEVER
from ledger._occurrences import WHOLE
from ledger._told import Claims
from ledger._values import normal_form, takes
from ledger._world import Key

_ASSERT = Stance.ASSERT.value
_END = Stance.END.value
_SINCE = ValidityKind.SINCE.value


def states_answer(found: Found, key: Key, view: View, ground: Ground) -> KeyResolution | None:
    """
    Return the answer of a key that has a value, and on which states alone were said; None of any other.

    None too where its cell is not what follows from all its claims. Nothing on it may have been erased:
    that cannot be told from what is left.
    """
    contract = ground.contracts.of(key[1])
    first = _named(found)
    if first is None or not _is_by_itself(key, contract, ground.merges):
        return None
    if found.newest is not None and contract.value_type != ValueType.ANY:
        # What is of another type is reported, whenever it begins.
        return None
    told, is_long = found.own.told, found.is_long
    if not _are_alike([*told, first] if is_long else told, key, contract):
        return None
    at = micros(view.valid_at)
    present = [(start, one) for one in told if (start := one.said[1][1]) <= at]
    form = normal_form(first.value, contract)
    if is_long:
        carriers, superseded = _sure(present, first, form, contract, own_from=found.own_from)
    else:
        carriers, superseded = _last_run(present, form, contract)
        if not carriers or carriers[0] is not first:
            return None
    if len(carriers) == 1:
        # Most values were said once.
        latest, listed = first, carriers
    else:
        latest = max(carriers, key=order_of)
        listed = sorted(carriers)[-LISTED_CLAIMS_MAX:]
        if all(one is not first for one in listed):
            listed = [first, *listed[1:]]
    resolution = Resolved(
        value=latest.value,
        form=form,
        claims=Claims(listed, epoch=view.epoch),
        superseded=Claims(sorted(superseded)[-LISTED_CLAIMS_MAX:], epoch=view.epoch),
        count_identity=None,
    )
    return KeyResolution(
        entity=key[0],
        relation=key[1],
        view=view,
        contract=contract,
        resolution=resolution,
        disputes=(),
        unplaced=(),
        truncated=is_long,
    )


def _named(found: Found) -> Told | None:
    """Return the claim that a key's only cell names for a value; None where anything acts on the key."""
    cell = found.cells.get(WHOLE)
    if cell is None or sum(found.counts.values()) != 1 or cell.segment.state != State.VALUE:
        return None
    if found.acting.told or found.reach.told or len(cell.segment.claims) != 1:
        return None
    claim_id = bytes.fromhex(cell.segment.claims[0])
    here = [*found.named.told, *found.own.told] if found.named.told else found.own.told
    # Nearly always one of the newest.
    return next((one for one in reversed(here) if one.claim_id == claim_id), None)


def _is_by_itself(key: Key, contract: RelationContract, merges: Merges) -> bool:
    """Return whether a key has one line, and no name in it means what another does."""
    if contract.cardinality != Cardinality.ONE or key[1] in IDENTITY:
        return False
    if merges is NO_MERGES:
        return True
    root = merges.identity.root
    has_shared_values = contract.value_type == ValueType.ENTITY and bool(root)
    return key[0] not in root and not has_shared_values and not merges.questions(key[0])


def _are_alike(told: Iterable[Told], key: Key, contract: RelationContract) -> bool:
    """Return whether all are states that begin somewhere, of one rank, and each can replace each other."""
    sources: list[list[str]] = []
    takes_any = contract.value_type == ValueType.ANY
    entity, relation = key
    for _, _, _, _, _, about, on, stance, said in told:
        value, (kind, start, _, _, _), source, _, _, _, _, _, _, inputs = said
        if stance != (_END if value is None else _ASSERT) or kind != _SINCE or start is None or inputs:
            return False
        if about != entity or on != relation:
            return False
        if not (takes_any or value is None or takes(value, contract)):
            return False
        if source not in sources:
            sources.append(source)
    if any(actor_class == DERIVED for _, actor_class in sources):
        return False
    if len(sources) == 1:
        return True
    ranks = {
        rank_and_rule(contract, actor_id=actor, source_class=SELF if actor == entity else actor_class)
        for actor, actor_class in sources
    }
    if len(ranks) != 1:
        return False
    [(_, replaces_any)] = ranks
    return len({actor for actor, _ in sources}) == 1 or (
        replaces_any and contract.conflict_window == timedelta(0)
    )


def _last_run(
    present: Sequence[tuple[int, Told]], form: str, contract: RelationContract
) -> tuple[list[Told], list[Told]]:
    """Return, in their order, the last states that say one value, and what they replaced."""
    ordered = [one for _, one in sorted(present)]
    begins = len(ordered)
    while begins and _says(ordered[begins - 1], form, contract):
        begins -= 1
    return ordered[begins:], ordered[:begins]


def _sure(
    present: Sequence[tuple[int, Told]], first: Told, form: str, contract: RelationContract, *, own_from: int
) -> tuple[list[Told], list[Told]]:
    """
    Return what carries the value of the first state that does, and what was superseded.

    A state that says the same and was not among what was read whole is left out: whatever replaced it
    may not have been read.
    """
    carriers, superseded = [first], []
    order = order_of(first)
    for _, one in present:
        if one is first:
            continue
        if not _says(one, form, contract):
            superseded.append(one)
        elif order_of(one) > order and (one > first or one.position >= own_from):
            carriers.append(one)
    return carriers, superseded


def _says(told: Told, form: str, contract: RelationContract) -> bool:
    return told.stance != _END and normal_form(told.said[0], contract) == form


def order_of(told: Told) -> tuple[int, int, int]:
    """Return (start in microseconds, position): what the later state is told by."""
    start = told.said[1][1]
    return NEVER if start is None else start, told.position, told.ordinal
