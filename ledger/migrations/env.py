"""Run by alembic, with the connection that `ledger.schema.upgrade` opened."""

from __future__ import annotations

from alembic import context

from ledger._tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # All revisions or none: a half-migrated schema is nobody's.
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
