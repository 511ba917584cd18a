"""Servers of one test alone, for tests that kill them or look into their folders."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from echoplane._folders import DataFolder
from echoplane._postgres import stop_postgres
from echoplane._redis import stop_redis


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


async def stop_and_discard(folder: DataFolder) -> None:
    if folder.root.is_dir():
        await stop_redis(folder)
        await stop_postgres(folder)
        folder.discard()
