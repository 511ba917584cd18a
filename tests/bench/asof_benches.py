"""
Reads as of two times and single writes, beside a plain bitemporal table and beside anatid.

One key with a new value every minute, each told at once. What is asked is what it was at one minute,
as known at another, and all three must say the same.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import psutil

from contracts.grants import LOCAL_GRANT
from contracts.resolutions import Resolved
from contracts.times import KnownAt, ValidAt
from contracts.views import ViewRequest
from ledger.log import append, create_tenant
from ledger.resolve import resolve_at
from tests.bench.arms import arm
from tests.bench.grounds import Grounds
from tests.bench.histories import SHAPES, START, STEP, history_of, recorded_at
from tests.bench.ledger_benches import reading
from tests.bench.measure import Row, latencies, rate

READS = 301
ANATID_READS = 41
WRITES = 40
KEY: Final = ("thing", "located_in")
ARM_BLOCK = 70


def _value(number: int) -> str:
    """Return what the claim of a number says, as the histories have it."""
    return f"value {number + 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Two minutes, by the number of the claim that was the newest then: in the world, and as known."""

    valid: int
    known: int

    @property
    def valid_at(self) -> datetime:
        return START + (self.valid + 0.5) * STEP

    @property
    def known_at(self) -> datetime:
        return recorded_at(self.known + 1)

    @property
    def expected(self) -> str:
        return _value(min(self.valid, self.known))


