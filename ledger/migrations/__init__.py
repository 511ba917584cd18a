"""Alembic revisions, shipped with the package and run by `ledger.schema`. Nothing imports this."""
