"""A batch of the log for one fold: whole commits, read in order, and what a projector reads out of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.claims import Claim
from contracts.events import ErasedEvent, Kind
from contracts.limits import SCAN_BYTES_MAX
from contracts.ports import Projector
from contracts.relations import RelationContract
from ledger._events import StoredEvent
from ledger._keys import TenantKeys
from ledger._poison import error_name
from ledger._read import LoggedEvent, read_events, read_stored
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
    opened: Sequence[LoggedEvent],
) -> Batch:
    """Read whole commits after a cursor, at least one; of their events what is not `opened` already."""
    commit, last = await _whole_commits(conn, keys, cursor.commit, cursor.position, events_max=events_max)
    batch = Batch(
        epoch=cursor.epoch,
        commit=cursor.commit,
        position=cursor.position,
        last_commit=commit,
        last_position=last,
        skipped=skipped,
        events=[event for event in opened if event.position <= last],
    )
    position = batch.events[-1].position if batch.events else cursor.position
    while position < last:
        page = await read_events(conn, keys, after_position=position, limit=last - position)
        position = page[-1].position
        batch.events += page
    return batch


async def read_next(
    conn: AsyncConnection, keys: TenantKeys, batch: Batch, *, events_max: int
) -> list[StoredEvent]:
    """Read the events of the batch after one as they are stored, or as many of them as a page holds."""
    position = batch.last_position
    _, last = await _whole_commits(conn, keys, batch.last_commit, position, events_max=events_max)
    found: list[StoredEvent] = []
    size_bytes = 0
    while position < last and size_bytes < SCAN_BYTES_MAX:
        page = await read_stored(conn, keys, after_position=position, limit=last - position)
        position = page[-1].position
        size_bytes += sum(len(one.ciphertext) for one in page)
        found += page
    return found


async def _whole_commits(
    conn: AsyncConnection, keys: TenantKeys, commit: int, position: int, *, events_max: int
) -> tuple[int, int]:
    """Return the last commit, and its last position, of those after one that are folded together."""
    bound = {"tenant": keys.tenant, "after": commit, "limit": max(events_max, 1)}
    found = commit, position
    for row in await conn.execute(_COMMITS, bound):
        if found[0] > commit and row.last > position + events_max:
            break
        found = row.commit, row.last
    return found


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
