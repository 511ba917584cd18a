"""The declared tables of recall: contexts, trails, and views that were pinned."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from ledger._metadata import metadata
from ledger._metadata import tenant_column as _tenant

context = sa.Table(
    "context",
    metadata,
    _tenant(),
    sa.Column("context_hash", sa.Text, nullable=False),
    sa.Column("content_hash", sa.Text, nullable=False),
    # The canonical form, under a data key of the context's own: its plan holds names.
    sa.Column("ciphertext", sa.LargeBinary, nullable=False),
    sa.PrimaryKeyConstraint("tenant", "context_hash"),
    sa.ForeignKeyConstraint(["tenant"], ["tenant.tenant"], name="context_of_tenant"),
)

context_key = sa.Table(
    "context_key",
    metadata,
    _tenant(),
    sa.Column("context_hash", sa.Text, nullable=False),
    sa.Column("wrapped_key", sa.LargeBinary, nullable=False),
    sa.PrimaryKeyConstraint("tenant", "context_hash"),
    sa.ForeignKeyConstraint(
        ["tenant", "context_hash"], ["context.tenant", "context.context_hash"], name="key_of_context"
    ),
)

# The number of the newest trail. Apart from `head`: a question never waits for an append.
trail_head = sa.Table(
    "trail_head",
    metadata,
    _tenant(),
    sa.Column("number", sa.BigInteger, nullable=False),
    sa.PrimaryKeyConstraint("tenant"),
    sa.ForeignKeyConstraint(["tenant"], ["tenant.tenant"], name="trail_head_of_tenant"),
)

# A log of its own, numbered per tenant; it advances no commit: asking never changes the answer.
trail = sa.Table(
    "trail",
    metadata,
    _tenant(),
    sa.Column("trail_id", sa.Text, nullable=False),
    sa.Column("number", sa.BigInteger, nullable=False),
    sa.Column("context_hash", sa.Text, nullable=False),
    sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
    # Canonical JSON without content: view, configuration, hashes, route counts, latencies.
    sa.Column("body", sa.LargeBinary, nullable=False),
    # The question and the proposal, under a data key of the trail's own.
    sa.Column("ciphertext", sa.LargeBinary, nullable=False),
    sa.Column("seal", sa.LargeBinary, nullable=False),
    # How it was answered, and every event that its context shows or that decided it; NULL in rows
    # that are older than these columns.
    sa.Column("status", sa.Text, nullable=True),
    sa.Column("event_ids", pg.ARRAY(sa.Text), nullable=True),
    sa.PrimaryKeyConstraint("tenant", "trail_id"),
    sa.UniqueConstraint("tenant", "number", name="trail_number_once"),
    sa.ForeignKeyConstraint(
        ["tenant", "context_hash"], ["context.tenant", "context.context_hash"], name="trail_of_context"
    ),
    sa.Index("trail_by_context", "tenant", "context_hash"),
    sa.Index("trail_by_time", "tenant", "asked_at"),
    sa.Index("trail_by_event", "event_ids", postgresql_using="gin"),
)

trail_key = sa.Table(
    "trail_key",
    metadata,
    _tenant(),
    sa.Column("trail_id", sa.Text, nullable=False),
    sa.Column("wrapped_key", sa.LargeBinary, nullable=False),
    # Keyed digests of the names it is about: here, so that they go with what they are of.
    sa.Column("entities", pg.ARRAY(sa.LargeBinary), nullable=True),
    sa.PrimaryKeyConstraint("tenant", "trail_id"),
    sa.ForeignKeyConstraint(["tenant", "trail_id"], ["trail.tenant", "trail.trail_id"], name="key_of_trail"),
    sa.Index("trail_by_entity", "entities", postgresql_using="gin"),
)

pinned_view = sa.Table(
    "pinned_view",
    metadata,
    _tenant(),
    # A handle, in the clear: it stands in paths and in answers.
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("valid_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("known_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("cut", sa.BigInteger, nullable=False),
    sa.Column("pinned_at", sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint("tenant", "name"),
    sa.ForeignKeyConstraint(
        ["tenant", "epoch"], ["epoch.tenant", "epoch.epoch"], name="pinned_view_of_epoch"
    ),
    sa.CheckConstraint("name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'", name="pinned_view_name"),
)
