"""`make bench`: measure on this machine, print a table, and keep the numbers."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import signal
import time
from dataclasses import asdict
from pathlib import Path

import structlog

from echoplane._clock import wall_clock
from echoplane._survivors import survivors_spared
from tests.bench import (
    append_benches,
    asof_benches,
    discovery_benches,
    idle_benches,
    ledger_benches,
    packing_benches,
    path_benches,
    resolve_benches,
    value_benches,
    worker_benches,
)
from tests.bench.grounds import grounds
from tests.bench.measure import Row, Yardstick, table, with_growth, yardstick

BENCHES = {
    "append": append_benches.appends,
    "grown": append_benches.grown,
    "fold": ledger_benches.folds,
    "equal": ledger_benches.equal_readings,
    "asof": asof_benches.reads,
    "write": asof_benches.writes,
    "history": resolve_benches.histories,
    "hundred": resolve_benches.hundred,
    "values": value_benches.values,
    "workers": worker_benches.workers,
    "packing": packing_benches.choices,
    "visible": path_benches.visible,
    "ask": path_benches.asks,
    "propose": discovery_benches.proposals,
    "discoverable": discovery_benches.discoverable,
    "mem0": discovery_benches.beside_mem0,
    "idle": idle_benches.idle,
}
FOLDER = Path(__file__).resolve().parents[2] / "artifacts" / "bench"


async def measure(names: list[str], *, large: bool) -> tuple[list[Row], dict[str, list[Yardstick]]]:
    rows: list[Row] = []
    yardsticks: dict[str, list[Yardstick]] = {}
    async with grounds() as at:
        for name in names:
            before = await yardstick(at.plain)
            started = time.perf_counter()
            # As the processes of a plane do.
            with survivors_spared():
                found = [row async for row in BENCHES[name](at, large=large)]
            seconds = time.perf_counter() - started
            after = await yardstick(at.plain)
            rows += found
            yardsticks[name] = [before, after]
            print(
                f"{table(found)}\n{name}: {seconds:.0f} s; machine: {before} before, {after} after\n",
                flush=True,
            )
    return rows, yardsticks


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("benches", nargs="*", metavar="BENCH", help=", ".join(BENCHES))
    parser.add_argument("--large", action="store_true", help="ten times larger too; takes long")
    given = parser.parse_args()
    unknown = set(given.benches) - set(BENCHES)
    if unknown:
        parser.error(f"no such bench: {', '.join(sorted(unknown))}")
    # A log line a fold would be measured too.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    # Ended from outside, it must not leave its servers behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    started, load = wall_clock(), os.getloadavg()[0]

    rows, yardsticks = asyncio.run(measure(given.benches or list(BENCHES), large=given.large))

    machine = {
        "cpus": os.cpu_count(), "python": platform.python_version(), "load_before": round(load, 2),
        "load_after": round(os.getloadavg()[0], 2), "started_at": started.isoformat(timespec="seconds"),
    }  # fmt: skip
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / f"{started:%Y%m%dT%H%M%SZ}.json"
    before_and_after = {name: [asdict(one) for one in both] for name, both in yardsticks.items()}
    document = {
        "machine": machine | {"yardsticks": before_and_after},
        "rows": [row.as_json(growth) for row, growth in with_growth(rows)],
    }
    file.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print("median of n; beside: the same done plainly in this run; ratio: to it; x10: to the size before.")
    print(f"{machine}\nwritten to {file.relative_to(FOLDER.parents[1])}")


main()
