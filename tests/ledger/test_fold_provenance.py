"""No claim without its event, no cell without its line: held by the database, whoever writes."""

from __future__ import annotations

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from ledger import log
from ledger.write import fold
from tests.ledger.scenario_logs import PlainProjector

CLAIM = (
    "INSERT INTO claim (tenant, epoch, claim_id, position, ordinal, commit, event_id, entity, relation, "
    "stance, body, seal) SELECT tenant, {epoch}, '\\x02', {position}, 7, commit, {event}, entity, relation, "
    "stance, body, seal FROM claim LIMIT 1"
)


@pytest.fixture
async def filled(db):
    draft = EventDraft.model_validate({
        "stream": "s", "kind": "claim", "actor": {"id": "ann", "class": "user"},
        "claims": [{"entity": "ann", "relation": "home", "value": "Lyon"}],
    })  # fmt: skip
    receipt = await log.append(db, "acme", [draft], grant=LOCAL_GRANT)
    await fold(db, "acme", PlainProjector(), events_max=10)
    return receipt


@pytest.fixture
async def owner(database):
    made = create_async_engine(database.owner)
    yield made
    await made.dispose()


async def refused(conn, statement: str) -> str:
    with pytest.raises(DBAPIError) as caught:
        await conn.execute(sa.text(statement))
    await conn.rollback()
    assert isinstance(caught.value.orig, psycopg.errors.IntegrityError)
    return caught.value.orig.diag.constraint_name


@pytest.mark.parametrize(
    ("changed", "constraint"),
    [
        ({"event": "'ev_none'"}, "claim_of_event"),
        ({"position": "9"}, "claim_of_event"),
        ({"epoch": "9"}, "claim_of_epoch"),
    ],
)
async def test_a_claim_of_no_event_or_no_epoch_is_refused(filled, db, changed, constraint):
    parts = {"epoch": "epoch", "position": "position", "event": "event_id"} | changed

    async with db.tenant("acme") as conn:
        assert await refused(conn, CLAIM.format(**parts)) == constraint


async def test_a_claim_of_an_event_at_its_position_is_taken(filled, db):
    async with db.tenant("acme") as conn:
        done = await conn.execute(sa.text(CLAIM.format(epoch="epoch", position="position", event="event_id")))
        assert done.rowcount == 1
        await conn.rollback()


async def test_a_cell_on_no_line_is_refused(filled, db):
    async with db.tenant("acme") as conn:
        columns = list(
            await conn.scalars(
                sa.text(
                    "SELECT column_name FROM information_schema.columns WHERE table_name = 'cell' "
                    "AND is_generated = 'NEVER' AND column_name NOT IN ('cell', 'line')"
                )
            )
        )
        names = ", ".join(columns)

        constraint = await refused(
            conn, f"INSERT INTO cell (line, {names}) SELECT line + 1000, {names} FROM cell LIMIT 1"
        )

    assert constraint == "cell_of_line"


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM event_key; DELETE FROM event",
        "DELETE FROM line",
        "UPDATE event SET event_id = 'ev_other'",
        "UPDATE line SET line = DEFAULT",
        "UPDATE epoch SET epoch = 9",
    ],
)
async def test_what_something_comes_from_stays_even_for_the_owner(filled, owner, statement):
    async with owner.connect() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        *before, last = statement.split("; ")
        for one in before:
            await conn.execute(sa.text(one))
        await refused(conn, last)


async def test_an_epoch_that_has_claims_stays(filled, owner):
    async with owner.connect() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        for table in ("cell", "line"):
            await conn.execute(sa.text(f"DELETE FROM {table}"))

        assert await refused(conn, "DELETE FROM epoch") == "epoch_is_named"


async def test_of_a_tenant_that_came_after_an_analysis_the_planner_presumes_no_single_row(db, owner):
    claims = [{"entity": f"box {number}", "relation": "bay", "value": "3"} for number in range(40)]
    draft = EventDraft.model_validate({
        "stream": "s", "kind": "claim", "actor": {"id": "ann", "class": "user"}, "claims": claims,
    })  # fmt: skip
    await log.append(db, "acme", [draft], grant=LOCAL_GRANT)
    await fold(db, "acme", PlainProjector(), events_max=10)
    await log.create_tenant(db, "later")

    async with owner.begin() as conn:
        await conn.execute(sa.text("ANALYZE"))
    presumed = {}
    async with db.snapshot("later") as conn:
        for table in ("claim", "line", "cell"):
            asked = sa.text(f"EXPLAIN (FORMAT JSON) SELECT FROM {table} WHERE tenant = 'later'")
            presumed[table] = (await conn.scalar(asked))[0]["Plan"]["Plan Rows"]

    assert presumed == {"claim": 40, "line": 40, "cell": 80}
