"""Reading the log: every event that is read is decrypted and checked against its hash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC
from typing import Any, Final, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import NotFound, NotYet
from contracts.events import ErasedEvent, Event
from contracts.limits import PAGE_EVENTS_MAX, SCAN_BYTES_MAX
from contracts.times import KnownAt
from contracts.views import Generation
from ledger import _tables
from ledger._aside import aside
from ledger._database import Database
from ledger._events import StoredEvent, open_event
from ledger._keys import EventKey, TenantKeys
from ledger._tenants import tenant_keys

LoggedEvent: TypeAlias = Event | ErasedEvent
"""What stands at a position: an event, or what is left of an erased one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The end of a tenant's log. Kept elsewhere, it proves later that nothing before it was changed."""

    commit: int
    position: int
    recorded_at: KnownAt
    hash: bytes


_BYTES_LIKE_AN_EVENT: Final = 4_096
"""Of one event, as many as take as long to read as a short event does."""
_STORED: Final = tuple(field.name for field in fields(StoredEvent))
"""What is asked of each event, in the order of the query below."""


def stored_events() -> sa.Select[Any]:
    """Return the query of everything that `StoredEvent` holds."""
    event, commit, key, erased = _tables.event, _tables.commit, _tables.event_key, _tables.erased
    return sa.select(
        event.c.event_id,
        event.c.position,
        event.c.commit,
        commit.c.recorded_at,
        event.c.kind,
        event.c.header,
        event.c.ciphertext,
        event.c.hash,
        key.c.wrapped_key,
        erased.c.erasure_id,
    ).select_from(
        event.join(commit, sa.and_(commit.c.tenant == event.c.tenant, commit.c.commit == event.c.commit))
        .outerjoin(key, sa.and_(key.c.tenant == event.c.tenant, key.c.event_id == event.c.event_id))
        .outerjoin(erased, sa.and_(erased.c.tenant == event.c.tenant, erased.c.event_id == event.c.event_id))
    )


async def read_events(
    conn: AsyncConnection,
    keys: TenantKeys,
    *,
    after_position: int,
    limit: int,
    bytes_max: int = SCAN_BYTES_MAX,
) -> list[LoggedEvent]:
    """
    Read events in the order of the log.

    A page may be shorter than `limit` though more follow (its bytes are bounded too): only an empty
    one says that there are no more. With the usual `bytes_max` a page of `APPEND_EVENTS_MAX` or more
    that starts at a commit's first event holds that commit whole.

    Args:
        conn: A transaction of the tenant.
        keys: The tenant's.
        after_position: 0 to start at the beginning.
        limit: At most `PAGE_EVENTS_MAX` are returned, whatever it says.
        bytes_max: Of ciphertext; the first event comes, however many it has.

    Raises:
        IntegrityFault: Bytes of an event were changed.
    """
    page = await read_stored(conn, keys, after_position=after_position, limit=limit, bytes_max=bytes_max)
    return await opened(keys, page)


