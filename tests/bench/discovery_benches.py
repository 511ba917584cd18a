"""
What a proposal costs as a tenant grows, the call of the embedder apart; plain PostgreSQL and mem0 beside it.

The index is filled as a running service fills it, unit by unit, without a log below it: a million
events take an hour to append and say nothing about discovery. Stored vectors lie in PostgreSQL.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from typing import Final

import numpy as np
from pgvector import HalfVector
from pgvector.psycopg import register_vector_async

from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from contracts.proposals import RouteState
from contracts.times import KnownAt, ValidAt
from contracts.trails import Question
from contracts.views import View
from discovery._cells import lay
from discovery._embedding import Embedding
from discovery._index import TenantIndex
from discovery._keeper import Keeper
from discovery._planner import plan_question
from discovery._propose import Dense, compose
from discovery._selection import DENSE_ROWS
from discovery._service import Service
from ledger.log import append, create_tenant
from tests.bench.arms import arm
from tests.bench.grounds import Grounds
from tests.bench.measure import Row, latencies
from tests.bench.units import DIMENSIONS, START, Units, make, nearest
from tests.discovery.values import WordEmbedder

ASKED: Final = 100
RECALLED: Final = 10
ADDED: Final = 1_000
MODEL: Final = "bench"
MEM0_UNITS: Final = 2_000
QUIET: Final = {"MEM0_TELEMETRY": "False", "OPENAI_API_KEY": "none"}
"""Nothing is sent. A key has to be there; nobody is asked with it."""


class _Given:
    """An embedder of which only the name is asked: vectors of questions are given."""

    model_digest = MODEL
    dimensions = DIMENSIONS


async def proposals(at: Grounds, *, large: bool) -> AsyncIterator[Row]:
    """Propose at each size, hold the dense route against a full scan, add to the index."""
    for size in (2_000, 100_000, *((1_000_000,) if large else ())):
        units = make(size + ADDED)
        async for row in _at_size(at, units, size):
            yield row


async def _at_size(at: Grounds, units: Units, size: int) -> AsyncIterator[Row]:
    tenant = f"units-{size}"
    await create_tenant(at.plane.database, tenant)
    index = TenantIndex(dimensions=DIMENSIONS)
    add_seconds, laid = _fill(index, units, size)
    await _store(at, tenant, units, size)
    embedding = Embedding(at.plane.database)
    embedding.use(_Given())
    asked = units.questions(ASKED + 5)
    seconds, cpu, right = [], [], 0
    for text, vector in asked:
        started, used = time.perf_counter(), time.process_time()
        found = await _propose(index, embedding, tenant, (text, vector), size)
        seconds.append(time.perf_counter() - started)
        cpu.append(time.process_time() - used)
        first = [h.rank for c in found.candidates for h in c.hits if h.route == "dense"]
        assert len(first) >= RECALLED
        best = {
            int(c.unit_id[3:]) - 1
            for c in found.candidates
            for h in c.hits
            if h.route == "dense" and h.rank <= RECALLED
        }
        right += len(best & set(nearest(units, vector, RECALLED)))
    embedding.close()
    beside, recall = await _plain(at, units, size, asked)
    yield latencies(
        bench="propose, embedding apart", size=size, seconds=seconds[5:], beside=beside,
        note=f"processor {1_000 * statistics.median(cpu):.1f} ms; beside: plain, dense recall {recall:.3f}",
    )  # fmt: skip
    yield Row(
        bench="dense route against a full scan", size=size, n=len(asked), unit="%",
        value=100 * right / (RECALLED * len(asked)), note=f"first {RECALLED}; {laid}",
    )  # fmt: skip
    yield latencies(bench="index one unit", size=size, seconds=add_seconds)
    yield Row(
        bench="memory of the index", size=size, n=1, unit="MB", value=index.bytes_held / 1e6,
        note=f"{index.bytes_held / size:,.0f} bytes a unit",
    )  # fmt: skip


def _fill(index: TenantIndex, units: Units, size: int) -> tuple[list[float], str]:
    """Fill an index to its size, and time what comes after it; return that and how its cells were laid."""
    seconds, laid = [], "all are read"
    for row, event in enumerate(units.events()):
        started = time.perf_counter()
        index.add(event)
        index.set_vectors([row], units.vectors[row : row + 1].astype(np.float32))
        if row >= size:
            seconds.append(time.perf_counter() - started)
        elif row == size - 1 and index.codes is not None and index.codes.wants_layout:
            started = time.perf_counter()
            index.codes.use(lay(*index.codes.stored()))
            laid = f"{index.codes.probed} cells are read, laid in {time.perf_counter() - started:.0f} s"
    index.complete_commit = index.last_commit
    return seconds, laid


async def _propose(index: TenantIndex, embedding: Embedding, tenant: str, asked, cut: int):
    text, vector = asked
    view = View(valid_at=ValidAt(START), known_at=KnownAt(START), cut=cut + ADDED, epoch=1)
    count = index.count_at(cut + ADDED)
    near = None
    if index.codes is not None:
        near = index.codes.nearest(vector, count=count, limit=DENSE_ROWS)
        near = await embedding.scored(tenant, index, near, vector)
    plan = plan_question(text, index.names.at(view.cut), valid_at=view.valid_at)
    dense = Dense(state=RouteState.OK, vector=vector, near=near, duration_us=0)
    return compose(index, plan, text, view=view, late=False, dense=dense)


async def _store(at: Grounds, tenant: str, units: Units, size: int) -> None:
    await register_vector_async(at.plain)
    # Without the log there is no data key that a vector could hang on.
    await at.plain.execute("SET session_replication_role = replica")
    async with (
        at.plain.cursor() as cursor,
        cursor.copy(
            "COPY unit_vector (tenant, unit_id, model_digest, position, text_digest, embedding) "
            "FROM STDIN (FORMAT BINARY)"
        ) as copy,
    ):
        copy.set_types(["text", "text", "text", "int8", "bytea", "halfvec"])
        for row in range(units.size):
            unit = f"ev_{row + 1:026}"
            await copy.write_row((tenant, unit, MODEL, row + 1, b"", HalfVector(units.vectors[row])))
    await at.plain.execute("SET session_replication_role = origin")
    await at.plain.execute("ANALYZE unit_vector")


async def _plain(at: Grounds, units: Units, size: int, asked) -> tuple[float, float]:
    """Do it plainly, with full text and HNSW, one query each; return the median in ms and the recall."""
    await at.plain.execute("DROP TABLE IF EXISTS plain_unit")
    await at.plain.execute(
        "CREATE TABLE plain_unit (id bigint PRIMARY KEY, words tsvector, embedding halfvec(384))"
    )
    async with at.plain.cursor() as cursor:
        async with cursor.copy("COPY plain_unit (id, embedding) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(["int8", "halfvec"])
            for row in range(size):
                await copy.write_row((row, HalfVector(units.vectors[row])))
        await cursor.execute("CREATE TEMP TABLE plain_text (id bigint, body text)")
        async with cursor.copy("COPY plain_text FROM STDIN") as copy:
            for row in range(size):
                await copy.write_row((row, units.drafts[row].text))
    await at.plain.execute(
        "UPDATE plain_unit AS u SET words = to_tsvector('english', t.body) "
        "FROM plain_text AS t WHERE t.id = u.id"
    )
    await at.plain.execute("DROP TABLE plain_text")
    await at.plain.execute("SET maintenance_work_mem = '2GB'")
    await at.plain.execute("CREATE INDEX ON plain_unit USING gin (words)")
    await at.plain.execute("CREATE INDEX ON plain_unit USING hnsw (embedding halfvec_ip_ops)")
    await at.plain.execute("VACUUM ANALYZE plain_unit")
    await at.plain.execute("SET hnsw.ef_search = 200")
    seconds, right = [], 0
    for text, vector in asked:
        words = " | ".join(text.rstrip("?").split()[2:])
        started = time.perf_counter()
        near = await (
            await at.plain.execute(
                "SELECT id FROM plain_unit ORDER BY embedding <#> %s LIMIT 100", [HalfVector(vector)]
            )
        ).fetchall()
        await (
            await at.plain.execute(
                "SELECT id FROM plain_unit, to_tsquery('english', %s) AS q WHERE words @@ q "
                "ORDER BY ts_rank(words, q) DESC LIMIT 100",
                [words],
            )
        ).fetchall()
        seconds.append(time.perf_counter() - started)
        part = Units(size, units.drafts, units.vectors[:size], units.seed)
        right += len({row for (row,) in near[:RECALLED]} & set(nearest(part, vector, RECALLED)))
    return 1_000 * statistics.median(seconds), right / (RECALLED * len(asked))


async def discoverable(at: Grounds, *, large: bool) -> AsyncIterator[Row]:
    """From the append of an event to the proposal that holds it; and how long a cold tenant takes to load."""
    for size in (2_000, *((100_000,) if large else ())):
        units = make(size)
        tenant = await at.tenant(f"log-{size}", units.drafts, folded=False)
        keeper = Keeper(at.plane.database, embedder=None)
        service = Service(at.plane.database, keeper)
        started = time.perf_counter()
        await keeper.ready(tenant, cut=size, epoch=None, wait_seconds=3_600)
        loading = time.perf_counter() - started
        keeper.use(WordEmbedder())
        await keeper.ready(tenant, cut=size, epoch=None, wait_seconds=3_600)
        seconds = []
        for number in range(31):
            started = time.perf_counter()
            draft = EventDraft.model_validate({
                "stream": "new", "kind": "turn", "actor": {"id": "person 1", "class": "user"},
                "text": f"The qwert{number} has landed.",
            })  # fmt: skip
            receipt = await append(at.plane.database, tenant, [draft], grant=LOCAL_GRANT)
            view = View(valid_at=ValidAt(START), known_at=KnownAt(START), cut=receipt.commit, epoch=1)
            asked = Question(text=f"qwert{number}", budget_tokens=2_048, disclose_conflicts=False)
            found = await service.propose(tenant=tenant, question=asked, view=view)
            assert found.candidates[0].unit_id == receipt.event_ids[0]
            seconds.append(time.perf_counter() - started)
        keeper.close()
        yield latencies(bench="append to discoverable", size=size, seconds=seconds[1:])
        yield Row(
            bench="load a cold tenant from its log", size=size, n=1, unit="ms", value=1_000 * loading,
            note=f"{1_000_000 * loading / size:,.0f} us a unit",
        )  # fmt: skip


async def beside_mem0(at: Grounds, *, large: bool) -> AsyncIterator[Row]:
    """Add and search the same units with mem0, its local store, the same vectors and no language model."""
    _ = at, large
    units = make(MEM0_UNITS)
    asked = units.questions(30)
    async with arm("mem0_arm.py", "store", environment=QUIET) as other:
        if other is None:
            return
        given = [[draft.text, units.vectors[row].tolist()] for row, draft in enumerate(units.drafts)]
        adding = 0.0
        for start in range(0, len(given), 100):
            adding += await other.ask("add", given[start : start + 100])
        theirs = await other.ask("search", [[text, vector.tolist()] for text, vector in asked])
    index = TenantIndex(dimensions=DIMENSIONS)
    started = time.perf_counter()
    for row, event in enumerate(units.events()):
        index.add(event)
        index.set_vectors([row], units.vectors[row : row + 1].astype(np.float32))
    ours = time.perf_counter() - started
    index.complete_commit = index.last_commit
    embedding = Embedding(at.plane.database)
    seconds = []
    for text, vector in asked:
        started = time.perf_counter()
        await _propose(index, embedding, "none", (text, vector), MEM0_UNITS)
        seconds.append(time.perf_counter() - started)
        await asyncio.sleep(0)
    embedding.close()
    yield latencies(
        bench="propose, beside mem0",
        size=MEM0_UNITS,
        seconds=seconds,
        beside=1_000 * statistics.median(theirs),
    )
    yield Row(
        bench="index a unit, beside mem0", size=MEM0_UNITS, n=1, unit="ms", value=1_000 * ours / MEM0_UNITS,
        beside=1_000 * adding / MEM0_UNITS, note="ours: the index alone; what is durable is the log's",
    )  # fmt: skip
