"""A worker as a process of its own, to be killed. Arguments: plane URL, relay URL, Redis URL, consumer."""

import asyncio
import signal
import sys
from datetime import UTC, datetime

from ledger import log
from projection import RuleProjector, run_projection


async def main():
    plane_url, relay_url, redis_url, consumer = sys.argv[1:]
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    db = log.open_database(
        plane_url=plane_url,
        relay_url=relay_url,
        master_key=bytes(range(32)),
        clock=lambda: datetime(2026, 3, 1, tzinfo=UTC),
    )
    await run_projection(db, redis_url, RuleProjector(), consumer=consumer, stop=stop)
    await db.close()


asyncio.run(main())
