"""Backfill: a past that was recorded elsewhere, with its record times as known times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from contracts.errors import AlreadyKnown, BadRequest
from contracts.events import EventDraft, Receipt
from contracts.grants import Grant, Right
from contracts.times import KnownAt
from ledger._append import append
from ledger._database import Database
from ledger._grants import check_right
from ledger._prepare import prepare
from ledger._read import head
from ledger._receipts import known_receipt
from ledger._tenants import tenant_keys


async def backfill(
    db: Database, tenant: str, drafts: Sequence[EventDraft], *, at: KnownAt, grant: Grant
) -> Receipt:
    """
    Append all events as one commit that was known at a stated time, or none.

    Only for a tenant whose every commit so far was backfilled; the first that is not closes it for
    ever. Each event says, under its hash, that its time was stated. Repeating is as with `append`.

    Args:
        db: The database, connected as a role of `echoplane_backfill`.
        tenant: Whose log.
        drafts: One to `APPEND_EVENTS_MAX` events, in order.
        at: When they were recorded; after all that was backfilled before, and not in the future.
        grant: What the caller may do.

    Raises:
        Forbidden: The grant lacks the right `backfill`, or the role may not state the clock.
        BadRequest: `at` lies in the future, or not after the newest commit.
        TenantIsLive: Something was recorded by the tenant's own clock. And all that `append` raises.
    """
    check_right(grant, tenant, Right.BACKFILL)
    if at > db.clock():
        raise BadRequest(field="known", reason="lies in the future: nobody knew it yet")
    keys = await tenant_keys(db, tenant)
    async with db.snapshot(tenant) as conn:
        newest = await head(conn)
    if newest.commit and at <= newest.recorded_at:
        try:
            return await known_receipt(db, keys, drafts, prepare(keys, drafts))
        except AlreadyKnown as error:
            raise BadRequest(
                field="known", reason="is not after what the tenant has recorded last"
            ) from error
    return await append(stating(db, at), tenant, drafts, grant=grant)


def stating(db: Database, at: KnownAt) -> Database:
    """Return the database as one whose appends are recorded at a stated time, if its role may state it."""
    return replace(db, clock=lambda: at, states_clock=True)
