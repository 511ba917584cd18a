"""A real ledger, a real Redis, and a plane of relay and worker that a test can kill."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime

import psycopg
import pytest
import sqlalchemy as sa
from redis.asyncio import Redis

from contracts.errors import Unavailable
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from contracts.limits import FOLD_EVENTS_MAX
from echoplane._postgres import SUPERUSER
from ledger import log
from ledger.write import fold, ledger_digest
from projection import RuleProjector, run_projection
from projection._relay import SWEEP_SECONDS
from projection._stream import GROUP, STREAM

MASTER_KEY = bytes(range(32))
PLACES = ("Lyon", "Graz", "Oslo", "Turin")
COMPARED = (
    (
        "SELECT position, ordinal, commit, event_id, entity, relation, stance, body FROM claim "
        "WHERE epoch = :epoch ORDER BY 1, 2"
    ),
    (
        "SELECT r.entity, r.relation, c.position, c.ordinal FROM reach r JOIN claim c USING (claim_id) "
        "WHERE r.epoch = :epoch ORDER BY 1, 2, 3, 4"
    ),
    (
        "SELECT l.entity, l.relation, l.part, c.valid::text, c.known::text, c.state, "
        "ARRAY(SELECT ROW(k.position, k.ordinal)::text FROM unnest(c.claims) WITH ORDINALITY n(id, place) "
        "JOIN claim k ON k.claim_id = n.id ORDER BY n.place) "
        "FROM line l JOIN cell c USING (line) WHERE l.epoch = :epoch ORDER BY 1, 2, 3, 4, 5"
    ),
)
"""What two epochs of one log share: a claim's id and the seals are each epoch's own, so it goes by places."""
PATIENCE_SECONDS = 120
"""For what must come about, on a machine that has other things to do."""


def clock():
    return datetime(2026, 3, 1, tzinfo=UTC)


def turn(text, *, number=0):
    return EventDraft.model_validate({
        "stream": "s", "kind": "turn", "actor": {"id": "ann", "class": "user"}, "text": text,
        "observed_at": f"2026-01-{1 + number // 1440:02d}T{number // 60 % 24:02d}:{number % 60:02d}:00Z",
    })  # fmt: skip


async def until(condition, *, seconds=PATIENCE_SECONDS):
    """Look again and again until it is so."""
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(0.02)


class Plane:
    """What a test does to a plane: append, run it, cut it off, and compare what was folded."""

    def __init__(self, db, redis_url, superuser):
        self.db = db
        self.superuser = superuser
        self.redis_url = redis_url
        self.redis = Redis.from_url(redis_url)
        self.stop = asyncio.Event()
        self.task = None

    def start(self, *, consumer="w1", projector=None):
        self.stop = asyncio.Event()
        self.task = asyncio.create_task(
            run_projection(
                self.db, self.redis_url, projector or RuleProjector(), consumer=consumer, stop=self.stop
            )
        )

    async def finish(self):
        """Stop as SIGTERM does."""
        if self.task is not None:
            self.stop.set()
            await asyncio.wait_for(self.task, timeout=20)
            self.task = None

    async def kill(self):
        """Drop everything in the middle, as far as one process can do that to itself."""
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task
        self.task = None

    async def say(self, tenant, text, *, number=0):
        return await log.append(self.db, tenant, [turn(text, number=number)], grant=LOCAL_GRANT)

    async def say_together(self, tenant, texts, *, number):
        """Append several turns as one commit."""
        drafts = [turn(text, number=number + place) for place, text in enumerate(texts)]
        return await log.append(self.db, tenant, drafts, grant=LOCAL_GRANT)

    async def say_many(self, tenant, count):
        for number in range(count):
            place = PLACES[number % len(PLACES)]
            await self.say(tenant, f"I live in {place}. I like tea and maps.", number=number)

    async def folded(self, tenant, *, seconds=PATIENCE_SECONDS):
        """Wait until a tenant is folded to its head."""

        async def is_folded():
            if self.task is not None and self.task.done():
                # It ended by itself, which it never may: its error says more than a wait in vain.
                await self.task
            return all(name != tenant for name, _ in await log.pending(self.db))

        await until(is_folded, seconds=seconds)

    async def pending(self):
        """Return how many wake-ups were read and are not acknowledged."""
        return (await self.redis.xpending(STREAM, GROUP))["pending"]

    async def acknowledged(self, *, seconds=PATIENCE_SECONDS):
        """Wait until every wake-up was read and acknowledged, which comes after the fold."""

        async def is_acknowledged():
            (group,) = [one for one in await self.redis.xinfo_groups(STREAM) if one["name"] == GROUP.encode()]
            return (group["pending"], group["lag"]) == (0, 0)

        await until(is_acknowledged, seconds=seconds)

    async def at_rest(self, tenant):
        """Wait until a tenant is folded and nothing that was sent for it is on its way any more."""
        await self.folded(tenant)
        # The relay may have seen the tenant unfolded, and not have sent what it makes of that.
        await asyncio.sleep(2 * SWEEP_SECONDS)
        await self.acknowledged()

    async def digest(self, tenant, *, epoch=1):
        async with self.db.snapshot(tenant) as conn:
            return await ledger_digest(conn, epoch)

    async def folded_rows(self, tenant, *, epoch):
        """Return the claims of an epoch, what they reach, and each cell with the commits that knew it."""
        async with self.db.snapshot(tenant) as conn:
            bound = {"epoch": epoch}
            return [[tuple(row) for row in await conn.execute(sa.text(part), bound)] for part in COMPARED]

    async def quiet_digest(self, tenant, *, epoch=1):
        """Stop, fold the same log anew into the epoch that serves, undisturbed, and return its digest."""
        await self.finish()
        # In a thread: it waits for a fold that still runs, which may be one of this very event loop.
        await asyncio.to_thread(self._unfold, tenant)

        async def is_at_head():
            # Another process may fold it too, at the wake of a message that was on its way.
            with contextlib.suppress(Unavailable):
                report = await fold(self.db, tenant, RuleProjector(), events_max=FOLD_EVENTS_MAX)
                return report.is_at_head
            return False

        await until(is_at_head)
        return await self.digest(tenant, epoch=epoch)

    def _unfold(self, tenant):
        with psycopg.connect(self.superuser) as connection:
            # No role of the plane may unfold: cells are immutable, and this is a test's own doing.
            connection.execute("SET session_replication_role = replica")
            for table in ("cell", "line", "reach", "claim", "dead_letter"):
                connection.execute(f"DELETE FROM {table} WHERE tenant = %s", [tenant])
            connection.execute("UPDATE epoch SET commit = 0, position = 0 WHERE tenant = %s", [tenant])


@pytest.fixture
async def plane(database, redis_url, postgres):
    db = log.open_database(
        plane_url=database.plane, relay_url=database.relay, master_key=MASTER_KEY, clock=clock
    )
    for tenant in ("acme", "beta"):
        await log.create_tenant(db, tenant)
    name = sa.make_url(database.plane).database
    made = Plane(db, redis_url, postgres.conninfo(role=SUPERUSER, database=name))
    try:
        yield made
        await made.finish()
    finally:
        await made.redis.aclose()
        await db.close()
