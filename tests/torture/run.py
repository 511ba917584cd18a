"""One run: a plane, its writers, what is done to them, and whether everything is true afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import httpx
import psycopg

from echoplane._embedded import DATABASE, urls
from echoplane._postgres import SUPERUSER, find_postgres, stop_postgres
from tests.acceptance.planes import RunningPlane, own_plane, wait_until
from tests.torture.checker import (
    digest_of,
    events_count,
    ledger_problems,
    list_problems,
    log_problems,
    quiet_digest,
)
from tests.torture.faults import Faults
from tests.torture.listers import Lister
from tests.torture.parts import Parts
from tests.torture.writers import Acknowledged, Writer

TENANTS: Final = ("north", "south")
WRITERS_COUNT: Final = 8
LISTERS_COUNT: Final = 4
"""Clients that append to common streams and read them."""
WORKERS_COUNT: Final = 2
STALL_SECONDS: Final = 120.0
"""For what must come about: the fold is given up where nothing of it has moved for so long."""
QUIET: Final = "quiet"
PROJECTED: Final = ("cell", "line", "reach", "claim", "relation", "dead_letter")
LOST_TAIL: Final = """
    WITH last AS (SELECT * FROM commit WHERE tenant = %(tenant)s ORDER BY commit DESC LIMIT 1),
    keys AS (DELETE FROM event_key k USING event e, last WHERE e.tenant = k.tenant
        AND e.event_id = k.event_id AND e.tenant = last.tenant AND e.commit = last.commit),
    events AS (DELETE FROM event e USING last WHERE e.tenant = last.tenant AND e.commit = last.commit),
    gone AS (DELETE FROM commit c USING last WHERE c.tenant = last.tenant AND c.commit = last.commit)
    UPDATE head h SET commit = last.commit - 1, position = last.first_position - 1, hash = last.previous_hash,
        recorded_at = coalesce((SELECT max(c.recorded_at) FROM commit c
            WHERE c.tenant = last.tenant AND c.commit < last.commit), h.recorded_at)
    FROM last WHERE h.tenant = last.tenant
"""
"""The newest commit as if it had never been: what a server loses that does not wait for its disk."""


@dataclass(slots=True, kw_only=True)
class Verdict:
    """What a run found. `problems` is empty, and the control was caught, or it failed."""

    seed: int
    seconds: float
    faults: dict[str, int]
    events: int
    acknowledged: int
    requests: int
    failures: int
    repeated: int
    listed: int
    problems: list[str] = field(default_factory=list)
    is_control_caught: bool = False

    @property
    def passed(self) -> bool:
        return not self.problems and self.is_control_caught

    def line(self) -> str:
        faults = " ".join(f"{name}={count}" for name, count in sorted(self.faults.items()))
        return (
            f"torture: {'PASS' if self.passed else 'FAIL'} seed={self.seed} seconds={self.seconds:.0f} "
            f"faults={sum(self.faults.values())} ({faults}) requests={self.requests} "
            f"unanswered={self.failures} repeated={self.repeated} acknowledged={self.acknowledged} "
            f"listed={self.listed} events={self.events} "
            f"problems={len(self.problems)} control={'caught' if self.is_control_caught else 'MISSED'}"
        )


def torture(
    *,
    seed: int,
    seconds: float,
    pause_seconds: tuple[float, float],
    say: Callable[[str], None],
    is_durable: bool = True,
) -> Verdict:
    """
    Run writers against a plane whose parts die, stand still and forget, and check what is left.

    Args:
        seed: Of what is written, and of the faults and their order.
        seconds: How long faults are done.
        pause_seconds: Between two faults, from and to.
        say: Told what goes on.
        is_durable: Whether an append waits for the disk. Without, PostgreSQL alone is killed, and what
            was acknowledged must be found lost.
    """
    chance = random.Random(seed)
    with own_plane() as plane:
        with plane.http() as client:
            for tenant in TENANTS:
                client.put(f"/v1/{tenant}").raise_for_status()
        if not is_durable:
            with plane.superuser() as connection:
                connection.execute("ALTER ROLE echoplane_plane SET synchronous_commit TO off")
        writers = [
            Writer(plane, TENANTS[number % len(TENANTS)], name=f"w{number}", seed=chance.randrange(2**32))
            for number in range(WRITERS_COUNT)
        ]
        listers = [
            Lister(
                f"l{number}", TENANTS[number % len(TENANTS)], seed=chance.randrange(2**32),
                client=plane.client,
            )
            for number in range(LISTERS_COUNT)
        ]  # fmt: skip
        with Parts(plane.data, plane.root, workers_count=WORKERS_COUNT) as parts:
            faults = Faults(plane, parts, chance, redis_seconds=min(60.0, max(2.0, seconds / 8)))
            if not is_durable:
                faults.only(faults.cut_connections, faults.kill_postgres)
            with _writing(writers), _listing(listers):
                deadline = time.monotonic() + seconds
                while time.monotonic() < deadline or not (faults.done and faults.is_round_done):
                    time.sleep(chance.uniform(*pause_seconds))
                    say(f"{seconds - deadline + time.monotonic():7.1f} s  {faults.next()}")
                    if any(writer.counts.refused for writer in writers) or any(
                        one.refused for one in listers
                    ):
                        break
            say("writers have ended; waiting for the fold")
            faults.settle()
            _wait_back(plane, say)
            _wait_folded(plane, say)
        return _judge(plane, writers, listers, faults, seed=seed, seconds=seconds)


@contextlib.contextmanager
def _writing(writers: list[Writer]) -> Iterator[None]:
    for writer in writers:
        writer.start()
    try:
        yield
    finally:
        for writer in writers:
            writer.stopping.set()
        for writer in writers:
            writer.join()


@contextlib.contextmanager
def _listing(listers: list[Lister]) -> Iterator[None]:
    stopping = threading.Event()
    threads = [threading.Thread(target=one.run, args=(stopping,), daemon=True) for one in listers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join()


def _wait_back(plane: RunningPlane, say: Callable[[str], None]) -> None:
    try:
        wait_until(lambda: _is_back(plane), what="the plane is back", seconds=STALL_SECONDS)
    except AssertionError:
        _say_logs(plane, say)
        raise


def _say_logs(plane: RunningPlane, say: Callable[[str], None]) -> None:
    for path in sorted([*plane.root.glob("*.log"), *plane.folder.log.glob("*.log")]):
        say(f"--- {path.name}\n" + "".join(path.read_text(errors="replace").splitlines(True)[-15:]))


def _is_back(plane: RunningPlane) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"http://127.0.0.1:{plane.port}/readyz", trust_env=False, timeout=5).is_success
    return False


def _wait_folded(plane: RunningPlane, say: Callable[[str], None]) -> None:
    """Wait for as long as the fold moves: how long it takes is the machine's affair."""
    standing: dict[str, tuple[int, int, int]] = {}
    moved_at = time.monotonic()
    while True:
        with contextlib.suppress(psycopg.Error, AssertionError):
            found = plane.standing()
            if all(head == folded for head, folded, _ in found.values()):
                return
            if found != standing:
                standing, moved_at = found, time.monotonic()
                say(f"  head, folded, dead: {standing}")
        if time.monotonic() - moved_at > STALL_SECONDS:
            _say_logs(plane, say)
            raise AssertionError(f"nothing was folded for {STALL_SECONDS} s: {standing}")
        time.sleep(0.5)


