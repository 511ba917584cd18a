"""The discovery service: a process of its own behind a socket in a private folder."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

import structlog

from contracts.errors import EchoplaneError, Unavailable
from contracts.proposals import Proposal, RouteState
from contracts.trails import Question
from contracts.views import View
from discovery._cache import IndexCache
from discovery._cells import Near
from discovery._embedder import Embedder, Vectors
from discovery._index import TenantIndex
from discovery._keeper import Keeper, drop_index
from discovery._planner import plan_question
from discovery._private import is_private, make_folder
from discovery._propose import NO_DENSE, Dense, compose
from discovery._selection import DENSE_ROWS
from discovery._shards import shard_of
from discovery._speakers import dense_question
from discovery._wakeups import listen, watch
from discovery._wire import (
    REQUEST_BYTES_MAX,
    Dropped,
    DropRequest,
    Health,
    HealthRequest,
    ProposeRequest,
    decode_request,
    encode_error,
    encode_proposals,
    read_frame,
    write_frame,
)
from ledger import log

REQUESTS_MAX: Final = 64
"""Requests served at once; one more is told to come again."""
REQUEST_SECONDS: Final = 10.0
"""For one request, from its first byte to its answer."""
CATCH_UP_SECONDS: Final = 4.0
"""How long a question waits for its index to reach the cut; then it is answered with what there is."""
DENSE_SECONDS: Final = 3.0
"""How long a question waits for its vector and what is near it: an endpoint may be slow or gone."""
CANCEL_AGAIN_SECONDS: Final = 0.2
"""How long a task may take to end before it is told again."""
SOCKET_PATH_BYTES_MAX: Final = 107
"""What fits into a socket's address."""

assert CATCH_UP_SECONDS + DENSE_SECONDS < REQUEST_SECONDS

_log = structlog.get_logger(__name__)


