"""
anatid, measured by itself: run with an interpreter of its own that has it and nothing of ours.

Reads one JSON object a line: `{"fill": size}`, `{"read": [[valid, known], …]}`, `{"write": count}`;
answers each with one. Text search is off: it would fetch an extension.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime, timedelta

from anatid import Anatid
from anatid.types import AsOf

START = datetime(2000, 1, 1, tzinfo=UTC)
# Revisions that its own verbs write; more are copies of their rows, as much later.
BLOCK = 70
TENANT = 1
# Farther apart than the ids of one block.
APART = 1 << 40
_LATER = (
    "valid_from + shift AS valid_from, valid_to + shift AS valid_to, tx_from + shift AS tx_from, "
    "tx_to + shift AS tx_to"
)
COPIED = {
    "memories": f"memory_id + k * {APART} AS memory_id, created_at + shift AS created_at, {_LATER}",
    "edges_about": f"edge_id + k * {APART} AS edge_id, src + k * {APART} AS src, {_LATER}",
    "edges_supersedes": (
        f"edge_id + k * {APART} AS edge_id, src + k * {APART} AS src, dst + k * {APART} AS dst, "
        "tx_from + shift AS tx_from"
    ),
}


def said_at(number: float) -> datetime:
    return START + timedelta(minutes=number)


def fill(db: Anatid, size: int) -> None:
    """Let one entity have so many revisions, rounded up to whole blocks."""
    memory = db.remember("value 0", entities=["thing"], now=said_at(0))
    for number in range(1, BLOCK + 1):
        memory = db.supersede(memory.memory_id, f"value {number}", now=said_at(number))
    # The one past the block closed its last one; each copy begins with one like it.
    for table, own in (("memories", "memory_id"), ("edges_about", "src"), ("edges_supersedes", "src")):
        db.execute(f"DELETE FROM {table} WHERE {own} = ?", [memory.memory_id])
    for table, changed in COPIED.items():
        db.execute(
            f"INSERT INTO {table} BY NAME SELECT * EXCLUDE (k, shift) REPLACE ({changed}) FROM {table}, "
            f"(SELECT k, to_minutes(k * {BLOCK}) AS shift FROM range(1, {-(-size // BLOCK)}) AS g(k))"
        )
    db.checkpoint()


def read(db: Anatid, asked: list[tuple[int, int]]) -> list[tuple[float, list[str]]]:
    found = []
    for valid, known in asked:
        # Read times are naive there and mean UTC.
        scope = AsOf(
            valid_time=said_at(valid + 0.5).replace(tzinfo=None),
            tx_time=said_at(known + 0.5).replace(tzinfo=None),
        )
        started = time.perf_counter()
        memories = db.context("thing", as_of=scope)
        seconds = time.perf_counter() - started
        found.append((seconds, [memory.content for memory in memories]))
    return found


def write(db: Anatid, count: int) -> float:
    memory = db.remember("value 0", entities=["written"], now=said_at(0))
    started = time.perf_counter()
    for number in range(1, count + 1):
        memory = db.supersede(memory.memory_id, f"value {number}", now=said_at(number))
    return time.perf_counter() - started


def main() -> None:
    # Nothing is fetched or sent: no extension, no update.
    options = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    with Anatid.open(sys.argv[1], tenant=TENANT, fts=False, duckdb_config=options) as db:
        for line in sys.stdin:
            [(name, given)] = json.loads(line).items()
            match name:
                case "fill":
                    answer = fill(db, given)
                case "read":
                    answer = read(db, given)
                case _:
                    answer = write(db, given)
            print(json.dumps(answer), flush=True)


main()
