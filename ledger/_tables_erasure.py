"""The declared tables of erasure: what went, by which event, and what is left of it."""

from __future__ import annotations

import sqlalchemy as sa

from ledger._metadata import metadata
from ledger._metadata import tenant_column as _tenant

erased = sa.Table(
    "erased",
    metadata,
    _tenant(),
    sa.Column("event_id", sa.Text, nullable=False),
    sa.Column("erasure_id", sa.Text, nullable=False),
    # The commit of the erasure.
    sa.Column("commit", sa.BigInteger, nullable=False),
    sa.PrimaryKeyConstraint("tenant", "event_id"),
    sa.ForeignKeyConstraint(
        ["tenant", "event_id"], ["event.tenant", "event.event_id"], name="erased_of_event"
    ),
    sa.ForeignKeyConstraint(
        ["tenant", "erasure_id"], ["event.tenant", "event.event_id"], name="erased_of_erasure"
    ),
    sa.ForeignKeyConstraint(
        ["tenant", "commit"], ["commit.tenant", "commit.commit"], name="erased_of_commit"
    ),
    # Whoever keeps something of the log in memory asks for the newest.
    sa.Index("erased_by_commit", "tenant", "commit"),
    sa.Index("erased_by_erasure", "tenant", "erasure_id"),
)

# What is left of an erased claim, for every epoch; `commit` is that of its event.
tombstone = sa.Table(
    "tombstone",
    metadata,
    _tenant(),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("ordinal", sa.Integer, nullable=False),
    sa.Column("commit", sa.BigInteger, nullable=False),
    sa.Column("event_id", sa.Text, nullable=False),
    # Keyed digests of the names; of a claim that only keeps acting, its place.
    sa.Column("entity", sa.Text, nullable=False),
    sa.Column("relation", sa.Text, nullable=False),
    # Canonical JSON of everything else: no name and no value; `seal` covers the row.
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("seal", sa.LargeBinary, nullable=False),
    sa.PrimaryKeyConstraint("tenant", "position", "ordinal"),
    sa.ForeignKeyConstraint(
        ["tenant", "event_id"], ["erased.tenant", "erased.event_id"], name="tombstone_of_erased"
    ),
    sa.CheckConstraint(
        "entity ~ '^( [0-9a-f]{64}| [0-9]+)?$' AND relation ~ '^( [0-9a-f]{64})?$'",
        name="tombstone_is_veiled",
    ),
    sa.Index("tombstone_of_key", "tenant", "entity", "relation"),
    sa.Index("tombstone_by_event", "tenant", "event_id"),
    sa.Index("tombstone_by_relation", "tenant", "relation"),
)

# Keys that a tombstone bears on beside its own, as `reach` has them of claims.
tombstone_reach = sa.Table(
    "tombstone_reach",
    metadata,
    _tenant(),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("entity", sa.Text, nullable=False),
    sa.Column("relation", sa.Text, nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("ordinal", sa.Integer, nullable=False),
    sa.PrimaryKeyConstraint("tenant", "epoch", "entity", "relation", "position", "ordinal"),
    sa.ForeignKeyConstraint(
        ["tenant", "epoch"], ["epoch.tenant", "epoch.epoch"], name="tombstone_reach_of_epoch"
    ),
    sa.CheckConstraint("entity ~ '^( |$)' AND relation ~ '^( |$)'", name="tombstone_reach_is_veiled"),
    sa.Index("tombstone_reach_by_relation", "tenant", "epoch", "relation"),
    sa.Index("tombstone_reach_by_place", "tenant", "epoch", "position", "ordinal"),
)

# Names that tombstones know by digest and claims that are left say: by them the two find each other.
veiled_name = sa.Table(
    "veiled_name",
    metadata,
    _tenant(),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("veil", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.PrimaryKeyConstraint("tenant", "epoch", "veil"),
    sa.ForeignKeyConstraint(
        ["tenant", "epoch"], ["epoch.tenant", "epoch.epoch"], name="veiled_name_of_epoch"
    ),
)
