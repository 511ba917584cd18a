"""
An open plane: the parts that answer, put together once, and the use cases that doors call.

Doors decide nothing and neither does this module: it passes requests on and presents what comes back.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib.metadata import version as installed_version
from typing import TYPE_CHECKING, Final

from audit import replay
from contracts import limits
from contracts.discovery_wire import ReindexAnswer
from contracts.epoch_wire import RegisteredAnswer
from contracts.errors import NotFound, Unavailable
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT, RELATIONS, Grant
from contracts.read_wire import ResolveAnswer
from contracts.relation_wire import ContractAnswer
from contracts.relations import RelationContract
from contracts.reports import TenantStatus
from contracts.trails import Question
from contracts.views import ViewRequest
from contracts.wire import (
    AskAnswer,
    EventAnswer,
    ReceiptAnswer,
    ReplayAnswer,
    StoredContextAnswer,
    TokenAnswer,
    VerifyAnswer,
)
from discovery import Client
from echoplane import _present as present
from echoplane._clock import wall_clock
from echoplane._configuration import configuration_hash
from echoplane._embedded import Servers
from echoplane._embedders import configured_model
from echoplane._folders import DataFolder
from echoplane._keys import load_master_key
from echoplane._plane import ask_for
from echoplane._present_reads import resolve_answer
from echoplane._query import Path
from echoplane._settings import Settings
from echoplane._sockets import discovery_sockets
from echoplane._state import Role
from echoplane._status import tenant_status
from echoplane._tokens import ensure_local_token, is_local
from ledger import log as ledger_log
from ledger.erase import PLANE
from ledger.log import EpochState, list_epochs
from ledger.resolve import pin, registered_contracts, resolve_at, usual_contract, verify_cells
from ledger.write import register_contract, verify_claims
from packing import ApproximateCounter
from projection import RuleProjector, link, span

if TYPE_CHECKING:
    from echoplane._language_model import ChatModel

FOLD_STALL_SECONDS: Final = 60.0
"""An import gives up waiting for its fold when nothing has moved for this long."""
DISCOVERY_START_SECONDS: Final = 15.0
"""A command waits this long for a discovery that it has started; its model takes a second to load."""
_POLL_SECONDS: Final = 0.1
NEWEST: Final = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """
    The use cases.

    `wait_ms` bounds how long a read waits for a commit to be folded. Reads that hold a connection for
    long take a turn of `long_reads`: however many are asked for, appends and short reads have theirs.
    """

    settings: Settings
    servers: Servers
    database: ledger_log.Database
    path: Path
    discovery: Client
    local_token: str = field(repr=False)
    wait_ms: int
    long_reads: ledger_log.Turns = field(repr=False)

    @property
    def version(self) -> str:
        return installed_version("echoplane")

    # --- who may -----------------------------------------------------------------------------

    async def grant_of(self, bearer: str) -> Grant:
        """
        Return what a token grants.

        Raises:
            Unauthenticated: It is none of ours.
        """
        if is_local(bearer, self.local_token):
            return LOCAL_GRANT
        return await ledger_log.find_grant(self.database, bearer)

    async def has_tenant(self, tenant: str) -> bool:
        return await ledger_log.tenant_exists(self.database, tenant)

    async def must_have(self, tenant: str) -> None:
        """
        Refuse a tenant that is not there: whoever mistypes a name must not make one.

        Raises:
            NotFound: No such tenant.
        """
        if not await self.has_tenant(tenant):
            raise NotFound(what="tenant")

    async def make_tenant(self, tenant: str, *, created_by: str = PLANE) -> bool:
        """Make a tenant unless it is there; True if this call made it."""
        return await ledger_log.create_tenant(self.database, tenant, created_by=created_by)

    async def make_token(self, tenant: str, grant: Grant, *, label: str) -> TokenAnswer:
        token = await ledger_log.create_token(
            self.database,
            tenant,
            rights=grant.rights,
            actors=grant.actors,
            classes=grant.classes,
            label=label,
        )
        return TokenAnswer(
            tenant=tenant,
            token=token,
            label=label,
            rights=sorted(right.value for right in grant.rights),
            actors=sorted(grant.actors),
            classes=sorted(grant.classes),
        )

    # --- events ------------------------------------------------------------------------------

    async def append(
        self,
        tenant: str,
        drafts: Sequence[EventDraft],
        *,
        grant: Grant,
        expected_version: int | None,
        sent_at: datetime | None = None,
    ) -> ReceiptAnswer:
        with span("append") as appending:
            receipt = await ledger_log.append(
                self.database, tenant, drafts, grant=grant, expected_version=expected_version, sent_at=sent_at
            )
            link(appending, tenant, [receipt.commit])
        return present.receipt_answer(receipt)

    async def keeps_order(self, tenant: str) -> bool:
        """Return whether appends with values that are called at once are committed in that order."""
        return await ledger_log.keeps_order(self.database, tenant)

    async def event(self, tenant: str, event_id: str) -> EventAnswer:
        return present.event_answer(tenant, await ledger_log.read_event(self.database, tenant, event_id))

    async def verify(self, tenant: str, *, checkpoint: ledger_log.Checkpoint | None = None) -> VerifyAnswer:
        """
        Recompute the log, project it again, and hold what was folded against the claims.

        `checkpoint` is one whose signature was checked: the log must still begin so.
        """
        report = await ledger_log.verify(self.database, tenant, checkpoint=checkpoint)
        claims = await verify_claims(self.database, tenant, RuleProjector())
        return present.verify_answer(report, claims, await verify_cells(self.database, tenant))

    # --- reads -------------------------------------------------------------------------------

    async def after_last_commit(self, tenant: str, request: ViewRequest) -> ViewRequest:
        """
        Return the request, made to wait for everything that is in the tenant's log now.

        One that names its generation waits for that alone. An ephemeral plane gets its worker only
        here, where there is something for it to fold.
        """
        live = {EpochState.SERVING, EpochState.BUILDING}
        epochs = [one for one in await list_epochs(self.database, tenant) if one.state in live]
        if any(epoch.commit < epoch.head for epoch in epochs):
            await ask_for(self.settings, Role.WORKER)
        if request.generation is not None:
            return request
        return replace(request, min_commit=max(epochs[0].head, request.min_commit or 0))

    async def resolve(self, tenant: str, entity: str, relation: str, request: ViewRequest) -> ResolveAnswer:
        return resolve_answer(
            *await resolve_at(self.database, tenant, request, entity, relation, wait_ms=self.wait_ms)
        )

    async def register_contract(
        self, tenant: str, contract: RelationContract, *, new_epoch: bool
    ) -> RegisteredAnswer:
        """
        Register a contract and return the one that decides the relation from then on.

        It is another one where a claim on the relation came in between.

        Raises:
            BadRequest: It cannot be applied.
            RelationInUse: There are claims on the relation already, and `new_epoch` is not wanted.
        """
        # What is not folded yet may claim on the relation: it counts before the registration is tried.
        await pin(self.database, tenant, await self.after_last_commit(tenant, NEWEST), wait_ms=self.wait_ms)
        registered = await register_contract(
            self.database,
            tenant,
            contract,
            stream=RELATIONS,
            actor_id="operator",
            grant=LOCAL_GRANT,
            new_epoch=new_epoch,
        )
        answer = ContractAnswer.of(contract, registered=True)
        if not registered.building:
            answer = await self.contract(tenant, contract.relation)
        return RegisteredAnswer.of_epoch(
            answer,
            epoch=registered.epoch,
            building=registered.building,
            unchanged=registered.receipt.repeated,
        )

    async def contract(self, tenant: str, relation: str) -> ContractAnswer:
        """Return the contract that decides a relation once everything in the log is folded."""
        registered = await self._registered(tenant)
        found = registered.get(relation)
        return ContractAnswer.of(found or usual_contract(relation), registered=found is not None)

    async def contracts(self, tenant: str) -> list[ContractAnswer]:
        """Return the registered contracts by relation, once everything in the log is folded."""
        registered = await self._registered(tenant)
        return [ContractAnswer.of(one, registered=True) for _, one in sorted(registered.items())]

    async def _registered(self, tenant: str) -> Mapping[str, RelationContract]:
        request = await self.after_last_commit(tenant, NEWEST)
        view = await pin(self.database, tenant, request, wait_ms=self.wait_ms)
        async with self.database.snapshot(tenant) as connection:
            keys = await ledger_log.tenant_keys(self.database, tenant, connection)
            return await registered_contracts(connection, keys, view)

    async def ask(
        self, tenant: str, question: Question, request: ViewRequest, *, read: bool = False
    ) -> AskAnswer:
        asked = await self.path.ask(tenant, question, request, wait_ms=self.wait_ms, read=read)
        return present.ask_answer(
            answer=asked.answer,
            pack=asked.pack,
            proposal=asked.proposal,
            resolutions=asked.resolutions,
            trail=asked.trail,
        )

    async def context(self, tenant: str, context_hash: str) -> StoredContextAnswer:
        stored = await ledger_log.read_context(self.database, tenant, context_hash)
        return present.context_form_answer(stored)

    async def replay(self, tenant: str, context_hash: str) -> ReplayAnswer:
        async with self.long_reads.of(tenant):
            return present.replay_answer(await replay(self.path, self.database, tenant, context_hash))

    # --- how it stands -----------------------------------------------------------------------

    async def standing(self) -> list[TenantStatus]:
        """Return where each tenant's log and serving epoch stand: numbers and states alone."""
        found = await ledger_log.standings(self.database)
        return [tenant_status(one, now=self.database.clock()) for one in found]

    async def wait_folded(self, tenant: str, commit: int) -> TenantStatus:
        """
        Wait until a commit is folded or an event stops the fold, as long as it moves.

        Raises:
            Unavailable: Nothing moved for `FOLD_STALL_SECONDS`.
        """
        clock = asyncio.get_running_loop().time
        moved, cursor = clock(), -1
        while True:
            one = next(found for found in await self.standing() if found.tenant == tenant)
            if one.cursor >= commit or one.dead_letters:
                return one
            if one.cursor != cursor:
                moved, cursor = clock(), one.cursor
            if clock() - moved > FOLD_STALL_SECONDS:
                raise Unavailable(
                    part="worker", reason=f"folded to {one.cursor} of {commit} and stands still"
                )
            await asyncio.sleep(_POLL_SECONDS)

    async def reindex(self, tenant: str) -> ReindexAnswer:
        """
        Have discovery drop a tenant's index and vectors and make them anew; nothing waits for that.

        Raises:
            NotFound: No such tenant.
            Unavailable: Discovery is down.
        """
        await self.must_have(tenant)
        return ReindexAnswer(tenant=tenant, vectors_dropped=await self.discovery.drop_index(tenant))

    async def wait_discovery(self) -> None:
        """Wait, within a bound, for a discovery that is just starting; without it the answer is degraded."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + DISCOVERY_START_SECONDS
        while clock() < deadline:
            with contextlib.suppress(Unavailable):
                if (await self.discovery.health()).model_digest is not None:
                    return
            await asyncio.sleep(_POLL_SECONDS)


@contextlib.asynccontextmanager
async def open_plane(settings: Settings, servers: Servers, *, wait_ms: int) -> AsyncIterator[Plane]:
    """Put the parts together over running servers, and take them apart at the end."""
    folder = DataFolder.at(settings.data_dir)
    database = ledger_log.open_database(
        plane_url=servers.database.plane,
        relay_url=servers.database.relay,
        master_key=load_master_key(settings, folder),
        clock=wall_clock,
    )
    counter = ApproximateCounter()
    client = Client(discovery_sockets(folder, count=settings.discoveries))
    reader = _reader(settings)
    try:
        yield Plane(
            settings=settings,
            servers=servers,
            database=database,
            discovery=client,
            path=Path(
                database=database,
                discovery=client,
                counter=counter,
                configuration_hash=configuration_hash(
                    projector=RuleProjector().version,
                    model_digest=configured_model(settings),
                    counter=counter.name,
                ),
                reader=reader,
            ),
            local_token=ensure_local_token(folder),
            wait_ms=wait_ms,
            long_reads=ledger_log.Turns(
                part="reads",
                places=asyncio.Semaphore(limits.LONG_READS_AT_ONCE),
                wait_seconds=limits.LONG_READ_WAIT_SECONDS,
                of_tenant=limits.LONG_READS_OF_TENANT,
            ),
        )
    finally:
        if reader is not None:
            await reader.close()
        await database.close()


def _reader(settings: Settings) -> ChatModel | None:
    if settings.reader_url is None:
        return None
    # It brings an HTTP client, which nothing else here needs.
    from echoplane._language_model import configured_reader  # noqa: PLC0415 -- see above

    return configured_reader(settings)
