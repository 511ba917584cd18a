"""
How the query path reads a question itself: similarity proposes, the ledger decides.

What discovery sends is checked for its bounds, and which key the question names is found anew from
the question's words and the names of the record. A proposal that was tampered with can cost
recall, and never an answer about somebody else.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.proposals import Proposal
from contracts.trails import Question
from contracts.views import View
from discovery import grounded, speaks_of_self, spellings
from ledger.log import TenantKeys
from ledger.resolve import claimed_on, first_users


@dataclass(frozen=True, slots=True)
class Users:
    """
    Who speaks as a user in a tenant, as far as the claims say: the first two, with their commits.

    Kept between questions, since a claim of a folded commit never changes: each question reads
    the claims that came since, and none once there are two.
    """

    _known: dict[tuple[str, int], tuple[int, tuple[tuple[str, int], ...]]] = field(default_factory=dict)

    async def single(self, conn: AsyncConnection, keys: TenantKeys, view: View) -> str | None:
        """Return the only one by the view's cut; None where there is none, or more than one."""
        place = (keys.tenant, view.epoch)
        read_to, users = self._known.get(place, (0, ()))
        if len({actor for actor, _ in users}) < 2 and read_to < view.cut:  # noqa: PLR2004 - two are not one
            more = await first_users(conn, keys, epoch=view.epoch, after=read_to, cut=view.cut)
            known = {actor for actor, _ in users}
            users = (*users, *(user for user in more if user[0] not in known))[:2]
            self._known[place] = (view.cut, users)
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
