"""
Plain keys: all that was ever claimed on them are states that replace each other, and nothing acts on them.

Most keys are. What one has at an instant its cell says, of what was claimed on it the newest is listed,
and all of it comes with the pinning of the view, in one call: `echoplane_read` in 0002_lookup.sql. Of
any other key nothing comes, and `decide` answers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.claims import DERIVED, Claim, ValidityKind
from contracts.errors import IntegrityFault, NotYet
from contracts.events import Stance
from contracts.limits import LISTED_CLAIMS_MAX
from contracts.relations import Cardinality, RelationContract
from contracts.resolutions import KeyResolution, Resolved
from contracts.views import View, ViewRequest
from ledger._answers import newest
from ledger._cells import cell_of
from ledger._claims import UNSTATED, claim_of, micros
from ledger._database import Database
from ledger._decide import State
from ledger._glance import Row, glance, glance_at, seen
from ledger._ground import contracts_kept
from ledger._intervals import lower
from ledger._keys import TenantKeys
from ledger._relations import Contracts
from ledger._values import normal_form, takes
from ledger._world import Key

PLAIN_CLAIMS_MAX: Final = 8
"""Claims that are read of a plain key, beside what its cell names: the newest."""

assert PLAIN_CLAIMS_MAX <= LISTED_CLAIMS_MAX


async def read_plain(
    db: Database, keys: TenantKeys, request: ViewRequest, key: Key
) -> KeyResolution | View | NotYet:
    """
    Pin a view and answer a key at it, in one round trip; the view alone where the key is not plain.

    Raises:
        NotFound: No such tenant.
        EpochDropped: The epoch asked for is there no more.
        IntegrityFault: A claim or cell that was read is not what was written.
        Unavailable: The database is down or busy.
    """
    rows = await glance(db, keys.tenant, request, key, claims_max=PLAIN_CLAIMS_MAX)
    view = seen(rows, request)
    if isinstance(view, NotYet):
        return view
    return _answers(rows, keys, view, [key], PLAIN_CLAIMS_MAX).get(key, view)


async def plain_at(
    conn: AsyncConnection, keys: TenantKeys, view: View, wanted: Sequence[Key], *, lists: bool
) -> dict[Key, KeyResolution]:
    """
    Answer those of the keys that are plain, at a view, in the caller's snapshot.

    Without `lists`, what stands comes with the claim that it first was said by, and no other is read.

    Raises:
        IntegrityFault: A claim or cell that was read is not what was written.
    """
    claims_max = PLAIN_CLAIMS_MAX if lists else 0
    rows = await glance_at(conn, keys.tenant, view, wanted, claims_max=claims_max)
    return _answers(rows, keys, view, wanted, claims_max)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """What was read of some keys at a view, with at most `claims_max` claims beside the first of each."""

    keys: TenantKeys
    view: View
    contracts: Contracts
    claims_max: int

    def answer(self, key: Key, row: Row, own: Iterable[Row]) -> KeyResolution | None:
        """Return a key's answer; None where it is not plain after all, or has no value."""
        contract = self.contracts.of(key[1])
        cell = cell_of(row, None, key, self.keys, self.view.epoch)
        if contract.cardinality != Cardinality.ONE or cell.segment.state != State.VALUE:
            return None
        first = self._claim(row)
        read = [first, *(self._claim(one) for one in own if one.claim_id != row.claim_id)]
        if first.stance != Stance.ASSERT or not all(_is_state(one, key, contract) for one in read):
            return None
        at = micros(self.view.valid_at)
        # By what the later of two states is told by.
        standing = [
            ((start, one.position), one) for one in read if (start := lower(one.validity.start)) <= at
        ]
        first_order = standing[0][0]
        superseded = [one for order, one in standing if order < first_order]
        carrying = [one for order, one in sorted(standing, key=itemgetter(0)) if order >= first_order]
        if any(one.stance == Stance.END or not _are_one(one, first, contract) for one in carrying):
            raise IntegrityFault(what="the cells of a key do not follow from its claims")
        return KeyResolution(
            entity=key[0],
            relation=key[1],
            view=self.view,
            contract=contract,
            resolution=Resolved(
                value=carrying[-1].value,
                form=normal_form(carrying[-1].value, contract),
                claims=newest(carrying),
                superseded=newest(superseded),
                count_identity=None,
            ),
            disputes=(),
            unplaced=(),
            truncated=len(read) > self.claims_max or not self.claims_max,
        )

    def _claim(self, row: Row) -> Claim:
        columns = {
            "tenant": self.keys.tenant, "epoch": self.view.epoch, "claim_id": row.claim_id,
            "position": row.position, "ordinal": row.ordinal, "commit": row.commit, "event_id": row.event_id,
            "entity": row.entity, "relation": row.relation, "stance": row.stance, "body": row.body,
            "seal": row.claim_seal,
        }  # fmt: skip
        return claim_of(columns, keys=self.keys)


def _answers(
    rows: Sequence[Row], keys: TenantKeys, view: View, wanted: Sequence[Key], claims_max: int
) -> dict[Key, KeyResolution]:
    contracts = contracts_kept(keys, rows[0].claim_id)
    if contracts is None:
        return {}
    reading = _Reading(keys=keys, view=view, contracts=contracts, claims_max=claims_max)
    own: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        if row.kind == "own":
            own[row.key].append(row)
    found: dict[Key, KeyResolution] = {}
    for row in rows:
        if row.kind == "plain":
            key = wanted[row.key - 1]
            if (answer := reading.answer(key, row, own[row.key])) is not None:
                found[key] = answer
    return found


def _is_state(claim: Claim, key: Key, contract: RelationContract) -> bool:
    """Return whether a claim on the key is a state of it, or ends whatever it is in."""
    return (
        (claim.entity, claim.relation) == key
        and claim.validity.kind == ValidityKind.SINCE
        and claim.validity != UNSTATED
        and not claim.inputs
        and claim.source.actor_class != DERIVED
        and (claim.stance == Stance.ASSERT or (claim.stance == Stance.END and claim.value is None))
        and takes(claim.value, contract)
    )


def _are_one(one: Claim, other: Claim, contract: RelationContract) -> bool:
    if one.value == other.value:
        return True
    return normal_form(one.value, contract) == normal_form(other.value, contract)
