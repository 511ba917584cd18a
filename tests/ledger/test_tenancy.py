"""Two tenants never see each other: not by a forgotten WHERE, a guessed id or a foreign key."""

from __future__ import annotations

from collections.abc import Mapping

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from ledger import _tables, log
from ledger._tables import metadata
from tests.ledger.log_drafts import append, as_owner, draft
from tests.ledger.recalls import store

TABLES = sorted(metadata.tables)
POLICY = "(tenant = current_setting('echoplane.tenant'::text, true))"

# What the plane's role may do beyond SELECT. A line more here is a decision, not a slip.
PLANE_MAY = {
    "claim": {"INSERT"},
    "cell": {"INSERT", "UPDATE(known)", "UPDATE(seal)"},
    "context": {"INSERT"},
    "context_key": {"INSERT"},
    "dead_letter": {"DELETE", "INSERT", "UPDATE"},
    "epoch": {"INSERT", "UPDATE"},
    "line": {"INSERT", "UPDATE(tail)"},
    "outbox": {"DELETE"},
    "pinned_view": {"DELETE", "INSERT"},
    "reach": {"INSERT"},
    "tenant_policy": {
        *("INSERT", "UPDATE(allowance)", "UPDATE(allowance_at)", "UPDATE(bytes_max)", "UPDATE(events_max)"),
        *("UPDATE(events_per_minute)", "UPDATE(retention_days)", "UPDATE(suspended)"),
    },
    "relation": {"INSERT", "UPDATE"},
    "token": {"INSERT", "UPDATE(revoked_at)"},
    "tombstone": {"INSERT"},
    "tombstone_reach": {"INSERT"},
    "trail": {"INSERT"},
    "trail_head": {"UPDATE(number)"},
    "trail_key": {"INSERT"},
    "unit_vector": {"DELETE", "INSERT", "UPDATE"},
    "veiled_name": {"INSERT"},
}
RELAY_SEES = {
    "tenant": {"tenant", "created_at", "created_by"},
    "tenant_policy": set(metadata.tables["tenant_policy"].columns.keys()),
    "deleted_tenant": {"tenant", "deleted_at", "deleted_by", "commits", "events"},
    "head": {"tenant", "commit", "position", "recorded_at"},
    "epoch": set(metadata.tables["epoch"].columns.keys()),
    "outbox": set(metadata.tables["outbox"].columns.keys()),
    "dead_letter": {"tenant", "epoch", "position", "attempts", "first_at", "last_at"},
    "commit": {"tenant", "commit", "recorded_at"},
}


OTHER_ROWS = [
    """INSERT INTO cell (tenant, line, valid, known, state, claims, seal)
    VALUES ('acme', :line, '[2023-01-01Z,)', '[1,)', 'value', '{}', '\\x01')""",
    """INSERT INTO claim
    VALUES ('acme', 1, '\\x01', 1, 0, 1, :event, 'ann', 'lives_in', 'assert', '\\x01', '\\x01')""",
    "INSERT INTO reach VALUES ('acme', 1, 'ann', 'lives_in', '\\x01', 1, false, false)",
    "INSERT INTO relation VALUES ('acme', 1, 'lives_in', 1, '\\x01', '\\x01')",
    "INSERT INTO dead_letter VALUES ('acme', 1, 1, 'e', 1, now(), now())",
    "INSERT INTO pinned_view VALUES ('acme', 'monday', now(), now(), 1, 0, now())",
    "INSERT INTO tombstone VALUES ('acme', 1, 0, 1, :event, '', '', '\\x01', '\\x01')",
    "INSERT INTO tombstone_reach VALUES ('acme', 1, ' aa', ' bb', 1, 0)",
    "INSERT INTO veiled_name VALUES ('acme', 1, ' aa', 'ann')",
    "INSERT INTO tenant_policy VALUES ('acme', false, NULL, NULL, NULL, 30, 0, now())",
    """INSERT INTO unit_vector
    VALUES ('acme', :event, 'm', 1, '\\x01', array_fill(0::real, ARRAY[384])::vector)""",
]


