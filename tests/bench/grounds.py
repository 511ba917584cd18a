"""What is measured on: embedded servers as they are in use, durable, in a folder that is deleted after."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import psycopg

from contracts.errors import Unavailable
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from contracts.limits import APPEND_EVENTS_MAX, FOLD_EVENTS_MAX
from discovery import Embedder, load_minilm, serve
from echoplane._embedded import DATABASE, Servers, ensure_servers, stop_servers
from echoplane._folders import DataFolder
from echoplane._postgres import SUPERUSER
from echoplane._settings import Settings
from echoplane._sockets import discovery_socket
from echoplane._wiring import Plane, open_plane
from ledger.log import append, create_tenant
from ledger.schema import upgrade
from ledger.write import fold
from projection import RuleProjector


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """An open plane without any process of its own, and a connection that may make plain tables."""

    plane: Plane
    servers: Servers
    settings: Settings
    plain: psycopg.AsyncConnection
    chance: random.Random

    async def tenant(self, name: str, drafts: Iterable[EventDraft], *, folded: bool) -> str:
        """Make a tenant with a log, appended in the largest batches, and fold it if asked to."""
        await create_tenant(self.plane.database, name)
        waiting = iter(drafts)
        while batch := list(itertools.islice(waiting, APPEND_EVENTS_MAX)):
            await append(self.plane.database, name, batch, grant=LOCAL_GRANT)
        if folded:
            await self.fold(name)
        return name

    async def fold(self, tenant: str) -> int:
        """Fold to the head, and return how many events that were."""
        events = 0
        while True:
            report = await fold(self.plane.database, tenant, RuleProjector(), events_max=FOLD_EVENTS_MAX)
            events += report.events
            if report.is_at_head:
                return events

    @contextlib.asynccontextmanager
    async def discovery(self, *, embedding: bool) -> AsyncIterator[None]:
        """Serve proposals, with the model or with words and typed state alone."""
        stop = asyncio.Event()
        folder = DataFolder.at(self.settings.data_dir)
        socket = discovery_socket(folder)
        factory: Callable[[], Embedder] = no_model
        if embedding:
            model = await asyncio.to_thread(load_minilm, folder.root / "models")

            def factory() -> Embedder:
                return model

        task = asyncio.create_task(
            serve(self.plane.database, socket, redis_url=None, embedder_factory=factory, stop=stop)
        )
        while not socket.exists():
            await asyncio.sleep(0.05)
        if embedding:
            await self.plane.wait_discovery()
        try:
            yield
        finally:
            stop.set()
            await task
            await asyncio.to_thread(socket.unlink, missing_ok=True)

    async def vectors(self, tenant: str) -> int:
        cursor = await self.plain.execute("SELECT count(*) FROM unit_vector WHERE tenant = %s", [tenant])
        row = await cursor.fetchone()
        assert row is not None
        return int(row[0])


def _folder() -> Path:
    root = Path(tempfile.mkdtemp(prefix="echoplane-bench-"))
    # Root's servers run under another account, which has to pass through.
    root.chmod(0o711 if os.geteuid() == 0 else 0o700)
    return root


def no_model() -> Embedder:
    raise Unavailable(part="model", reason="measured without it")


@contextlib.asynccontextmanager
async def grounds() -> AsyncIterator[Grounds]:
    """Start servers, migrate, and open a plane; stop and delete all of it at the end."""
    root = _folder()
    settings = Settings(data_dir=root / "data")
    try:
        servers = await ensure_servers(settings)
        assert servers.database.owner is not None
        assert servers.postgres is not None
        await upgrade(servers.database.owner)
        conninfo = servers.postgres.conninfo(role=SUPERUSER, database=DATABASE)
        async with (
            await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as plain,
            open_plane(settings, servers, wait_ms=30_000) as plane,
        ):
            yield Grounds(
                plane=plane, servers=servers, settings=settings, plain=plain, chance=random.Random(11)
            )
    finally:
        await stop_servers(settings)
        DataFolder.at(settings.data_dir).discard()
        shutil.rmtree(root, ignore_errors=True)
