"""What every declared table has: its place in the schema, and the tenant that its rows belong to."""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData()


def tenant_column() -> sa.Column[str]:
    """Return the column that every table has and every key holds."""
    return sa.Column("tenant", sa.Text, nullable=False)