@pytest.fixture
async def filled(db, owner_engine):
    """Rows of `acme` in the tables that the log itself fills, and a second tenant."""
    receipt = await append(db, draft("a", source_event_id="1"))
    await store(db)
    await log.create_token(db, "acme", rights={"ask"}, actors={"*"}, classes={"*"}, label="t")
    await log.create_tenant(db, "other")
    erased = "INSERT INTO erased SELECT tenant, event_id, event_id, commit FROM event"
    await rows(owner_engine, f"{erased} RETURNING 1", tenant="acme")
    deleted = "INSERT INTO deleted_tenant VALUES ('acme', now(), 'olga', 'why', 0, 0)"
    await rows(owner_engine, f"{deleted} RETURNING 1", tenant="acme")
    async with db.tenant("acme") as conn:
        line = await conn.scalar(
            sa.insert(_tables.line)
            .values(tenant="acme", epoch=1, entity="ann", relation="lives_in", part="")
            .returning(_tables.line.c.line)
        )
        for statement in OTHER_ROWS:
            await conn.execute(sa.text(statement), {"line": line, "event": receipt.event_ids[0]})
    return receipt


async def rows(
    engine, statement: str, tenant: str | None = None, parameters: Mapping[str, object] | None = None
):
    async with engine.begin() as conn:
        if tenant is not None:
            await conn.execute(sa.text("SELECT set_config('echoplane.tenant', :t, true)"), {"t": tenant})
        return [tuple(row) for row in await conn.execute(sa.text(statement), parameters or {})]


CATALOG = "c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')"


async def test_every_table_stands_under_forced_row_level_security_by_tenant(owner_engine):
    found = await rows(
        owner_engine,
        f"""
        SELECT c.relname, c.relkind::text, c.relrowsecurity, c.relforcerowsecurity,
            pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        LEFT JOIN pg_policy AS p ON p.polrelid = c.oid AND p.polname = 'one_tenant' AND p.polcmd = '*'
        WHERE {CATALOG} AND c.relname <> 'alembic_version' AND n.nspname NOT LIKE 'pg_toast%'""",
    )

    assert sorted(row[0] for row in found) == TABLES
    assert {row[1:] for row in found} == {("r", True, True, POLICY, POLICY)}


async def test_only_the_relay_has_another_policy_and_it_may_only_read(owner_engine):
    others = await rows(
        owner_engine,
        """
        SELECT p.polrelid::regclass::text, p.polcmd::text, r.rolname
        FROM pg_policy AS p JOIN pg_roles AS r ON r.oid = ANY (p.polroles)
        WHERE p.polname <> 'one_tenant'""",
    )

    assert sorted(others) == [(table, "r", "echoplane_relay") for table in sorted(RELAY_SEES)]
    assert sorted(RELAY_SEES) == sorted(_tables.TABLES_ACROSS_TENANTS)


async def test_every_key_carries_the_tenant(owner_engine):
    """Primary, unique, foreign and exclusion constraints, both ends of each, and unique indexes."""
    keys = await rows(
        owner_engine,
        """
        SELECT k.conname, ARRAY(SELECT a.attname::text FROM pg_attribute AS a
                WHERE a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)),
            CASE WHEN k.contype = 'f' THEN ARRAY(SELECT a.attname::text FROM pg_attribute AS a
                WHERE a.attrelid = k.confrelid AND a.attnum = ANY (k.confkey)) END
        FROM pg_constraint AS k JOIN pg_class AS c ON c.oid = k.conrelid
        WHERE k.contype IN ('p', 'u', 'f', 'x') AND c.relnamespace = 'public'::regnamespace
            AND c.relname <> 'alembic_version'""",
    )
    indexes = await rows(
        owner_engine,
        """
        SELECT indexrelid::regclass::text, ARRAY(SELECT a.attname::text FROM pg_attribute AS a
            WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey::int2[]))
        FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid
        WHERE i.indisunique AND c.relnamespace = 'public'::regnamespace AND c.relname <> 'alembic_version'""",
    )
    primary = [key for key in keys if key[0].endswith("_pkey")]

    assert len(primary) == len(TABLES)
    assert [name for name, own, other in keys if "tenant" not in own or "tenant" not in (other or own)] == []
    assert [name for name, columns in indexes if "tenant" not in columns] == []


async def test_without_a_tenant_the_plane_sees_nothing(filled, engine, owner_engine):
    for table in TABLES:
        assert (await rows(owner_engine, f"SELECT count(*) FROM {table}", tenant="acme")) > [(0,)], table
        assert await rows(engine, f"SELECT * FROM {table}") == [], table
        assert await rows(engine, f"SELECT * FROM {table}", tenant="") == [], table
        # Once set and reset, the setting reads as '' and no longer as null.
        await rows(engine, "SELECT 1", tenant="acme")
        assert await rows(engine, f"SELECT * FROM {table}") == [], table


