"""
Failures that users of memory systems reported about the plane itself: reads of one's own write, handles
that moved, scopes that leaked, and what a thousand events cost. Through the HTTP door.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from typing import Any, Final

import psutil
import psycopg
import pytest

from ledger._direct import _Held
from ledger.write import fold
from projection import RuleProjector
from tests.acceptance.conftest import caller, token_of
from tests.acceptance.door import said, supports

EVENTS_COUNT: Final = 1_000
BATCH_EVENTS: Final = 50
ROWS_READ_MAX: Final = 200
"""What an append of fifty events may read of a log, however long that is."""


async def test_a_read_after_a_write_has_it_or_says_that_it_has_not_yet(door, discovery):
    """O16. Nothing folds between the write and the read, so an older answer is all that there is."""
    await door.tell(said("I live in Lyon.", who="Ann", at="2025-01-10T09:00:00Z"))
    moved = await door.emit(said("I moved to Ghent.", who="Ann", at="2025-06-02T09:00:00Z"))
    after = {"min_commit": moved["commit"]}
    question = {"question": "Where does Ann live?"} | after
    key = {"entity": "Ann", "relation": "lives_in"} | after

    early = [
        await door.call("GET", "/resolve", status=409, params=key),
        await door.call("GET", "/history", status=409, params={"entity": "Ann"} | after),
        await door.call("GET", "/diff", status=409, params={"before_generation": "1:1"} | after),
        await door.call("POST", "/ask", status=409, json=question),
    ]
    await door.fold()
    resolved = await door.call("GET", "/resolve", params=key)
    asked = await door.call("POST", "/ask", json=question)

    for one in early:
        assert (one["error"]["code"], one["error"]["act"]) == ("stale.not_yet", "read again, then retry")
        assert "Lyon" not in str(one)
    assert (resolved["outcome"], resolved["value"]) == ("resolved", "Ghent")
    assert (asked["status"], asked["answer"]) == ("answered", "Ghent")


async def test_the_handle_of_an_event_leads_to_it_and_to_what_it_supports_whatever_is_made_of_it(
    door, discovery
):
    """O17. Before the fold, after it, while a new epoch is built, once that serves, once it is replaced."""
    receipt = await door.emit(said("The spare key is in the blue box.", who="u1", at="2025-03-01T09:00:00Z"))
    (handle,) = receipt["event_ids"]
    path, key = f"/events/{handle}", ("spare key", "located_in")

    first = await door.call("GET", path)
    seen, supported = [], []
    await door.fold()
    seen.append(await door.call("GET", path))
    supported.append(supports(await door.resolve(*key)))
    await door.call("POST", "/epochs", status=202)
    # One event at a time: the new epoch stands half built between two of them.
    while not (await fold(door.plane.database, door.tenant, RuleProjector(), events_max=1)).is_at_head:
        seen.append(await door.call("GET", path))
        supported.append(supports(await door.resolve(*key)))
    seen.append(await door.call("GET", path))
    supported.append(supports(await door.resolve(*key)))
    replaced = said("The spare key is in the red box.", who="u1", at="2025-04-01T09:00:00Z")
    await door.tell(replaced)
    seen.append(await door.call("GET", path))

    assert first["event"]["text"] == "The spare key is in the blue box."
    assert all(one == first for one in seen)
    assert supported == [{handle}] * len(supported)
    assert handle in {one["event"] for one in (await door.resolve(*key))["superseded"]}


async def test_a_question_reads_its_own_scope_and_a_parameter_that_nobody_knows_is_no_wider_one(
    plane, discovery, remember
):
    """O18. Two owners, the same words; another's data set, a misspelt one, and misspelt parameters."""
    told = {
        owner: await remember(owner, said(f"I live in {place}.", who="Ann", stream=owner))
        for owner, place in (("d1", "Lyon"), ("d2", "Ghent"))
    }
    own = told["d1"][0].event_ids[0]
    question = {"question": "Where does Ann live?"}
    key = "entity=Ann&relation=lives_in"

    async with caller(plane, await token_of(plane, "d1")) as one:
        mine = (await one.post("/v1/d1/ask", json=question)).json()
        refused = [
            await one.post("/v1/d2/ask", json=question),
            await one.get(f"/v1/d2/resolve?{key}"),
            await one.post("/v1/d3/ask", json=question),
            await one.get(f"/v1/d3/resolve?{key}"),
        ]
        misspelt = [
            await one.post("/v1/d1/ask", json=question | {"dataset": "d2"}),
            await one.post("/v1/d1/ask?dataset=d2", json=question),
            await one.post("/v1/d1/ask", json=question | {"known": "2020-01-01T00:00:00Z"}),
            await one.get(f"/v1/d1/resolve?{key}&tenant=d2"),
            await one.get(f"/v1/d1/resolve?{key}&validat=2020-01-01T00:00:00Z"),
            await one.get(f"/v1/d1/history?{key}&entity=Bob"),
            await one.get("/v1/d1/diff?before_generation=1:0&relations=lives_in"),
            await one.get("/v1/d1/events?streams=d1"),
        ]

    assert (mine["status"], mine["answer"]) == ("answered", "Lyon")
    assert {line["event"] for line in mine["context"]["lines"]} == {own}
    assert {(answer.status_code, answer.json()["error"]["code"]) for answer in refused} == {
        (404, "incorrect.not_found")
    }
    for answer in misspelt:
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "incorrect.bad_request")
    assert "Ghent" not in "".join(answer.text for answer in (*refused, *misspelt))


