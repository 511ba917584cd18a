"""How a backlog is folded by several workers: the plane's own worker processes, tenants in parallel."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from contracts.grants import LOCAL_GRANT
from echoplane._keeper import own_command
from ledger.log import append, create_tenant, standings
from tests.bench.grounds import Grounds
from tests.bench.ledger_benches import reading
from tests.bench.measure import Row, latencies, rate

BACKLOG = 20_000
BACKLOG_LARGE = 100_000
OPERATIONS = 800
OPERATIONS_LARGE = 8_000
CLIENTS = 16
KEYS = 1_000
FAILURES = {
    "fold_failed", "fold_poisoned", "fold_refused", "fold_timed_out", "fold_unavailable", "process_failed",
}  # fmt: skip
POLL_SECONDS = 0.05
STALL_SECONDS = 300.0


async def workers(at: Grounds, *, large: bool) -> AsyncIterator[Row]:
    """A backlog of structured events by 1, 2 and 4 workers, of 1 and of 4 tenants; then many small folds."""
    events = BACKLOG_LARGE if large else BACKLOG
    for count, tenants in itertools.product((1, 2, 4), (1, 4)):
        names = [f"backlog-{count}-{tenants}-{number}" for number in range(tenants)]
        for name in names:
            drafts = (
                reading(number, entity=f"cup {number % KEYS}", value=f"room {number // KEYS % 7}")
                for number in range(events // tenants)
            )
            await at.tenant(name, drafts, folded=False)
        async with running(at, count) as logs:
            seconds, folded = await folding(at, names)
        took, failures = read(logs)
        note = f"{count} workers, {tenants} tenants, failures {failures}"
        yield rate(bench="workers", size=events, events=folded, seconds=[seconds], note=note)
        yield latencies(bench="one fold", size=events, seconds=took, note=note)
    operations = OPERATIONS_LARGE if large else OPERATIONS
    for count in (1, 4, 16):
        names = [f"operations-{count}-{number}" for number in range(4)]
        for name in names:
            await create_tenant(at.plane.database, name)
        async with running(at, count) as logs:
            started = time.perf_counter()
            await asyncio.gather(*(
                say(at, names[client % len(names)], range(client, operations, CLIENTS))
                for client in range(CLIENTS)
            ))  # fmt: skip
            await folding(at, names)
            seconds = time.perf_counter() - started
        took, failures = read(logs)
        note = f"{count} workers, appended meanwhile, failures {failures}"
        yield rate(bench="operations", size=operations, events=operations, seconds=[seconds], note=note)
        yield latencies(bench="one fold", size=operations, seconds=took, note=note)


async def say(at: Grounds, tenant: str, numbers: Sequence[int]) -> None:
    for number in numbers:
        draft = reading(number, entity=f"cup {number % KEYS}", value=f"room {number % 7}")
        await append(at.plane.database, tenant, [draft], grant=LOCAL_GRANT)


async def folding(at: Grounds, tenants: Sequence[str]) -> tuple[float, int]:
    """Wait until all is folded; return how long that took from the first that was, and how much it was."""
    begun: tuple[float, int] | None = None
    started = time.perf_counter()
    moved_at, before = started, -1
    while True:
        standing = [one for one in await standings(at.plane.database) if one.tenant in set(tenants)]
        now, done = time.perf_counter(), sum(one.position for one in standing)
        if done != before:
            moved_at, before = now, done
        if now - moved_at > STALL_SECONDS:
            raise TimeoutError(f"nothing was folded for {STALL_SECONDS} s")
        if begun is None and done:
            begun = (now, done)
        if all(one.cursor == one.head for one in standing):
            # All at one look: then it took no longer than that.
            since, at_first = begun if begun is not None and begun[1] < done else (started, 0)
            return now - since, done - at_first
        await asyncio.sleep(POLL_SECONDS)


@contextlib.asynccontextmanager
async def running(at: Grounds, count: int) -> AsyncIterator[list[Path]]:
    """Run so many of the plane's worker processes; yield their logs."""
    environment = {
        "PATH": os.defpath, "HOME": str(at.settings.data_dir), "LC_ALL": "C.UTF-8",
        "ECHOPLANE_DATA_DIR": str(at.settings.data_dir),
    }  # fmt: skip
    folder = Path(tempfile.mkdtemp(dir=at.settings.data_dir))
    with contextlib.ExitStack() as files:
        logs = [folder / f"worker-{number}.log" for number in range(1, count + 1)]
        started = [
            await asyncio.create_subprocess_exec(
                *own_command("role", "worker", str(number)), env=environment, cwd="/",
                stdin=asyncio.subprocess.PIPE, stdout=files.enter_context(log.open("wb")),
                stderr=asyncio.subprocess.STDOUT,
            )
            for number, log in enumerate(logs, start=1)
        ]  # fmt: skip
        try:
            await at_work(logs)
            yield logs
        finally:
            for process in started:
                process.terminate()
            await asyncio.gather(*(process.wait() for process in started))


async def at_work(logs: Sequence[Path]) -> None:
    """Wait until every process is up: sixteen that begin on two cores take half a minute of both."""
    async with asyncio.timeout(STALL_SECONDS):
        while not all(b'"worker_started"' in log.read_bytes() for log in logs):
            await asyncio.sleep(POLL_SECONDS)


def read(logs: Sequence[Path]) -> tuple[list[float], int]:
    """Return how many seconds each fold took, and how often one failed."""
    lines = [json.loads(line) for log in logs for line in log.read_text().splitlines() if line[:1] == "{"]
    folds = [line for line in lines if line["event"] == "folded" and line["events_count"]]
    return [line["duration_ms"] / 1_000 for line in folds], sum(line["event"] in FAILURES for line in lines)
