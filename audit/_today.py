"""What today's logic says to what was asked then, from what was known then."""

from __future__ import annotations

from dataclasses import replace

from audit._differences import answer_words, differences
from contracts.errors import EpochDropped, IntegrityFault
from contracts.ports import QueryPath
from contracts.trails import TodayReport, Trail
from ledger.log import Database, ErasedTrail, read_trail, serving


async def replay_today(path: QueryPath, db: Database, tenant: str, context_hash: str) -> TodayReport:
    """
    Build a stored context anew in the epoch that serves now, at the commit that was known then.

    Question, plan and candidates are the stored ones. Nothing is written.

    Raises:
        NotFound: No such context for this tenant, or no trail of it.
        IntegrityFault: Something read does not match what covers it, or its key is gone without an erasure.
        Unavailable: The database cannot be reached.

    Source: SEMANTICS, "Time": what would today's logic say from what was known then.
    """
    trail = await read_trail(db, tenant, context_hash)
    async with db.snapshot(tenant) as conn:
        epoch = (await serving(conn)).epoch
    if not isinstance(trail, Trail):
        return _erased(trail, epoch)
    today = replace(trail, view=replace(trail.view, epoch=epoch))
    now = await path.rebuild(tenant=tenant, trail=today)
    try:
        then = await path.rebuild(tenant=tenant, trail=trail)
    except EpochDropped:
        then = None
    return TodayReport(
        context_hash=context_hash,
        epoch_then=trail.view.epoch,
        epoch_now=epoch,
        then=None if then is None else answer_words(then),
        now=answer_words(now),
        is_same=now.answer_digest == trail.answer_digest,
        differences=() if then is None else differences(then, now),
        erased=False,
        erased_event_ids=(),
    )


def _erased(trail: ErasedTrail, epoch_now: int) -> TodayReport:
    if trail.erased_by is None:
        raise IntegrityFault(what=f"trail {trail.trail_id}: its key is gone")
    return TodayReport(
        context_hash=trail.context_hash,
        epoch_then=None,
        epoch_now=epoch_now,
        then=None,
        now=None,
        is_same=None,
        differences=(),
        erased=True,
        erased_event_ids=trail.erased_event_ids,
    )
