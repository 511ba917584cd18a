"""
What must be true of a log and a ledger after anything: said of a database, by nothing that wrote it.

Everything acknowledged is in the log once, where and as the receipt said; positions and commits have no gap;
hashes, seals and chain hold; claims and cells are what a quiet fold of the same log makes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import sqlalchemy as sa

from contracts.limits import FOLD_EVENTS_MAX, PAGE_EVENTS_MAX
from ledger import log
from ledger.log import Database
from ledger.write import fold, ledger_digest, verify_claims
from projection import RuleProjector
from tests.torture.listers import STREAMS
from tests.torture.lists import Operation, anomalies
from tests.torture.writers import Acknowledged

PROBLEMS_MAX = 20


async def log_problems(db: Database, tenant: str, acknowledged: Sequence[Acknowledged]) -> list[str]:
    """Return what is wrong with a tenant's log, given what its writers were told; the first ones."""
    report = await log.verify(db, tenant)
    problems = [f"verify: {problem}" for problem in report.problems]
    events = await _events(db, tenant)
    problems += _gaps("position", [event.position for event in events])
    problems += _gaps("commit", sorted({event.commit for event in events}))
    keys = Counter(event.draft.idempotency_key for event in events)
    problems += [f"key {key} stands in the log {count} times" for key, count in keys.items() if count > 1]
    by_key = {event.draft.idempotency_key: event for event in events}
    hashes = await _hashes(db, tenant)
    for one in acknowledged:
        found = by_key.get(one.key)
        if found is None:
            problems.append(f"acknowledged and lost: {one.key} at position {one.position}")
        elif (found.event_id, found.position, found.commit) != (one.event_id, one.position, one.commit):
            problems.append(f"not where it was acknowledged: {one.key}")
        elif hashes[one.position] != one.event_hash:
            problems.append(f"not what was acknowledged: {one.key}")
    told = Counter(one.key for one in acknowledged)
    problems += [f"key {key} was acknowledged {count} times" for key, count in told.items() if count > 1]
    return problems[:PROBLEMS_MAX]


async def list_problems(db: Database, tenant: str, history: Sequence[Operation]) -> list[str]:
    """Return what is wrong with what clients appended to common streams and read of them."""
    streams: dict[str, list[str]] = {stream: [] for stream in STREAMS}
    for event in await _events(db, tenant):
        if event.draft is not None and event.draft.stream in streams:
            streams[event.draft.stream].append(event.draft.text or "")
    return [f"lists: {one}" for one in anomalies(history, streams)]


async def ledger_problems(db: Database, tenant: str) -> list[str]:
    """Return what is wrong with a tenant's claims, held against its log."""
    report = await verify_claims(db, tenant, RuleProjector())
    return [f"claims: {problem}" for problem in report.problems][:PROBLEMS_MAX]


async def digest_of(db: Database, tenant: str) -> str:
    """Return the digest of everything that was folded."""
    async with db.snapshot(tenant) as conn:
        return await ledger_digest(conn, 1)


async def quiet_digest(db: Database, tenant: str) -> str:
    """Fold a log from where its cursor stands to its head, alone and undisturbed, and return the digest."""
    while not (await fold(db, tenant, RuleProjector(), events_max=FOLD_EVENTS_MAX)).is_at_head:
        pass
    return await digest_of(db, tenant)


async def events_count(db: Database, tenant: str) -> int:
    """Return how many events a log has."""
    async with db.snapshot(tenant) as conn:
        return (await log.head(conn)).position


async def _events(db: Database, tenant: str) -> list[log.LoggedEvent]:
    found: list[log.LoggedEvent] = []
    async with db.snapshot(tenant) as conn:
        keys = await log.tenant_keys(db, tenant, conn)
        while page := await log.read_events(
            conn, keys, after_position=found[-1].position if found else 0, limit=PAGE_EVENTS_MAX
        ):
            found += page
    return found


async def _hashes(db: Database, tenant: str) -> dict[int, str]:
    async with db.snapshot(tenant) as conn:
        rows = await conn.execute(sa.text("SELECT position, encode(hash, 'hex') AS hash FROM event"))
        return {row.position: row.hash for row in rows}


def _gaps(what: str, numbers: Iterable[int]) -> list[str]:
    return [
        f"{what} {expected} is missing: {number} stands there"
        for expected, number in enumerate(numbers, start=1)
        if number != expected
    ][:1]
