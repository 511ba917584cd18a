"""Planes for the doors, and servers of one test alone for tests that kill them."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from contracts.errors import Unavailable
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from contracts.limits import WAIT_MS_MAX
from discovery import serve
from echoplane._cli import execute
from echoplane._embedded import Servers
from echoplane._folders import DataFolder
from echoplane._http import make_app
from echoplane._postgres import stop_postgres
from echoplane._redis import stop_redis
from echoplane._settings import Settings
from echoplane._sockets import discovery_socket
from echoplane._wiring import Plane, open_plane
from ledger.log import list_tenants
from ledger.write import fold
from projection import RuleProjector


@pytest.fixture
def place() -> Iterator[Path]:
    """A short path that root's servers can pass through; pytest's own folders are closed to them."""
    path = Path(tempfile.mkdtemp(prefix="echoplane-own-"))
    path.chmod(0o711 if os.geteuid() == 0 else 0o700)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def folder(place: Path) -> Iterator[DataFolder]:
    """A data folder of this test alone; what it started is stopped."""
    made = DataFolder.at(place / "data", system=place / "system")
    yield made
    asyncio.run(stop_and_discard(made))


@pytest.fixture(scope="session")
def plane_of_commands() -> Iterator[dict[str, str]]:
    """The environment of commands over a plane that is up; each test gives it tenants of its own."""
    root = Path(tempfile.mkdtemp(prefix="echoplane-cli-"))
    root.chmod(0o711)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {"ECHOPLANE_DATA_DIR": str(root / "data"), "ECHOPLANE_HTTP_PORT": str(port)}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        assert execute(["up", "--detach"]) == 0
    yield environment
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        assert execute(["down"]) == 0
        assert execute(["status"]) == 1
    DataFolder.at(root / "data").discard()
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def up(plane_of_commands: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands of this test speak to the plane that is up."""
    for name, value in plane_of_commands.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def data_dir(up: None, plane_of_commands: dict[str, str]) -> Path:
    return Path(plane_of_commands["ECHOPLANE_DATA_DIR"])


async def stop_and_discard(folder: DataFolder) -> None:
    if folder.root.is_dir():
        await stop_redis(folder)
        await stop_postgres(folder)
        folder.discard()


@pytest.fixture
async def plane(database, redis_url, place, request) -> AsyncIterator[Plane]:
    """An open plane on a fresh database, with no process of its own: tests fold when they want to."""
    # Only where nobody folds is a short wait a sure "not yet".
    wait_ms = WAIT_MS_MAX if "folding" in request.fixturenames else 500
    settings = Settings(data_dir=place / "data")
    servers = Servers(database=database, redis_url=redis_url, postgres=None, redis=None)
    async with open_plane(settings, servers, wait_ms=wait_ms) as opened:
        yield opened


@pytest.fixture
async def discovery(plane: Plane, patient: None) -> AsyncIterator[None]:
    """The discovery service of the plane, without a model: words and typed state."""

    def no_model():
        raise Unavailable(part="model", reason="a test needs none")

    stop = asyncio.Event()
    socket = discovery_socket(DataFolder.at(plane.settings.data_dir))
    task = asyncio.create_task(
        serve(plane.database, socket, redis_url=None, embedder_factory=no_model, stop=stop)
    )
    async with asyncio.timeout(60):
        while not socket.exists():
            if task.done():
                await task
            await asyncio.sleep(0.02)
    yield
    stop.set()
    await task


@pytest.fixture
def remember(plane: Plane):
    """Append events to a tenant, made if need be, one commit each, and fold them."""

    async def remember(tenant: str, *events: dict, folded: bool = True) -> list:
        await plane.make_tenant(tenant)
        receipts = [
            await plane.append(
                tenant, [EventDraft.model_validate(event)], grant=LOCAL_GRANT, expected_version=None
            )
            for event in events
        ]
        if folded:
            await fold(plane.database, tenant, RuleProjector(), events_max=1_000)
        return receipts

    return remember


@pytest.fixture
async def client(plane: Plane) -> AsyncIterator[httpx.AsyncClient]:
    """The HTTP door over the plane, called with the local token."""
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(make_app(plane)),
        base_url="http://127.0.0.1:7415",
        headers={"authorization": f"Bearer {plane.local_token}"},
    ) as made:
        yield made


@pytest.fixture
def turn():
    """Make an emit line."""

    def turn(text: str, *, who: str = "Ann", at: str | None = None, **more) -> dict:
        line = {"stream": "s1", "kind": "turn", "actor": {"id": who, "class": "user"}, "text": text}
        return line | ({} if at is None else {"observed_at": at}) | more

    return turn


@pytest.fixture
async def home(remember, turn):
    """A tenant that knows where Ann lives, and where she lived before."""
    return await remember(
        "home",
        turn("I live in Lyon.", at="2025-01-10T09:00:00+01:00", source_event_id="t1"),
        turn("I moved to Ghent.", at="2025-06-02T18:30:00+02:00", source_event_id="t2"),
    )


@pytest.fixture
async def folding(plane):
    """A worker beside the doors, until nothing asks any more: whoever registers waits until it is folded."""
    ended = asyncio.Event()

    async def work():
        while not ended.is_set():
            for tenant in await list_tenants(plane.database):
                await fold(plane.database, tenant, RuleProjector(), events_max=100)
            await asyncio.sleep(0.02)

    task = asyncio.create_task(work())
    yield
    ended.set()
    await task
