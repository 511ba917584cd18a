"""
The PostgreSQL recorder of `eventsourcing`, measured by itself: run with an interpreter of its own.

Reads one JSON object a line, `{"open": [conninfo parts]}` and
then `{"append": [with functions or not, clients, batch, events, bytes of each]}`; answers each with one.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import uuid

from eventsourcing.persistence import StoredEvent
from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore


def opened(host: str, port: int, user: str, dbname: str, *, functions: bool) -> PostgresApplicationRecorder:
    store = PostgresDatastore(
        dbname, host, port, user, "", pool_size=16, max_waiting=64, enable_db_functions=functions
    )
    recorder = PostgresApplicationRecorder(store, events_table_name=f"other_{int(functions)}")
    recorder.create_table()
    return recorder


def append(
    recorder: PostgresApplicationRecorder, clients: int, batch: int, events: int, size: int
) -> tuple[float, float]:
    """Return how many seconds so many clients take, each with a stream of its own, and this process."""
    state = b"s" * size

    def one() -> list[list[StoredEvent]]:
        stream = uuid.uuid4()
        made = [StoredEvent(stream, 1 + number, "reading", state) for number in range(events // clients)]
        return [made[start : start + batch] for start in range(0, len(made), batch)]

    def run(batches: list[list[StoredEvent]]) -> None:
        for each in batches:
            recorder.insert_events(each)

    threads = [threading.Thread(target=run, args=[one()]) for _ in range(clients)]
    started, before = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - started, time.process_time() - before


def main() -> None:
    recorders: list[PostgresApplicationRecorder] = []
    for line in sys.stdin:
        [(name, given)] = json.loads(line).items()
        if name == "open":
            recorders = [opened(*given, functions=functions) for functions in (False, True)]
            answer: tuple[float, float] | None = None
        else:
            functions, *shape = given
            answer = append(recorders[functions], *shape)
        print(json.dumps(answer), flush=True)


main()