async def test_one_tenant_sees_no_row_of_another_by_no_condition(filled, engine):
    for table in TABLES:
        seen = await rows(engine, f"SELECT tenant FROM {table} WHERE tenant = 'acme' OR true", tenant="other")
        assert set(seen) <= {("other",)}, table


async def test_a_row_of_another_tenant_cannot_be_written(filled, engine, owner_engine):
    for table in sorted(name for name, may in PLANE_MAY.items() if "INSERT" in may):
        own = [
            column.name
            for column in metadata.tables[table].columns
            if column.identity is None and column.computed is None
        ]
        async with owner_engine.connect() as conn:
            await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
            row = (await conn.execute(sa.text(f"SELECT {', '.join(own)} FROM {table}"))).mappings().first()
        values = ", ".join(f":{name}" for name in own)
        insert = f"INSERT INTO {table} ({', '.join(own)}) VALUES ({values}) RETURNING 1"
        for tenant in (None, "other"):
            with pytest.raises(DBAPIError) as refused:
                await rows(engine, insert, tenant=tenant, parameters=row)

            assert "row-level security" in str(refused.value.orig), table


async def test_a_row_of_another_tenant_cannot_be_changed_or_removed(filled, engine, owner_engine):
    granted = [(table, right) for table, may in PLANE_MAY.items() for right in may if right != "INSERT"]
    for table, right in granted:
        column = right.removeprefix("UPDATE").strip("()") or "tenant"
        change = f"DELETE FROM {table}" if right == "DELETE" else f"UPDATE {table} SET {column} = {column}"
        before = await rows(owner_engine, f"SELECT * FROM {table}", tenant="acme")

        assert await rows(engine, f"{change} WHERE tenant = 'acme' RETURNING 1", tenant="other") == [], table
        assert await rows(engine, f"{change} WHERE tenant = 'acme' RETURNING 1") == [], table
        assert await rows(owner_engine, f"SELECT * FROM {table}", tenant="acme") == before != [], table


async def test_the_plane_may_do_what_it_needs_and_nothing_else(owner_engine):
    tables = await rows(
        owner_engine,
        """
        SELECT table_name::text, privilege_type::text FROM information_schema.role_table_grants
        WHERE grantee = 'echoplane_plane' AND table_schema = 'public'""",
    )
    columns = await rows(
        owner_engine,
        """
        SELECT table_name::text, privilege_type || '(' || column_name || ')'
        FROM information_schema.role_column_grants AS c
        WHERE grantee = 'echoplane_plane' AND table_schema = 'public' AND NOT EXISTS (
            SELECT FROM information_schema.role_table_grants AS t
            WHERE t.grantee = c.grantee AND t.table_name = c.table_name
                AND t.privilege_type = c.privilege_type)""",
    )
    granted: dict[str, set[str]] = {}
    for table, privilege in [*tables, *columns]:
        granted.setdefault(table, set()).add(privilege)

    assert granted == {table: {"SELECT"} | PLANE_MAY.get(table, set()) for table in TABLES}


async def test_roles_stand_under_row_level_security_and_own_nothing(owner_engine):
    roles = await rows(
        owner_engine,
        """
        SELECT r.rolname::text, r.rolsuper OR r.rolbypassrls OR r.rolcreatedb OR r.rolcreaterole,
            (SELECT count(*) FROM pg_class AS c WHERE c.relowner = r.oid)
        FROM pg_roles AS r WHERE r.rolname LIKE 'echoplane\\_%'""",
    )
    by_name = {row[0]: row[1:] for row in roles}

    for role in ("echoplane_plane", "echoplane_relay", "echoplane_backfill"):
        assert by_name[role] == (False, 0)


