"""
Verification: everything that a tenant's log says of itself, computed again from its bytes.

It shares no code with the append function, which is SQL. A chain proves order to someone who holds
a later head; whoever keeps a `Head` elsewhere passes it as `anchor`, and then a log that was cut
short or written anew with all its hashes is found too.
"""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.limits import APPEND_EVENTS_MAX, PAGE_EVENTS_MAX
from ledger import _tables
from ledger._database import Database
from ledger._events import StoredEvent
from ledger._hashes import ZERO_HASH, commit_hash
from ledger._keys import TenantKeys
from ledger._notes import Checkpoint
from ledger._problems import Problem, Problems
from ledger._read import Head, head, read_stored
from ledger._tenants import tenant_keys
from ledger._tree import Frontier
from ledger._verify_erasures import check_erasures
from ledger._verify_events import EventChecks
from ledger._verify_rows import (
    check_claims,
    check_epochs,
    check_recalls,
    check_relations,
    check_streams,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """
    What a recomputation found. `head` is the log's end as stored; `erased` events have no payload.

    `problems` are the first `PROBLEMS_LISTED_MAX`, in the order of the log; `problems_count` is all.
    """

    tenant: str
    commits: int
    events: int
    erased: int
    claims: int
    trails: int
    head: Head
    problems: tuple[Problem, ...]
    problems_count: int

    @property
    def intact(self) -> bool:
        """Whether everything added up."""
        return self.problems_count == 0


_BEFORE_ALL: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True, kw_only=True)
class _Chain:
    """The end of the log as far as it was recomputed."""

    commit: int = 0
    position: int = 0
    recorded_at: datetime = _BEFORE_ALL
    hash: bytes = ZERO_HASH
    tree: Frontier = field(default_factory=Frontier)


async def verify(
    db: Database, tenant: str, *, anchor: Head | None = None, checkpoint: Checkpoint | None = None
) -> VerifyReport:
    """
    Recompute a tenant's whole log, in one snapshot.

    Checked are the chain and the tree from the first commit, gaplessness, clocks, each event's hash, header,
    payload and digests, that targets stand earlier, stream versions, the head, seals of claims and
    relation contracts, the projection's cursors, trails and contexts, and that what is erased is by
    an erasure of the log. See `docs/log.md` for the words.

    Args:
        db: The database.
        tenant: Whose log.
        anchor: A head of this log that was kept elsewhere; the log must still contain it.
        checkpoint: One of this log whose signature was checked; the log must still begin so.

    Raises:
        NotFound: No such tenant.
        IntegrityFault: The tenant's own keys were changed: then nothing can be checked.
    """
    problems, chain = Problems(), _Chain()
    async with db.snapshot(tenant) as conn:
        # Reads everything there is; each statement may take as long as that takes.
        await conn.execute(sa.text("SET LOCAL statement_timeout = 0"))
        keys = await tenant_keys(db, tenant, conn)
        stored_head = await head(conn)
        events = EventChecks(keys=keys, problems=problems)
        commits = await _check_chain(conn, chain=chain, events=events, anchor=anchor, checkpoint=checkpoint)
        await check_streams(conn, keys, problems)
        _check_head(chain, stored_head, anchor, problems)
        if checkpoint is not None and checkpoint.size > chain.tree.size:
            problems.add("checkpoint", f"commit {checkpoint.size}")
        claims = await check_claims(conn, keys, problems)
        await check_relations(conn, keys, problems)
        await check_epochs(conn, keys, stored_head, problems)
        trails = await check_recalls(conn, keys, problems)
        await check_erasures(conn, keys, problems)
    return VerifyReport(
        tenant=tenant,
        commits=commits,
        events=events.count,
        erased=events.erased,
        claims=claims,
        trails=trails,
        head=stored_head,
        problems=tuple(problems.listed),
        problems_count=problems.count,
    )


