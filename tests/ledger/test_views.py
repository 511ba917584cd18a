"""Names of views, pinned and unpinned at once."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from contracts.errors import NotFound
from contracts.times import KnownAt, ValidAt
from contracts.views import View
from ledger import _views
from ledger._views import pin_view, pinned_view, unpin_view

THEN = datetime(2026, 1, 1, tzinfo=UTC)
WAITING = sa.text(
    "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
    "WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted"
)


async def test_a_name_is_not_taken_away_while_it_is_being_pinned(db):
    view = View(valid_at=ValidAt(THEN), known_at=KnownAt(THEN), cut=0, epoch=1)
    await pin_view(db, "acme", "monday", view)

    async with db.tenant("acme") as conn:
        await conn.execute(_views._LOCK, {"tenant": "acme"})
        unpinning = asyncio.create_task(unpin_view(db, "acme", "monday"))
        async with asyncio.timeout(20):
            while not await conn.scalar(WAITING):
                assert not unpinning.done()
                await asyncio.sleep(0.01)
        assert (await pinned_view(db, "acme", "monday")).view == view

    assert (await unpinning).view == view
    with pytest.raises(NotFound):
        await pinned_view(db, "acme", "monday")
