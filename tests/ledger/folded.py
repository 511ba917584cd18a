"""A real ledger with an injected clock, for tests of the fold and the resolver."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from ledger.log import Database, append, create_tenant, open_database


@dataclass
class Hand:
    """A clock that stands where it is put."""

    at: datetime = field(default=datetime(2026, 1, 1, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.at

    def advance(self, **by: float) -> None:
        self.at += timedelta(**by)


def randomness(seed: int) -> Callable[[int], bytes]:
    """Repeatable ids: two ledgers of one seed and one log have equal rows."""
    return random.Random(seed).randbytes


def open_at(urls, clock: Hand, *, seed: int | None = None) -> Database:
    backfill = urls.plane.replace("echoplane_plane", "echoplane_backfill")
    more = {} if seed is None else {"randomness": randomness(seed)}
    return open_database(
        plane_url=backfill,
        relay_url=urls.relay,
        master_key=b"k" * 32,
        clock=clock,
        states_clock=True,
        **more,
    )


async def say(db: Database, tenant: str, *events: dict, at: datetime | None = None, clock: Hand | None = None):
    """Append events (emit lines) as one commit."""
    if at is not None and clock is not None:
        clock.at = at
    drafts = [EventDraft.model_validate({"stream": "s", "kind": "claim", **event}) for event in events]
    return await append(db, tenant, drafts, grant=LOCAL_GRANT)


async def tenant_of(db: Database, name: str) -> str:
    await create_tenant(db, name)
    return name
