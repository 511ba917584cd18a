"""
A process that appends, relays and folds, and ends itself at a named point: before or after the n-th time that
it says one thing to PostgreSQL or Redis.

The drivers are wrapped here, from outside: the product has no word of it.
"""

from __future__ import annotations

import asyncio
import functools
import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psycopg
from redis.asyncio import Redis

from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from ledger import log
from ledger._direct import _Held
from projection import RuleProjector, run_projection

CRASHED: Final = 99
"""The exit code of a process that came to its point."""
BATCHES: Final = (
    ("I live in Lyon.", "I like tea."),
    ("I moved to Graz.",),
    ("I live in Oslo.", "I like maps."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Before or after the `turn`-th time (from 1) that `what` is said."""

    side: str
    what: str
    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What one process does, and where it ends; without a point it notes what it says in a file."""

    plane_url: str
    relay_url: str
    redis_url: str
    master_key: bytes
    tenant: str
    notes: Path
    point: Point | None


def clock() -> datetime:
    return datetime(2026, 3, 1, tzinfo=UTC)


def drafts(batch: Sequence[str], *, number: int) -> list[EventDraft]:
    return [
        EventDraft.model_validate({
            "stream": "s", "kind": "turn", "actor": {"id": "ann", "class": "user"}, "text": text,
            "idempotency_key": f"k{number}-{place}",
            "observed_at": f"2026-01-{1 + number:02d}T09:00:0{place}Z",
        })
        for place, text in enumerate(batch)
    ]  # fmt: skip


async def append_all(db: log.Database, tenant: str) -> None:
    for number, batch in enumerate(BATCHES):
        await log.append(db, tenant, drafts(batch, number=number), grant=LOCAL_GRANT)


def run(job: Job) -> None:
    """Do the job; what `multiprocessing` starts."""
    _wrap(job)
    asyncio.run(_work(job))


async def _work(job: Job) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    db = log.open_database(
        plane_url=job.plane_url, relay_url=job.relay_url, master_key=job.master_key, clock=clock
    )
    await append_all(db, job.tenant)
    await run_projection(db, job.redis_url, RuleProjector(), consumer="crashing", stop=stop)
    await db.close()


def _wrap(job: Job) -> None:
    turns: Counter[str] = Counter()
    notes = job.notes.open("a", encoding="utf-8")

    def wrapped(owner: type, name: str, label: Callable[..., str]) -> None:
        call = getattr(owner, name)

        @functools.wraps(call)
        async def calling(self: Any, *arguments: Any, **more: Any) -> Any:
            what = label(*arguments)
            turns[what] += 1
            turn = turns[what]
            if job.point is None:
                notes.write(f"{what}\n")
                notes.flush()
            if job.point == Point(side="before", what=what, turn=turn):
                os._exit(CRASHED)
            try:
                return await call(self, *arguments, **more)
            finally:
                if job.point == Point(side="after", what=what, turn=turn):
                    os._exit(CRASHED)

        setattr(owner, name, calling)

    wrapped(psycopg.AsyncCursor, "execute", lambda query, *_: _words(query))
    wrapped(psycopg.AsyncCursor, "executemany", lambda query, *_: _words(query))
    wrapped(_Held, "rows", lambda statement, *_: _words(statement))
    wrapped(psycopg.AsyncConnection, "commit", lambda *_: "COMMIT")
    wrapped(Redis, "execute_command", lambda name, *_: str(name))


def _words(query: Any) -> str:
    text = query.decode() if isinstance(query, bytes) else str(query)
    return re.sub(r"\s+", " ", text).strip()[:160]
