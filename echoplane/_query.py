"""
The query path: plan → propose → resolve → close → pack → realize → trail.

The view is pinned first; then everything is read in one REPEATABLE READ snapshot. Discovery proposes
and the ledger decides: what is proposed is read again from the ledger at the pinned cut.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import structlog

from contracts import limits
from contracts.answers import Answer, AnswerStatus
from contracts.contexts import ClosureSet, ContextPack
from contracts.errors import BadRequest, ErasedMeanwhile, Incorrect, Unavailable
from contracts.events import ErasedEvent
from contracts.models import LanguageModel
from contracts.ports import Discovery, TokenCounter
from contracts.proposals import KeyProposal, Proposal
from contracts.resolutions import KeyResolution
from contracts.times import MICROSECOND, KnownAt, ValidAt
from contracts.trails import Question, Rebuilt, Trail
from contracts.views import Generation, View, ViewRequest
from discovery import check_proposal, propose_degraded
from echoplane._derived import Asking, asking_of, derived_for
from echoplane._digests import KeyedDigests
from echoplane._histories import read_beside
from echoplane._occurred import as_asked
from echoplane._reading import NOTHING_PROPOSED, Record, Users
from ledger.closure import close
from ledger.log import (
    Database,
    check_not_dropped,
    event_keys,
    new_trail_id,
    read_events_by_id,
    store_recall,
    tenant_keys,
)
from ledger.resolve import pin, resolve_many
from packing import PACKER_VERSION, answer_digest, event_ids, pack
from realize import Derivation, Derived, Holders, Task, claims_of, read_answer, realize

log = structlog.get_logger()

_TRIES_AFRESH = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Everything that one question brought about."""

    answer: Answer
    pack: ContextPack
    proposal: Proposal
    resolutions: tuple[KeyResolution, ...]
    trail: Trail