def _judge(
    plane: RunningPlane,
    writers: list[Writer],
    listers: list[Lister],
    faults: Faults,
    *,
    seed: int,
    seconds: float,
) -> Verdict:
    told = [one for writer in writers for one in writer.acknowledged]
    verdict = Verdict(
        seed=seed, seconds=seconds, faults=dict(faults.done), events=0, acknowledged=len(told),
        requests=sum(writer.counts.requests for writer in writers),
        failures=sum(writer.counts.failures for writer in writers),
        repeated=sum(writer.counts.repeated for writer in writers),
        listed=sum(len(lister.history) for lister in listers),
        problems=[f"{one.name} was refused: {what}" for one in writers for what in one.counts.refused]
        + [f"{one.name} was refused: {what}" for one in listers for what in one.refused],
    )  # fmt: skip
    plane.down()
    try:
        asyncio.run(_look(plane, told, listers, verdict))
    finally:
        asyncio.run(stop_postgres(plane.folder))
    return verdict


async def _look(
    plane: RunningPlane, told: list[Acknowledged], listers: list[Lister], verdict: Verdict
) -> None:
    copy = await plane.copied_database(QUIET)
    address = await find_postgres(plane.folder)
    assert address is not None
    superuser = address.conninfo(role=SUPERUSER, database=QUIET)
    with psycopg.connect(superuser, autocommit=True) as connection:
        connection.execute(f"TRUNCATE {', '.join(PROJECTED)}")
        connection.execute("UPDATE epoch SET commit = 0, position = 0, projector_version = ''")
    async with plane.database(urls(address, DATABASE)) as lived, plane.database(copy) as quiet:
        for tenant in TENANTS:
            own = [one for one in told if one.tenant == tenant]
            verdict.events += await events_count(lived, tenant)
            verdict.problems += [f"{tenant}: {one}" for one in await log_problems(lived, tenant, own)]
            verdict.problems += [f"{tenant}: {one}" for one in await ledger_problems(lived, tenant)]
            history = [done for one in listers if one.tenant == tenant for done in one.history]
            verdict.problems += [f"{tenant}: {one}" for one in await list_problems(lived, tenant, history)]
            if await digest_of(lived, tenant) != await quiet_digest(quiet, tenant):
                verdict.problems.append(f"{tenant}: the ledger is not what a quiet fold of its log makes")
        # The checker must see what a server without durability would have lost: the newest commit.
        with psycopg.connect(superuser, autocommit=True) as connection:
            connection.execute("SET session_replication_role = replica")
            connection.execute(LOST_TAIL, {"tenant": TENANTS[0]})
        own = [one for one in told if one.tenant == TENANTS[0]]
        found = await log_problems(quiet, TENANTS[0], own)
        verdict.is_control_caught = any("acknowledged and lost" in one for one in found)