async def opened(keys: TenantKeys, page: Sequence[StoredEvent]) -> list[LoggedEvent]:
    """
    Return a page of stored events as they are read.

    Raises:
        IntegrityFault: Bytes of an event were changed.
    """
    size_bytes = sum(len(stored.ciphertext) for stored in page)
    return await aside(
        lambda: [open_event(keys, stored) for stored in page],
        items=max(len(page), size_bytes // _BYTES_LIKE_AN_EVENT),
    )


async def read_stored(
    conn: AsyncConnection,
    keys: TenantKeys,
    *,
    after_position: int,
    limit: int,
    bytes_max: int = SCAN_BYTES_MAX,
    whole_commit: bool = False,
) -> list[StoredEvent]:
    """Read a page of the log as it is stored, unchecked; see `read_events` and `stored_page` for its size."""
    event = _tables.event
    query = stored_page(
        event.c.position, event.c.tenant == keys.tenant, after=after_position,
        limit=limit, bytes_max=bytes_max, whole_commit=whole_commit,
    )  # fmt: skip
    return await stored_of(conn, query)


def stored_page(
    order: sa.Column[int],
    among: sa.ColumnElement[bool],
    *,
    after: int,
    limit: int,
    bytes_max: int,
    whole_commit: bool = False,
) -> sa.Select[Any]:
    """
    Return the query of a page of stored events: as many as fit, and one however large it is.

    Args:
        order: The number that they are read by; with `among` an index has to begin so.
        among: Of which events.
        after: The number that the page goes on after.
        limit: Events; never more than `PAGE_EVENTS_MAX`.
        bytes_max: Of ciphertext.
        whole_commit: Whether the first event comes with all of its commit that follows it, however large.
    """
    event = _tables.event
    size = sa.func.octet_length(event.c.ciphertext)
    # All of those before each, so that the server goes over them once.
    before = sa.func.coalesce(sa.func.sum(size).over(order_by=order, rows=(None, -1)), 0)
    first = sa.func.first_value(event.c.commit).over(order_by=order, rows=(None, -1))
    page = (
        sa.select(
            order.label("number"),
            before.label("before"),
            (before + size).label("bytes"),
            event.c.commit,
            first.label("first_commit"),
        )
        .where(among, order > after)
        .order_by(order)
        .limit(min(limit, PAGE_EVENTS_MAX))
        .subquery()
    )
    comes = sa.or_(page.c.bytes <= bytes_max, page.c.before == 0)
    if whole_commit:
        comes = sa.or_(comes, page.c.commit == page.c.first_commit)
    last = sa.select(sa.func.max(page.c.number)).where(comes).scalar_subquery()
    return stored_events().where(among, order > after, order <= last).order_by(order)


async def read_events_by_id(
    conn: AsyncConnection, keys: TenantKeys, event_ids: Sequence[str]
) -> dict[str, LoggedEvent]:
    """
    Read events by id; ids that the log does not hold are missing from the answer.

    Raises:
        IntegrityFault: Bytes of an event were changed.
    """
    opened = await read_with_keys(conn, keys, event_ids)
    return {event_id: event for event_id, (event, _) in opened.items()}


async def read_with_keys(
    conn: AsyncConnection, keys: TenantKeys, event_ids: Sequence[str]
) -> dict[str, tuple[LoggedEvent, EventKey | None]]:
    """Read events by id as `read_events_by_id`, each with its data key; an erased one has none."""
    event = _tables.event
    found: dict[str, tuple[LoggedEvent, EventKey | None]] = {}
    wanted = list(dict.fromkeys(event_ids))
    for start in range(0, len(wanted), PAGE_EVENTS_MAX):
        among = _among(event.c.event_id, wanted[start : start + PAGE_EVENTS_MAX])
        query = stored_events().where(event.c.tenant == keys.tenant, among)
        for stored in await stored_of(conn, query):
            wrapped = stored.wrapped_key
            key = None if wrapped is None else keys.open_key(stored.event_id, wrapped)
            found[stored.event_id] = open_event(keys, stored, key), key
    return found


async def read_event(db: Database, tenant: str, event_id: str) -> LoggedEvent:
    """
    Read one event.

    Raises:
        NotFound: The tenant's log does not hold it.
        IntegrityFault: Bytes of it were changed.
    """
    async with db.snapshot(tenant) as conn:
        keys = await tenant_keys(db, tenant, conn)
        found = await read_events_by_id(conn, keys, [event_id])
    if event_id not in found:
        raise NotFound(what="event")
    return found[event_id]


async def event_keys(
    conn: AsyncConnection, keys: TenantKeys, event_ids: Sequence[str]
) -> dict[str, EventKey]:
    """Return the data keys of events by id; those of erased or unknown events are missing."""
    table = _tables.event_key
    found: dict[str, EventKey] = {}
    wanted = list(dict.fromkeys(event_ids))
    for start in range(0, len(wanted), PAGE_EVENTS_MAX):
        query = sa.select(table.c.event_id, table.c.wrapped_key).where(
            table.c.tenant == keys.tenant,
            _among(table.c.event_id, wanted[start : start + PAGE_EVENTS_MAX]),
        )
        for event_id, wrapped in await conn.execute(query):
            found[event_id] = keys.open_key(event_id, bytes(wrapped))
    return found


async def head(conn: AsyncConnection) -> Head:
    """
    Return the end of the log of the transaction's tenant; commit 0 is the empty log.

    Raises:
        NotFound: No such tenant.
    """
    table = _tables.head
    query = sa.select(table.c.commit, table.c.position, table.c.recorded_at, table.c.hash)
    row = (await conn.execute(query.where(table.c.tenant == _this_tenant()))).one_or_none()
    if row is None:
        raise NotFound(what="tenant")
    return Head(
        commit=row.commit,
        position=row.position,
        recorded_at=KnownAt(row.recorded_at.astimezone(UTC)),
        hash=bytes(row.hash),
    )


async def last_erasure(conn: AsyncConnection) -> int:
    """
    Return the commit of the last erasure of the transaction's tenant, 0 for none.

    Whoever keeps in memory what events before it said has to read them anew.
    """
    table = _tables.erased
    query = sa.select(sa.func.max(table.c.commit)).where(table.c.tenant == _this_tenant())
    return int((await conn.execute(query)).scalar_one() or 0)


async def serving(conn: AsyncConnection) -> Generation:
    """
    Return the newest visible generation of the transaction's tenant.

    Raises:
        NotYet: The tenant has none.
    """
    table = _tables.epoch
    query = sa.select(table.c.epoch, table.c.commit).where(
        table.c.tenant == _this_tenant(), table.c.state == "serving"
    )
    row = (await conn.execute(query)).one_or_none()
    if row is None:
        raise NotYet(wanted="a generation", visible="none")
    return Generation(epoch=row.epoch, commit=row.commit)


async def folded_to(conn: AsyncConnection, epoch: int) -> int:
    """Return the commit that an epoch of the transaction's tenant is folded to; 0 where there is none."""
    table = _tables.epoch
    query = sa.select(table.c.commit).where(table.c.tenant == _this_tenant(), table.c.epoch == epoch)
    return await conn.scalar(query) or 0


async def pending(db: Database) -> list[tuple[str, int]]:
    """Return the tenants whose log is not folded to its head, each with the commit it stands at."""
    table = _tables.outbox
    async with db.across_tenants() as conn:
        rows = await conn.execute(sa.select(table.c.tenant, table.c.commit).order_by(table.c.tenant))
        return [(row.tenant, row.commit) for row in rows]


def _among(column: sa.ColumnElement[str], names: Sequence[str]) -> sa.ColumnElement[bool]:
    # One array: a statement with a parameter for each name is another one for each number of them.
    return column == sa.any_(sa.cast(list(names), pg.ARRAY(sa.Text)))


def _this_tenant() -> sa.ColumnElement[str]:
    # Row level security says the same; said here too, a superuser's connection cannot mislead.
    return sa.func.current_setting("echoplane.tenant")


async def stored_of(conn: AsyncConnection, query: sa.Select[Any]) -> list[StoredEvent]:
    """Return what a query of `stored_events` finds."""
    # By place: a row that is asked for each column by its name takes twice as long.
    return [StoredEvent(**dict(zip(_STORED, row, strict=True))) for row in await conn.execute(query)]
