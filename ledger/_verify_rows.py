"""Verification of what stands beside the chain: streams, claims, cursors, recalls."""

from __future__ import annotations

import hmac
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import IntegrityFault
from contracts.limits import PAGE_EVENTS_MAX
from ledger import _tables
from ledger._claims import claim_of
from ledger._keys import TenantKeys
from ledger._problems import Problems
from ledger._read import Head
from ledger._trails import entity_digest, names_in, open_context, open_trail, trail_seal


async def check_streams(conn: AsyncConnection, keys: TenantKeys, problems: Problems) -> None:
    """Check that each stream's versions count its events from 1, in the order of the log."""
    table = _tables.event
    counted = (
        sa.select(
            table.c.event_id,
            table.c.position,
            table.c.stream_version,
            sa.func.row_number()
            .over(partition_by=table.c.stream_digest, order_by=table.c.position)
            .label("expected"),
        )
        .where(table.c.tenant == keys.tenant)
        .subquery()
    )
    wrong = sa.select(counted.c.event_id).where(counted.c.stream_version != counted.c.expected)
    for row in await conn.execute(wrong.order_by(counted.c.position)):
        problems.add("event.stream_version", f"event {row.event_id}")


async def check_claims(conn: AsyncConnection, keys: TenantKeys, problems: Problems) -> int:
    """Check every claim's seal, and that it names the event at its position; return their number."""
    claim, event = _tables.claim, _tables.event
    count = 0
    after: tuple[int, int, int] = (-1, -1, -1)
    while True:
        query = (
            sa.select(claim, event.c.event_id.label("at_position"), event.c.commit.label("at_commit"))
            .outerjoin(event, sa.and_(event.c.tenant == claim.c.tenant, event.c.position == claim.c.position))
            .where(claim.c.tenant == keys.tenant)
            .where(sa.tuple_(claim.c.epoch, claim.c.position, claim.c.ordinal) > sa.tuple_(*after))
            .order_by(claim.c.epoch, claim.c.position, claim.c.ordinal)
            .limit(PAGE_EVENTS_MAX)
        )
        page = (await conn.execute(query)).mappings().all()
        if not page:
            return count
        for row in page:
            count += 1
            place = f"claim {row['position']}#{row['ordinal']} of epoch {row['epoch']}"
            try:
                claim_of(dict(row), keys=keys)
            except IntegrityFault:
                problems.add("claim.seal", place)
            if (row["event_id"], row["commit"]) != (row["at_position"], row["at_commit"]):
                problems.add("claim.event", place)
        last = page[-1]
        after = (last["epoch"], last["position"], last["ordinal"])


async def check_relations(conn: AsyncConnection, keys: TenantKeys, problems: Problems) -> None:
    """Check the seal of every relation contract."""
    table = _tables.relation
    query = sa.select(table).where(table.c.tenant == keys.tenant)
    for row in await conn.execute(query.order_by(table.c.epoch, table.c.relation)):
        columns = (str(row.epoch), row.relation, str(row.commit))
        seal = keys.seal("relation", *(column.encode() for column in columns), bytes(row.contract))
        if not hmac.compare_digest(seal, bytes(row.seal)):
            problems.add("relation.seal", f"contract of commit {row.commit} in epoch {row.epoch}")


async def check_epochs(conn: AsyncConnection, keys: TenantKeys, stored: Head, problems: Problems) -> None:
    """Check that every epoch's cursor stands at the end of a commit of the log."""
    epoch, commit = _tables.epoch, _tables.commit
    query = (
        sa.select(
            epoch.c.epoch,
            epoch.c.commit,
            epoch.c.position,
            (commit.c.first_position + commit.c.event_count - 1).label("last"),
        )
        .outerjoin(commit, sa.and_(commit.c.tenant == epoch.c.tenant, commit.c.commit == epoch.c.commit))
        .where(epoch.c.tenant == keys.tenant)
        .order_by(epoch.c.epoch)
    )
    for row in await conn.execute(query):
        last = 0 if row.commit == 0 else row.last
        if row.commit > stored.commit or row.position != last:
            problems.add("epoch.cursor", f"epoch {row.epoch}")


async def check_recalls(conn: AsyncConnection, keys: TenantKeys, problems: Problems) -> int:
    """Check that trails are gapless and sealed, and contexts match their hashes; return the trails."""
    count = await _check_trails(conn, keys, problems)
    number = await conn.scalar(
        sa.select(_tables.trail_head.c.number).where(_tables.trail_head.c.tenant == keys.tenant)
    )
    if number != count:
        problems.add("trail.head", "trails")
    await _check_contexts(conn, keys, problems)
    return count


async def _check_trails(conn: AsyncConnection, keys: TenantKeys, problems: Problems) -> int:
    table, key = _tables.trail, _tables.trail_key
    count = after = 0
    while True:
        query: sa.Select[Any] = (
            sa.select(table, key.c.wrapped_key, key.c.entities)
            .outerjoin(key, sa.and_(key.c.tenant == table.c.tenant, key.c.trail_id == table.c.trail_id))
            .where(table.c.tenant == keys.tenant, table.c.number > after)
        )
        page = (await conn.execute(query.order_by(table.c.number).limit(PAGE_EVENTS_MAX))).mappings().all()
        if not page:
            return count
        for row in page:
            count += 1
            if row["number"] != after + 1:
                problems.add("trail.gap", f"trail {row['trail_id']}")
            if not hmac.compare_digest(trail_seal(keys, row), bytes(row["seal"])):
                problems.add("trail.seal", f"trail {row['trail_id']}")
            elif row["entities"] is not None and not _has_its_names(keys, row):
                problems.add("trail.entities", f"trail {row['trail_id']}")
            after = row["number"]


def _has_its_names(keys: TenantKeys, row: Any) -> bool:  # noqa: ANN401 — a row joined with its key
    """Say whether the digests beside a trail's key are those of the names that it is about."""
    try:
        names = names_in(open_trail(keys, row))
    except IntegrityFault:
        return False
    return sorted(map(bytes, row["entities"])) == sorted(entity_digest(keys, name) for name in names)


async def _check_contexts(conn: AsyncConnection, keys: TenantKeys, problems: Problems) -> None:
    table, key = _tables.context, _tables.context_key
    after = ""
    while True:
        query: sa.Select[Any] = (
            sa.select(table, key.c.wrapped_key)
            .outerjoin(
                key, sa.and_(key.c.tenant == table.c.tenant, key.c.context_hash == table.c.context_hash)
            )
            .where(table.c.tenant == keys.tenant, table.c.context_hash > after)
            .order_by(table.c.context_hash)
            .limit(PAGE_EVENTS_MAX)
        )
        page = (await conn.execute(query)).mappings().all()
        if not page:
            return
        for row in page:
            try:
                open_context(keys, row)
            except IntegrityFault:
                problems.add("context", f"context {row['context_hash']}")
        after = page[-1]["context_hash"]