REWRITES = [
    "UPDATE event SET kind = 'claim'",
    "DELETE FROM event",
    "DELETE FROM event_key",
    "INSERT INTO event_key SELECT tenant, 'ev_none', 'k' FROM tenant",
    "UPDATE commit SET hash = ''",
    "UPDATE head SET commit = 0",
    "UPDATE claim SET entity = 'bob'",
    "DELETE FROM claim",
    "DELETE FROM cell",
    "UPDATE cell SET state = 'ended'",
    "UPDATE trail SET number = 9",
    "DELETE FROM trail",
    "UPDATE token SET rights = '{admin}'",
    "UPDATE tenant SET wrapped_keys = ''",
    "INSERT INTO head VALUES ('acme', 0, 0, now(), '')",
    "INSERT INTO tenant VALUES ('new', now(), '')",
    "TRUNCATE event",
    "SELECT * FROM alembic_version",
    "ALTER TABLE event DISABLE ROW LEVEL SECURITY",
    "SET ROLE echoplane_backfill",
]


async def test_the_plane_cannot_rewrite_what_happened(filled, engine):
    for statement in REWRITES:
        with pytest.raises(DBAPIError) as refused:
            await rows(engine, statement, tenant="acme")

        assert isinstance(refused.value.orig, psycopg.errors.InsufficientPrivilege), statement


async def test_a_claim_cannot_rest_on_another_tenants_event(filled, db):
    async with db.tenant("other") as conn:
        with pytest.raises(DBAPIError) as refused:
            await conn.execute(
                sa.text(
                    "INSERT INTO claim VALUES ('other', 1, '\\x02', 1, 0, 1, :event, 'ann', 'lives_in', "
                    "'assert', '\\x01', '\\x01')"
                ),
                {"event": filled.event_ids[0]},
            )
        assert isinstance(refused.value.orig, psycopg.errors.ForeignKeyViolation)
        await conn.rollback()


async def test_a_cell_is_closed_once_and_changes_in_nothing_else(filled, owner_engine):
    """The owner is held to it too: it is a trigger, not a right."""
    for change in (
        "known = '[1,)'",
        "known = '[2,5)'",
        "known = 'empty'",
        "state = 'ended'",
        "known = '[1,5)', state = 'ended'",
        "known = '[1,5)', valid = '[2024-01-01Z,)'",
        "known = '[1,5)', claims = '{x}'",
    ):
        with pytest.raises(DBAPIError):
            await as_owner(owner_engine, f"UPDATE cell SET {change}")

    await as_owner(owner_engine, "UPDATE cell SET known = '[1,5)'")

    with pytest.raises(DBAPIError):
        await as_owner(owner_engine, "UPDATE cell SET known = '[1,9)'")


async def test_open_cells_of_one_line_cannot_overlap(filled, engine):
    insert = (
        "INSERT INTO cell (tenant, line, valid, known, state, claims, seal) "
        "SELECT 'acme', line, {valid}, '[2,)', 'value', '{{}}', '\\x01' FROM line RETURNING 1"
    )

    for bad in ("'[2024-01-01Z,)'", "'empty'", "'[2020-01-01Z,infinity)'"):
        with pytest.raises(DBAPIError) as refused:
            await rows(engine, insert.format(valid=bad), tenant="acme")
        assert isinstance(refused.value.orig, psycopg.errors.IntegrityError)
    assert await rows(engine, insert.format(valid="'[2020-01-01Z,2023-01-01Z)'"), tenant="acme") == [(1,)]


async def test_the_relay_sees_numbers_of_every_tenant_and_no_content(filled, relay_engine):
    for table in TABLES:
        seen = RELAY_SEES.get(table, set())
        if seen:
            assert await rows(relay_engine, f"SELECT {', '.join(sorted(seen))} FROM {table}") != [], table
        for column in set(metadata.tables[table].columns.keys()) - seen:
            with pytest.raises(DBAPIError) as refused:
                await rows(relay_engine, f"SELECT {column} FROM {table}")

            assert isinstance(refused.value.orig, psycopg.errors.InsufficientPrivilege), (table, column)


async def test_the_relay_writes_nothing(filled, relay_engine):
    for statement in (
        "DELETE FROM outbox",
        "UPDATE epoch SET commit = 9",
        "INSERT INTO outbox VALUES ('a', 1)",
    ):
        with pytest.raises(DBAPIError):
            await rows(relay_engine, statement)


async def test_the_tenant_of_one_transaction_is_gone_in_the_next(db):
    async with db.tenant("acme") as conn:
        assert await conn.scalar(sa.text("SELECT current_setting('echoplane.tenant')")) == "acme"
    await append(db, draft())
    async with db.plane.connect() as conn:
        assert await conn.scalar(sa.text("SELECT current_setting('echoplane.tenant', true)")) in {"", None}