class Service:
    """Answers requests from a keeper's indexes."""

    def __init__(
        self,
        db: log.Database,
        keeper: Keeper,
        *,
        catch_up_seconds: float = CATCH_UP_SECONDS,
        dense_seconds: float = DENSE_SECONDS,
    ) -> None:
        self._db = db
        self._keeper = keeper
        self._catch_up_seconds = catch_up_seconds
        self._dense_seconds = dense_seconds
        self._serving = 0
        self.embedder_failed = False
        """Whether the embedder could not be made: the dense route says so in each report."""

    async def propose(
        self, *, tenant: str, question: Question, view: View, without: Collection[str] = ()
    ) -> Proposal:
        """Return candidates for a question. Raises as `propose_many`."""
        (proposal,) = await self.propose_many(tenant=tenant, questions=[question], view=view, without=without)
        return proposal

    async def propose_many(
        self, *, tenant: str, questions: Sequence[Question], view: View, without: Collection[str] = ()
    ) -> list[Proposal]:
        """
        Return candidates for each question, from one look at the log.

        Raises:
            NotFound: No such tenant.
            Unavailable: The database is down, or the tenant is cold and takes longer to load than a question
                waits.
        """
        while True:
            index = await self._keeper.ready(
                tenant, cut=view.cut, epoch=view.epoch, wait_seconds=self._catch_up_seconds
            )
            if not index.is_warm:
                # Of a log that was read in part the oldest would look like all there is.
                raise Unavailable(part="discovery", reason="it is still reading the tenant's log")
            found = [NO_DENSE] * len(questions)
            if "dense" not in without:
                texts = [question.text for question in questions]
                found = await self._dense(tenant, index, texts, view.cut)
            if not index.is_dropped:
                break
        names = index.names.at(view.cut)
        late = index.complete_commit < view.cut
        proposals: list[Proposal] = []
        for question, dense in zip(questions, found, strict=True):
            # Nothing waits in here: the index cannot grow between one route and the next.
            plan = plan_question(question.text, names, valid_at=view.valid_at)
            proposals.append(
                compose(index, plan, question.text, view=view, late=late, dense=dense, without=without)
            )
        return proposals

    async def _dense(self, tenant: str, index: TenantIndex, texts: list[str], cut: int) -> list[Dense]:
        """Return what the dense route has for each question by its deadline, or why it has nothing."""
        started = time.perf_counter_ns()
        state = RouteState.FAILED if self.embedder_failed else RouteState.LATE
        try:
            async with asyncio.timeout(self._dense_seconds):
                near = await self._near(tenant, index, texts, cut)
        except TimeoutError:
            near = []
        except EchoplaneError as error:
            _log.warning("dense_route_failed", error=error.code)
            near, state = [], RouteState.FAILED
        duration_us = (time.perf_counter_ns() - started) // 1_000
        if not near:
            return [Dense(state=state, vector=None, near=None, duration_us=duration_us)] * len(texts)
        return [
            Dense(state=RouteState.OK, vector=vector, near=one, duration_us=duration_us)
            for vector, one in near
        ]

    async def _near(
        self, tenant: str, index: TenantIndex, texts: list[str], cut: int
    ) -> list[tuple[Vectors, Near | None]]:
        count = index.count_at(cut)
        embedding = self._keeper.embedding
        vectors = await embedding.questions([dense_question(index, text, count) for text in texts])
        if vectors is None or vectors.shape[1] != index.dimensions:
            # The embedder came while the question was being answered: the next one finds it in use.
            return []
        if index.codes is None:
            return [(vector, None) for vector in vectors]
        return [
            (
                vector,
                await embedding.scored(
                    tenant, index, index.codes.nearest(vector, count=count, limit=DENSE_ROWS), vector
                ),
            )
            for vector in vectors
        ]

    async def drop(self, tenant: str) -> int:
        """
        Delete a tenant's vectors, begin its index anew, and return how many vectors there were.

        Raises:
            NotFound: No such tenant.
            Unavailable: The database is down.
        """
        self._keeper.forget(tenant)
        dropped = await drop_index(self._db, tenant)
        self._keeper.forget(tenant)
        # What is read now, nobody who asks has to wait for.
        await self._keeper.begin(tenant)
        return dropped

    def health(self) -> Health:
        """Return how the service is."""
        return self._keeper.health()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection: one request, one answer."""
        self._serving += 1
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                await write_frame(writer, await self._answer(reader))
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            # Whoever asked has gone, or takes too long to say what they want.
            _log.info("connection_given_up")
        finally:
            self._serving -= 1
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        started = time.perf_counter_ns()
        operation = "unread"
        try:
            self._check_busy()
            request = decode_request(await read_frame(reader, bytes_max=REQUEST_BYTES_MAX))
            operation = request.operation
            answer = await self._perform(request)
            code = "ok"
        except EchoplaneError as error:
            answer, code = encode_error(error), error.code
        _log.info(
            "request_served",
            operation=operation,
            outcome=code,
            duration_us=(time.perf_counter_ns() - started) // 1_000,
        )
        return answer

    def _check_busy(self) -> None:
        if self._serving > REQUESTS_MAX:
            raise Unavailable(part="discovery", reason="too many requests at once")

    async def _perform(self, request: ProposeRequest | DropRequest | HealthRequest) -> bytes:
        match request:
            case ProposeRequest(tenant=tenant, without=without):
                questions, view = request.contents()
                return encode_proposals(
                    await self.propose_many(tenant=tenant, questions=questions, view=view, without=without)
                )
            case DropRequest(tenant=tenant):
                return Dropped(vectors=await self.drop(tenant)).model_dump_json().encode()
            case HealthRequest():
                return self.health().model_dump_json().encode()


async def serve(
    db: log.Database,
    socket_path: Path,
    *,
    redis_url: str | None,
    embedder_factory: Callable[[], Embedder],
    stop: asyncio.Event,
    shard: int = 0,
    shards: int = 1,
    cache_folder: Path | None = None,
) -> None:
    """
    Serve until told to stop.

    Args:
        db: The database, as the plane's role.
        socket_path: Where to listen. Its folder must be for this user alone (0700); it is made if missing.
        redis_url: Where wake-ups come from; None to do without.
        embedder_factory: Makes the embedder, in a thread; until it has, the dense route is late.
        stop: Set to stop.
        shard: The number of this process, from 0, of `shards`; it warms only its own tenants.
        shards: How many processes share the tenants.
        cache_folder: Where indexes of large tenants are kept, encrypted; None to keep none.

    Raises:
        Unavailable: The folder is not private, or another service listens there already.
    """
    await _claim_socket(socket_path)
    cache = None if cache_folder is None else IndexCache(cache_folder)
    keeper = Keeper(db, embedder=None, cache=cache)
    service = Service(db, keeper)
    hint = asyncio.Event()

    def owns(tenant: str) -> bool:
        return shard_of(tenant, shards) == shard

    server = await asyncio.start_unix_server(service.handle, path=socket_path)
    _log.info("discovery_ready")
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_make_embedder(service, keeper, embedder_factory)),
                group.create_task(keeper.embed_in_background()),
                group.create_task(watch(db, keeper.wake, hint=hint, owns=owns)),
            ]
            if redis_url is not None:
                tasks.append(group.create_task(listen(redis_url, hint=hint, stop=stop, shard=shard)))
            try:
                await stop.wait()
            finally:
                # A bug in one ends all.
                stop.set()
                await _end(tasks)
    finally:
        server.close()
        await server.wait_closed()
        keeper.close()
        _remove(socket_path)


async def _end(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel tasks until they are done: `asyncio.wait_for` before Python 3.12 can lose a cancellation."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=CANCEL_AGAIN_SECONDS)


async def _make_embedder(service: Service, keeper: Keeper, factory: Callable[[], Embedder]) -> None:
    try:
        keeper.use(await asyncio.to_thread(factory))
    except EchoplaneError as error:
        # Words and typed state still find things: said in each report and in health, not fatal.
        service.embedder_failed = True
        _log.exception("embedder_failed", error=error.code)


async def _claim_socket(socket_path: Path) -> None:
    if len(str(socket_path).encode()) > SOCKET_PATH_BYTES_MAX:
        raise Unavailable(
            part="discovery", reason=f"its socket's path has over {SOCKET_PATH_BYTES_MAX} bytes"
        )
    make_folder(socket_path.parent)
    if not is_private(socket_path.parent):
        raise Unavailable(part="discovery", reason="the folder of its socket is not this user's alone")
    try:
        _, writer = await asyncio.open_unix_connection(socket_path)
    except OSError:
        # Nobody answers: what lies there is left from a process that was killed.
        _remove(socket_path)
        return
    writer.close()
    raise Unavailable(part="discovery", reason="another one listens on its socket")


def _remove(socket_path: Path) -> None:
    socket_path.unlink(missing_ok=True)
