"""
Verification of the claims: every event projected again, and held against the rows of its epoch.

The seals prove that a row is what was written; only this proves that no row is missing. Apart from
the log's own verification, because it needs the projector: `ledger.write` hands it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import sqlalchemy as sa

from contracts.errors import IntegrityFault
from contracts.events import COMMAND_KINDS, Event
from contracts.limits import PAGE_EVENTS_MAX
from contracts.ports import Projector
from ledger import _tables
from ledger._claims import row_of, state_start, unsure_between
from ledger._database import Database
from ledger._decisions import skipped_in
from ledger._keys import TenantKeys
from ledger._problems import Problem, Problems
from ledger._read import read_events
from ledger._reading import claims_in
from ledger._relations import Contracts
from ledger._tenants import tenant_keys
from ledger._world import Reader

_Place: TypeAlias = tuple[int, int]
_Row: TypeAlias = tuple[bytes, int | None, int | None, int | None]
_EPOCHS: Final = sa.text(
    "SELECT epoch, commit, position, projector_version FROM epoch WHERE tenant = :tenant "
    "AND state <> 'dropped' ORDER BY epoch"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimsReport:
    """
    What projecting the log again found.

    `unchecked_epochs` were made by another projector than the one given, which alone could say.
    """

    claims: int
    unchecked_epochs: tuple[int, ...]
    problems: tuple[Problem, ...]
    problems_count: int

    @property
    def intact(self) -> bool:
        """Whether the rows are the claims of the log, no more and no fewer."""
        return self.problems_count == 0


async def verify_claims(db: Database, tenant: str, projector: Projector) -> ClaimsReport:
    """
    Project every folded event of a tenant again, and compare with its claims.

    Problems: `claim.missing`, `claim.unfounded` (no event says it, or its event has lost its key),
    `claim.content` (the event says something else), `claim.unchecked` (events or contracts are not
    what was written, so nothing follows from them).

    Raises:
        NotFound: No such tenant.
        IntegrityFault: The tenant's own keys were changed: then nothing can be checked.
    """
    problems = Problems()
    count = 0
    unchecked: list[int] = []
    async with db.snapshot(tenant) as conn:
        keys = await tenant_keys(db, tenant, conn)
        for row in (await conn.execute(_EPOCHS, {"tenant": tenant})).all():
            if row.commit and row.projector_version != projector.version:
                unchecked.append(row.epoch)
                continue
            reader = Reader(conn=conn, keys=keys, epoch=row.epoch, cut=row.commit)
            try:
                count += await _check_epoch(reader, projector, problems, until=row.position)
            except IntegrityFault:
                # The log's own verification names it: from what was changed no claim follows.
                problems.add("claim.unchecked", f"epoch {row.epoch}")
    return ClaimsReport(
        claims=count,
        unchecked_epochs=tuple(unchecked),
        problems=tuple(problems.listed),
        problems_count=problems.count,
    )


async def _check_epoch(reader: Reader, projector: Projector, problems: Problems, *, until: int) -> int:
    contracts = await reader.contracts()
    skipped = await skipped_in(reader.conn, reader.keys, reader.epoch, after=0)
    position = count = 0
    while position < until:
        limit = min(PAGE_EVENTS_MAX, until - position)
        page = await read_events(reader.conn, reader.keys, after_position=position, limit=limit)
        if not page:
            # Events that the cursor has passed are gone: the log's own verification says so.
            break
        events = [event for event in page if isinstance(event, Event) and event.event_id not in skipped]
        expected = _expected(events, reader.keys, contracts, projector, epoch=reader.epoch)
        stored = await _stored(reader, after=position, until=page[-1].position)
        count += len(stored)
        _compare(expected, stored, problems, epoch=reader.epoch)
        position = page[-1].position
    return count


def _expected(
    events: Sequence[Event], keys: TenantKeys, contracts: Contracts, projector: Projector, *, epoch: int
) -> dict[_Place, _Row]:
    """Return of every claim that the events hold its seal and where it is looked for, by its place."""
    claims = [
        claim
        for event in events
        if event.draft.kind not in COMMAND_KINDS
        for claim in claims_in(event, projector, keys=keys, epoch=epoch, contracts=contracts)
    ]
    return {
        (claim.position.event, claim.position.ordinal): (
            row_of(claim, tenant=keys.tenant, keys=keys)["seal"],
            state_start(claim),
            *(unsure_between(claim) or (None, None)),
        )
        for claim in claims
    }


async def _stored(reader: Reader, *, after: int, until: int) -> dict[_Place, _Row]:
    claim = _tables.claim
    told_apart = (claim.c.starts, claim.c.unsure_from, claim.c.unsure_to)
    query = sa.select(claim.c.position, claim.c.ordinal, claim.c.seal, *told_apart).where(
        claim.c.tenant == reader.keys.tenant,
        claim.c.epoch == reader.epoch,
        claim.c.position > after,
        claim.c.position <= until,
    )
    rows = await reader.conn.execute(query)
    return {
        (row.position, row.ordinal): (bytes(row.seal), row.starts, row.unsure_from, row.unsure_to)
        for row in rows
    }


def _compare(
    expected: dict[_Place, _Row],
    stored: dict[_Place, _Row],
    problems: Problems,
    *,
    epoch: int,
) -> None:
    for place in sorted(expected.keys() | stored.keys()):
        name = f"claim {place[0]}#{place[1]} of epoch {epoch}"
        if place not in stored:
            problems.add("claim.missing", name)
        elif place not in expected:
            problems.add("claim.unfounded", name)
        elif expected[place] != stored[place]:
            problems.add("claim.content", name)
