"""
One call to the database, of one instant: the view that is asked for, and what a plain key has at it.

See `echoplane_read` in 0002_lookup.sql for what its rows are.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import Final

from contracts.errors import EpochDropped, NotFound, NotYet
from contracts.times import KnownAt, ValidAt
from contracts.views import Generation, View, ViewRequest
from ledger._database import Database
from ledger._epochs import EpochState
from ledger._told import Row
from ledger._world import Key

_READ: Final = (
    "SELECT * FROM echoplane_read(%(tenant)s, %(epoch)s, %(commit)s, %(known_at)s, %(at)s, %(now)s, "
)
_NO_KEY: Final = _READ + "NULL, NULL, 0)"
_ONE_KEY: Final = _READ + "%(entity)s, %(relation)s, %(claims_max)s)"


async def glance(
    db: Database, tenant: str, request: ViewRequest, key: Key | None, *, claims_max: int
) -> list[Row]:
    """
    Return what there is at the view that is asked for, with at most one more than so many claims.

    Raises:
        Unavailable: The database is down or busy.
    """
    generation = request.generation
    bound: dict[str, object] = {
        "tenant": tenant,
        "epoch": None if generation is None else generation.epoch,
        "commit": None if generation is None else generation.commit,
        "known_at": request.known_at,
        "at": request.valid_at,
        "now": db.clock(),
    }
    if key is None:
        return [Row._make(row) for row in await db.rows(_NO_KEY, bound)]
    bound |= {"entity": key[0], "relation": key[1], "claims_max": claims_max}
    return [Row._make(row) for row in await db.rows(_ONE_KEY, bound)]


def seen(rows: Sequence[Row], request: ViewRequest) -> View | NotYet:
    """
    Return the view that was asked for.

    Raises:
        NotFound: No such tenant.
        EpochDropped: The epoch asked for is there no more.
    """
    if not rows:
        raise NotFound(what="tenant")
    stand, wanted = rows[0], request.generation
    if stand.state is None:
        return NotYet(wanted=f"generation {wanted}", visible="none of that epoch")
    if stand.state == EpochState.DROPPED:
        raise EpochDropped(epoch=stand.amount)
    visible = Generation(epoch=stand.amount, commit=stand.known_from)
    if wanted is not None and wanted.commit > visible.commit:
        return NotYet(wanted=f"generation {wanted}", visible=str(visible))
    if request.min_commit is not None and request.min_commit > visible.commit:
        return NotYet(wanted=f"commit {request.min_commit}", visible=str(visible))
    assert stand.valid_from is not None
    now = stand.valid_from.astimezone(UTC)
    return View(
        valid_at=ValidAt(now) if request.valid_at is None else request.valid_at,
        known_at=KnownAt(now) if request.known_at is None else request.known_at,
        cut=stand.known_to,
        epoch=stand.amount,
    )
