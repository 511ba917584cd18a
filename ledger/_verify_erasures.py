"""Verification of erasures: each key that is gone, each row that says so, against the erasures in the log."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import IntegrityFault
from ledger import _tables
from ledger._claims import canonical
from ledger._erasures import erasures_of
from ledger._keys import TenantKeys
from ledger._problems import Problems
from ledger._tombstone_rows import form_in


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What the log's erasures say, by what they say it of."""

    events: dict[str, tuple[str, int, str]]
    stones: dict[tuple[int, int], bytes]
    contexts: set[str]
    trails: set[str]


async def check_erasures(conn: AsyncConnection, keys: TenantKeys, problems: Problems) -> None:
    """
    Check that keys are gone by erasures of the log alone, and that every erasure was carried out.

    Of an erasure that cannot be read nothing follows: what it took counts as lost.
    """
    try:
        said = await _said(conn, keys)
    except IntegrityFault as fault:
        problems.add("erasure.record", fault.what)
        return
    await _check_events(conn, keys, said, problems)
    await _check_stones(conn, keys, said, problems)
    await _check_recalls(conn, keys, said, problems)


async def _said(conn: AsyncConnection, keys: TenantKeys) -> _Said:
    said = _Said(events={}, stones={}, contexts=set(), trails=set())
    for event, erasure in await erasures_of(conn, keys):
        for event_id, digest in erasure.events:
            said.events.setdefault(event_id, (event.event_id, event.commit, digest))
        for place in erasure.taken:
            said.stones.pop(place, None)
        said.stones.update(((form[0], form[1]), canonical(form)) for form in erasure.stones)
        said.contexts.update(one.recall for one in erasure.contexts)
        said.trails.update(one.recall for one in erasure.trails)
    return said


async def _check_events(conn: AsyncConnection, keys: TenantKeys, said: _Said, problems: Problems) -> None:
    event, key, erased = _tables.event, _tables.event_key, _tables.erased
    query = (
        sa.select(
            event.c.event_id,
            event.c.hash,
            key.c.event_id.label("kept"),
            erased.c.erasure_id,
            erased.c.commit,
        )
        .outerjoin(key, sa.and_(key.c.tenant == event.c.tenant, key.c.event_id == event.c.event_id))
        .outerjoin(erased, sa.and_(erased.c.tenant == event.c.tenant, erased.c.event_id == event.c.event_id))
        .where(event.c.tenant == keys.tenant)
        .where(
            sa.or_(
                key.c.event_id.is_(None),
                erased.c.event_id.is_not(None),
                event.c.event_id == sa.any_(sa.literal(sorted(said.events), sa.ARRAY(sa.Text))),
            )
        )
        .order_by(event.c.position)
    )
    for row in await conn.execute(query):
        for word in _event_problems(row, said.events.get(row.event_id)):
            problems.add(word, f"event {row.event_id}")


def _event_problems(row: Any, by: tuple[str, int, str] | None) -> list[str]:  # noqa: ANN401 — a row
    found = []
    if row.kept is None and by is None:
        found.append("event.key")
    if row.kept is not None and by is not None:
        found.append("erased.key")
    if by is not None and by[2] != bytes(row.hash).hex():
        found.append("erased.hash")
    stored = None if row.erasure_id is None else (row.erasure_id, row.commit)
    if stored != (None if by is None else by[:2]):
        found.append("erased.row")
    return found


async def _check_stones(conn: AsyncConnection, keys: TenantKeys, said: _Said, problems: Problems) -> None:
    table = _tables.tombstone
    missing = dict(said.stones)
    rows = (await conn.execute(sa.select(table).where(table.c.tenant == keys.tenant))).mappings()
    for row in rows:
        place = (row["position"], row["ordinal"])
        name = f"tombstone {place[0]}#{place[1]}"
        expected = missing.pop(place, None)
        try:
            form = form_in(dict(row), keys=keys)
        except (IntegrityFault, json.JSONDecodeError):
            problems.add("tombstone.seal", name)
            continue
        if expected is None:
            problems.add("tombstone.unfounded", name)
        elif canonical(form) != expected:
            problems.add("tombstone.content", name)
    for place in sorted(missing):
        problems.add("tombstone.missing", f"tombstone {place[0]}#{place[1]}")


async def _check_recalls(conn: AsyncConnection, keys: TenantKeys, said: _Said, problems: Problems) -> None:
    context, context_key = _tables.context, _tables.context_key
    trail, trail_key = _tables.trail, _tables.trail_key
    contexts = (
        sa.select(context.c.context_hash.label("name"), context_key.c.context_hash.label("kept"))
        .outerjoin(
            context_key,
            sa.and_(
                context_key.c.tenant == context.c.tenant,
                context_key.c.context_hash == context.c.context_hash,
            ),
        )
        .where(context.c.tenant == keys.tenant)
    )
    trails = (
        sa.select(trail.c.trail_id.label("name"), trail_key.c.trail_id.label("kept"))
        .outerjoin(
            trail_key, sa.and_(trail_key.c.tenant == trail.c.tenant, trail_key.c.trail_id == trail.c.trail_id)
        )
        .where(trail.c.tenant == keys.tenant)
    )
    for word, query, erased in (("context", contexts, said.contexts), ("trail", trails, said.trails)):
        for row in await conn.execute(query):
            if (row.kept is None) != (row.name in erased):
                problems.add(f"{word}.key", f"{word} {row.name}")
