"""What the fuzzing tests share: a tenant behind the bare application, and drawing on a running loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

import psycopg
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from contracts.wire import ErrorAnswer
from ledger import log
from ledger.write import verify_claims
from projection import RuleProjector

TABLES: Final = """
    SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
        AND n.nspname NOT LIKE 'pg_toast%' AND c.relname <> 'alembic_version'
    ORDER BY 1"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back: of a stream that has no end, its beginning."""

    status: int
    body: bytes


@dataclass(slots=True, kw_only=True)
class Target:
    """A tenant behind the application, called as a server calls it, and looked at from behind."""

    app: Any
    token: str
    tenant: str
    rows: psycopg.Connection
    counts: Counter[str] = field(default_factory=Counter)
    written: str = ""

    async def call(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> Answer:
        """Send one request past every client library: none of them may tidy it up on the way."""
        path, _, query = target.partition("?")
        own = {"host": "127.0.0.1:7415", "authorization": f"Bearer {self.token}"}
        given_headers = [
            (name.lower().encode("latin-1", "replace"), value.encode("latin-1", "replace"))
            for name, value in headers.items() if name.lower() not in own
        ]  # fmt: skip
        scope = {
            "type": "http", "method": method, "raw_path": path.encode(), "root_path": "", "scheme": "http",
            "path": unquote(path), "query_string": query.encode(), "http_version": "1.1",
            "headers": [(name.encode(), value.encode()) for name, value in own.items()] + given_headers,
        }  # fmt: skip
        sent: list[dict[str, Any]] = []
        is_read, is_left = False, asyncio.Event()

        async def receive() -> dict[str, Any]:
            nonlocal is_read
            if is_read:
                await is_left.wait()
                return {"type": "http.disconnect"}
            is_read = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)
            if message["type"] == "http.response.start" and (
                b"content-type", b"text/event-stream; charset=utf-8"
            ) in message["headers"]:  # fmt: skip
                is_left.set()

        async with asyncio.timeout(60):
            await self.app(scope, receive, send)
        start, *chunks = sent
        return Answer(status=start["status"], body=b"".join(chunk.get("body", b"") for chunk in chunks))

    def digest(self) -> str:
        """Return a digest of every row of every table."""
        tables = [row[0] for row in self.rows.execute(TABLES).fetchall()]
        digests = " UNION ALL ".join(
            f"SELECT md5(string_agg(t::text, ',' ORDER BY t::text)) FROM {table} AS t" for table in tables
        )
        return str(self.rows.execute(f"SELECT array_agg(md5) FROM ({digests}) AS one").fetchone())

    async def judge(self, answer: Answer, what: str) -> None:
        """See that a refusal is one of ours and that nothing was written; else that much has been."""
        self.counts[str(answer.status)] += 1
        where = " ".join(what.split()[:2])
        if answer.status == 503 and (where == "GET /readyz" or where.endswith("/reindex")):
            # Nobody works here but the test, and nobody discovers.
            return
        assert answer.status < 500, f"{what}: {answer.status} {answer.body[:300]!r}"
        if answer.status >= 400:
            error = ErrorAnswer.model_validate_json(answer.body).error
            assert error.code.startswith(("incorrect", "stale", "unavailable.rate")), f"{what}: {error}"
            assert self.digest() == self.written, f"{what} was refused and has written: {error}"
        else:
            self.written = self.digest()


async def drawn(
    strategy: st.SearchStrategy[Any], tried: Callable[[Any], Awaitable[None]], *, examples: int
) -> None:
    """Try examples of a strategy, the same ones each time, on this very event loop."""
    loop = asyncio.get_running_loop()

    @settings(
        max_examples=examples, derandomize=True, database=None, deadline=None,
        # Nothing is shrunk: what was tried has changed the tenant. The first one that fails is shown.
        phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def one(example: Any) -> None:
        asyncio.run_coroutine_threadsafe(tried(example), loop).result()

    await asyncio.to_thread(one)


async def is_sound(door: Any) -> None:
    """See that everything that was accepted can be folded, and that log and claims verify."""
    await door.fold()
    assert (await door.call("GET", "/dead"))["dead"] == []
    assert (await log.verify(door.plane.database, door.tenant)).problems == ()
    assert (await verify_claims(door.plane.database, door.tenant, RuleProjector())).problems == ()
