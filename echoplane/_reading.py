"""
How the query path reads a question itself: similarity proposes, the ledger decides.

What discovery sends is checked for its bounds, and which key the question names is found anew from
the question's words and the names of the record. A proposal that was tampered with can cost
recall, and never an answer about somebody else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeAlias

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.proposals import KeyProposal, Operation, Plan, Proposal
from contracts.trails import Question
from contracts.views import View
from discovery import grounded, speaks_of_self, speaks_to_agent, spellings
from ledger.log import TenantKeys, last_erasure
from ledger.resolve import claimed_on, first_agents, first_users, relations_of_tenant
from realize import may_ask_holders, placed_keys, placing, read_holders

NOTHING_PROPOSED: Final = Proposal(
    plan=Plan(
        operation=Operation.FACT, entities=(), relations=(), times=(), surface="text", confidence_ppm=0
    ),
    candidates=(),
    keys=(),
    routes=(),
    degraded=False,
)
"""What a question is first read with: the record's own names and keys."""


_NAMED_PPM: Final = 1_000_000


class _Known(NamedTuple):
    """What was read up to a commit, and the last erasure then."""

    erased: int
    read_to: int
    users: tuple[tuple[str, int], ...]


_Read: TypeAlias = Callable[..., Awaitable[list[tuple[str, int]]]]


@dataclass(frozen=True, slots=True)
class Users:
    """
    Who speaks as a user in a tenant, and who is its agent, as far as the claims say: the first two of each.

    Kept between questions with their commits, since a claim of a folded commit never changes until it is
    erased: each question reads the claims that came since, and none once there are two. After an erasure it
    begins anew.
    """

    _known: dict[tuple[str, int, _Read], _Known] = field(default_factory=dict)

    async def single(self, conn: AsyncConnection, keys: TenantKeys, view: View) -> str | None:
        """Return the only user by the view's cut; None where there is none, or more than one."""
        return await self._only(conn, keys, view, first_users)

    async def agent(self, conn: AsyncConnection, keys: TenantKeys, view: View) -> str | None:
        """Return the only sensor or assistant that speaks of itself by the view's cut; else None."""
        return await self._only(conn, keys, view, first_agents)

    async def _only(self, conn: AsyncConnection, keys: TenantKeys, view: View, first: _Read) -> str | None:
        place = (keys.tenant, view.epoch, first)
        erased = await last_erasure(conn)
        known = self._known.get(place)
        read_to, users = (0, ()) if known is None or known.erased != erased else (known.read_to, known.users)
        if len({actor for actor, _ in users}) < 2 and read_to < view.cut:  # noqa: PLR2004 - two are not one
            more = await first(conn, keys, epoch=view.epoch, after=read_to, cut=view.cut)
            actors = {actor for actor, _ in users}
            users = (*users, *(user for user in more if user[0] not in actors))[:2]
            self._known[place] = _Known(erased=erased, read_to=view.cut, users=users)
        by_cut = [actor for actor, commit in users if commit <= view.cut]
        return by_cut[0] if len(by_cut) == 1 else None


@dataclass(slots=True, kw_only=True)
class Record:
    """
    What the record says of the names in one question at one view: each name is looked up once.

    The second person is the tenant's only agent that speaks of itself, and means it where nothing else is
    named. The first person is the tenant's only user. Discovery, which also sees who spoke and claimed
    nothing, must have read it so as well.
    """

    users: Users
    _claimed: dict[str, frozenset[str]] = field(default_factory=dict)
    _asked: set[str] = field(default_factory=set)
    _user: str | None = None
    _agent: str | None = None
    _relations: tuple[str, ...] | None = None

    def lacks(self, question: Question, proposal: Proposal) -> bool:
        """Say whether anything has to be read before a proposal can be grounded."""
        text = question.text
        return bool(self._unread(question, proposal)) or speaks_of_self(text) or speaks_to_agent(text)

    async def read(
        self, conn: AsyncConnection, keys: TenantKeys, *, question: Question, view: View, proposal: Proposal
    ) -> None:
        """
        Look up what is not known yet.

        Raises:
            IntegrityFault: A claim or contract about who is one with whom is not what was written.
        """
        names = self._unread(question, proposal)
        if speaks_of_self(question.text):
            single = await self.users.single(conn, keys, view)
            self._user = single if single in proposal.plan.entities else None
            if self._user is not None and self._user not in self._asked:
                names.append(self._user)
        if speaks_to_agent(question.text):
            self._agent = await self.users.agent(conn, keys, view)
            if self._agent is not None and self._agent not in self._asked:
                names.append(self._agent)
        self._claimed.update(await claimed_on(conn, keys, view, names))
        self._asked.update(names)

    def grounded(self, question: Question, *, view: View, proposal: Proposal) -> Proposal:
        """Return the proposal with the plan and the named keys that the record gives."""
        names = {*spellings(question.text, proposal), *self._persons()}
        claimed = {name: own for name, own in self._claimed.items() if name in names}
        read = grounded(
            question, view=view, proposal=proposal, claimed=claimed, user=self._user, agent=self._agent
        )
        return _placed(question, read, claimed)

    def lacks_relations(self, question: Question, proposal: Proposal) -> bool:
        """Say whether the tenant's relations have to be read: it may name a value alone, and no key."""
        return self._relations is None and self._may_name_a_value(question, proposal)

    async def read_relations(self, conn: AsyncConnection, keys: TenantKeys, view: View) -> None:
        """Look up which relations the tenant has."""
        self._relations, _ = await relations_of_tenant(conn, keys, view)

    def of_a_value(self, question: Question, *, view: View, proposal: Proposal) -> Proposal:
        """Return a proposal with the plan of a question for all that have a value, if it is one."""
        if not self._may_name_a_value(question, proposal) or self._relations is None:
            return proposal
        names = {*spellings(question.text, proposal), *self._persons()}
        claimed = {name: own for name, own in self._claimed.items() if name in names}
        read = grounded(
            question,
            view=view,
            proposal=proposal,
            claimed=claimed,
            user=self._user,
            agent=self._agent,
            relations=self._relations,
        )
        placed = placing(question, read.plan, self._relations)
        if placed:
            read = replace(read, plan=replace(read.plan, relations=placed))
        return proposal if read_holders(question, read.plan) is None else read

    def _persons(self) -> list[str]:
        return [name for name in (self._user, self._agent) if name is not None]

    def _may_name_a_value(self, question: Question, proposal: Proposal) -> bool:
        return may_ask_holders(question.text) and not any(key.named for key in proposal.keys)

    def _unread(self, question: Question, proposal: Proposal) -> list[str]:
        return [name for name in spellings(question.text, proposal) if name not in self._asked]


def _placed(question: Question, read: Proposal, claimed: Mapping[str, frozenset[str]]) -> Proposal:
    """Return a proposal with the keys on which it is asked where a thing is, if all of that is understood."""
    named = {(key.entity, key.relation) for key in read.keys if key.named}
    pairs = placed_keys(question, read.plan, claimed)
    if named == set(pairs) or not named.issubset(pairs):
        return read
    # Of several ways in which the record says where it is, none is chosen.
    relations = (pairs[0][1],) if len(pairs) == 1 else ()
    plan = replace(read.plan, relations=relations)
    others = [one for one in read.keys if (one.entity, one.relation) not in pairs]
    keys = [KeyProposal(entity=own[0], relation=own[1], score_ppm=_NAMED_PPM, named=True) for own in pairs]
    return replace(read, plan=plan, keys=(*keys, *others))
