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
from typing import NamedTuple

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
from ledger._values import NORMALIZERS, normal_form, takes
from ledger._world import Key

_ASSERT = Stance.ASSERT.value
_END = Stance.END.value
_SINCE = ValidityKind.SINCE.value


def states_answer(found: Found, key: Key, view: View, ground: Ground) -> KeyResolution | None:
    """
    Return the answer of a key that has a value, and on which states alone were said; None of any other.

    None too where its cell is not what follows from the claims read. Nothing on it may have been erased:
    that cannot be told from what is left.
    """
    first = _named(found)
    if first is None:
        return None
    read = Read(
        own=found.own.told, first=first, is_long=found.is_long, own_from=found.own_from,
        is_cut=found.newest is not None,
    )  # fmt: skip
    return answer_of_states(read, key, view, ground)


class Read(NamedTuple):
    """
    What was read of a key that nothing acts on: its newest claims by position, and the cell's first.

    `is_long` says that there are more, `own_from` from which position on all are here that may bear on the
    instant, `is_cut` that those are not here that begin after it.
    """

    own: Sequence[Told]
    first: Told
    is_long: bool
    own_from: int
    is_cut: bool


def answer_of_states(read: Read, key: Key, view: View, ground: Ground) -> KeyResolution | None:
    """Return the answer of a key as `states_answer` does."""
    own, first, is_long, own_from, is_cut = read
    contract = ground.contracts.of(key[1])
    if not _is_by_itself(key, contract, ground.merges):
        return None
    if is_cut and contract.value_type != ValueType.ANY:
        # What is of another type is reported, whenever it begins.
        return None
    present = _begun([*own, first] if is_long else own, key, contract, at=micros(view.valid_at))
    if present is None:
        return None
    says = _Says(first, contract)
    if is_long:
        if _is_contradicted(present, first, says):
            return None
        carriers, superseded = _sure(present, first, says, own_from=own_from)
    else:
        carriers, superseded = _last_run(present, says)
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
        form=says.form,
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


def _begun(
    told: Iterable[Told], key: Key, contract: RelationContract, *, at: int
) -> list[tuple[int, Told]] | None:
    """
    Return those that begin up to an instant, each with where it does.

    None if not all are states that begin somewhere, of one rank, and each can replace each other.
    """
    entity, relation = key
    takes_any = contract.value_type == ValueType.ANY
    sources: list[list[str]] = []
    known: list[str] | None = None
    present = []
    for one in told:
        _, _, _, _, _, about, on, stance, said = one
        value, (kind, start, _, _, _), source, _, _, _, _, _, _, inputs = said
        if kind != _SINCE or start is None or inputs or stance != (_END if value is None else _ASSERT):
            return None
        if about != entity or on != relation:
            return None
        if not (takes_any or value is None or takes(value, contract)):
            return None
        if source != known:
            known = source
            if source not in sources:
                sources.append(source)
        if start <= at:
            present.append((start, one))
    return present if _replace_each_other(sources, entity, contract) else None


def _replace_each_other(sources: Sequence[list[str]], entity: str, contract: RelationContract) -> bool:
    """Return whether what any of the sources says of an entity can replace what any other does."""
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


class _Says:
    """Whether a state says the value of a first one, in whose contract equal values may be written unlike."""

    __slots__ = ("_contract", "_normalized", "_normalizer", "_value", "form")

    def __init__(self, first: Told, contract: RelationContract) -> None:
        value = first.said[0]
        self._contract = contract
        self._value = value
        self.form = normal_form(value, contract)
        # The form of a text is its normalized words as JSON: one for each claim that is listed is not made.
        self._normalizer = NORMALIZERS[contract.normalizer]
        is_text = contract.value_type == ValueType.ANY and isinstance(value, str)
        self._normalized = self._normalizer(value) if is_text else None

    def __call__(self, told: Told) -> bool:
        value = told.said[0]
        if told.stance == _END:
            return False
        if isinstance(value, str):
            if value == self._value:
                # Spelt alike: nothing has to be made of it.
                return True
            if self._normalized is not None:
                return self._normalizer(value) == self._normalized
        return normal_form(value, self._contract) == self.form


def _is_contradicted(present: Iterable[tuple[int, Told]], first: Told, says: _Says) -> bool:
    """
    Return whether a cell's first claim is followed by one of another value that it would have left to.

    The cell is one of before, that was put back, or somebody of a higher rank, who was not read here,
    upholds its value.
    """
    order = order_of(first)
    # Most begin before it, and nothing is made of those.
    return any(start >= order[0] and order_of(one) > order and not says(one) for start, one in present)


def _last_run(present: Iterable[tuple[int, Told]], says: _Says) -> tuple[list[Told], list[Told]]:
    """Return, in their order, the last states that say one value, and what they replaced."""
    ordered = [one for _, one in sorted(present)]
    begins = len(ordered)
    while begins and says(ordered[begins - 1]):
        begins -= 1
    return ordered[begins:], ordered[:begins]


def _sure(
    present: Iterable[tuple[int, Told]], first: Told, says: _Says, *, own_from: int
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
        if not says(one):
            superseded.append(one)
        elif order_of(one) > order and (one > first or one.position >= own_from):
            carriers.append(one)
    return carriers, superseded


def order_of(told: Told) -> tuple[int, int, int]:
    """Return (start in microseconds, position): what the later state is told by."""
    start = told.said[1][1]
    return NEVER if start is None else start, told.position, told.ordinal
