"""Which keys a relation has at a cut: the same however many commits a fold took, and whatever came later."""

from __future__ import annotations

import dataclasses

import pytest

from contracts.views import ViewRequest
from ledger import _holders, log
from ledger.resolve import keys_of_relation, pin, relations_of_tenant
from tests.ledger.erasing import claim, opened, said

NOW = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=None)


@pytest.fixture(autouse=True)
def three(monkeypatch):
    monkeypatch.setattr(_holders, "HOLDERS_LINES_MAX", 3)


async def read_at(ledger, cut, read, *more):
    view = dataclasses.replace(await pin(ledger.db, "acme", NOW, wait_ms=0), cut=cut)
    async with ledger.db.snapshot("acme") as conn:
        keys = await log.tenant_keys(ledger.db, "acme", conn)
        return await read(conn, keys, view, *more)


async def holders_at(ledger, relation, cut):
    found, whole = await read_at(ledger, cut, keys_of_relation, relation)
    return [entity for entity, _ in found], whole


@pytest.mark.parametrize("events_max", [1, 1000])
async def test_an_older_cut_has_the_same_keys_however_commits_were_batched(db, database, clock, events_max):
    async with opened(db, database, clock) as ledger:
        await ledger.register("speaks")
        await ledger.fold()
        await ledger.say(said("a", claim("fay", "speaks", "v0")))
        then = (await ledger.say(said("b", claim("eve", "speaks", "French")))).commit
        # Of one commit, by name: not in the order in which a fold came to them.
        last = await ledger.say(
            *(said(f"c{n}", claim("fay", "speaks", f"v{n}")) for n in range(1, 6)),
            said(
                "d", claim("eve", "home", "Oslo"), claim("fay", "home", "Oslo"), claim("ann", "home", "Rome")
            ),
        )
        await ledger.fold(events_max=events_max)

        assert await holders_at(ledger, "speaks", then) == (["fay", "eve"], True)
        assert await holders_at(ledger, "home", then) == ([], True)
        assert await holders_at(ledger, "home", last.commit) == (["ann", "eve", "fay"], True)
        assert await holders_at(ledger, "speaks", last.commit) == (["fay", "eve"], False)
        assert await ledger.anew(1001 - events_max) is not None
        assert await holders_at(ledger, "speaks", then) == (["fay", "eve"], True)
        assert await holders_at(ledger, "home", last.commit) == (["ann", "eve", "fay"], True)


async def test_lines_that_an_erasure_made_anew_are_found_behind_those_that_came_later(db, database, clock):
    async with opened(db, database, clock) as ledger:
        await ledger.say(said("a", claim("ann", "home", "Oslo")), said("b", claim("ann", "home", "Rome")))
        then = (await ledger.say(said("u", claim("ann", "age", "33")))).commit
        for n in range(4):
            await ledger.say(said(f"p{n}", claim(f"p{n}", "home", "Oslo")))
        await ledger.fold()
        assert await holders_at(ledger, "home", then) == (["ann"], True)

        await ledger.erase("b")
        await ledger.fold()

        assert await holders_at(ledger, "home", then) == (["ann"], True)
        assert await read_at(ledger, then, relations_of_tenant) == (("age", "home"), True)


async def test_relations_are_those_of_the_cut_and_it_is_said_whether_they_are_all(
    db, database, clock, monkeypatch
):
    monkeypatch.setattr(_holders, "RELATIONS_READ_MAX", 2)
    async with opened(db, database, clock) as ledger:
        await ledger.say(said("a", claim("ann", "home", "Oslo")))
        then = (await ledger.say(said("b", claim("ann", "zoo", "Oslo")))).commit
        last = (await ledger.say(said("c", claim("ann", "age", "33"), claim("ben", "home", "Oslo")))).commit
        await ledger.fold()

        assert await read_at(ledger, then - 1, relations_of_tenant) == (("home",), True)
        assert await read_at(ledger, then, relations_of_tenant) == (("home", "zoo"), True)
        assert await read_at(ledger, last, relations_of_tenant) == (("age", "home"), False)
