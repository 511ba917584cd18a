"""
A relay or a worker beside those of the plane, as a process of its own, to be killed and to be stopped.

Arguments: `relay` or `worker`, the data folder, the consumer, and the seconds of its lease.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import projection._worker
from echoplane._clock import wall_clock
from echoplane._embedded import find_servers
from echoplane._folders import DataFolder
from echoplane._keys import load_master_key
from echoplane._settings import Settings
from ledger.log import open_database
from projection import RuleProjector, run_relay, run_worker
from tests.torture.parts import CLOCK_STEP


def stepped(step: Path) -> Callable[[], datetime]:
    """Return a clock that is as many seconds off as a file says."""

    def clock() -> datetime:
        seconds = float(step.read_text(encoding="utf-8")) if step.exists() else 0.0
        return wall_clock() + timedelta(seconds=seconds)

    return clock


async def run(what: str, data_dir: str, consumer: str, lease_seconds: float) -> None:
    projection._worker.FOLD_LEASE_SECONDS = lease_seconds  # type: ignore[misc]  # what a run can wait for
    # As far below it as ever: a fold that is as long as its lease is cut off and begun anew for ever.
    projection._worker.FOLD_SECONDS = lease_seconds / 10  # type: ignore[misc]
    projection._worker.LEASE_MS = round(lease_seconds * 1_000)  # type: ignore[misc]
    projection._worker.CLAIM_POLL_MS = 500  # type: ignore[misc]
    projection._worker.OVERDUE_SECONDS = 1.0  # type: ignore[misc]
    settings = Settings(data_dir=Path(data_dir))
    servers = await find_servers(settings)
    if servers is None:
        raise SystemExit(1)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    db = open_database(
        plane_url=servers.database.plane,
        relay_url=servers.database.relay,
        master_key=load_master_key(settings, DataFolder.at(settings.data_dir)),
        clock=stepped(Path(data_dir).parent / CLOCK_STEP),
    )
    if what == "relay":
        await run_relay(db, servers.redis_url, stop=stop)
    else:
        await run_worker(db, servers.redis_url, RuleProjector(), consumer=consumer, stop=stop)
    await db.close()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])))
