"""Views by name: pinned once, asked at later with the same answers, whatever was appended since."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from contracts.errors import BadRequest, LimitExceeded, NotFound, ViewTaken
from contracts.limits import VIEWS_MAX
from contracts.times import KnownAt, ValidAt
from contracts.views import Generation, View, ViewRequest
from ledger import _tables
from ledger._database import Database

# As the check `pinned_view_name` has it.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
# Two that pin at once must not both find the last free place.
_LOCK: Final = sa.text("SELECT pg_advisory_xact_lock(hashtextextended('pinned_view ' || :tenant, 0))")


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedView:
    """A view, its name, and when it was pinned."""

    name: str
    view: View
    pinned_at: datetime

    @property
    def request(self) -> ViewRequest:
        """Return what to ask for, to be given this view and no other."""
        return ViewRequest(
            valid_at=self.view.valid_at,
            known_at=self.view.known_at,
            generation=Generation(epoch=self.view.epoch, commit=self.view.cut),
            min_commit=None,
        )


async def pin_view(db: Database, tenant: str, name: str, view: View) -> PinnedView:
    """
    Give a view a name, for good.

    The same view under the same name is the same receipt, however often it is pinned.

    Raises:
        BadRequest: The name is not 1 to 63 letters, digits, `.`, `_` or `-`, the first a letter or digit.
        ViewTaken: The name stands for another view.
        LimitExceeded: The tenant has `VIEWS_MAX` already.
        Unavailable: The database is down or busy.
    """
    if _NAME.fullmatch(name) is None:
        raise BadRequest(field="name", reason="1 to 63 of A-Z a-z 0-9 . _ - and first a letter or digit")
    table = _tables.pinned_view
    row = {
        "tenant": tenant,
        "name": name,
        "valid_at": view.valid_at,
        "known_at": view.known_at,
        "epoch": view.epoch,
        "cut": view.cut,
        "pinned_at": db.clock(),
    }
    async with db.tenant(tenant) as conn:
        await conn.execute(_LOCK, {"tenant": tenant})
        others = sa.select(sa.func.count()).where(table.c.tenant == tenant, table.c.name != name)
        if (await conn.scalar(others) or 0) >= VIEWS_MAX:
            raise LimitExceeded(limit="VIEWS_MAX", allowed=VIEWS_MAX, given=VIEWS_MAX + 1)
        await conn.execute(insert(table).values(row).on_conflict_do_nothing())
        found = _pinned((await conn.execute(_named(tenant, name))).one())
    if found.view != view:
        raise ViewTaken(name=name)
    return found


async def pinned_view(db: Database, tenant: str, name: str) -> PinnedView:
    """
    Return the view of a name.

    Raises:
        NotFound: Nothing was pinned under it.
        Unavailable: The database is down or busy.
    """
    if _NAME.fullmatch(name) is None:
        raise NotFound(what="view")
    async with db.tenant(tenant) as conn:
        row = (await conn.execute(_named(tenant, name))).one_or_none()
    if row is None:
        raise NotFound(what="view")
    return _pinned(row)


async def pinned_views(db: Database, tenant: str) -> list[PinnedView]:
    """Return the tenant's views by name, at most `VIEWS_MAX`."""
    table = _tables.pinned_view
    async with db.tenant(tenant) as conn:
        rows = await conn.execute(sa.select(table).where(table.c.tenant == tenant).order_by(table.c.name))
        return sorted((_pinned(row) for row in rows), key=lambda one: one.name)


async def unpin_view(db: Database, tenant: str, name: str) -> PinnedView:
    """
    Take a name away and return the view that it stood for; the name may then stand for another.

    Raises:
        NotFound: Nothing was pinned under it.
        Unavailable: The database is down or busy.
    """
    if _NAME.fullmatch(name) is None:
        raise NotFound(what="view")
    table = _tables.pinned_view
    gone = sa.delete(table).where(table.c.tenant == tenant, table.c.name == name).returning(table)
    async with db.tenant(tenant) as conn:
        # One at a time: whoever pins the name looks at what stands under it.
        await conn.execute(_LOCK, {"tenant": tenant})
        row = (await conn.execute(gone)).one_or_none()
    if row is None:
        raise NotFound(what="view")
    return _pinned(row)


def _named(tenant: str, name: str) -> sa.Select[Any]:
    table = _tables.pinned_view
    return sa.select(table).where(table.c.tenant == tenant, table.c.name == name)


def _pinned(row: sa.Row[Any]) -> PinnedView:
    return PinnedView(
        name=row.name,
        view=View(
            valid_at=ValidAt(row.valid_at.astimezone(UTC)),
            known_at=KnownAt(row.known_at.astimezone(UTC)),
            cut=row.cut,
            epoch=row.epoch,
        ),
        pinned_at=row.pinned_at.astimezone(UTC),
    )
