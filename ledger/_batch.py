"""A batch of the log for one fold: whole commits, read in order, and what a projector reads out of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.claims import Claim
from contracts.events import ErasedEvent, Kind
from contracts.ports import Projector
from contracts.relations import RelationContract
from ledger._keys import TenantKeys
from ledger._poison import error_name
from ledger._read import LoggedEvent, read_events
from ledger._reading import claims_in
from ledger._registry import contract_taken, is_in_use
from ledger._relations import Contracts
from ledger._rows import ClaimStream
from ledger._world import Reader

_COMMITS: Final = sa.text(
    "SELECT commit, first_position + event_count - 1 AS last FROM commit "
    "WHERE tenant = :tenant AND commit > :after ORDER BY commit LIMIT :limit"
)

SAYS_NO_CLAIM: Final = frozenset({Kind.ERASURE, Kind.DECISION})
"""Events whose effect is of another kind than a claim's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Poison:
    """An event that cannot be folded, and the kind of error."""

    position: int
    error: str


@dataclass(slots=True, kw_only=True)
class Batch:
    """
    Whole commits read from the log, and their claims; `poison` is the event it stops before.

    `skipped` are ids of events that are passed over by decision, `passed` how many of them were.
    """

    epoch: int
    commit: int
    position: int
    last_commit: int
    last_position: int
    skipped: Collection[str]
    events: list[LoggedEvent] = field(default_factory=list)
    passed: int = 0
    poison: Poison | None = None


@dataclass(slots=True, kw_only=True)
class Projected:
    """What the events of one commit hold: claims, and contracts that hold from this commit on."""

    position: int
    claims: list[Claim]
    contracts: list[RelationContract]


async def read_batch(
    conn: AsyncConnection,
    keys: TenantKeys,
    cursor: Any,  # noqa: ANN401 — a row
    *,
    events_max: int,
    skipped: Collection[str],
) -> Batch:
    """Read whole commits after a cursor, at least one."""
    rows = (
        await conn.execute(
            _COMMITS, {"tenant": keys.tenant, "after": cursor.commit, "limit": max(events_max, 1)}
        )
    ).all()
    batch = Batch(
        epoch=cursor.epoch,
        commit=cursor.commit,
        position=cursor.position,
        last_commit=cursor.commit,
        last_position=cursor.position,
        skipped=skipped,
    )
    for row in rows:
        if batch.last_commit > cursor.commit and row.last > cursor.position + events_max:
            break
        batch.last_commit, batch.last_position = row.commit, row.last
    position = cursor.position
    while position < batch.last_position:
        page = await read_events(conn, keys, after_position=position, limit=batch.last_position - position)
        position = page[-1].position
        batch.events += page
    return batch


async def project(
    reader: Reader, batch: Batch, projector: Projector, contracts: Contracts, stream: ClaimStream
) -> tuple[dict[int, Projected], int]:
    """
    Project commit by commit, as far as no event is poison; and count contracts that came too late.

    The claims of each whole commit go on to be written.

    A contract comes too late where claims on its relation were made before: every fold of this
    epoch passes it over.
    """
    by_commit: dict[int, list[LoggedEvent]] = defaultdict(list)
    for event in batch.events:
        by_commit[event.commit].append(event)
    projected: dict[int, Projected] = {}
    used: set[str] = set()
    late = 0
    for commit, events in sorted(by_commit.items()):
        found = Projected(position=events[-1].position, claims=[], contracts=[])
        for event in events:
            if isinstance(event, ErasedEvent) or event.draft.kind in SAYS_NO_CLAIM:
                continue
            if event.event_id in batch.skipped:
                batch.passed += 1
                continue
            try:
                if event.draft.kind == Kind.RELATION:
                    await stream.arrived()
                    contract = await contract_taken(reader, event)
                    if contract is None:
                        continue
                    if contract.relation in used or await is_in_use(
                        reader.conn, reader.keys, [reader.epoch], contract.relation, before=commit
                    ):
                        late += 1
                        continue
                    found.contracts.append(contract)
                    contracts = contracts.with_registered([contract])
                else:
                    found.claims += claims_in(
                        event, projector, keys=reader.keys, epoch=reader.epoch, contracts=contracts
                    )
            except DBAPIError:
                raise
            except Exception as error:  # noqa: BLE001 — whatever a projector does wrong stops the tenant here
                batch.poison = Poison(position=event.position, error=error_name(error))
                return projected, late
        used |= {claim.relation for claim in found.claims}
        projected[commit] = found
        await stream.take(found.claims)
    return projected, late