@pytest.fixture
def dialled(monkeypatch) -> list[Any]:
    """Whatever this process connected to, or asked the name of, that is not a file on this machine."""
    found: list[Any] = []

    def watched(connect: Any) -> Any:
        def connecting(self: socket.socket, address: Any) -> Any:
            if self.family != socket.AF_UNIX:
                found.append(address)
            return connect(self, address)

        return connecting

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, watched(getattr(socket.socket, name)))
    resolve = socket.getaddrinfo

    def resolving(host: Any, *more: Any, **named: Any) -> Any:
        found.append(host)
        return resolve(host, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolving)
    return found


class Appends:
    """What each append read of the tables; one can be made to lose its connection before it runs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, superuser: str) -> None:
        self.rows: list[int] = []
        self.is_cutting = False
        self._superuser = superuser
        rows = _Held.rows

        async def counted(held: _Held, statement: str, parameters: Mapping[str, object]) -> Sequence[Any]:
            if "echoplane_append(" not in statement:
                return await rows(held, statement, parameters)
            before = await self._rows_read(held.driver)
            if self.is_cutting:
                self._cut(held.driver.info.backend_pid)
            found = await rows(held, statement, parameters)
            self.rows.append(await self._rows_read(held.driver) - before)
            return found

        monkeypatch.setattr(_Held, "rows", counted)

    def _cut(self, backend: int) -> None:
        self.is_cutting = False
        with psycopg.connect(self._superuser, autocommit=True) as above:
            above.execute("SELECT pg_terminate_backend(%s, 10000)", [backend])

    @staticmethod
    async def _rows_read(driver: psycopg.AsyncConnection[Any]) -> int:
        """Return how many rows were read by now by all whose numbers have been handed in, this one's too."""
        await driver.execute("SELECT pg_stat_force_next_flush()")
        found = await driver.execute(
            "SELECT coalesce(sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)), 0)::bigint"
            " FROM pg_stat_user_tables"
        )
        row = await found.fetchone()
        assert row is not None
        return int(row[0])


async def test_an_append_reads_no_more_of_a_long_log_and_leaves_an_exact_prefix_where_it_is_cut_off(
    door, superuser, monkeypatch
):
    """O24. A thousand short events in batches of fifty; nothing else reads the tables meanwhile."""
    events = [
        said(f"I like song {number}.", who=f"u{number % 40}", source_event_id=f"t{number}")
        for number in range(EVENTS_COUNT)
    ]
    appends = Appends(monkeypatch, superuser)

    async def told(at: int, *, status: int = 201) -> dict[str, Any]:
        return await door.call(
            "POST", "/events", status=status, json={"events": events[at : at + BATCH_EVENTS]}
        )

    for at in range(0, 7 * BATCH_EVENTS, BATCH_EVENTS):
        await told(at)
    appends.is_cutting = True
    cut = await told(7 * BATCH_EVENTS, status=503)
    resumed_at = len((await door.call("GET", "/events"))["events"])
    for at in range(resumed_at, EVENTS_COUNT, BATCH_EVENTS):
        await told(at)
    kept = (await door.call("GET", "/events"))["events"]

    assert cut["error"]["act"] == "retry later, with the same idempotency keys"
    assert resumed_at == 7 * BATCH_EVENTS
    assert [one["event"]["source_event_id"] for one in kept] == [f"t{number}" for number in range(1_000)]
    assert len(appends.rows) == EVENTS_COUNT / BATCH_EVENTS
    assert max(appends.rows) <= ROWS_READ_MAX


async def test_nothing_that_a_plane_does_by_default_calls_another_machine(door, dialled, discovery):
    """O24. Appended, folded, asked and replayed."""
    for number in range(10):
        await door.emit(said(f"I like song {number}.", who=f"u{number % 3}"))
    await door.fold()

    asked = await door.ask("What does u2 like?")
    replayed = await door.call("POST", f"/contexts/{asked['context']['hash']}/replay")

    assert asked["context"]["lines"]
    assert replayed["verdict"] == "identical"
    assert dialled == []
    assert [one.raddr for one in psutil.Process().net_connections("inet") if one.raddr] == []
