"""The declared tables of tenants beside `tenant`: what one may use, and what is left of a deleted one."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from ledger._metadata import metadata
from ledger._metadata import tenant_column as _tenant

# None for a tenant about which nothing was decided. Each change is a `decision` of the tenant's log.
tenant_policy = sa.Table(
    "tenant_policy",
    metadata,
    _tenant(),
    sa.Column("suspended", sa.Boolean, nullable=False),
    sa.Column("events_max", sa.BigInteger),
    sa.Column("bytes_max", sa.BigInteger),
    sa.Column("events_per_minute", sa.Integer),
    sa.Column("retention_days", sa.Integer),
    # Events that may be appended at that time; below nothing after a large append, until that is made up for.
    sa.Column("allowance", sa.Double, nullable=False),
    sa.Column("allowance_at", sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint("tenant"),
    sa.ForeignKeyConstraint(["tenant"], ["tenant.tenant"], name="policy_of_tenant"),
    sa.CheckConstraint(
        "events_max >= 0 AND bytes_max >= 0 AND events_per_minute > 0 AND retention_days > 0",
        name="policy_is_positive",
    ),
)

# No key of a tenant: that is gone, and nobody gets its name.
deleted_tenant = sa.Table(
    "deleted_tenant",
    metadata,
    _tenant(),
    sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("deleted_by", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("commits", sa.BigInteger, nullable=False),
    sa.Column("events", sa.BigInteger, nullable=False),
    sa.PrimaryKeyConstraint("tenant"),
)

TABLES_ACROSS_TENANTS: Final = (
    *("tenant", "tenant_policy", "deleted_tenant", "head", "commit", "epoch", "outbox", "dead_letter"),
)
"""What the relay's role may read without a tenant set: numbers and states, no content."""
