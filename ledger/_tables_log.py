"""The declared tables of the log: heads, commits, events with their keys, and what waits to be folded."""

from __future__ import annotations

import sqlalchemy as sa

from ledger._metadata import metadata
from ledger._metadata import tenant_column as _tenant

head = sa.Table(
    "head",
    metadata,
    _tenant(),
    sa.Column("commit", sa.BigInteger, nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("hash", sa.LargeBinary, nullable=False),
    # Whether anything was recorded by the server's own clock: from then on nobody may state another.
    sa.Column("live", sa.Boolean, nullable=False),
    # Of all events of the log, as they are stored.
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.PrimaryKeyConstraint("tenant"),
    sa.ForeignKeyConstraint(["tenant"], ["tenant.tenant"], name="head_of_tenant"),
)

commit = sa.Table(
    "commit",
    metadata,
    _tenant(),
    sa.Column("commit", sa.BigInteger, nullable=False),
    sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("first_position", sa.BigInteger, nullable=False),
    sa.Column("event_count", sa.Integer, nullable=False),
    sa.Column("previous_hash", sa.LargeBinary, nullable=False),
    sa.Column("hash", sa.LargeBinary, nullable=False),
    # Of the log's Merkle tree: the largest whole subtree that ends with this commit.
    sa.Column("tree", sa.LargeBinary, nullable=False),
    sa.PrimaryKeyConstraint("tenant", "commit"),
    sa.UniqueConstraint("tenant", "recorded_at", name="commit_clock"),
    sa.ForeignKeyConstraint(["tenant"], ["tenant.tenant"], name="commit_of_tenant"),
    sa.CheckConstraint("recorded_at < '9999-01-01T00:00:00Z'", name="commit_clock_in_range"),
)

event = sa.Table(
    "event",
    metadata,
    _tenant(),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("commit", sa.BigInteger, nullable=False),
    sa.Column("event_id", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    # Digests keyed with the tenant's digest key: found by equality, never guessed from a dump.
    sa.Column("stream_digest", sa.LargeBinary, nullable=False),
    sa.Column("stream_version", sa.BigInteger, nullable=False),
    sa.Column("source_digest", sa.LargeBinary),
    sa.Column("idempotency_digest", sa.LargeBinary),
    sa.Column("content_digest", sa.LargeBinary, nullable=False),
    # The exact bytes that the hash covers: canonical header in clear, payload encrypted.
    sa.Column("header", sa.LargeBinary, nullable=False),
    sa.Column("ciphertext", sa.LargeBinary, nullable=False),
    sa.Column("hash", sa.LargeBinary, nullable=False),
    sa.Column("correlation_digest", sa.LargeBinary),
    sa.PrimaryKeyConstraint("tenant", "position"),
    sa.UniqueConstraint("tenant", "event_id", name="event_id_once"),
    sa.UniqueConstraint("tenant", "idempotency_digest", name="event_idempotency_once"),
    sa.UniqueConstraint("tenant", "stream_digest", "stream_version", name="event_stream_version_once"),
    # That its commit is there is asked once a statement, by a trigger.
    # Few: without a key of its own an event is known by its source's id, and the two digests are one.
    sa.Index(
        "event_source",
        "tenant",
        "source_digest",
        postgresql_where=sa.text(
            "source_digest IS DISTINCT FROM idempotency_digest AND source_digest IS NOT NULL"
        ),
    ),
    sa.Index(
        "event_correlation",
        "tenant",
        "correlation_digest",
        "position",
        postgresql_where=sa.text("correlation_digest IS NOT NULL"),
    ),
    # Few: what an erasure looks for that was derived.
    sa.Index("event_derivation", "tenant", "position", postgresql_where=sa.text("kind = 'derivation'")),
    # Few: the contracts with which an epoch begins are read from them.
    sa.Index("event_relation", "tenant", "position", postgresql_where=sa.text("kind = 'relation'")),
    # Few: what every fold looks for.
    sa.Index("event_decision", "tenant", "position", postgresql_where=sa.text("kind = 'decision'")),
)

event_key = sa.Table(
    "event_key",
    metadata,
    _tenant(),
    sa.Column("event_id", sa.Text, nullable=False),
    # A secret, of which and the tenant's key the event's data key is made; up to event version 2 that key,
    # wrapped by the tenant's. Losing this row erases the payload.
    sa.Column("wrapped_key", sa.LargeBinary, nullable=False),
    sa.PrimaryKeyConstraint("tenant", "event_id"),
    # That its event is there is asked once a statement, by a trigger; not of an append, which makes both.
)

# One row a tenant while it has commits that are not folded: the relay's work list. The fold that
# reaches the commit deletes the row in its own transaction, so a wake-up that Redis loses is sent again.
outbox = sa.Table(
    "outbox",
    metadata,
    _tenant(),
    sa.Column("commit", sa.BigInteger, nullable=False),
    sa.PrimaryKeyConstraint("tenant"),
    sa.ForeignKeyConstraint(["tenant"], ["tenant.tenant"], name="outbox_of_tenant"),
)

# --- the projection -----------------------------------------------------------------------------
