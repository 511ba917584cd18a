"""Issue 2, accepted when 4: plain SQL on the plane's role sees one tenant, or none."""

from __future__ import annotations

import json

import psycopg
import pytest
import sqlalchemy as sa

from tests.acceptance.conftest import OURS, TABLES, THEIRS, leaked

LEFT_BEHIND = {
    "pinned_view": "VALUES (%s, 'monday', now(), now(), 1, 0, now())",
    "erased": "SELECT tenant, event_id, event_id, commit FROM event WHERE tenant = %s LIMIT 1",
    "tombstone": "SELECT tenant, 1, 0, commit, event_id, '', '', '', '' FROM erased WHERE tenant = %s",
    "tombstone_reach": "VALUES (%s, 1, ' aa', ' bb', 1, 0)",
    "veiled_name": "VALUES (%s, 1, ' aa', 'xylia')",
    "tenant_policy": "VALUES (%s, false, NULL, NULL, NULL, 30, 0, now())",
    "deleted_tenant": "VALUES (%s, now(), 'xylia', 'xylia', 0, 0)",
}
"""Rows of tables that nothing has filled."""


@pytest.fixture
def sql(database):
    """Plain SQL on the plane's role."""
    url = sa.make_url(database.plane)
    conninfo = psycopg.conninfo.make_conninfo(
        host=url.query["host"], port=url.query["port"], user=url.username, dbname=url.database
    )
    with psycopg.connect(conninfo, autocommit=True) as connection:
        yield connection


@pytest.fixture
async def filled(ours, theirs, everything, superuser):
    """Every table holds something of the other tenant."""
    with psycopg.connect(superuser, autocommit=True) as above:
        for tenant in (OURS, THEIRS):
            for name, rows in LEFT_BEHIND.items():
                above.execute(f"INSERT INTO {name} {rows}", [tenant])
            above.execute("INSERT INTO outbox VALUES (%s, 1)", [tenant])
            above.execute("INSERT INTO dead_letter VALUES (%s, 1, 1, 'e', 1, now(), now())", [tenant])
            above.execute(
                "INSERT INTO unit_vector "
                "SELECT tenant, event_id, 'm', 1, '', array_fill(1::real, ARRAY[384])::vector "
                "FROM event_key WHERE tenant = %s LIMIT 1",
                [tenant],
            )
    rows = everything(THEIRS)
    assert {table for table, found in rows.items() if not found} == set()
    return rows


async def test_without_a_tenant_set_the_planes_role_sees_no_row_of_any_table(filled, sql):
    tables = [row[0] for row in sql.execute(TABLES).fetchall()]
    assert set(tables) == set(filled)

    for setting in (None, "", "nobody", "%", "ours,theirs", "ours' OR true --"):
        for table in tables:
            with sql.transaction():
                if setting is not None:
                    sql.execute("SELECT set_config('echoplane.tenant', %s, true)", [setting])
                assert sql.execute(f"SELECT * FROM {table}").fetchall() == [], (table, setting)
                assert sql.execute(
                    f"SELECT count(*) FROM {table} WHERE true OR tenant = 'theirs'"
                ).fetchone() == (0,)


async def test_with_one_tenant_set_the_planes_role_sees_no_row_of_another(filled, sql):
    seen: set[str] = set()
    for table in filled:
        with sql.transaction():
            sql.execute("SET LOCAL echoplane.tenant = 'ours'")
            found = sql.execute(f"SELECT tenant FROM {table} WHERE tenant = 'theirs' OR true").fetchall()
            assert {row[0] for row in found} <= {OURS}, table
            joined = sql.execute(f"SELECT count(*) FROM {table} AS a RIGHT JOIN tenant AS b ON true "
                                 "WHERE a.tenant = 'theirs' OR b.tenant = 'theirs'").fetchone()  # fmt: skip
            assert joined == (0,), table
            seen |= {table} if found else set()
    # It is not that nothing is seen at all.
    assert {"event", "claim", "cell", "context", "trail", "token", "tenant", "head"} <= seen


async def test_statistics_and_settings_of_the_server_tell_no_word_of_a_tenant(filled, sql, everything):
    """What the planner keeps of columns is content too; so is what other sessions are running."""
    for view in ("pg_stats", "pg_stat_activity", "pg_prepared_statements", "pg_settings"):
        rows = sql.execute(f"SELECT * FROM {view}").fetchall()
        told = leaked(json.dumps(rows, default=str))
        assert told == [], view
