"""Replay: what was answered then, from what is stored now."""

from __future__ import annotations

from audit._compare import compare, stored_faults
from contracts.errors import IntegrityFault, NotFound
from contracts.ports import QueryPath
from contracts.trails import ReplayReport, Verdict
from ledger.log import Database, ErasedContext, ErasedTrail, read_context, read_trail


async def replay(path: QueryPath, db: Database, tenant: str, context_hash: str) -> ReplayReport:
    """
    Build a stored context anew and compare it with what was stored, byte for byte.

    Events, claims and relation contracts are read again from the ledger at the stored cut and
    epoch; question, plan and candidates are the stored ones. Discovery is not asked.

    Returns:
        `identical`; `redacted`, where only erased events make the difference; or `mismatch`,
        with the part that failed its check or the places that differ. A fault found in what is
        stored is a verdict, not an error: that is what replay is for.

    Raises:
        NotFound: No such context for this tenant, or no trail of it.
        EpochDropped: What it was built from was deleted on purpose: there is no verdict any more.
        Unavailable: The database cannot be reached.
    """
    try:
        stored = await read_context(db, tenant, context_hash)
        trail = await read_trail(db, tenant, context_hash)
    except IntegrityFault as fault:
        return _mismatch(context_hash, fault.what)
    if isinstance(stored, ErasedContext):
        return _without_key(context_hash, stored, part="context")
    if isinstance(trail, ErasedTrail):
        return _without_key(context_hash, trail, part="trail")
    faults = stored_faults(
        context_hash=context_hash, content_hash=stored.content_hash, form=stored.form, trail=trail
    )
    if faults:
        return _mismatch(context_hash, *faults)
    try:
        rebuilt = await path.rebuild(tenant=tenant, trail=trail)
    except IntegrityFault as fault:
        return _mismatch(context_hash, fault.what)
    except NotFound as error:
        return _mismatch(context_hash, f"{error.what}: gone")
    return compare(context_hash=context_hash, form=stored.form, trail=trail, rebuilt=rebuilt)


def _without_key(context_hash: str, lost: ErasedContext | ErasedTrail, *, part: str) -> ReplayReport:
    if lost.erased_by is None:
        # A key that is gone proves no erasure: without one that took it, it is a loss.
        return _mismatch(context_hash, f"{part}: its key is gone")
    return ReplayReport(
        verdict=Verdict.REDACTED,
        context_hash=context_hash,
        replayed_hash=None,
        differences=(),
        erased_event_ids=lost.erased_event_ids,
    )


def _mismatch(context_hash: str, *differences: str) -> ReplayReport:
    return ReplayReport(
        verdict=Verdict.MISMATCH,
        context_hash=context_hash,
        replayed_hash=None,
        differences=differences,
        erased_event_ids=(),
    )