async def reads(at: Grounds, *, large: bool) -> AsyncIterator[Row]:
    """Ask ours, the plain table and anatid the same questions."""
    await at.plain.execute(
        "CREATE TABLE plain_bitemporal (entity text, relation text, value text, valid_from timestamptz, "
        "valid_to timestamptz, recorded_at timestamptz); "
        "CREATE INDEX ON plain_bitemporal (entity, relation, valid_from DESC, recorded_at DESC)"
    )
    name = "read as of two times"
    for size in (1_000, 10_000, 100_000, *((1_000_000,) if large else ())):
        asked = [
            Asked(valid=at.chance.randrange(size), known=at.chance.randrange(size)) for _ in range(READS)
        ]
        tenant = f"as-of-{size}"
        await history_of(at, tenant, [KEY], SHAPES["steady"], size=size)
        await _fill_plain(at, f"{KEY[0]} of {size}", size)
        both = await _in_turns(at, tenant, f"{KEY[0]} of {size}", asked)
        ours = both.ours.seconds
        yield both.processor_time(name, size)
        yield latencies(
            bench=f"{name}, as a door answers", size=size,
            seconds=[await _answered(at, tenant, one) for one in asked],
            note="the same with every claim of the answer written out for the wire",
        )  # fmt: skip
        yield latencies(
            bench=f"{name}, plain", size=size, seconds=ours, beside=_median_ms(both.plain.seconds),
            note="beside a table with valid_from, valid_to, recorded_at and a window query",
        )  # fmt: skip
        async with arm("anatid_arm.py", "memory.anatid") as anatid:
            if anatid is None:
                yield latencies(
                    bench=f"{name}, anatid", size=size, seconds=ours, note="anatid is not installed"
                )
                continue
            await anatid.ask("fill", size)
            answers = await anatid.ask("read", [[one.valid, one.known] for one in asked[:ANATID_READS]])
            for one, (_, said) in zip(asked, answers, strict=False):
                # Its copied blocks repeat the words of the first one.
                assert said == [f"value {min(one.valid, one.known) % ARM_BLOCK}"], one
            yield latencies(
                bench=f"{name}, anatid", size=size, seconds=ours,
                beside=_median_ms([seconds for seconds, _ in answers]),
                note=f"beside anatid 0.4.1, its context() of one entity, {ANATID_READS} reads",
            )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What each read of one side waited for, and the processor time of both its processes, in seconds."""

    seconds: list[float]
    processor_seconds: list[float]
    server_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    """Ours and the plain table, asked the same questions in turns: minutes apart the machine is another."""

    ours: Side
    plain: Side

    def processor_time(self, name: str, size: int) -> Row:
        """Return what a read takes of both processes: a busy machine changes it least."""
        ours, plain = (
            1_000 * (sum(side.processor_seconds) + side.server_seconds) / len(side.seconds)
            for side in (self.ours, self.plain)
        )
        return Row(
            bench=f"{name}, plain, processor time", size=size, n=len(self.ours.seconds), unit="ms",
            value=ours, beside=plain, note="means, of the reading process and its server",
        )  # fmt: skip


async def _in_turns(at: Grounds, tenant: str, entity: str, asked: Sequence[Asked]) -> Both:
    [[ours_pid]] = await at.plane.database.rows("SELECT pg_backend_pid()", {})
    servers = [psutil.Process(pid) for pid in (ours_pid, at.plain.info.backend_pid)]
    seconds: tuple[list[float], list[float]] = ([], [])
    spent: tuple[list[float], list[float]] = ([], [])
    before = [sum(server.cpu_times()[:2]) for server in servers]
    for one in asked:
        for side in (0, 1):
            started = time.process_time()
            seconds[side].append(await (_plain(at, entity, one) if side else _ours(at, tenant, one)))
            spent[side].append(time.process_time() - started)
    after = [sum(server.cpu_times()[:2]) for server in servers]
    ours, plain = (
        Side(seconds=seconds[side], processor_seconds=spent[side], server_seconds=after[side] - before[side])
        for side in (0, 1)
    )
    return Both(ours=ours, plain=plain)


async def writes(at: Grounds, *, large: bool) -> AsyncIterator[Row]:
    """One value after the other, each durable and readable before the next."""
    _ = large
    database, tenant = at.plane.database, "as-of-writes"
    await create_tenant(database, tenant)
    started = time.perf_counter()
    for number in range(WRITES):
        draft = reading(number, entity="written", value=_value(number))
        await append(database, tenant, [draft], grant=LOCAL_GRANT)
        await at.fold(tenant)
    ours = time.perf_counter() - started
    await at.plain.execute(
        "CREATE TABLE plain_written (entity text, relation text, value text, valid_from timestamptz, "
        "valid_to timestamptz, recorded_at timestamptz); "
        "CREATE INDEX ON plain_written (entity, relation, valid_from DESC, recorded_at DESC)"
    )
    started = time.perf_counter()
    for number in range(WRITES):
        await at.plain.execute(
            "INSERT INTO plain_written VALUES ('written', %s, %s, %s, NULL, clock_timestamp())",
            [KEY[1], _value(number), START + number * STEP],
        )
    plain = time.perf_counter() - started
    for name, other in (("plain", plain), ("anatid", await _anatid_writes())):
        note = "append and fold, one by one, beside "
        note += {"plain": "INSERT", "anatid": "its supersede()"}[name] if other else "anatid, not installed"
        yield rate(
            bench=f"write until readable, {name}", size=1, events=WRITES, seconds=[ours], note=note,
            beside=WRITES / other if other else None,
        )  # fmt: skip


async def _fill_plain(at: Grounds, entity: str, size: int) -> None:
    async with at.plain.cursor() as cursor, cursor.copy("COPY plain_bitemporal FROM STDIN") as copy:
        for number in range(size):
            value, since = _value(number), START + number * STEP
            await copy.write_row((entity, KEY[1], value, since, None, recorded_at(number + 1)))
    await at.plain.execute("VACUUM ANALYZE plain_bitemporal")


async def _ours(at: Grounds, tenant: str, one: Asked) -> float:
    started = time.perf_counter()
    found, _ = await resolve_at(at.plane.database, tenant, _request(one), *KEY, wait_ms=0)
    assert isinstance(found.resolution, Resolved), one
    value = found.resolution.value
    seconds = time.perf_counter() - started
    assert value == one.expected, one
    return seconds


async def _answered(at: Grounds, tenant: str, one: Asked) -> float:
    started = time.perf_counter()
    found = await at.plane.resolve(tenant, *KEY, _request(one))
    seconds = time.perf_counter() - started
    assert found.value == one.expected, one
    return seconds


def _request(one: Asked) -> ViewRequest:
    return ViewRequest(
        valid_at=ValidAt(one.valid_at), known_at=KnownAt(one.known_at), generation=None, min_commit=None
    )


async def _plain(at: Grounds, entity: str, one: Asked) -> float:
    started = time.perf_counter()
    cursor = await at.plain.execute(
        "SELECT value FROM (SELECT value, row_number() OVER (ORDER BY valid_from DESC, recorded_at DESC) "
        "AS place FROM plain_bitemporal WHERE entity = %s AND relation = %s AND valid_from <= %s "
        "AND (valid_to IS NULL OR valid_to > %s) AND recorded_at <= %s) AS ranked WHERE place = 1",
        [entity, KEY[1], one.valid_at, one.valid_at, one.known_at],
    )
    row = await cursor.fetchone()
    seconds = time.perf_counter() - started
    assert row == (one.expected,), one
    return seconds


def _median_ms(seconds: Sequence[float]) -> float:
    return latencies(bench="", size=0, seconds=seconds).value


async def _anatid_writes() -> float | None:
    async with arm("anatid_arm.py", "memory.anatid") as anatid:
        return None if anatid is None else float(await anatid.ask("write", WRITES))
