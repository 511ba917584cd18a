"""Migrations arrive at the declared schema, to the last constraint, whoever runs them and how often."""

from __future__ import annotations

import asyncio
import shutil

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy.ext.asyncio import create_async_engine

from contracts.errors import OtherSchema, Unavailable
from ledger import schema
from ledger._tables import metadata

DEFINITIONS = {
    "columns": """
        SELECT c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
            a.attidentity, a.attgenerated, pg_get_expr(d.adbin, d.adrelid)
        FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
        LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0
            AND NOT a.attisdropped AND c.relname <> 'alembic_version'""",
    "constraints": """
        SELECT c.relname, k.conname, pg_get_constraintdef(k.oid)
        FROM pg_constraint AS k JOIN pg_class AS c ON c.oid = k.conrelid
        WHERE c.relnamespace = 'public'::regnamespace AND c.relname <> 'alembic_version'""",
    "indexes": """
        SELECT tablename, indexname, indexdef FROM pg_indexes
        WHERE schemaname = 'public' AND tablename <> 'alembic_version'""",
}


@pytest.fixture
async def declared_engine(empty_database):
    """A database that holds what `_tables` declares, made without migrations."""
    made = create_async_engine(empty_database.owner)
    async with made.begin() as conn:
        await conn.run_sync(metadata.create_all)
    yield made
    await made.dispose()


async def definitions(engine, kind: str) -> set[tuple[object, ...]]:
    async with engine.connect() as conn:
        return {tuple(row) for row in await conn.execute(sa.text(DEFINITIONS[kind]))}


@pytest.mark.parametrize("kind", sorted(DEFINITIONS))
async def test_migrating_from_nothing_equals_the_declared_schema(owner_engine, declared_engine, kind):
    declared = await definitions(declared_engine, kind)

    assert len(declared) >= len(metadata.tables)
    assert await definitions(owner_engine, kind) == declared


async def test_alembic_finds_nothing_left_to_migrate(owner_engine):
    async with owner_engine.connect() as conn:
        differences = await conn.run_sync(
            lambda sync: compare_metadata(
                MigrationContext.configure(sync, opts={"compare_type": True}), metadata
            )
        )

    assert differences == []


async def test_alembic_would_find_what_a_migration_forgot(owner_engine):
    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("ALTER TABLE claim DROP COLUMN body"))
    async with owner_engine.connect() as conn:
        differences = await conn.run_sync(
            lambda sync: compare_metadata(MigrationContext.configure(sync), metadata)
        )

    assert [difference[0] for difference in differences] == ["add_column"]


async def test_upgrading_again_or_at_once_changes_nothing(empty_database):
    await asyncio.gather(*(schema.upgrade(empty_database.owner) for _ in range(3)))
    await schema.upgrade(empty_database.owner)

    engine = create_async_engine(empty_database.owner)
    async with engine.connect() as conn:
        versions = (await conn.execute(sa.text("SELECT version_num FROM alembic_version"))).scalars().all()
    await engine.dispose()
    assert len(versions) == 1


async def test_a_database_of_a_build_whose_scripts_were_others_is_refused_and_left_alone(
    database, owner_engine, tmp_path, monkeypatch
):
    other = shutil.copytree(schema._MIGRATIONS, tmp_path / "other")
    with (other / "versions" / "0003_log.sql").open("a", encoding="utf-8") as script:
        script.write("-- Changed in place.")

    monkeypatch.setattr(schema, "_MIGRATIONS", other)
    for _ in range(2):
        with pytest.raises(OtherSchema, match="export"):
            await schema.upgrade(database.owner)

    monkeypatch.undo()
    await schema.upgrade(database.owner)
    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("COMMENT ON TABLE alembic_version IS NULL"))
    with pytest.raises(OtherSchema) as caught:
        await schema.upgrade(database.owner)
    assert caught.value.details() == {"revision": "0003"}


async def test_a_later_revision_is_added_to_what_earlier_scripts_made(
    database, owner_engine, tmp_path, monkeypatch
):
    later = shutil.copytree(schema._MIGRATIONS, tmp_path / "later")
    (later / "versions" / "0004_later.py").write_text(
        "from alembic import op\nrevision, down_revision = '0004', '0003'\n"
        "def upgrade(): op.execute('CREATE TABLE later ()')\n",
        encoding="utf-8",
    )

    with monkeypatch.context() as patch:
        patch.setattr(schema, "_MIGRATIONS", later)
        for _ in range(2):
            await schema.upgrade(database.owner)
    async with owner_engine.connect() as conn:
        assert await conn.scalar(sa.text("SELECT to_regclass('later') IS NOT NULL"))

    # This build knows no such revision.
    with pytest.raises(OtherSchema):
        await schema.upgrade(database.owner)


async def test_a_server_that_is_not_there_is_unavailable(tmp_path):
    with pytest.raises(Unavailable):
        await schema.upgrade(f"postgresql://nobody@/nothing?host={tmp_path}")
