"""
A worker as a process of its own, to be killed or to stop itself in the middle.

Arguments: plane URL, relay URL, Redis URL, consumer, seconds of its lease (0: the usual), how many events
it projects before it stops itself, as a frozen machine would (-1: never), and before which function of
`ledger.write` it does so then (none: before it projects the next). The last three may be left out.
"""

import asyncio
import os
import signal
import sys
from datetime import UTC, datetime

import ledger.write
import projection._worker
from ledger import log
from projection import RuleProjector, run_projection


class Freezing(RuleProjector):
    """Stands still in the middle of a fold, once, until somebody sends SIGCONT."""

    def __init__(self, events_count, before):
        super().__init__()
        self.left_count = events_count
        self.before = before
        if before:
            self._stop_before(before)

    def project(self, event):
        if self.left_count == 0 and not self.before:
            os.kill(os.getpid(), signal.SIGSTOP)
        self.left_count -= 1
        return super().project(event)

    def _stop_before(self, name):
        called = getattr(ledger.write, name)

        async def stopping(*arguments, **more):
            if self.left_count <= 0:
                os.kill(os.getpid(), signal.SIGSTOP)
            return await called(*arguments, **more)

        setattr(ledger.write, name, stopping)


def shorten(lease_seconds):
    """Wait less for what is given up after a lease; every other time stays as it is."""
    worker = projection._worker
    worker.FOLD_LEASE_SECONDS = lease_seconds
    worker.LEASE_MS = round(lease_seconds * 1_000)
    worker.CLAIM_POLL_MS = 200
    worker.OVERDUE_SECONDS = 0.2


async def main():
    given = sys.argv[1:]
    plane_url, relay_url, redis_url, consumer, lease_seconds, events_count, before = [
        *given, *["0", "-1", ""][len(given) - 4 :]
    ]  # fmt: skip
    if float(lease_seconds):
        shorten(float(lease_seconds))
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    db = log.open_database(
        plane_url=plane_url,
        relay_url=relay_url,
        master_key=bytes(range(32)),
        clock=lambda: datetime(2026, 3, 1, tzinfo=UTC),
    )
    await run_projection(db, redis_url, Freezing(int(events_count), before), consumer=consumer, stop=stop)
    await db.close()


asyncio.run(main())
