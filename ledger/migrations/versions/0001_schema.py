"""The first schema: tables, the append function, row level security and the roles' rights."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_ROLES = """
DO $do$
DECLARE
    v_role text;
BEGIN
    FOREACH v_role IN ARRAY ARRAY['echoplane_plane', 'echoplane_relay', 'echoplane_backfill'] LOOP
        -- Roles belong to the whole server: another database of it, or whoever set the server up, may
        -- have made them already, and then the schema's owner needs no right to make roles.
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = v_role) THEN
            BEGIN
                EXECUTE format(
                    'CREATE ROLE %I LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE', v_role
                );
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;
            END;
        END IF;
        IF EXISTS (SELECT FROM pg_roles WHERE rolname = v_role AND (rolsuper OR rolbypassrls)) THEN
            RAISE 'role % would stand above row level security', v_role;
        END IF;
    END LOOP;
    -- Backfill is the plane with one right more: it may state the clock of an append.
    IF NOT pg_has_role('echoplane_backfill', 'echoplane_plane', 'MEMBER') THEN
        GRANT echoplane_plane TO echoplane_backfill;
    END IF;
END
$do$;
"""

_EXTENSIONS = "CREATE EXTENSION IF NOT EXISTS btree_gist; CREATE EXTENSION IF NOT EXISTS vector;"


def upgrade() -> None:
    """Make everything in a database that has nothing of ours."""
    _run(_EXTENSIONS)
    _run(_ROLES)
    for name in ("0001_tables.sql", "0001_functions.sql", "0001_access.sql"):
        _run(Path(__file__).with_name(name).read_text(encoding="utf-8"))


def downgrade() -> None:
    """Refuse: before the first schema there is no log to keep."""
    raise NotImplementedError("the first schema has nothing to go back to")


def _run(script: str) -> None:
    # No parameters: the driver would read the percent signs of a function body as placeholders.
    op.get_bind().execution_options(no_parameters=True).exec_driver_sql(script)
