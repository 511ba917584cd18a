"""
Values at the border: each is of its relation's type before it is appended, or nothing is.

An append names the contracts that its values were held against. If others are in force by the time it
has the lock of the log's head, it writes nothing and is held against those. So no registration, however
close, lets a wrong value in, and a tenant that has registered nothing pays for nothing.

In force are the contracts of the epoch that serves: those it has folded, and those that stand in the
log behind it. A claim that is wrong in another epoch, or was read out of a text, is the fold's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import IntegrityFault, LimitExceeded, NotFound, WrongValue
from contracts.events import COMMAND_KINDS, Event, EventDraft, Stance, TargetDraft
from contracts.limits import APPEND_CHECKS_MAX
from contracts.relations import RelationContract
from contracts.values import NotOfType, expected
from ledger._database import TENANTS_CACHED_MAX, Database
from ledger._drafts import targets_of
from ledger._keys import TenantKeys
from ledger._named import Named
from ledger._read import read_events_by_id
from ledger._registrations import registration_in
from ledger._relations import Contracts, contract_of, relation_seal
from ledger._schemas import checks_of
from ledger._tenants import tenant_keys
from ledger._values import normal_form, takes

_SERVING: Final = sa.text(
    "SELECT e.epoch, e.commit, e.position, (SELECT coalesce(max(r.position), 0) FROM event r "
    "WHERE r.tenant = e.tenant AND r.kind = 'relation') AS last "
    "FROM epoch e WHERE e.tenant = :tenant AND e.state = 'serving'"
)
_FOLDED: Final = sa.text(
    "SELECT relation, commit, contract, seal FROM relation "
    "WHERE tenant = :tenant AND epoch = :epoch AND commit <= :commit"
)
_WAITING: Final = sa.text(
    "SELECT event_id FROM event WHERE tenant = :tenant AND kind = 'relation' AND position > :position "
    "ORDER BY position"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """
    The contracts that values are held against.

    `position` is that of the newest `relation` event, `epoch` the one that serves. Until `settled`
    some wait to be folded, and the fold may yet pass them over.
    """

    position: int
    epoch: int
    contracts: Contracts
    settled: bool


NONE_REGISTERED: Final = InForce(position=0, epoch=0, contracts=Contracts(registered={}), settled=True)
"""What is in force until somebody registers something."""


async def in_force(conn: AsyncConnection, keys: TenantKeys) -> InForce:
    """
    Return the contracts that are in force now.

    Args:
        conn: A snapshot of the tenant.
        keys: The tenant's.

    Raises:
        IntegrityFault: A row or an event is not what was written.
        NotFound: No such tenant.
    """
    serving = (await conn.execute(_SERVING, {"tenant": keys.tenant})).one_or_none()
    if serving is None:
        raise NotFound(what="tenant")
    registered: dict[str, RelationContract] = {}
    folded = {"tenant": keys.tenant, "epoch": serving.epoch, "commit": serving.commit}
    for row in await conn.execute(_FOLDED, folded):
        form = bytes(row.contract)
        if relation_seal(keys, serving.epoch, row.relation, row.commit, form) != bytes(row.seal):
            raise IntegrityFault(what=f"the seal of a contract, commit {row.commit}")
        registered[row.relation] = contract_of(form)
    waiting = list(await conn.scalars(_WAITING, {"tenant": keys.tenant, "position": serving.position}))
    events = await read_events_by_id(conn, keys, waiting)
    for event in sorted(events.values(), key=lambda event: event.position):
        said = registration_in(event) if isinstance(event, Event) else None
        # One that begins an epoch holds there and not here.
        if said is not None and said.contract is not None and said.epoch is None:
            registered[said.contract.relation] = said.contract
    return InForce(
        position=serving.last,
        epoch=serving.epoch,
        contracts=Contracts(registered=registered),
        settled=not waiting,
    )


async def hold_newest(
    db: Database, keys: TenantKeys, events: Sequence[EventDraft], under: InForce, named: Named
) -> InForce:
    """
    Hold the values of an append against contracts, and return which they were: the newest, if some refuse.

    Raises:
        WrongValue: A value is not of its relation's type.
    """
    try:
        await hold(events, under.contracts, named)
    except WrongValue:
        newest = await newest_contracts(db, keys)
        if newest == under:
            raise
        await hold(events, newest.contracts, named)
        return newest
    return under


async def newest_contracts(db: Database, keys: TenantKeys) -> InForce:
    async with db.snapshot(keys.tenant) as conn:
        found = await in_force(conn, keys)
    while len(db.contracts) >= TENANTS_CACHED_MAX:
        del db.contracts[next(iter(db.contracts))]
    if found.settled:
        db.contracts[keys.tenant] = found
    return found


async def keeps_order(db: Database, tenant: str) -> bool:
    """
    Return whether appends that hold values and are called at once reach the log in the order of the calls.

    They do where each is held against the same contracts, known to this process, in one step. Otherwise one
    that has to read them, or to check a document against a schema, comes after those that need not.

    Raises:
        NotFound: No such tenant.
        IntegrityFault: A contract is not what was written.
        Unavailable: The database is down or busy.
    """
    known: InForce = db.contracts.get(tenant) or await newest_contracts(db, await tenant_keys(db, tenant))
    return known.settled and all(one.schema is None for one in known.contracts.registered.values())


def holds_values(draft: EventDraft) -> bool:
    """Return whether an event says or names any value, or moves one to another relation."""
    return draft.kind not in COMMAND_KINDS and bool(draft.claims or draft.targets)


async def hold(drafts: Sequence[EventDraft], contracts: Contracts, named: Named) -> None:
    """
    Refuse values that are not of their relation's type.

    Args:
        drafts: The events of an append, in order.
        contracts: Those in force.
        named: Finds what targets name; asked only where a value stands without a relation.

    Raises:
        WrongValue: The first one, with its place and the type that is expected there.
    """
    if not contracts.registered:
        return
    checks = _Checks()
    for index, draft in enumerate(drafts):
        if not holds_values(draft):
            continue
        for ordinal, claim in enumerate(draft.claims):
            place = f"events[{index}].claims[{ordinal}].value"
            if claim.value is not None and claim.relation is not None:
                await checks.hold(claim.value, [contracts.of(claim.relation)], place)
            elif claim.value is not None:
                # A correction, retraction or dispute of what its targets are on.
                found = await named.by(claim.targets or draft.targets, index)
                await checks.hold(
                    claim.value, [contracts.of(relation) for relation in found.relations], place
                )
            elif claim.relation is not None and draft.stance_of(claim) == Stance.CORRECT:
                # A correction of the key alone takes the target's value with it: the relation must take it.
                only = (await named.by(claim.targets or draft.targets, index)).only
                if only is not None and only.relation != claim.relation and only.value is not None:
                    await checks.hold(only.value, [contracts.of(claim.relation)], place)
        for path, target in targets_of(draft):
            if target.value is not None:
                relations = await _relations_of(target, named, index)
                held = [contracts.of(relation) for relation in relations]
                await checks.hold(target.value, held, f"events[{index}].{path}.value")


async def _relations_of(target: TargetDraft, named: Named, index: int) -> Sequence[str]:
    if target.relation is not None:
        return [target.relation]
    return (await named.by([target], index)).relations


class _Checks:
    """Holds the values of one append against contracts, as often as `APPEND_CHECKS_MAX` allows."""

    def __init__(self) -> None:
        self._count = 0

    async def hold(self, value: object, held: Sequence[RelationContract], place: str) -> None:
        """
        Refuse a value that none of the relations takes which it may be meant for; if there is any.

        Raises:
            WrongValue: None of them takes it.
            LimitExceeded: The append holds too much that takes long to check.
        """
        schemas = [contract.schema for contract in held if contract.schema is not None]
        if schemas:
            self._count += sum(checks_of(value, schema) for schema in schemas)
            if self._count > APPEND_CHECKS_MAX:
                raise LimitExceeded(limit="APPEND_CHECKS_MAX", allowed=APPEND_CHECKS_MAX, given=self._count)
            # Each may take a while: others have a turn between.
            await asyncio.sleep(0)
        _check(value, held, place)


def _check(value: object, held: Sequence[RelationContract], place: str) -> None:
    if not held or any(takes(value, contract) for contract in held):
        return
    wanted = " or ".join(dict.fromkeys(expected(contract) for contract in held))
    try:
        normal_form(value, held[0])
    except NotOfType as error:
        raise WrongValue(field=place, expected=wanted, reason=str(error)) from error
