"""Targets: each names an event that stands earlier in the log, or in the same append."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from contracts.errors import BadRequest
from ledger import _tables
from ledger._arrays import binaries
from ledger._database import Database
from ledger._keys import TenantKeys
from ledger._prepare import PreparedEvent, source_digest


async def find_references(
    db: Database, keys: TenantKeys, events: Sequence[PreparedEvent], event_ids: Sequence[str]
) -> list[dict[str, str]]:
    """
    Return, for each event, the event id of every `source_event_id` that its targets name.

    A source that used one id twice in a stream means the latest before: in the same append first,
    then in the log. Events are never removed, so what is found before the append still stands in it.

    Args:
        db: The database; asked only if there is a target that the append itself does not hold.
        keys: The tenant's.
        events: Of one append, in order.
        event_ids: The ids that they are about to get.

    Raises:
        BadRequest: A target names no earlier event of this tenant's log; says which.
    """
    wanted_ids, wanted_sources = _wanted(keys, events)
    if not wanted_ids and not wanted_sources:
        return [{} for _ in events]
    known_ids, known_sources = await _look_up(db, keys, wanted_ids, wanted_sources)
    references: list[dict[str, str]] = []
    for index, (event, event_id) in enumerate(zip(events, event_ids, strict=True)):
        own: dict[str, str] = {}
        for path, target in event.targets:
            if target.event is not None and target.event not in known_ids:
                raise _no_such_event(index, path, "event")
            if target.source_event_id is not None:
                found = known_sources.get(source_digest(keys, event.draft.stream, target.source_event_id))
                if found is None:
                    raise _no_such_event(index, path, "source_event_id")
                own[target.source_event_id] = found
        references.append(own)
        if event.source is not None:
            # Only now: an event must not target itself.
            known_sources[event.source] = event_id
    return references


def _wanted(keys: TenantKeys, events: Sequence[PreparedEvent]) -> tuple[list[str], list[bytes]]:
    ids: dict[str, None] = {}
    sources: dict[bytes, None] = {}
    for event in events:
        for _, target in event.targets:
            if target.event is not None:
                ids[target.event] = None
            if target.source_event_id is not None:
                sources[source_digest(keys, event.draft.stream, target.source_event_id)] = None
    return list(ids), list(sources)


async def _look_up(
    db: Database, keys: TenantKeys, ids: Sequence[str], sources: Sequence[bytes]
) -> tuple[set[str], dict[bytes, str]]:
    event = _tables.event
    known_ids: set[str] = set()
    known_sources: dict[bytes, str] = {}
    async with db.tenant(keys.tenant) as conn:
        if ids:
            of_ids = sa.select(event.c.event_id).where(
                event.c.tenant == keys.tenant, event.c.event_id == sa.any_(sa.literal(ids, _TEXTS))
            )
            known_ids = set(await conn.scalars(of_ids))
        if sources:
            # In order of the log: the latest of one source id is the one that stays.
            given = {"tenant": keys.tenant, "sources": binaries(sources)}
            known_sources = {bytes(row[0]): row[1] for row in await conn.execute(_OF_SOURCES, given)}
    return known_ids, known_sources


_TEXTS: Final = sa.ARRAY(sa.Text)
# An event without a key of its own is known by its source's id: the two digests are one, under one index.
_OF_SOURCES: Final = sa.text(
    "SELECT e.idempotency_digest, e.event_id, e.position FROM event AS e "
    "WHERE e.tenant = :tenant AND e.idempotency_digest = ANY (CAST(:sources AS bytea[])) "
    "UNION ALL SELECT e.source_digest, e.event_id, e.position FROM event AS e "
    "WHERE e.tenant = :tenant AND e.source_digest = ANY (CAST(:sources AS bytea[])) "
    "AND e.source_digest IS DISTINCT FROM e.idempotency_digest ORDER BY position"
)


def _no_such_event(index: int, path: str, field: str) -> BadRequest:
    return BadRequest(field=f"events[{index}].{path}.{field}", reason="names no earlier event of this log")
