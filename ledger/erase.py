"""
Erase: the only door by which anything leaves.

Promises: what an erasure took is gone at every cut, past ones included, in the moment in which
`erase` returns; the log's chain still verifies; and no older value becomes current because a newer
one was erased.
Does not promise: that the bytes are gone from the disk. Rows that were deleted stay in the files
until those are scrubbed.
"""

from __future__ import annotations

from collections.abc import Callable

from contracts.erasures import ErasureReport, ErasureRequest
from contracts.grants import Grant, Right
from contracts.ports import Projector
from ledger._database import Database
from ledger._erasing import Asked, carry_out
from ledger._grants import check_right
from ledger._tenants import PLANE

__all__ = ["PLANE", "erase"]


async def erase(
    db: Database,
    tenant: str,
    projector: Projector,
    request: ErasureRequest,
    *,
    grant: Grant,
    actor_id: str = PLANE,
    announce: Callable[[], None] = lambda: None,
) -> ErasureReport:
    """
    Erase events, or everything about a subject.

    Args:
        db: The database.
        tenant: Whose log.
        projector: As `ledger.write.fold` takes it: what was accepted is folded first, so that it is
            known what is about the subject.
        request: What to erase.
        grant: What the caller may do.
        actor_id: Who is recorded as having erased; an operator.
        announce: Called once, when it is known that something goes, and before any of it does: whatever
            is raised after that may leave it erased. What is raised before changed nothing.

    Raises:
        NotFound: No such tenant, or no such event; nothing was changed.
        Forbidden: The grant lacks the right `erase`.
        BadRequest: A `relation`, `decision` or `erasure` event, which cannot be erased.
        LimitExceeded: More than one erasure takes; erase some of the events first.
        Poisoned, OtherProjector: As `ledger.write.fold`; nothing was erased.
        Busy: Other erasures go on, of this tenant or of many; nothing was erased.
        Unavailable: The database is down or busy; erase again.
    """
    check_right(grant, tenant, Right.ERASE)
    asked = Asked(request=request, actor_id=actor_id, announce=announce)
    return await carry_out(db, tenant, projector, asked)