@dataclass(frozen=True, slots=True, kw_only=True)
class _Built:
    answer: Answer
    answer_digest: str
    pack: ContextPack
    resolutions: tuple[KeyResolution, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gathered:
    """What an answer stands on, read in one snapshot."""

    resolutions: tuple[KeyResolution, ...]
    derivation: Derivation | None
    closures: ClosureSet
    digests: KeyedDigests


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """Implements `contracts.ports.QueryPath`: asking and rebuilding run the same steps."""

    database: Database
    discovery: Discovery
    counter: TokenCounter
    configuration_hash: str
    users: Users = field(default_factory=Users)
    reader: LanguageModel | None = None

    async def ask(
        self, tenant: str, question: Question, request: ViewRequest, *, wait_ms: int, read: bool = False
    ) -> Asked:
        """
        Answer a question and store its trail; `read`: have the context read by the reader, too.

        Raises:
            BadRequest: No reader is configured.
            NotYet: The view asked for is not folded within the wait.
            NotFound: No such tenant.
            ErasedMeanwhile: What it is answered from was erased, and again each time it was asked anew.
            IntegrityFault: Something read does not match what covers it.
        """
        reader = self._must_read() if read else None
        for _ in range(_TRIES_AFRESH):
            with contextlib.suppress(ErasedMeanwhile):
                return await self._ask(tenant, question, request, wait_ms=wait_ms, reader=reader)
        return await self._ask(tenant, question, request, wait_ms=wait_ms, reader=reader)

    def _must_read(self) -> LanguageModel:
        if self.reader is None:
            reason = "there is none: set ECHOPLANE_READER_URL and ECHOPLANE_READER_MODEL"
            raise BadRequest(field="reader", reason=reason)
        return self.reader

    async def _ask(
        self,
        tenant: str,
        question: Question,
        request: ViewRequest,
        *,
        wait_ms: int,
        reader: LanguageModel | None,
    ) -> Asked:
        pinned = await pin(self.database, tenant, request, wait_ms=wait_ms)
        started = time.perf_counter()
        record = Record(users=self.users)
        proposal = await self._grounded(tenant, question, pinned, NOTHING_PROPOSED, record)
        view, built, proposed = pinned, None, time.perf_counter()
        if (task := asking_of(question, proposal)) is not None:
            # What is derived stands on resolved states alone: nothing need be searched for.
            view, built = await self._under(tenant, question, request, pinned, proposal=proposal, task=task)
        if built is None or built.answer.status != AnswerStatus.ANSWERED:
            proposal = await self._propose(tenant, question, pinned, record)
            proposed = time.perf_counter()
            task = asking_of(question, proposal)
            view, built = await self._under(tenant, question, request, pinned, proposal=proposal, task=task)
        trail = Trail(
            trail_id=new_trail_id(self.database),
            tenant=tenant,
            question=question,
            view=view,
            proposal=proposal,
            configuration_hash=self.configuration_hash,
            context_hash=built.pack.context_hash,
            content_hash=built.pack.content_hash,
            answer_digest=built.answer_digest,
            status=built.answer.status,
            reading=None if reader is None else await read_answer(reader, question.text, built.pack),
            packer=PACKER_VERSION,
        )
        await store_recall(self.database, tenant, trail, built.pack)
        log.info(
            "answered",
            status=built.answer.status.value,
            degraded=proposal.degraded,
            candidates_count=len(proposal.candidates),
            keys_count=len(built.resolutions),
            propose_ms=round((proposed - started) * 1000, 1),
            build_ms=round((time.perf_counter() - proposed) * 1000, 1),
        )
        if trail.reading is not None:
            failure = trail.reading.failure
            log.info(
                "context_read",
                status=trail.reading.status.value,
                failure=None if failure is None else failure.value,
                attempts_count=trail.reading.attempts,
            )
        return Asked(
            answer=built.answer, pack=built.pack, proposal=proposal,
            resolutions=built.resolutions, trail=trail,
        )  # fmt: skip

    async def _under(
        self,
        tenant: str,
        question: Question,
        request: ViewRequest,
        pinned: View,
        *,
        proposal: Proposal,
        task: Asking | None,
    ) -> tuple[View, _Built]:
        view = pinned if task is None else await self._asked_view(tenant, task, pinned, request)
        built = await self._build(
            tenant, question, view, proposal=proposal, task=task,
            configuration_hash=self.configuration_hash, packer=PACKER_VERSION,
        )  # fmt: skip
        return view, built

    async def rebuild(self, *, tenant: str, trail: Trail) -> Rebuilt:
        """Run everything after `propose` again, from what a trail holds; see the port."""
        async with self.database.snapshot(tenant) as connection:
            await check_not_dropped(connection, tenant, trail.view.epoch)
        task = asking_of(trail.question, trail.proposal)
        built = await self._build(
            tenant, trail.question, trail.view, proposal=trail.proposal, task=task,
            configuration_hash=trail.configuration_hash, packer=trail.packer,
        )  # fmt: skip
        return Rebuilt(
            pack=built.pack,
            answer=built.answer,
            answer_digest=built.answer_digest,
            resolutions=built.resolutions,
            erased_event_ids=await self._erased(tenant, trail.proposal),
        )

    async def packs(
        self, *, tenant: str, trail: Trail, budgets_tokens: Sequence[int]
    ) -> tuple[ContextPack, ...]:
        """
        Pack what a trail stands on under other budgets: everything is read once, and nothing is stored.

        Raises:
            IntegrityFault: Something read does not match what covers it.
        """
        task = asking_of(trail.question, trail.proposal)
        gathered = await self._gather(tenant, view=trail.view, proposal=trail.proposal, task=task)
        return tuple(
            self._pack(
                gathered,
                question=replace(trail.question, budget_tokens=budget),
                view=trail.view,
                proposal=trail.proposal,
                configuration_hash=trail.configuration_hash,
                packer=trail.packer,
            )
            for budget in budgets_tokens
        )

    async def _erased(self, tenant: str, proposal: Proposal) -> tuple[str, ...]:
        named = sorted({event_id for candidate in proposal.candidates for event_id in candidate.event_ids})
        async with self.database.snapshot(tenant) as connection:
            keys = await tenant_keys(self.database, tenant, connection)
            found = await read_events_by_id(connection, keys, named)
        return tuple(event_id for event_id in named if isinstance(found.get(event_id), ErasedEvent))

    async def _propose(self, tenant: str, question: Question, view: View, record: Record) -> Proposal:
        """Ask discovery for candidates, and the record for what the question names."""
        try:
            proposal = await self.discovery.propose(tenant=tenant, question=question, view=view)
            check_proposal(proposal)
        except (Unavailable, Incorrect) as error:
            # The tenant is there and the question is in bounds, as the view's pinning and the doors have
            # seen to: whatever discovery says against them is a fault of its own.
            log.warning(
                "discovery_unavailable", code=error.code, reason=str(error.details().get("reason", ""))[:200]
            )
            proposal = await propose_degraded(self.database, tenant=tenant, question=question, view=view)
        return await self._grounded(tenant, question, view, proposal, record)

    async def _grounded(
        self, tenant: str, question: Question, view: View, proposal: Proposal, record: Record
    ) -> Proposal:
        """Return a proposal with the plan and the keys that the record gives."""
        if record.lacks(question, proposal):
            async with self.database.snapshot(tenant) as connection:
                keys = await tenant_keys(self.database, tenant, connection)
                await record.read(connection, keys, question=question, view=view, proposal=proposal)
        proposal = record.grounded(question, view=view, proposal=proposal)
        if record.lacks_relations(question, proposal):
            async with self.database.snapshot(tenant) as connection:
                keys = await tenant_keys(self.database, tenant, connection)
                await record.read_relations(connection, keys, view)
        return record.of_a_value(question, view=view, proposal=proposal)

    async def _asked_view(self, tenant: str, task: Asking, view: View, request: ViewRequest) -> View:
        """
        Return the view that the question's own words ask for, within what the caller sees.

        Who says a valid time himself keeps it; nobody is shown what was not known at his own view.
        """
        period = task.period if isinstance(task, Holders) else task.subjects[0].period
        if period is not None and request.valid_at is None:
            view = replace(view, valid_at=ValidAt(period.start))
        if isinstance(task, Holders) or task.known is None:
            return view
        known_at = KnownAt(min(task.known.end - MICROSECOND, view.known_at))
        return await pin(
            self.database,
            tenant,
            ViewRequest(
                valid_at=view.valid_at,
                known_at=known_at,
                generation=Generation(epoch=view.epoch, commit=view.cut),
                min_commit=None,
            ),
            wait_ms=0,
        )

    async def _gather(self, tenant: str, *, view: View, proposal: Proposal, task: Asking | None) -> _Gathered:
        """Read everything that an answer stands on; no budget has a part in it."""
        wanted = _keys(proposal)
        pairs = [(key.entity, key.relation) for key in wanted]
        async with self.database.snapshot(tenant) as connection:
            keys = await tenant_keys(self.database, tenant, connection)
            beside = read_beside(task, view) if isinstance(task, Task) else []
            every = list(dict.fromkeys([*pairs, *beside]))
            resolved = dict(zip(every, await resolve_many(connection, keys, view, every), strict=True))
            resolutions = tuple(
                [
                    await as_asked(connection, keys, proposal.plan, resolved[pair])
                    if key.named
                    else resolved[pair]
                    for key, pair in zip(wanted, pairs, strict=True)
                ]
            )
            answer_keys = [(key.entity, key.relation) for key in wanted if key.named]
            named = bool(answer_keys)
            derivation, more = await derived_for(connection, keys, view, task, resolved, is_named=named)
            resolutions = (*resolutions, *(each for each in more if each not in resolutions))
            closures = await close(
                connection,
                keys,
                view,
                resolutions=resolutions,
                answer_keys=[*answer_keys, *((each.entity, each.relation) for each in more)],
                # What is derived stands on resolved states alone: candidates could add nothing to it.
                candidates=() if isinstance(derivation, Derived) else proposal.candidates,
                plan=proposal.plan,
                standing=() if derivation is None else claims_of(derivation),
            )
            digests = KeyedDigests(
                tenant=keys, events=await event_keys(connection, keys, event_ids(resolutions))
            )
        return _Gathered(resolutions=resolutions, derivation=derivation, closures=closures, digests=digests)

    def _pack(
        self,
        gathered: _Gathered,
        *,
        question: Question,
        view: View,
        proposal: Proposal,
        configuration_hash: str,
        packer: int,
    ) -> ContextPack:
        return pack(
            question=question,
            plan=proposal.plan,
            view=view,
            proposal=proposal,
            closures=gathered.closures,
            resolutions=gathered.resolutions,
            digests=gathered.digests,
            counter=self.counter,
            configuration_hash=configuration_hash,
            packer=packer,
        )

    async def _build(
        self,
        tenant: str,
        question: Question,
        view: View,
        *,
        proposal: Proposal,
        task: Asking | None,
        configuration_hash: str,
        packer: int,
    ) -> _Built:
        gathered = await self._gather(tenant, view=view, proposal=proposal, task=task)
        packed = self._pack(
            gathered, question=question, view=view, proposal=proposal,
            configuration_hash=configuration_hash, packer=packer,
        )  # fmt: skip
        answer = realize(
            question=question,
            plan=proposal.plan,
            proposal=proposal,
            resolutions=gathered.resolutions,
            pack=packed,
            closures=gathered.closures,
            derivation=gathered.derivation,
        )
        return _Built(
            answer=answer,
            answer_digest=answer_digest(answer, gathered.digests),
            pack=packed,
            resolutions=gathered.resolutions,
        )


def _keys(proposal: Proposal) -> tuple[KeyProposal, ...]:
    """Return the keys to resolve: named ones first, the best of the others, each once, bounded."""
    ranked = sorted(proposal.keys, key=lambda key: (not key.named, -key.score_ppm, key.entity, key.relation))
    once = {(key.entity, key.relation): key for key in reversed(ranked)}
    kept = sorted(once.values(), key=lambda key: (not key.named, -key.score_ppm, key.entity, key.relation))
    return tuple(kept[: limits.KEYS_MAX])
