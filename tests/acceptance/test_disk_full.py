"""A disk that fills up under writers: nothing acknowledged is lost, and it goes on once there is room."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from echoplane._settings import Settings
from tests.acceptance.planes import RunningPlane, make_plane, wait_until
from tests.torture.checker import ledger_problems, log_problems
from tests.torture.writers import Writer

DISK_BYTES = 320 * 2**20
WRITERS_COUNT = 4


class Wordy(Writer):
    """Says so much that a disk soon feels it."""

    def _event(self) -> dict[str, Any]:
        event = super()._event()
        words = random.Random(self._number).randbytes(10_000).hex()
        return event | ({"text": f"{event['text']} {words}"} if "text" in event else {})


@pytest.fixture
def plane() -> Iterator[RunningPlane]:
    """A plane whose data folder is a small disk of its own."""
    made = make_plane()
    disk = made.root / "disk"
    disk.mkdir(mode=0o711)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=711", "tmpfs", str(disk)],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    if mounted.returncode:
        shutil.rmtree(made.root)
        pytest.skip(f"no small disk can be made here: {mounted.stderr.strip()}")
    try:
        made.data = disk / "data"
        made.settings = Settings(data_dir=made.data, http_port=made.port)
        made.up()
        yield made
    finally:
        made.close()
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
        shutil.rmtree(made.root, ignore_errors=True)


def fill(disk: Path) -> Path:
    """Leave no byte of a disk."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        for size in (2**20, 4_096):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))
    return ballast


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_full_disk_refuses_appends_loses_none_and_is_left_behind(plane):
    with plane.http() as client:
        client.put("/v1/north").raise_for_status()
    writers = [Wordy(plane, "north", name=f"w{number}", seed=number) for number in range(WRITERS_COUNT)]

    def told() -> int:
        return sum(len(writer.acknowledged) for writer in writers)

    for writer in writers:
        writer.start()
    wait_until(lambda: told() > 20, what="something is appended")
    ballast = fill(plane.data.parent)
    wait_until(
        lambda: all(writer.counts.failures > 2 or writer.counts.refused for writer in writers),
        what="the disk is felt",
    )
    ballast.unlink()
    before = told()
    wait_until(lambda: told() > before + 20 or any(w.counts.refused for w in writers), what="it goes on")
    for writer in writers:
        writer.stopping.set()
    for writer in writers:
        writer.join()
    plane.wait_folded()

    assert [one for writer in writers for one in writer.counts.refused] == []
    assert asyncio.run(problems(plane, [one for writer in writers for one in writer.acknowledged])) == []


async def problems(plane, acknowledged):
    async with plane.database() as db:
        return await log_problems(db, "north", acknowledged) + await ledger_problems(db, "north")
