"""
Failures of deleting that users of memory systems reported, as small inputs through the HTTP door.

Each test is named after the rule that the reported system broke; to delete is to erase. What is in the files
afterwards is proved in `test_erasure.py`; here, what is in the rows and in every answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import psycopg
import pytest
from psycopg import sql

from echoplane._embedded import DatabaseUrls, Servers
from echoplane._wiring import Plane, open_plane
from tests.acceptance.conftest import TABLES, caller
from tests.acceptance.door import Door, claim, ids, said, stated, supports


def with_code(events: list[str]) -> dict[str, Any]:
    """Return what a consolidation makes of events."""
    return {
        "stream": "consolidation", "kind": "derivation",
        "actor": {"id": "consolidator", "class": "assistant"},
        "claims": [{
            "entity": "Ines", "relation": "summary", "value": "sits in East Wing, locker code Q-4417",
            "inputs": [{"event": one} for one in events],
        }],
    }  # fmt: skip


@pytest.fixture
def rows(superuser: str) -> Callable[[str], dict[str, list[str]]]:
    """Return a function that reads every row of a tenant as text, above row level security."""

    def rows(tenant: str) -> dict[str, list[str]]:
        with psycopg.connect(superuser, autocommit=True) as connection:
            tables = [row[0] for row in connection.execute(TABLES).fetchall()]
            return {
                table: [
                    row[0]
                    for row in connection.execute(
                        sql.SQL("SELECT r::text FROM {} AS r WHERE tenant = %s ORDER BY 1").format(
                            sql.Identifier(table)
                        ),
                        [tenant],
                    ).fetchall()
                ]
                for table in tables
            }

    return rows


def holders(found: dict[str, list[str]], word: str) -> set[str]:
    """Return the tables that hold a word, as text or as bytes."""
    forms = (word, word.encode().hex())
    return {table for table, rows in found.items() for row in rows if any(form in row for form in forms)}


@pytest.fixture
async def reopen(
    plane: Plane, database: DatabaseUrls, redis_url: str
) -> AsyncIterator[Callable[[], Awaitable[Door]]]:
    """Return a function that opens the plane anew: nothing that a process holds in memory is left."""
    async with AsyncExitStack() as stack:

        async def reopen() -> Door:
            servers = Servers(database=database, redis_url=redis_url, postgres=None, redis=None)
            again = await stack.enter_async_context(open_plane(plane.settings, servers, wait_ms=500))
            return Door(
                client=await stack.enter_async_context(caller(again, again.local_token)),
                plane=again,
                tenant="home",
            )

        yield reopen


async def test_erasing_reaches_summaries_contexts_and_whatever_was_asked(door, rows, discovery, reopen):
    """O8. The code is structured, the place is text, the summary is derived of both; then a restart."""
    told = await door.tell(
        said("My locker code is Q-4417.", who="Ines", claims=[claim("Ines", "locker_code", "Q-4417")]),
        said("I moved to East Wing.", who="Ines"),
    )
    await door.tell(with_code(ids(*told)))
    question = "What is Ines's locker code?"
    asked = await door.ask(question)
    summary = await door.resolve("Ines", "summary")
    before = rows("home")

    await door.erase(ids(*told)[0])
    after = await reopen()
    await after.fold()
    answers = [
        await after.ask(question),
        await after.ask("Where does Ines live?"),
        await after.resolve("Ines", "locker_code"),
        await after.resolve("Ines", "summary"),
        await after.history("Ines"),
        await after.call("GET", f"/contexts/{asked['context']['hash']}"),
        await after.call("POST", f"/contexts/{asked['context']['hash']}/replay"),
        *[await after.call("GET", f"/events/{one}") for one in ids(*told)],
    ]

    assert asked["answer"] == "Q-4417"
    assert "Q-4417" in summary["value"]
    # The negative control: the same search found it.
    assert holders(before, "Q-4417") >= {"claim"}
    assert holders(rows("home"), "Q-4417") == set()
    assert [answer for answer in answers if "Q-4417" in str(answer)] == []
    code, place, key, derived, _, context, replay, *_ = answers
    assert (code["status"] == "answered", code["answer"]) == (False, None)
    assert (place["status"], place["answer"]) == ("answered", "East Wing")
    assert (key["outcome"], key["reason"], derived["outcome"]) == ("missing", "erased", "missing")
    assert (context["erased"], context["form"], replay["verdict"]) == (True, None, "redacted")


@pytest.mark.parametrize("actors", [("u1", "u1"), ("u1", "u2")])
async def test_what_two_events_support_stands_until_both_are_erased(
    door,
    discovery,
    rows,
    actors,
):
    """O9. Structured, said twice by one person and by two."""
    one, other = await door.tell(
        *(
            stated(claim("pump P7", "located_in", "bay 3"), who=who, at=f"2025-03-0{day}T09:00:00Z")
            for day, who in enumerate(actors, start=1)
        )
    )

    await door.erase(*ids(one))
    half = await door.resolve("pump P7", "located_in")
    asked = await door.ask("Where is pump P7?")
    await door.erase(*ids(other))
    none = await door.resolve("pump P7", "located_in")
    after = await door.ask("Where is pump P7?")

    assert (half["outcome"], half["value"], supports(half)) == ("resolved", "bay 3", set(ids(other)))
    assert (asked["status"], asked["answer"]) == ("answered", "bay 3")
    assert (none["outcome"], none["reason"]) == ("missing", "erased")
    assert (after["answer"], after["context"]["lines"]) == (None, [])
    # No entity is left behind: neither its name nor its value stands in any row.
    assert holders(rows("home"), "pump P7") | holders(rows("home"), "bay 3") == set()
    assert (await door.history("pump P7"))["claims"] == []


async def test_erasing_one_scope_changes_no_row_of_another(
    door,
    plane,
    rows,
):
    """O10. Text; a scope is a tenant, and all its events are erased at once."""
    await plane.make_tenant("b")
    other = Door(client=door.client, plane=plane, tenant="b")
    facts = ("I live in Lisbon.", "I work at Northwind.", "I like rye bread.")
    mine = await door.tell(*(said(text, who="u1") for text in facts))
    theirs = await other.tell(*(said(text, who="u1") for text in facts))
    before = rows("b")

    erased = await door.erase(*ids(*mine))

    assert erased["erased"] == ids(*mine)
    assert rows("b") == before
    assert (await door.history("u1"))["claims"] == []
    for relation, value in (("lives_in", "Lisbon"), ("works_at", "Northwind")):
        assert (await door.resolve("u1", relation))["outcome"] == "missing"
        assert (await other.resolve("u1", relation))["value"] == value
    assert (await door.resolve("u1", "likes"))["outcome"] == "missing"
    assert (await other.resolve("u1", "likes"))["values"] == ["rye bread"]
    # A hash that did not match its event would be refused when it is read.
    for event_id, text in zip(ids(*theirs), facts, strict=True):
        assert (await other.call("GET", f"/events/{event_id}"))["event"]["text"] == text
    assert (await plane.verify("b")).ok
    assert (await plane.verify("home")).ok


async def test_erasing_one_subject_leaves_the_others_of_its_tenant(door, discovery):
    """O10, within a tenant: a scope is a subject. Text."""
    await door.tell(
        *(said(text, who=who) for who in ("Ann", "Bo") for text in ("I live in Lisbon.", "I like rye bread."))
    )

    await door.call("POST", "/erasures", json={"subject": "Ann"})

    assert (await door.history("Ann"))["claims"] == []
    assert (await door.ask("Where does Ann live?"))["answer"] is None
    assert (await door.ask("Where does Bo live?"))["answer"] == "Lisbon"
    assert (await door.resolve("Bo", "likes"))["values"] == ["rye bread"]


async def test_a_rebuild_does_not_bring_back_what_was_erased(door, discovery, rows):
    """O11. Text; all projections are made anew in another epoch."""
    name, _ = await door.tell(
        said("My name is Orulind.", who="u1"), said("My favourite language is Ada.", who="u1")
    )
    assert (await door.resolve("u1", "named"))["value"] == "Orulind"

    await door.erase(*ids(name))
    epoch = await door.rebuild()

    assert (await door.call("GET", "/epochs"))["epochs"][-1]["state"] == "serving"
    gone = await door.resolve("u1", "named")
    assert (gone["view"]["epoch"], gone["outcome"], gone["reason"]) == (epoch, "missing", "erased")
    asked = await door.ask("What is u1's name?")
    assert (asked["answer"], "Orulind" in str(asked)) == (None, False)
    kept = await door.ask("What is u1's favourite language?")
    assert (kept["status"], kept["answer"], kept["view"]["epoch"]) == ("answered", "Ada", epoch)
    assert holders(rows("home"), "Orulind") == set()
