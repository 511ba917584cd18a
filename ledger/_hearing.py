"""
What claims come to on their keys by who says them and by the contracts, worked out once for each fold.

Of a value that a source says on a key every claim comes to the same, as long as nobody becomes one with
anybody and no contract is registered.
"""

from __future__ import annotations

from contracts.claims import Claim, Validity
from contracts.events import Stance
from contracts.records import record
from contracts.relations import Cardinality, RelationContract
from ledger._cells import stored_part
from ledger._claims import UNSTATED
from ledger._decide import ENDED
from ledger._entries import Identity, class_of, extent_of, rank_and_rule
from ledger._keys import TenantKeys
from ledger._occurrences import WHOLE
from ledger._relations import Contracts
from ledger._tails import Incoming
from ledger._values import Normals, is_wrong
from ledger._world import Key


@record
class Heard:
    """
    What a value said by a source comes to on a key: `part` is that of its line as stored, None for none.

    The rest as in `Incoming`.
    """

    part: str | None
    rank: int
    replaces_any: bool
    value: str


class Hearing:
    """Claims as they are heard under some contracts, while some names are one."""

    def __init__(self, contracts: Contracts, identity: Identity, keys: TenantKeys) -> None:
        self._contracts = contracts
        self._identity = identity
        self._keys = keys
        self._normals = Normals(identity.root)
        self._of_relation: dict[str, RelationContract] = {}
        self._normal_of: dict[tuple[str, str], str] = {}
        self._digest_of: dict[str, str] = {}
        self._ranked: dict[tuple[str, str, str], tuple[int, bool]] = {}
        self._heard_of: dict[tuple[Key, str, str, Stance, str | None], Heard] = {}
        self._validity = UNSTATED
        self._extent = extent_of(UNSTATED)

    def contract(self, relation: str) -> RelationContract:
        """Return the contract of a relation."""
        found = self._of_relation.get(relation)
        if found is None:
            found = self._of_relation[relation] = self._contracts.of(relation)
        return found

    def heard(self, key: Key, claim: Claim) -> Heard:
        """Return what every claim of this value by this source comes to on the key."""
        if not (claim.value is None or isinstance(claim.value, str)):
            # One and true are equal to a dictionary, and not here.
            return self._heard_anew(key, claim)
        source = claim.source
        name = (key, source.actor_id, source.actor_class, claim.stance, claim.value)
        found = self._heard_of.get(name)
        if found is None:
            found = self._heard_of[name] = self._heard_anew(key, claim)
        return found

    def incoming(self, claim: Claim, heard: Heard) -> Incoming:
        """Return a claim that is to be placed."""
        return Incoming(claim, heard.rank, heard.replaces_any, heard.value, self.extent(claim.validity))

    def extent(self, validity: Validity) -> tuple[int, int, int]:
        """Return (start, end, earliest) of a validity."""
        # What an event says in one breath has one and the same.
        if validity is not self._validity:
            self._validity, self._extent = validity, extent_of(validity)
        return self._extent

    def part_of(self, claim: Claim, contract: RelationContract) -> str | None:
        """Return the stored part of the line that a claim is on; None if that cannot be one."""
        if contract.cardinality == Cardinality.ONE:
            return WHOLE
        if claim.value is None:
            return None
        return self.stored_part(self.normal(claim, contract))

    def stored_part(self, normal: str) -> str:
        """Return the part of the line that a normal form is on, as it is stored."""
        return stored_part(normal, self._keys)

    def normal(self, claim: Claim, contract: RelationContract) -> str:
        """Return the normal form of what a claim says."""
        if not isinstance(claim.value, str):
            return self._normals.of(claim.value, contract)
        name = (contract.relation, claim.value)
        found = self._normal_of.get(name)
        if found is None:
            found = self._normal_of[name] = self._normals.of(claim.value, contract)
        return found

    def digest(self, text: str) -> str:
        """Return the keyed digest of a normal form."""
        found = self._digest_of.get(text)
        if found is None:
            found = self._digest_of[text] = self._keys.digest(text.encode()).hex()
        return found

    def _heard_anew(self, key: Key, claim: Claim) -> Heard:
        contract, source = self.contract(key[1]), claim.source
        source_class = class_of(source, entity=key[0], relation=key[1], identity=self._identity)
        ranked = self._ranked.get((key[1], source.actor_id, source_class))
        if ranked is None:
            ranked = rank_and_rule(contract, actor_id=source.actor_id, source_class=source_class)
            self._ranked[key[1], source.actor_id, source_class] = ranked
        normal = None if claim.value is None else self.normal(claim, contract)
        return Heard(
            part=None if normal is not None and is_wrong(normal) else self.part_of(claim, contract),
            rank=ranked[0],
            replaces_any=ranked[1] and not contract.conflict_window,
            value=self.digest(ENDED if claim.stance == Stance.END or normal is None else normal),
        )
