"""Many keys of states alone are answered from columns, piece by piece, as each is from all its claims."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import IntegrityFault
from contracts.times import KnownAt, ValidAt
from contracts.views import View, ViewRequest
from ledger import _alike, _deciding, _found, log
from ledger._ground import ground_of
from ledger.resolve import pin, resolve_many
from tests.ledger.examples import examples
from tests.ledger.folded import Ledger
from tests.ledger.random_logs import VALUES, days, instant, instants_of, logs
from tests.ledger.telling import Told, day, since

KEYS = [(entity, relation) for entity in ("ann", "bob", "eve") for relation in ("home", "level")]
NEWEST = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=None)


@st.composite
def states(draw: st.DrawFn) -> list[list[dict]]:
    """Commits of one state each, nearly all said by one source, in no order of time."""
    commits = []
    for number in range(draw(st.integers(1, 14))):
        entity, relation = draw(st.sampled_from(KEYS[:3]))
        claim = {"entity": entity, "relation": relation, "stance": "assert"}
        claim["value"] = draw(st.sampled_from([*VALUES, " a "]))
        if draw(st.integers(0, 9)) == 0:
            del claim["value"]
            claim["stance"] = "end"
        claim["valid"] = {"since": instant(draw(days))}
        actor = draw(st.sampled_from([*["cam"] * 12, "dan"]))
        commits.append([{
            "stream": "s", "kind": "claim", "actor": {"id": actor, "class": "user"},
            "source_event_id": f"e{number + 1}", "claims": [claim],
        }])  # fmt: skip
    return commits


async def answers(ledger: Ledger, tenant: str, view: View):
    """Return what a read of many keys answers, what one that knows no columns does, and how many had some."""
    alike, counts = _alike.answers_alike, []

    async def counted(*args):
        found, ground = await alike(*args)
        counts.append(len(found))
        return found, ground

    async def none(reader, *_):
        stand, _ = await _found.found_on(reader, [], at=None)
        return {}, await ground_of(reader, stand)

    async with ledger.db.snapshot(tenant) as conn:
        keys = await log.tenant_keys(ledger.db, tenant, conn)
        found = []
        with pytest.MonkeyPatch.context() as patched:
            for read in (counted, none):
                patched.setattr(_deciding, "answers_alike", read)
                found.append(await resolve_many(conn, keys, view, KEYS))
    return (*found, counts[0])


@pytest.mark.property
@pytest.mark.parametrize(("listed", "row"), [(32, 2), (2, 1), (2, 16)])
def test_answers_from_columns_are_those_from_all_claims(database, monkeypatch, listed, row):
    monkeypatch.setattr(_found, "LISTED_CLAIMS_MAX", listed)
    monkeypatch.setattr(_alike, "KEYS_A_ROW", row)
    ledger, answered = Ledger(database), 0

    @examples(4)
    @given(st.one_of(states(), states(), logs(events_max=8)), st.data())
    def holds(commits, data):
        nonlocal answered
        tenant = ledger.tenant()
        ledger.append(tenant, commits)
        ledger.fold(tenant, events_max=data.draw(st.integers(1, 14)))
        claims = ledger.claims(tenant)
        if not claims:
            return
        known = KnownAt(ledger.clock.now + timedelta(days=1))
        for at in data.draw(st.lists(st.sampled_from(instants_of(claims)), min_size=3, max_size=3)):
            cut = data.draw(st.sampled_from([claim.commit for claim in claims]))
            view = View(valid_at=ValidAt(at), known_at=known, cut=cut, epoch=1)
            found, whole, count = ledger.run(answers(ledger, tenant, view))
            assert found == whole
            assert repr(found) == repr(whole)
            answered += count

    try:
        holds()
    finally:
        ledger.close()
    assert answered > 0


@pytest.fixture
def tell(db, clock):
    return Told(db, clock)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE claim SET claim_id = '\\x00' WHERE position = 2",
        "UPDATE claim SET claim_id = '' WHERE position = 1",
        "UPDATE claim SET seal = seal || '\\x00' WHERE position = 2",
        "UPDATE claim SET stance = 'end' WHERE position = 2",
        "UPDATE cell SET seal = ''",
        "UPDATE cell SET known = int8range(1, NULL) WHERE upper_inf(known)",
        "UPDATE cell SET valid = tstzrange(lower(valid), '2099-01-01') WHERE upper_inf(valid)",
    ],
)
async def test_a_changed_row_is_refused_in_a_read_of_many(db, tell, owner_engine, statement):
    await tell(since("Lyon", day(1)))
    await tell(since("Oslo", day(2)))
    view = await pin(db, "acme", NEWEST, wait_ms=0)
    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        await conn.execute(sa.text("ALTER TABLE cell DISABLE TRIGGER USER"))
        await conn.execute(sa.text("ALTER TABLE claim DISABLE TRIGGER USER"))
        assert (await conn.execute(sa.text(statement))).rowcount > 0

    async with db.snapshot("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
        with pytest.raises(IntegrityFault):
            await resolve_many(conn, keys, view, [("ann", "home"), ("bob", "home")])


@pytest.mark.parametrize("listed", [1, 32])
async def test_an_old_cell_that_was_put_back_is_refused_in_a_read_of_many(
    db, tell, owner_engine, monkeypatch, listed
):
    monkeypatch.setattr(_found, "LISTED_CLAIMS_MAX", listed)
    await tell(since("Lyon", day(1)))
    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        await conn.execute(sa.text("CREATE TABLE kept AS SELECT * FROM cell"))
    await tell(since("Oslo", day(2)))
    view = await pin(db, "acme", NEWEST, wait_ms=0)
    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        await conn.execute(sa.text("ALTER TABLE cell DISABLE TRIGGER USER"))
        await conn.execute(sa.text("DELETE FROM cell"))
        columns = "tenant, line, valid, known, state, claims, seal"
        await conn.execute(sa.text(f"INSERT INTO cell ({columns}) SELECT {columns} FROM kept"))

    async with db.snapshot("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
        with pytest.raises(IntegrityFault):
            await resolve_many(conn, keys, view, [("ann", "home"), ("bob", "home")])


async def test_no_statement_is_compiled_before_it_runs(db):
    asked = "SELECT current_setting('jit')"
    async with db.snapshot("acme") as conn:
        assert (await conn.execute(sa.text(asked))).scalar_one() == "off"

    assert await db.rows(asked, {}) == [("off",)]
