"""
How the query path reads a question itself: similarity proposes, the ledger decides.

What discovery sends is checked for its bounds, and which key the question names is found anew from
the question's words and the names of the record. A proposal that was tampered with can cost
recall, and never an answer about somebody else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.proposals import Proposal
from contracts.trails import Question
from contracts.views import View
from discovery import grounded, speaks_of_self, spellings
from ledger.log import TenantKeys, last_erasure
from ledger.resolve import claimed_on, first_users


class _Known(NamedTuple):
    """What was read up to a commit, and the last erasure then."""

    erased: int
    read_to: int
    users: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Users:
    """
    Who speaks as a user in a tenant, as far as the claims say: the first two, with their commits.

    Kept between questions, since a claim of a folded commit never changes until it is erased: each
    question reads the claims that came since, and none once there are two. After an erasure it begins anew.
    """

    _known: dict[tuple[str, int], _Known] = field(default_factory=dict)

    async def single(self, conn: AsyncConnection, keys: TenantKeys, view: View) -> str | None:
        """Return the only one by the view's cut; None where there is none, or more than one."""
        place = (keys.tenant, view.epoch)
        erased = await last_erasure(conn)
        known = self._known.get(place)
        read_to, users = (0, ()) if known is None or known.erased != erased else (known.read_to, known.users)
        if len({actor for actor, _ in users}) < 2 and read_to < view.cut:  # noqa: PLR2004 - two are not one
            more = await first_users(conn, keys, epoch=view.epoch, after=read_to, cut=view.cut)
            actors = {actor for actor, _ in users}
            users = (*users, *(user for user in more if user[0] not in actors))[:2]
            self._known[place] = _Known(erased=erased, read_to=view.cut, users=users)
        by_cut = [actor for actor, commit in users if commit <= view.cut]
        return by_cut[0] if len(by_cut) == 1 else None


async def read_question(
    conn: AsyncConnection,
    keys: TenantKeys,
    *,
    question: Question,
    view: View,
    proposal: Proposal,
    users: Users,
) -> Proposal:
    """
    Return the proposal with the plan and the named keys that the record gives.

    The first person is the tenant's only user. Discovery, which also sees who spoke and claimed
    nothing, must have read it so as well.

    Raises:
        IntegrityFault: A claim or contract about who is one with whom is not what was written.
    """
    user = None
    if speaks_of_self(question.text):
        single = await users.single(conn, keys, view)
        user = single if single in proposal.plan.entities else None
    names = [*spellings(question.text, proposal), *([] if user is None else [user])]
    claimed = await claimed_on(conn, keys, view, names)
    return grounded(question, view=view, proposal=proposal, claimed=claimed, user=user)
