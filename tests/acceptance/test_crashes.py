"""
Issue 2, accepted when 3: nothing that is killed in the middle of an import changes what is remembered.

Two imports run at once, one by the command line and one by HTTP, while the worker, Redis with its
data, the API and the importing command itself are killed. Both are resumed, and then compared: events
with those of an undisturbed import, the folded ledger with a fold of the same log at one go.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from echoplane._embedded import DATABASE, urls
from echoplane._postgres import SUPERUSER, find_postgres, stop_postgres
from echoplane._state import Role
from ledger import log
from ledger.write import fold, ledger_digest
from projection import RuleProjector
from tests.acceptance.experience import experience
from tests.acceptance.planes import (
    PATIENCE_SECONDS,
    SHARED_DATA,
    RunningPlane,
    own_plane,
    wait_until,
    write_lines,
)

EVENT_ID = re.compile(r"\bev_[0-9a-z]+")
PROJECTED = ("cell", "line", "reach", "claim", "relation", "dead_letter")


class HttpImport(threading.Thread):
    """
    Posts events one by one, each again until it is acknowledged, as a careful client does.

    It goes no further than it is let, so that what is killed is killed in the middle on any machine.
    """

    def __init__(self, plane: RunningPlane, tenant: str, events: list[dict[str, Any]]) -> None:
        super().__init__(name=f"import-{tenant}", daemon=True)
        self.plane, self.tenant, self.events = plane, tenant, events
        self.acknowledged = self.failures = self.let = 0
        self.refused: str | None = None

    def run(self) -> None:
        with self.plane.http() as client:
            for event in self.events:
                while self.acknowledged >= self.let:
                    time.sleep(0.002)
                deadline = time.monotonic() + PATIENCE_SECONDS
                while not self._post(client, event):
                    if self.refused or time.monotonic() > deadline:
                        return
                    time.sleep(0.05)
                self.acknowledged += 1

    def _post(self, client: httpx.Client, event: dict[str, Any]) -> bool:
        try:
            answer = client.post(f"/v1/{self.tenant}/events", json={"events": [event]})
        except httpx.TransportError:
            self.failures += 1
            return False
        if answer.status_code not in {200, 201, 503}:
            self.refused = answer.text
        return answer.status_code in {200, 201}


@pytest.mark.timeout(900)
def test_kills_in_the_middle_of_an_import_change_neither_events_nor_ledger(tmp_path):
    events = experience(events_count=400, seed=3)

    with own_plane() as plane:
        disturbed_imports(plane, tmp_path, events)
        plane.run("emit", str(write_lines(tmp_path / "calm.jsonl", events)), "--tenant", "calm")
        plane.wait_folded()

        standing = plane.standing()
        assert {tenant: one[2] for tenant, one in standing.items()} == {"calm": 0, "cli": 0, "http": 0}
        assert asyncio.run(problems(plane, list(standing))) == []
        said = {tenant: asyncio.run(events_of(plane, tenant)) for tenant in standing}
        assert len(said["calm"]) == len(events)
        assert said["cli"] == said["calm"]
        assert said["http"] == said["calm"]

        assert_quiet_fold_is_equal(plane, list(standing))


def disturbed_imports(plane: RunningPlane, folder: Path, events: list[dict[str, Any]]) -> None:
    """Import into `cli` and `http` while everything is killed once, and resume what was killed."""
    with plane.http() as client:
        client.put("/v1/http").raise_for_status()
        client.put("/v1/cli").raise_for_status()
    file, output = write_lines(folder / "cli.jsonl", events), folder / "receipts.jsonl"
    importing = plane.begin("emit", str(file), "--tenant", "cli", "--json", output=output)
    posting = HttpImport(plane, "http", events)
    posting.start()

    total = len(events)

    def posted(share: float) -> None:
        posting.let = int((share + 0.2) * total)
        wait_until(
            lambda: posting.acknowledged >= share * total or not posting.is_alive(),
            what=f"{share:.0%} are posted", pause_seconds=0.002,
        )  # fmt: skip
        assert posting.acknowledged < total, posting.refused

    wait_until(
        lambda: output.exists() and output.read_bytes().count(b"\n") >= total * 0.1,
        what="the command has written a tenth", pause_seconds=0.002,
    )  # fmt: skip
    importing.send_signal(signal.SIGKILL)
    assert importing.wait() == -signal.SIGKILL
    assert plane.standing()["cli"][0] < total, "the command was through before it was killed"
    resumed = plane.begin("emit", str(file), "--tenant", "cli", "--json", output=folder / "resumed.jsonl")

    posted(0.2)
    plane.kill(Role.WORKER)
    posted(0.4)
    plane.kill_redis()
    posted(0.6)
    failures = posting.failures
    plane.kill(Role.API)
    posting.let = total
    wait_until(lambda: posting.failures > failures, what="a client notices that the API is gone")

    assert resumed.wait(timeout=PATIENCE_SECONDS) == 0, (folder / "resumed.jsonl").read_text()
    receipts = [json.loads(line) for line in (folder / "resumed.jsonl").read_text().splitlines()]
    assert any(receipt["repeated"] for receipt in receipts)
    assert not all(receipt["repeated"] for receipt in receipts)
    posting.join(timeout=PATIENCE_SECONDS)
    assert (posting.refused, posting.acknowledged) == (None, total)
    wait_until(plane.has_redis, what="Redis is back")


def assert_quiet_fold_is_equal(plane: RunningPlane, tenants: list[str]) -> None:
    plane.down()
    try:
        lived, quiet = asyncio.run(both_digests(plane, tenants))
    finally:
        asyncio.run(stop_postgres(plane.folder))
    assert set(lived) == set(tenants)
    assert lived == quiet


async def events_of(plane: RunningPlane, tenant: str) -> list[str]:
    """Return everything that was said, in order; an event that is named by id, by its position."""
    said: list[str] = []
    ids: dict[str, int] = {}
    async with plane.database() as database, database.snapshot(tenant) as connection:
        keys = await log.tenant_keys(database, tenant, connection)
        while page := await log.read_events(connection, keys, after_position=len(said), limit=500):
            for one in page:
                ids[one.event_id] = one.position
                said.append(f"{one.position} {one.draft.model_dump_json(by_alias=True)}")
    return [EVENT_ID.sub(lambda found: f"#{ids[found[0]]}", line) for line in said]


async def problems(plane: RunningPlane, tenants: list[str]) -> list[str]:
    """Recompute every chain, hash and seal, and return what is wrong."""
    async with plane.database() as database:
        reports = [await log.verify(database, tenant) for tenant in tenants]
    assert all(report.intact == (not report.problems) for report in reports)
    return [str(problem) for report in reports for problem in report.problems]


async def both_digests(plane: RunningPlane, tenants: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the digests of the ledgers as they came about, and of one fold of the same logs."""
    copy = await plane.copied_database("quiet")
    address = await find_postgres(plane.folder)
    assert address is not None
    with psycopg.connect(address.conninfo(role=SUPERUSER, database="quiet"), autocommit=True) as connection:
        connection.execute(f"TRUNCATE {', '.join(PROJECTED)}")
        connection.execute("UPDATE epoch SET commit = 0, position = 0, projector_version = ''")
    lived, quiet = {}, {}
    async with plane.database(urls(address, DATABASE)) as as_lived, plane.database(copy) as anew:
        for tenant in tenants:
            async with anew.snapshot(tenant) as connection:
                emptied = await ledger_digest(connection, 1)
            report = await fold(anew, tenant, RuleProjector(), events_max=1_000_000)
            assert report.is_at_head
            async with as_lived.snapshot(tenant) as connection:
                lived[tenant] = await ledger_digest(connection, 1)
            async with anew.snapshot(tenant) as connection:
                quiet[tenant] = await ledger_digest(connection, 1)
            assert emptied != quiet[tenant], "nothing was folded anew"
    return lived, quiet


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_public_logs_survive_kills_of_every_part(tmp_path):
    """The long form: a public conversation and a robot's whole log, each part killed several times."""
    conversation, robot = SHARED_DATA / "locomo/locomo5.json.gz", SHARED_DATA / "robot/armar7/events.jsonl.gz"
    if not (conversation.exists() and robot.exists()):
        pytest.skip(f"no public data in {SHARED_DATA}")
    imports = {
        "talk": ("import", "locomo", str(conversation), "--conversation", "conv-26", "--tenant", "talk"),
        "robot": ("import", "armar7", str(robot), "--tenant", "robot"),
    }

    with own_plane() as plane:
        for tenant, command in imports.items():
            calm = tuple(
                part if part != tenant or part == command[1] else f"calm-{tenant}" for part in command
            )
            [undisturbed] = plane.say(*calm)
            disturbed_import(plane, tenant, command, tmp_path, total=undisturbed["commit"])
            [again] = plane.say(*command)
            assert (again["projection_failures"], again["repeated"]) == (0, again["events"])
            assert again["folded"] == again["commit"] == undisturbed["commit"]
        plane.wait_folded(seconds=300)

        assert asyncio.run(problems(plane, list(plane.standing()))) == []
        for tenant in imports:
            said = asyncio.run(events_of(plane, tenant))
            assert said == asyncio.run(events_of(plane, f"calm-{tenant}"))
            print(f"{tenant}: {len(said)} events as in an undisturbed import")
        assert_quiet_fold_is_equal(plane, list(plane.standing()))


def disturbed_import(
    plane: RunningPlane, tenant: str, command: tuple[str, ...], folder: Path, *, total: int
) -> None:
    """Import once while each part in turn is killed: the importing command first, then what it uses."""

    def written() -> int:
        return plane.standing().get(tenant, (0, 0, 0))[0]

    def reached(share: float) -> None:
        wait_until(lambda: written() >= share * total, what=f"{share:.0%} are written", seconds=200)

    importing = plane.begin(*command, "--json", output=folder / "killed.jsonl")
    reached(0.1)
    importing.kill()
    importing.wait()
    assert written() < total, "the import was through before it was killed"
    output = folder / "import.jsonl"
    importing = plane.begin(*command, "--json", output=output)
    try:
        reached(0.3)
        plane.kill(Role.WORKER)
        reached(0.5)
        plane.kill_redis()
        reached(0.7)
        plane.kill(Role.API)
        reached(0.9)
        plane.kill(Role.WORKER)
        assert importing.wait(timeout=300) == 0, output.read_text()
    finally:
        importing.kill()
        importing.wait()
    wait_until(plane.is_ready, what="everything is back")
    wait_until(plane.has_redis, what="Redis is back")