async def _check_chain(
    conn: AsyncConnection,
    *,
    chain: _Chain,
    events: EventChecks,
    anchor: Head | None,
    checkpoint: Checkpoint | None,
) -> int:
    problems = events.problems
    _check_root(chain.tree, checkpoint, problems)
    count = 0
    log = _Events(pages=_event_pages(conn, events))
    async for commit in _commits(conn, events.keys):
        count += 1
        place = f"commit {commit.commit}"
        # A count that was changed must not make us hold the whole log at once.
        own = await log.up_to(commit.first_position + min(commit.event_count, APPEND_EVENTS_MAX) - 1)
        for check in _commit_problems(commit, own, tenant=events.keys.tenant, chain=chain):
            problems.add(check, place)
        if anchor is not None and anchor.commit == commit.commit and anchor.hash != bytes(commit.hash):
            problems.add("anchor", place)
        chain.commit, chain.recorded_at, chain.hash = commit.commit, commit.recorded_at, bytes(commit.hash)
        chain.position = commit.first_position + commit.event_count - 1
        if chain.tree.add(chain.hash) != bytes(commit.tree):
            problems.add("commit.tree", place)
        _check_root(chain.tree, checkpoint, problems)
    for event in await log.rest():
        problems.add("event.without_commit", f"event {event.event_id}")
    return count


def _commit_problems(
    commit: Any,  # noqa: ANN401 - a row
    own: Sequence[StoredEvent],
    *,
    tenant: str,
    chain: _Chain,
) -> Iterator[str]:
    if commit.commit != chain.commit + 1:
        yield "commit.gap"
    if commit.first_position != chain.position + 1 or commit.event_count < 1:
        yield "commit.position"
    if commit.recorded_at <= chain.recorded_at:
        yield "commit.clock"
    if bytes(commit.previous_hash) != chain.hash:
        yield "commit.chain"
    if any(event.commit != commit.commit for event in own):
        yield "event.commit"
    # Not compared with a list of what was claimed: the claim may be any number.
    gaps = any(event.position != commit.first_position + index for index, event in enumerate(own))
    if gaps or len(own) != commit.event_count:
        yield "event.gap"
    computed = commit_hash(
        previous=bytes(commit.previous_hash),
        tenant=tenant,
        commit=commit.commit,
        recorded_at=commit.recorded_at.astimezone(UTC),
        first_position=commit.first_position,
        event_hashes=[event.hash for event in own],
    )
    if not hmac.compare_digest(computed, bytes(commit.hash)):
        yield "commit.hash"


def _check_root(tree: Frontier, checkpoint: Checkpoint | None, problems: Problems) -> None:
    if checkpoint is not None and checkpoint.size == tree.size and checkpoint.root != tree.root():
        problems.add("checkpoint", f"commit {checkpoint.size}")


def _check_head(chain: _Chain, stored: Head, anchor: Head | None, problems: Problems) -> None:
    if stored.commit != chain.commit:
        problems.add("head.commit", "head")
    if stored.position != chain.position:
        problems.add("head.position", "head")
    if stored.commit > 0 and stored.recorded_at != chain.recorded_at:
        problems.add("head.clock", "head")
    if stored.hash != chain.hash:
        problems.add("head.hash", "head")
    if anchor is not None and anchor.commit > chain.commit:
        problems.add("anchor", f"commit {anchor.commit}")


@dataclass(slots=True, kw_only=True)
class _Events:
    """The log's events in order, handed out by the commits that claim them."""

    pages: AsyncIterator[list[StoredEvent]]
    _waiting: list[StoredEvent] = field(default_factory=list)
    _ended: bool = False

    async def up_to(self, position: int) -> list[StoredEvent]:
        """Return those not handed out yet, up to a position."""
        while not self._ended and (not self._waiting or self._waiting[-1].position <= position):
            await self._fill()
        own = [event for event in self._waiting if event.position <= position]
        del self._waiting[: len(own)]
        return own

    async def rest(self) -> list[StoredEvent]:
        """Return the next page of events that no commit claimed."""
        if not self._waiting:
            await self._fill()
        return self._waiting

    async def _fill(self) -> None:
        page = await anext(self.pages, None)
        self._ended = page is None
        self._waiting.extend(page or ())


async def _event_pages(conn: AsyncConnection, events: EventChecks) -> AsyncIterator[list[StoredEvent]]:
    position = -1
    while page := await read_stored(conn, events.keys, after_position=position, limit=PAGE_EVENTS_MAX):
        await events.check(conn, page)
        yield page
        position = page[-1].position


async def _commits(conn: AsyncConnection, keys: TenantKeys) -> AsyncIterator[Any]:
    table = _tables.commit
    after = -1
    while True:
        query = sa.select(table).where(table.c.tenant == keys.tenant, table.c.commit > after)
        page = (await conn.execute(query.order_by(table.c.commit).limit(PAGE_EVENTS_MAX))).all()
        if not page:
            return
        for row in page:
            yield row
        after = page[-1].commit
